"""Progress lines: of learning, of fits to folds, of the gap."""

import time

import numpy as np
from attacks.small_fits import grouped

from labelweave import HyperparameterSearch, KernelLogisticClassifier, LowRankClassifier, MaxMarginClassifier
from labelweave.datasets import make_text_like
from labelweave.estimators.progress_lines import GapLines


def test_learning_is_told_from_the_gap():
    states = []
    lines = GapLines(seconds=1e6)  # shown only by callbacks
    lines.show = lambda: states.append(lines.state)
    X = np.random.default_rng(0).normal(size=(40, 3))
    model, y = (
        KernelLogisticClassifier(tol=1e-2, hyperparameters=HyperparameterSearch(max_learning_iter=20)),
        (X[:, 0] > 0).astype(int),
    )
    model.set_callbacks(lines).fit(X, y)
    evaluations = len(model.learning_trace_)
    assert 3 < evaluations < 20
    told = [f"learning {k} of at most 20" for k in range(1, 20)]
    assert states[:20] == [*told, "at the end of learning"]
    gaps = [state.removeprefix("gap about ") for state in states[20:]]
    assert gaps[0] == f"{next(record.gap for record in model.trace_ if record.gap < 1):.1e}"
    assert gaps[-1] == f"{model.duality_gap_:.1e}"
    flat = MaxMarginClassifier().set_callbacks(lines).fit(X, np.eye(2)[y])
    assert states[-1] == f"gap about {flat.duality_gap_:.1e}"  # nothing is left of the learning


def test_lines_come_only_after_a_while(capsys):
    MaxMarginClassifier().set_callbacks(GapLines("fitting")).fit(np.eye(4), np.eye(4))
    assert capsys.readouterr().err == ""
    MaxMarginClassifier().set_callbacks(GapLines("fitting", seconds=0)).fit(np.eye(4), np.eye(4))
    assert "labelweave: fitting, 0 s: gap about " in capsys.readouterr().err


def test_lines_come_also_while_the_gap_stays(capsys):
    lines = GapLines("fitting", seconds=0.05)
    lines.setup(None, None)
    time.sleep(0.5)
    lines.teardown(None, None)
    time.sleep(0.2)  # for a line that was being written
    assert set(capsys.readouterr().err.splitlines()) <= {
        "labelweave: fitting, 0 s",
        "labelweave: fitting, 1 s",
    }
    time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_progress_tells_fits_from_learning_and_rounds():
    states, lines = [], GapLines(seconds=1e6)  # shown only by callbacks, also on a busy machine
    data = make_text_like(60, 40, 5, labels_per_row=1.5, words_per_row=8)
    lines.show = lambda: states.append(lines.state)
    choice = {"ranks": [1, 2], "alphas": [1.0, 2.0], "cv": 3, "max_iter": 20}
    grouped(
        LowRankClassifier, **choice, kernel="rbf", hyperparameters="learn", max_learning_iter=2
    ).set_callbacks(lines).fit(data.X, data.Y)
    assert states[:3] == ["learning 1 of at most 2", "at the end of learning", "fit 1 of at most 12 to folds"]
    assert states[13] == "fit 12 of at most 12 to folds"
    assert states[14] == "round 1 of at most 20"
