"""The search for hyperparameters on known functions."""

from types import SimpleNamespace

import numpy as np
import pytest

from labelweave.problems.hyperparameters.cross_validation import CriterionValue
from labelweave.problems.hyperparameters.search import SearchSettings, StagedSearch, _is_at_edge, learn

FREE = np.array([[-np.inf, np.inf], [-np.inf, np.inf]])


def bowl(theta):
    """1 + a quadratic with its minimum at (1, -2)."""
    away = theta - np.array([1.0, -2.0])
    curvature = np.array([[3.0, 1.0], [1.0, 1.0]])
    return CriterionValue(1 + away @ curvature @ away / 2, curvature @ away, 0.0, 1.0, 0.0, True)


FAILED = CriterionValue(np.nan, np.full(2, np.nan), 1.0, 1.0, 0.0, False)


def test_finds_the_minimum():
    found = learn(bowl, np.zeros(2), FREE, SearchSettings(tol=1e-10))
    np.testing.assert_allclose(found.theta, [1, -2], atol=1e-3)
    assert found.value == pytest.approx(1.0, abs=1e-6)
    assert found.status == "converged"
    assert [record.evaluation for record in found.trace] == list(range(1, len(found.trace) + 1))
    assert found.trace[0].value == bowl(np.zeros(2)).value
    assert found.trace[0].gradient == pytest.approx(1.0)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_the_size_of_the_criterion_does_not_matter(factor):
    def scaled(theta):
        found = bowl(theta)
        return found._replace(value=factor * found.value, gradient=factor * found.gradient)

    found, same = learn(scaled, np.zeros(2), FREE), learn(bowl, np.zeros(2), FREE)
    np.testing.assert_allclose(found.theta, same.theta, rtol=1e-6)
    assert len(found.trace) == len(same.trace)


def test_the_first_step_has_its_length():
    met = []

    def noted(theta):
        met.append(theta.copy())
        return bowl(theta)

    learn(noted, np.zeros(2), FREE, SearchSettings(first_step=0.3))
    assert np.linalg.norm(met[1] - met[0]) == pytest.approx(0.3)


def test_stays_in_the_box():
    found = learn(bowl, np.zeros(2), [(-0.5, 0.5), (-np.inf, np.inf)], SearchSettings(tol=1e-10))
    np.testing.assert_allclose(found.theta, [0.5, -1.5], atol=1e-3)


def test_the_iteration_limit():
    found = learn(bowl, np.array([30.0, 30.0]), FREE, SearchSettings(max_iter=2))
    assert found.status == "iteration_limit"
    assert found.value < bowl(np.array([30.0, 30.0])).value


@pytest.mark.parametrize("wall", [-1.9, -1.0, -0.3])
def test_a_failed_evaluation_is_a_bracket(wall):
    """Fits fail where the second parameter is below the wall; the search gets as near as possible."""

    def walled(theta):
        return bowl(theta) if theta[1] > wall else FAILED

    found = learn(walled, np.array([0.0, 2.0]), FREE, SearchSettings(first_step=5.0))
    assert found.theta[1] > wall
    assert found.value < 0.7 * bowl(np.array([0.0, 2.0])).value
    assert np.isnan([record.value for record in found.trace]).any()
    assert found.value == min(record.value for record in found.trace if not np.isnan(record.value))


def test_values_that_are_no_numbers_are_failures():
    def overflowing(theta):
        found = bowl(theta)
        return found if theta[1] > -1 else found._replace(value=np.inf)

    assert np.isfinite(learn(overflowing, np.zeros(2), FREE, SearchSettings(first_step=5.0)).value)


def test_fits_that_fail_at_the_start():
    with pytest.raises(ValueError, match="did not converge at the initial hyperparameters"):
        learn(lambda theta: FAILED, np.zeros(2), FREE)


def test_retreats_from_a_start_that_fails():
    """It continues while that is better, and moves its box along."""

    def hard(theta):
        return bowl(theta + np.array([6.0, 0.0])) if theta[0] < -2.5 else FAILED

    box = [(-1.0, 1.0), (-3.0, 3.0)]
    found = learn(hard, np.zeros(2), box, SearchSettings(tol=1e-10), retreat=lambda theta: theta - [1.0, 0.0])
    np.testing.assert_allclose(found.theta, [-5, -2], atol=1e-3)
    values = [record.value for record in found.trace]
    assert np.isnan(values[:3]).all()
    np.testing.assert_allclose(values[3:5], [hard(np.array([first, 0.0])).value for first in (-3, -4)])


def test_retreats_no_further_than_it_must():
    calls = []
    learn(bowl, np.zeros(2), FREE, retreat=calls.append)
    assert not calls
    with pytest.raises(ValueError, match="scale the features"):
        learn(lambda theta: FAILED, np.zeros(2), FREE, retreat=lambda theta: theta - 1.0)


def test_a_callback_ends_the_search():
    seen = []

    def third(record):
        seen.append(record)
        return len(seen) == 3

    found = learn(bowl, np.zeros(2), FREE, SearchSettings(on_record=third))
    assert found.status == "interrupted"
    assert found.trace == seen
    assert found.value == min(record.value for record in seen)


@pytest.mark.parametrize("last", [1, 2, 3])
def test_an_interrupt_keeps_the_best(last):
    calls = []

    def interrupted(theta):
        calls.append(theta)
        if len(calls) == last:
            raise KeyboardInterrupt
        return bowl(theta)

    found = learn(interrupted, np.zeros(2), FREE)
    assert found.status == "interrupted"
    assert len(found.trace) == last - 1
    if last == 1:
        assert np.isnan(found.value)
        np.testing.assert_array_equal(found.theta, [0, 0])
    else:
        assert found.value == min(record.value for record in found.trace)


def test_a_criterion_that_does_not_depend_on_anything():
    flat = CriterionValue(1.0, np.zeros(2), 0.0, 1.0, 0.0, True)
    found = learn(lambda theta: flat, np.zeros(2), FREE)
    assert (found.status, found.value) == ("converged", 1.0)


def test_a_search_goes_on_the_trace_of_another():
    def timed(theta):
        return bowl(theta)._replace(time=0.5)

    first = learn(timed, np.zeros(2), FREE, SearchSettings(max_iter=1))
    assert first.status == "iteration_limit"
    second = learn(timed, first.theta, FREE, SearchSettings(trace=first.trace, stage=2))
    assert second.trace[:1] == first.trace
    assert [record.stage for record in second.trace[:3]] == [1, 2, 2]
    assert [record.evaluation for record in second.trace] == list(range(1, len(second.trace) + 1))
    assert [record.time for record in second.trace] == [0.5 * r.evaluation for r in second.trace]
    within = learn(timed, first.theta, FREE, SearchSettings(max_iter=3, trace=first.trace))
    assert (len(within.trace), within.status) == (3, "iteration_limit")


@pytest.mark.parametrize(("place", "is_there"), [(0.0, False), (1.0, True), (-1.0, True), (2.0, False)])
def test_a_point_is_at_an_edge_where_the_box_could_be_moved_out(place, is_there):
    box, bounds = np.array([[-1.0, 1.0], [-1.0, 2.0]]), np.array([[-9.0, 9.0], [-9.0, 2.0]])
    theta = np.array([place, 0.0]) if abs(place) <= 1 else np.array([0.0, place])
    assert _is_at_edge(theta, box, bounds) is is_there


class _Family:
    """Separate parameters, or in a coarser form one."""

    bounds = np.array([[-9.0, 9.0], [-9.0, 9.0]])
    retreated = staticmethod(lambda theta: theta)

    def __init__(self, size=2):
        self.start = np.zeros(size)
        self.bounds = self.bounds[:size]

    def coarser(self):
        return _Family(1) if len(self.start) == 2 else None

    def from_coarser(self, theta):
        return np.repeat(theta, 2)


class _Staged(SimpleNamespace):
    """A criterion with a given minimum; it records its starting points."""

    def __init__(self, family, rows, minimum=(1.0, -2.0)):
        super().__init__(family=family, rows=rows, minimum=np.array(minimum), started=None)
        self.inner_states = f"of {len(family.start)} on {rows}"

    def __call__(self, theta):
        away = np.repeat(theta, 2 // len(theta)) - self.minimum
        gradient = away.reshape(len(theta), -1).sum(axis=1)
        return CriterionValue(1 + away @ away / 2, gradient, 0.0, 1.0, 0.0, True)

    def start_from(self, states):
        self.started = states


def _staged(start=None, minimum=(1.0, -2.0)):
    made = []

    def make(family, rows):
        made.append(_Staged(family, rows, minimum))
        return made[-1]

    search = StagedSearch(_Family(), make, "part", "whole", SearchSettings(tol=1e-10, max_iter=200), start)
    return *search.run(), made


def test_cheap_searches_come_first_and_leave_their_states_to_the_next_on_the_same_rows():
    learned, last, rows, made = _staged()
    assert [(len(one.family.start), one.rows) for one in made] == [(1, "part"), (1, "whole"), (2, "whole")]
    assert [one.started for one in made] == [None, None, "of 1 on whole"]
    assert (last, rows) == (made[-1], "whole")
    np.testing.assert_allclose(learned.theta, [1, -2], atol=1e-3)
    assert learned.status == "converged"


def test_a_given_start_leaves_the_cheap_searches_out():
    learned, _, _, made = _staged(start=np.array([0.9, -1.9]))
    assert [(len(one.family.start), one.rows) for one in made] == [(2, "whole")]
    np.testing.assert_allclose(learned.theta, [1, -2], atol=1e-3)


def test_a_search_on_all_rows_moves_its_box_as_far_as_the_optimum_is():
    learned, _, _, made = _staged(start=np.array([0.0, 0.0]), minimum=(4.5, -5.0))
    assert len(made) == 1
    np.testing.assert_allclose(learned.theta, [4.5, -5], atol=1e-3)
