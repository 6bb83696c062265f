"""Model files that earlier versions wrote load, and predict the same bits.

``written_by_e10e487`` holds files of every storable estimator of that version, with what it predicted for
eight rows (``scripts/make_model_fixtures.py``); ``written_by_3ff55f0`` and ``written_by_7136370`` those of
classes that came later.
Rounding must not be mistaken for a change:

- Scores of the models marked "exact" are sums of integers times numbers of few binary digits.  No addition
  rounds, so they have the same bits on every processor, and are compared so everywhere.
- Others take exponentials, or sums that round, and processors and linear algebra libraries differ in the last
  bits.  They are compared by their bits where processor, libraries and versions are those of the machine that
  wrote the files, and elsewhere up to rounding.

Predictions are labels or classes and must be equal everywhere: no score of the rows is near a threshold.

``decision_function`` of the first version was less the threshold of every label, and is now less the lowest
of them; scores of ``predict_top`` were less none.  These differences are taken into account, which rounds
where scores are not exact.  Thresholds of models with probabilities were log-odds, and are probabilities now.
"""

import json
from pathlib import Path

import make_model_fixtures as written
import numpy as np
import pytest
from scipy.special import logit

import labelweave
from labelweave.estimators.scorers import FactorScorer

FIRST, *LATER = (Path(__file__).parent / f"written_by_{at}" for at in ("e10e487", "3ff55f0", "7136370"))
INDEX = {folder: json.loads((folder / "index.json").read_text()) for folder in (FIRST, *LATER)}
FOLDERS = {name: folder for folder, index in INDEX.items() for name in index["models"]}
ENTRIES = {name: INDEX[folder]["models"][name] for name, folder in FOLDERS.items()}
ROUNDING = 1e-13  # of the greatest score; 1e-14 with other instruction sets of linear algebra and loops
LOG_ODDS = {
    "logistic_labels_learned": [0.2844, 0.2945, 0.3205, 0.3805],
    "tuned_frames": [-0.0136, 0.0122, 0.1139, 0.1299],
}
models = pytest.mark.parametrize("name", FOLDERS)


@pytest.fixture(scope="module")
def expected():
    return {key: value for folder in INDEX for key, value in np.load(folder / "expected.npz").items()}


@pytest.fixture(scope="module")
def same_machine():
    return {folder: written.arithmetic() == index["arithmetic"] for folder, index in INDEX.items()}


def _rows(expected, name):
    kind = ENTRIES[name]["rows"]
    return written.rows(kind, expected["X"], expected["near"])[written.FITTED :]


def _outputs(model, name, X):
    methods = ENTRIES[name]["outputs"]
    return {
        f"{name}/{key}": value
        for method in methods
        for key, value in written.output(model, method, X).items()
    }


def _assert_equal(found, expected, bits):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if bits or found.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, strict=True)
    else:
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=0)
        digits = ROUNDING * np.finfo(found.dtype).eps / np.finfo(np.float64).eps
        np.testing.assert_allclose(found, expected, rtol=digits, atol=digits * scale)


@models
def test_an_earlier_file_predicts_the_same(name, expected, same_machine):
    model = labelweave.load(FOLDERS[name] / f"{name}.lw")
    entry = ENTRIES[name]
    assert type(model).__name__ == entry["class"]
    X = _rows(expected, name)
    found = _outputs(model, name, X)
    moved = _as_earlier(model, name, found, X) if FOLDERS[name] == FIRST else {}
    moved |= _of_several_trees(model, name, found)
    assert set(found) == {key for key in expected if key.startswith(f"{name}/")}
    for key, value in found.items():
        same = entry["exact"] or (same_machine[FOLDERS[name]] and key not in moved)
        _assert_equal(moved.get(key, value), expected[key], bits=same)
    if hasattr(model, "predict_proba") and hasattr(model, "thresholds_") and model._form.kind == "labels":
        above = found[f"{name}/predict_proba"] > model.thresholds_
        np.testing.assert_array_equal(above, np.concatenate(list(model._deciding_blocks(X))) > 0)


def _of_several_trees(model, name, found):
    """Best labels of several trees have the scores of all labels, which were rounded in another order."""
    if len(getattr(model, "label_trees_", ())) < 2:
        return {}
    labels, scores = (found[f"{name}/predict_top.{number}"] for number in (0, 1))
    of_all = np.take_along_axis(found[f"{name}/decision_function"], labels, axis=1)
    np.testing.assert_array_equal(scores, of_all)
    return {f"{name}/predict_top.1": scores}


def _as_earlier(model, name, found, X):
    """Give scores that were less other thresholds in that version as they were there."""
    scores, top = f"{name}/decision_function", f"{name}/predict_top.1"
    if isinstance(model, labelweave.TableModel):
        X, model = model.vectorizer_.transform(X), model.classifier_
    limits = getattr(model, "thresholds_", np.zeros(1))
    moved, has_odds = {}, hasattr(model, "predict_log_proba") and hasattr(model, "thresholds_")
    if has_odds and np.ptp(limits):
        moved[scores] = found[scores] + logit(limits.min()) - logit(limits)
    elif isinstance(model, labelweave.TunedThresholdClassifier) and hasattr(model, "predict_proba"):
        moved[scores] = logit(found[scores] + limits.min()) - logit(limits)
    elif np.ptp(limits) or getattr(model, "decision", "half") == "expected_f1":
        moved[scores] = np.concatenate(list(model._deciding_blocks(X)))  # of which decisions still are
    lowest = logit(limits.min()) if has_odds else limits.min()
    if lowest and top in found:
        moved[top] = (found[top] + lowest).astype(found[top].dtype)
    return moved


@models
def test_an_earlier_file_has_the_same_fitted_attributes(name, same_machine):
    model = labelweave.load(FOLDERS[name] / f"{name}.lw")
    earlier = dict(ENTRIES[name]["attributes"])
    if FOLDERS[name] == FIRST and hasattr(model, "predict_proba") and "thresholds_" in earlier:
        odds = logit(model.thresholds_)
        if odds.any():
            del earlier["thresholds_"]
            np.testing.assert_allclose(np.unique(odds), LOG_ODDS[name], atol=5e-5)
        else:
            model.thresholds_ = odds
    if isinstance(getattr(model, "scorer_", None), FactorScorer) and not same_machine[FOLDERS[name]]:
        earlier.pop("coef_", None)  # a product of what is stored, which rounds
    found = written.attributes(model)
    assert {key: found.get(key) for key in earlier} == earlier


@models
def test_an_earlier_file_saved_again_is_the_same_model(name, expected, tmp_path):
    model = labelweave.load(FOLDERS[name] / f"{name}.lw")
    labelweave.save(model, tmp_path / "again.lw")
    again = labelweave.load(tmp_path / "again.lw")
    assert written.attributes(again) == written.attributes(model)
    X = _rows(expected, name)
    first, second = _outputs(model, name, X), _outputs(again, name, X)
    assert first.keys() == second.keys()
    for key, value in first.items():
        np.testing.assert_array_equal(second[key], value, strict=True)
