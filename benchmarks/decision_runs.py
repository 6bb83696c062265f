"""Measurements of thresholds, calibration and conformal label sets; ``benchmarks.decisions`` prints them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from benchmarks.problems import read_parts
from labelweave import CalibratedLabelClassifier, MaxMarginClassifier, TunedThresholdClassifier, metrics
from labelweave.inference import choose_thresholds, choose_top_k, control_mistakes

SETS = ("scene", "yeast", "bibtex", "debtags", "tmc2007")
_OBJECTIVES = {"micro_f1": "micro", "macro_f1": "macro", "example_f1": "example"}
_LEVELS = (0.1, 0.2, 0.3)
_SPLITS = 200
_DRAWS = 10

Data = tuple[Any, Any, Any, Any]


def read(name: str, data: Path) -> Data:
    """Read a set: sparse rows in unit length, dense columns standardised; labels as CSR.

    data: the folder that has mulan/.
    """
    from sklearn.preprocessing import StandardScaler, normalize

    from labelweave.datasets import load_debtags

    if name == "debtags":
        X, Y, X_test, Y_test = load_debtags(return_X_y=True)
    else:
        train, test = read_parts(name, data)
        X, Y, X_test, Y_test = train.X, train.Y.positives, test.X, test.Y.positives
    if sp.issparse(X):
        X, X_test = (sp.csr_array(normalize(table)) for table in (X, X_test))
    else:
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return X, sp.csr_array(Y), X_test, sp.csr_array(Y_test)


def measure_thresholds(problem: Data) -> dict[str, Any]:
    """Compare default, tuned and oracle label sets of one model, and the time that tuning takes.

    problem: X, Y, X_test, Y_test.
    Returns: F1 scores by objective, and seconds.
    """
    X, Y, X_test, Y_test = problem
    model = MaxMarginClassifier()
    seconds, plain = _timed(lambda: model.fit(X, Y))
    scores = plain.decision_function(X_test)
    found: dict[str, Any] = {"seconds": {"plain": seconds}, "f1": {}}
    for objective, average in _OBJECTIVES.items():
        f1 = {"default": metrics.f1_score(Y_test, scores > 0, average=average)}
        for title, options in _WAYS.items():
            wrapped = TunedThresholdClassifier(model, objective, **options)
            taken, tuned = _timed(partial(wrapped.fit, X, Y))
            f1[title] = metrics.f1_score(Y_test, tuned.predict(X_test), average=average)
            found["seconds"][f"{title}, {objective}"] = taken
        sets = CalibratedLabelClassifier(model, decision="expected_f1").fit(X, Y).predict(X_test)
        f1["expected F1"] = metrics.f1_score(Y_test, sets, average=average)
        f1["oracle, a threshold a label"] = choose_thresholds(Y_test, scores, objective).value
        f1["oracle, one threshold"] = choose_thresholds(Y_test, scores, objective, scope="global").value
        f1["oracle, top k"] = choose_top_k(Y_test, scores, objective).value
        found["f1"][objective] = f1
    return found


_WAYS: dict[str, dict[str, Any]] = {
    "tuned": {},
    "tuned, pooling 50": {"pooling": 50.0},
    "tuned, no pooling": {"pooling": 0.0},
    "tuned, 5 folds": {"cv": 5},
    "one threshold": {"scope": "global"},
    "top k": {"scope": "top_k"},
}


def measure_calibration(problem: Data) -> dict[str, Any]:
    """Measure the calibration error before and after.

    problem: X, Y, X_test, Y_test.
    Returns: errors over all entries, over labels, and of the most probable label of every row, each beside
    the error that these probabilities would show if they were the truth; log loss.
    """
    X, Y, X_test, Y_test = problem
    model = MaxMarginClassifier()
    before = expit(model.fit(X, Y).decision_function(X_test))
    found = {"before": _errors(Y_test, before)}
    for method in ("auto", "sigmoid", "isotonic"):
        for pooling in (True,) if method == "auto" else (True, False):
            for cv in (None, 5):
                title = f"{method}{'' if pooling else ', no pooling'}{'' if cv is None else ', 5 folds'}"
                calibrated = CalibratedLabelClassifier(model, method, pooling=pooling, cv=cv).fit(X, Y)
                found[title] = _errors(Y_test, calibrated.predict_proba(X_test))
    return found


def _errors(truth: Any, probabilities: Any) -> dict[str, float]:
    shown = _calibration_errors(truth.toarray(), probabilities)
    generator, drawn = np.random.default_rng(0), []
    for _ in range(_DRAWS):
        labels = (generator.random(probabilities.shape) < probabilities).astype(np.int8)
        drawn.append(_calibration_errors(labels, probabilities))
    found: dict[str, float] = {}
    for name, value in shown.items():
        found[name] = value
        found[f"{name}, if true"] = float(np.mean([errors[name] for errors in drawn]))
    return found | {"log loss": metrics.log_loss(truth, probabilities)}


def _calibration_errors(labels: Any, probabilities: Any) -> dict[str, float]:
    best, rows = probabilities.argmax(axis=1), np.arange(len(probabilities))
    error = metrics.expected_calibration_error
    return {
        "entries": error(labels, probabilities),
        "labels": error(labels, probabilities, average="macro"),
        "best label": error(labels[rows, best][:, None], probabilities[rows, best][:, None]),
    }


def measure_conformal(problem: Data) -> dict[str, Any]:
    """Calibrate on a quarter of the test rows and look at the others, 200 times.

    problem: X, Y, X_test, Y_test.
    Returns: by what is controlled, with which guarantee and level: the share of splits that hold, mean shares
    of mistakes and sizes of sets.
    """
    X, Y, X_test, Y_test = problem
    scores = CalibratedLabelClassifier(MaxMarginClassifier()).fit(X, Y).predict_proba(X_test)
    truth, found = Y_test.toarray() > 0, {}
    for control, guarantee in (
        ("false_negatives", "probability"),
        ("false_discoveries", "probability"),
        ("false_negatives", "expectation"),
    ):
        for level in _LEVELS:
            runs = [_one_split(seed, scores, truth, (control, guarantee, level)) for seed in range(_SPLITS)]
            shares, sizes = np.array(runs).T
            found[f"{control}, {guarantee}, {level}"] = {
                "hold": float((shares <= level).mean()),
                "mean": float(shares.mean()),
                "largest": float(shares.max()),
                "labels a row": float(sizes.mean()),
            }
    return found


def _one_split(seed: int, scores: Any, truth: Any, what: tuple[str, str, float]) -> tuple[float, float]:
    control, guarantee, level = what
    order = np.random.default_rng(seed).permutation(len(scores))
    ours, others = order[: len(order) // 4], order[len(order) // 4 :]
    found = control_mistakes(truth[ours], scores[ours], control, level=level, guarantee=guarantee)
    predicted = scores[others] > found.threshold
    hits = (predicted & truth[others]).sum(axis=1)
    whole = (truth[others] if control == "false_negatives" else predicted).sum(axis=1)
    return float(((whole - hits) / np.maximum(whole, 1)).mean()), float(predicted.sum(axis=1).mean())


def measure_text_problem(n_rows: int, n_labels: int) -> dict[str, Any]:
    """Compare time and micro-averaged F1 with scikit-learn's own tuning inside one-against-the-rest.

    n_rows: training rows; there are a quarter as many test rows.
    Returns: seconds and F1 by program, and the oracle.
    """
    from sklearn.model_selection import TunedThresholdClassifierCV
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    from labelweave.datasets import make_text_like

    made = make_text_like(n_rows + n_rows // 4, 5_000, n_labels, words_per_row=9, random_state=0)
    labels = made.Y.positives
    X, Y, X_test, Y_test = made.X[:n_rows], labels[:n_rows], made.X[n_rows:], labels[n_rows:]
    one_vs_rest = OneVsRestClassifier(LinearSVC(random_state=0))
    programs = {
        "one against the rest": one_vs_rest,
        "TunedThresholdClassifier": TunedThresholdClassifier(one_vs_rest),
        "TunedThresholdClassifier, one threshold": TunedThresholdClassifier(one_vs_rest, scope="global"),
        "TunedThresholdClassifier, 5 folds": TunedThresholdClassifier(one_vs_rest, cv=5),
        "MaxMarginClassifier": MaxMarginClassifier(),
        "TunedThresholdClassifier, MaxMarginClassifier": TunedThresholdClassifier(MaxMarginClassifier()),
        "scikit-learn's TunedThresholdClassifierCV": OneVsRestClassifier(
            TunedThresholdClassifierCV(LinearSVC(random_state=0), scoring="f1")
        ),
    }
    found: dict[str, Any] = {}
    for title, program in programs.items():
        seconds, fitted = _timed(partial(program.fit, X, Y))
        predicted = fitted.predict(X_test)
        if "CV" in title:  # one against the rest looks at decision_function, which knows no thresholds
            predicted = np.column_stack([one.predict(X_test) for one in fitted.estimators_])
        found[title] = {"seconds": seconds, "micro_f1": metrics.f1_score(Y_test, predicted)}
        if title in ("one against the rest", "MaxMarginClassifier"):
            best = choose_thresholds(Y_test, fitted.decision_function(X_test))
            found[title]["oracle"] = best.value
    return found


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Measure the processor's seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        result = work()
    return time.process_time() - started, result
