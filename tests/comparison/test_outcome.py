"""A comparison's table, and the models it accepts, without a fit."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from labelweave.decisions.comparison import Comparison, Difference, named_models
from refused import refusals

FOUND = Comparison(
    {
        "a": {"micro_f1": np.array([0.5, 0.7]), "fit_seconds": np.array([1.0, 3.0])},
        "b": {"micro_f1": np.array([0.4, 0.4]), "fit_seconds": np.array([1.0, np.nan])},
    },
    test_share=0.5,
    reference="a",
)

test_what_makes_no_sense_is_refused = refusals(__file__)


def test_a_frame_has_means_and_differences():
    pytest.importorskip("pandas")
    frame = FOUND.to_frame()
    assert list(frame.index) == ["micro_f1", "fit_seconds"]
    assert [name for name in frame if name[0] == "a"] == [("a", "mean")]
    assert list(frame["b"]) == ["mean", "difference", "low", "high"]
    one = FOUND.difference("b", "micro_f1")
    np.testing.assert_allclose(frame["b"].loc["micro_f1"], [0.4, one.mean, one.low, one.high])
    assert frame["b"].loc["fit_seconds", ["low", "high"]].isna().all()
    alone = Comparison({"a": FOUND.values["a"]}, 0.5, "a").to_frame()
    assert list(alone) == [("a", "mean")]


def test_words_and_intervals():
    said = " ".join(repr(FOUND).split())
    assert "mean over 2 folds; in brackets the 95 % interval of the difference to a" in said
    single = Comparison({"a": {"f1": np.array([0.5])}, "b": {"f1": np.array([0.25])}}, 0.5, "a")
    assert repr(single).splitlines()[1].split() == ["f1", "0.5", "0.25"]
    assert repr(single).endswith("on a single fold")
    assert Difference(0.2, 0.1, 0.3).is_clear
    assert Difference(-0.2, -0.3, -0.1).is_clear
    assert not Difference(0.0, -0.1, 0.1).is_clear
    wide, narrow = FOUND.interval("a", "micro_f1", 0.99), FOUND.interval("a", "micro_f1")
    assert wide.low < narrow.low < narrow.mean == pytest.approx(0.6)


def test_names_of_models():
    one, other = DummyClassifier(), DummyClassifier()
    assert list(named_models(one)) == ["DummyClassifier"]
    assert list(named_models([one, other, ("x", one)])) == ["DummyClassifier", "DummyClassifier 2", "x"]
    assert named_models({"x": one}) == {"x": one}


def test_the_interval_of_a_mean_is_the_difference_to_nothing():
    values = {
        name: {"micro_f1": np.array(part)} for name, part in {"a": [0.2, 0.4, 0.5], "b": [0.0] * 3}.items()
    }
    found = Comparison(values, 0.5, "b")
    assert found.interval("a", "micro_f1") == found.difference("a", "micro_f1")


@pytest.mark.parametrize("n_models", [1, 3, 8])
def test_comparisons_fit_into_80_columns(n_models):
    rng = np.random.default_rng(0)
    names = ["max-margin, calibrated, conformal", *(f"binary-relevance {k}" for k in range(n_models))]
    metrics = ("label_ranking_average_precision", "micro_f1")
    values = {name: {metric: rng.random(5) / 1000 for metric in metrics} for name in names}
    out = repr(Comparison(values, 0.25, names[0]))
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("label_ranking_average_precision") == out.count("metric ") >= 1
    assert all(f"{k}" in out for k in range(n_models))
    assert "…" not in out  # nothing is truncated
    assert " ".join(out.split()).endswith("conformal, * where it excludes 0")
