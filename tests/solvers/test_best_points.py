"""The best points of a run: never worse than 0, dual points shrunk where that raises the dual."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelweave.solvers.box_dual import BestPoints, dual_value


class _Terms:
    is_semidefinite = True

    def __init__(self, seed, coupled):
        generator = np.random.default_rng(seed)
        self.signs = generator.choice([-1.0, 1.0], (7, 3))
        self.targets = self.signs
        self.lower, self.upper = np.minimum(self.signs, 0), np.maximum(self.signs, 0)
        root = generator.standard_normal((7, 7)) * 10.0 ** generator.integers(-2, 3)
        self.matrix = root @ root.T
        self.inside = np.clip(generator.standard_normal((7, 3)), self.lower, self.upper)
        self.coupled = coupled

    def coupled_labels(self):
        return [np.arange(3)] if self.coupled else [np.array([label]) for label in range(3)]


def test_it_begins_with_the_gap_of_doing_nothing():
    terms = _Terms(0, coupled=False)
    best = BestPoints.at_zero(terms)
    assert best.primal == pytest.approx(21)
    assert best.dual == 0
    assert best.gap == pytest.approx(1)


@given(st.integers(0, 10_000), st.booleans())
def test_a_dual_point_is_shrunk_to_where_the_dual_is_highest(seed, coupled):
    terms = _Terms(seed, coupled)
    scores = terms.matrix @ terms.inside
    best = BestPoints.at_zero(terms)
    best, value = best.with_dual(terms, terms.inside, scores)
    assert value == pytest.approx(dual_value(terms, terms.inside, scores))
    assert (best.boxed >= terms.lower).all()
    assert (best.boxed <= terms.upper).all()
    assert best.dual == pytest.approx(dual_value(terms, best.boxed, terms.matrix @ best.boxed), abs=1e-9)
    for share in np.linspace(0, 1, 11):
        point = share * terms.inside
        assert dual_value(terms, point, terms.matrix @ point) <= best.dual + 1e-9


def test_only_better_points_are_kept():
    terms = _Terms(1, coupled=False)
    best = BestPoints.at_zero(terms)
    worse = np.full((7, 3), 100.0)
    best = best.with_primal(terms, worse, terms.matrix @ worse)
    assert not best.free.any()


@pytest.mark.parametrize("is_semidefinite", [True, False])
def test_points_that_contradict_the_other_side_are_rounding_where_nothing_is_indefinite(is_semidefinite):
    terms = _Terms(2, coupled=False)
    terms.is_semidefinite = is_semidefinite
    best = BestPoints.at_zero(terms)
    wrong = 1e40 * terms.signs  # scores of rounding: the quadratic terms are far below 0
    assert (best.with_dual(terms, terms.signs, -wrong)[0].dual > best.primal) is not is_semidefinite
    assert (best.with_primal(terms, -terms.signs, wrong).primal < best.dual) is not is_semidefinite
