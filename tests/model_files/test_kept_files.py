"""Model files written by an earlier commit load, and predict the same bits.

``kept`` holds files of every storable estimator, with their predictions for eight rows
(``scripts/make_model_fixtures.py``).  Rounding must not be mistaken for a change:

- Scores of the models marked "exact" are sums of integers times numbers of few binary digits.  No addition
rounds, so they have the same bits on every processor, and are compared so everywhere.
- Others use exponentials, or sums that round, and processors and linear algebra libraries differ in the last
bits.  They are compared by their bits if processor, libraries and versions are those of the machine that
wrote the files, and otherwise up to rounding.

Predictions are labels or classes and must be equal everywhere: no score of the rows is near a threshold.
"""

import json
import subprocess
import sys
from pathlib import Path

import make_model_fixtures as written
import numpy as np
import pytest

import labelweave
from labelweave.estimators.scorers import FactorScorer

FOLDER = Path(__file__).parent / "kept"
INDEX = json.loads((FOLDER / "index.json").read_text())
ENTRIES = INDEX["models"]
ROUNDING = 1e-13  # of the greatest score; 1e-14 with other instruction sets of linear algebra and loops
models = pytest.mark.parametrize("name", ENTRIES)


def test_a_new_process_reads_every_file():
    script = "import labelweave, sys; print(len([labelweave.load(path) for path in sys.argv[1:]]))"
    paths = [str(FOLDER / f"{name}.lw") for name in ENTRIES if name != "graph_own_features"]
    done = subprocess.run([sys.executable, "-c", script, *paths], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{len(paths)}\n", "")


@pytest.fixture(scope="module")
def expected():
    return dict(np.load(FOLDER / "expected.npz"))


@pytest.fixture(scope="module")
def same_machine():
    return written.arithmetic() == INDEX["arithmetic"]


def _loaded(name):
    return labelweave.load(FOLDER / f"{name}.lw")


def _rows(expected, name):
    return written.rows(ENTRIES[name]["rows"], expected["X"], expected["near"])[written.FITTED :]


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
def test_a_kept_file_predicts_the_same(name, expected, same_machine):
    model, entry = _loaded(name), ENTRIES[name]
    assert type(model).__name__ == entry["class"]
    X = _rows(expected, name)
    found = _outputs(model, name, X)
    assert set(found) == {key for key in expected if key.startswith(f"{name}/")}
    for key, value in found.items():
        _assert_equal(value, expected[key], bits=entry["exact"] or same_machine)
    if hasattr(model, "predict_proba") and hasattr(model, "thresholds_") and model._form.kind == "labels":
        above = found[f"{name}/predict_proba"] > model.thresholds_
        np.testing.assert_array_equal(above, np.concatenate(list(model._deciding_blocks(X))) > 0)


@models
def test_a_kept_file_has_the_same_fitted_attributes(name, same_machine):
    model, kept = _loaded(name), dict(ENTRIES[name]["attributes"])
    if isinstance(getattr(model, "scorer_", None), FactorScorer) and not same_machine:
        kept.pop("coef_", None)  # a product of what is stored, which rounds
    found = written.attributes(model)
    assert {key: found.get(key) for key in kept} == kept


@models
def test_a_kept_file_saved_again_is_the_same_model(name, expected, reloaded):
    model = _loaded(name)
    again = reloaded(model)
    assert written.attributes(again) == written.attributes(model)
    X = _rows(expected, name)
    first, second = _outputs(model, name, X), _outputs(again, name, X)
    assert first.keys() == second.keys()
    for key, value in first.items():
        np.testing.assert_array_equal(second[key], value, strict=True)
