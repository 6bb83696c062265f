"""A time limit ends a fit by the clock, with the complete members."""

import time

import pytest
from numpy.testing import assert_array_equal

import labelweave as lw
from drawn import draw_own
from labelweave.decisions.automatic import members
from labelweave.decisions.automatic.plan import Shape, make_plan
from watching import Count

MEMBERS = ["rbf+forest", "forest", "linear"]


@pytest.fixture(scope="module")
def data():
    return draw_own(120, 5, above=0.5)


def fitted(data, **parameters):
    return lw.AutoLabelClassifier(**{"time_budget": 1e-3} | parameters).fit(*data)


class Clock:
    """Advances by a second at every reading; the processor is never waited for."""

    def __init__(self):
        self.now = time.perf_counter()

    def perf_counter(self):
        self.now += 1.0
        return self.now

    def process_time(self):
        return self.now


def test_the_cheapest_member_is_fitted_in_any_case(data):
    with pytest.warns(
        UserWarning, match="reached time_limit=1e-06, which is not reproducible, after 1 of 3 members"
    ):
        model = fitted(data, members=MEMBERS, time_limit=1e-6)
    assert model.status_ == "time_limit"
    assert model.plan_["members"][-1] == "rbf+forest"
    assert [one["name"] for one in model.members_] == model.plan_["members"][:1]
    only = fitted(data, members=model.plan_["members"][:1])
    assert_array_equal(model.predict_proba(data[0]), only.predict_proba(data[0]))


def test_a_limit_that_is_not_met_changes_nothing(data):
    steps = Count()
    model = lw.AutoLabelClassifier(members=["forest"], time_budget=1e-3, time_limit=600)
    model.set_callbacks(steps).fit(*data)
    assert (model.status_, len(steps.names)) == ("complete", steps.expected)
    assert_array_equal(model.predict_proba(data[0]), fitted(data, members=["forest"]).predict_proba(data[0]))


def test_the_plan_is_made_for_the_limit():
    shape = Shape(2000, 50, 10, 50.0)
    plans = [make_plan(shape, None, budget, limit) for budget, limit in ((None, 1e9), (9.0, 1e9), (300, 9.0))]
    assert plans[0].seconds == make_plan(shape, None, None).seconds
    assert plans[1] == plans[2]
    assert sorted(plans[0].members) == sorted(make_plan(shape, None, None).members)
    assert plans[0].members[-1] == "rbf+forest"


def test_a_member_that_would_not_be_done_in_time_is_dropped_between_folds(data, monkeypatch):
    """Tasks take a second each, and one passes between two of them; the first member has 18."""
    monkeypatch.setattr(members, "time", Clock())
    steps = Count()
    model = lw.AutoLabelClassifier(members=[lw.LowRankClassifier(1), "linear"], time_limit=44)
    with pytest.warns(UserWarning, match="after 1 of 2 members"):
        model.set_callbacks(steps).fit(*data)
    assert model.plan_["members"] == ["linear", "LowRankClassifier"]
    assert [one["name"] for one in model.members_] == ["linear"]
    assert 1 <= steps.names.count("LowRankClassifier") <= 4
