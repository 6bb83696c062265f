"""The progress of fits, drawn without a screen."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from drawn import draw_own
from labelweave.display import DualProgressDisplay
from labelweave.solvers import TraceRecord
from pictures import legend_texts


@pytest.fixture(scope="module")
def models():
    X, Y = draw_own(80, noise=0.5)
    return {
        "margin": lw.MaxMarginClassifier(tol=1e-5).fit(X, Y),
        "low rank": lw.LowRankClassifier(rank=2).fit(X, Y),
        "kernel": lw.KernelLogisticClassifier(gamma=0.5, hyperparameters="fixed").fit(X, Y.argmax(axis=1)),
        "tuned": make_pipeline(StandardScaler(), lw.TunedThresholdClassifier(lw.MaxMarginClassifier())).fit(
            X, Y
        ),
    }


def test_lines_are_the_trace(models):
    model = models["margin"]
    display = DualProgressDisplay.from_estimator(model)
    objective, gap = display.ax_
    primal, dual = objective.lines
    np.testing.assert_array_equal(primal.get_ydata(), [record.primal for record in model.trace_])
    np.testing.assert_array_equal(dual.get_ydata(), [record.dual for record in model.trace_])
    np.testing.assert_array_equal(primal.get_xdata(), [record.time for record in model.trace_])
    np.testing.assert_array_equal(gap.lines[0].get_ydata(), [record.gap for record in model.trace_])
    assert legend_texts(objective) == ["Objective (primal)", "Lower bound (dual)"]
    assert gap.get_yscale() == "log"
    rounds = DualProgressDisplay.from_estimator(model, against="rounds", panels=["gap"])
    assert rounds.lines_[0].get_xdata()[-1] == model.n_iter_
    assert rounds.ax_.get_xlabel() == "Rounds"


def test_several_models_are_shares_of_their_last_objective(models):
    display = DualProgressDisplay.from_estimator(models)
    objective, gap = display.ax_
    assert legend_texts(objective) == ["margin", "low rank", "kernel", "tuned"]
    assert "low rank (decrease per round)" in legend_texts(gap)
    assert all(line.get_ydata()[-1] == pytest.approx(1.0, abs=0.01) for line in objective.lines)
    assert objective.get_ylabel() == "Share of the last objective"
    assert len(objective.lines) == 7
    given = DualProgressDisplay.from_estimator(list(models.values()), relative=False)
    assert [fit.name for fit in given.fits] == [
        "MaxMarginClassifier", "LowRankClassifier", "KernelLogisticClassifier", "TunedThresholdClassifier"
    ]  # fmt: skip
    twice = DualProgressDisplay.from_estimator([models["margin"]] * 2)
    assert legend_texts(twice.ax_[1]) == ["MaxMarginClassifier", "MaxMarginClassifier 2"]


def test_traces_of_every_kind():
    passes = [TraceRecord(k, 0.1 * k, 5 / k, 1 - 1 / k, 1 / k, n_cliques=3) for k in range(1, 60)]
    bounded = DualProgressDisplay.from_traces({"graph": passes})
    assert len(bounded.ax_[0].lines) == 2
    assert bounded.lines_[0].get_marker() == "None"
    unbounded = [record._replace(dual=np.nan, gap=np.nan) for record in passes]
    alone = DualProgressDisplay.from_traces(unbounded, panels="objective")
    assert len(alone.ax_.lines) == 1
    assert DualProgressDisplay.from_traces({"a": passes, "b": unbounded}).figure_ is not None
    single = DualProgressDisplay.from_traces([TraceRecord(1, 0.0, 2.0, 1.0, 0.5, 1.0)])
    single.figure_.canvas.draw()


def test_far_first_values_do_not_flatten_the_rest():
    records = [TraceRecord(0, 0.0, 1e6, 0.0, 1.0, 1.0)]
    records += [TraceRecord(k, k, 10 + 1 / k, 10 - 1 / k, 0.2 / k, 1.0) for k in range(1, 30)]
    low, high = DualProgressDisplay.from_traces(records, panels="objective").ax_.get_ylim()
    assert 9 < low < 10 < high < 11


def test_durations_of_different_size_are_on_a_logarithmic_axis():
    short = [TraceRecord(k, 0.01 * k, 1 + 1 / k, 1 - 1 / k, 2 / k, 1.0) for k in range(1, 9)]
    long = [record._replace(time=100 * record.time) for record in short]
    display = DualProgressDisplay.from_traces({"short": short, "long": long})
    assert display.ax_[0].get_xscale() == "log"
    assert DualProgressDisplay.from_traces({"short": short}).ax_[0].get_xscale() == "linear"


def test_a_fit_without_a_dual_shows_its_decreases():
    records = [
        SimpleNamespace(iteration=k, time=k, primal=3.0 - k, gap=gap) for k, gap in ((1, np.nan), (2, 0.5))
    ]
    (line,) = DualProgressDisplay.from_traces(records, panels="gap").lines_
    np.testing.assert_array_equal(line.get_ydata(), [0.5])
    assert line.get_linestyle() == ":"
    records[1].gap = 0.0
    assert DualProgressDisplay.from_traces(records, panels="gap").lines_ == []
