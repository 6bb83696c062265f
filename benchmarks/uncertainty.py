"""How sure is it: probabilities of kernel logistic models compared with scikit-learn's Gaussian processes.

``GaussianProcessClassifier`` with its own search for a scale and a width (from 10 and 1 times the root of the
number of features, which are standardized) is compared with ``KernelLogisticClassifier``:

- "cross-validation": hyperparameters of the least cross-validated loss, probabilities of the best scores;
- "averaged": the same, with probabilities averaged over Laplace's posterior;
- "evidence": hyperparameters of the greatest marginal likelihood, averaged;
- "evidence, points": the same with 100 inducing points.

Data are scikit-learn's own (iris with two features and exclusive or are the examples of its user guide;
breast cancer, digits) and the papers' (satimage, USPS).  Every seed draws as many training rows as are asked
for, or half of the rows, and 1,000 test rows or the rest.  Log loss, calibration error (over all entries of
the table of classes) and errors are those of the test rows; seconds are the processor's, of fit and
``predict_proba``.

``--large`` measures 100,000 rows of ten classes with 200 inducing points, with and without averages.

Example: ``python -m benchmarks.uncertainty --data iris xor --seeds 3``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from benchmarks.frame import RESULTS, command, flag, markdown, mean_and_error, several, timed
from benchmarks.papers.satimage import read_satimage
from benchmarks.papers.usps import read_usps
from benchmarks.recorded_runs import RecordedRuns
from labelweave import HyperparameterSearch, KernelLogisticClassifier
from labelweave.metrics import expected_calibration_error

_TEST_ROWS, _POINTS = 1000, 100
_LARGE = {"rows": 100_000, "classes": 10, "points": 200}


def _exclusive_or() -> tuple[Any, Any]:
    X = np.random.RandomState(0).randn(200, 2)
    return X, np.logical_xor(X[:, 0] > 0, X[:, 1] > 0).astype(int)


def _of_split(split: Any) -> tuple[Any, Any]:
    return np.vstack([split.X, split.X_test]), np.concatenate([split.y, split.y_test])


_DATA: dict[str, Callable[[], tuple[Any, Any]]] = {
    "iris": lambda: (load_iris().data[:, :2], load_iris().target),
    "xor": _exclusive_or,
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "satimage": lambda: _of_split(read_satimage()),
    "usps": lambda: _of_split(read_usps()),
}


def _ours(criterion: str, **options: Any) -> Any:
    search = HyperparameterSearch(criterion=criterion)
    return KernelLogisticClassifier(hyperparameters=search, **options)


def _theirs(n_features: int) -> Any:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    kernel = ConstantKernel(10.0) * RBF(np.sqrt(n_features), (1e-2, 1e4))
    return GaussianProcessClassifier(kernel, random_state=0)


_MODELS: dict[str, Callable[[int], Any]] = {
    "cross-validation": lambda _: _ours("cross_validation"),
    "averaged": lambda _: _ours("cross_validation", uncertainty="laplace"),
    "evidence": lambda _: _ours("marginal_likelihood", uncertainty="laplace"),
    "evidence, points": lambda _: _ours("marginal_likelihood", uncertainty="laplace", kernel_rank=_POINTS),
    "scikit-learn": _theirs,
}


def measure(data: str, model: str, seed: int, rows: int) -> dict[str, float]:
    X, y = _DATA[data]()
    order = np.random.default_rng(seed).permutation(len(X))
    n = min(rows, len(X) // 2)
    train, test = order[:n], order[n : n + _TEST_ROWS]
    scaler = StandardScaler().fit(X[train])
    made = _MODELS[model](X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, seconds = timed(made.fit, scaler.transform(X[train]), y[train])
    found, of_new = timed(made.predict_proba, scaler.transform(X[test]))
    classes = made.classes_
    return {
        "log loss": float(log_loss(y[test], found, labels=classes)),
        "calibration error": float(
            expected_calibration_error(np.asarray(y[test][:, None] == classes, int), found)
        ),
        "error": float(np.mean(classes[found.argmax(axis=1)] != y[test])),
        "fit": seconds,
        "predict": of_new,
    }


def measure_large(uncertainty: str | None) -> dict[str, float]:
    """Fit 100,000 rows of ten classes through 200 inducing points, and predict 10,000."""
    n, points = _LARGE["rows"], _LARGE["points"]
    X, y = make_classification(
        n + 10_000, 16, n_informative=12, n_redundant=0, n_classes=_LARGE["classes"], random_state=0
    )
    model = KernelLogisticClassifier(hyperparameters="fixed", kernel_rank=points, uncertainty=uncertainty)
    _, seconds = timed(model.fit, X[:n], y[:n])
    found, of_new = timed(model.predict_proba, X[n:])
    return {"log loss": float(log_loss(y[n:], found)), "fit": seconds, "predict": of_new}


def lines(runs: list[dict[str, Any]]) -> list[str]:
    names = ("log loss", "calibration error", "error", "fit", "predict")
    cases = sorted({(run["data"], run["rows"], run["model"]) for run in runs})
    found = []
    for data, rows, model in cases:
        own = [run for run in runs if (run["data"], run["rows"], run["model"]) == (data, rows, model)]
        values = ([run[name] for run in own if name in run] for name in names)
        written = (mean_and_error(some, 2 if name in ("fit", "predict") else 3) for name, some in
                   zip(names, values, strict=True))  # fmt: skip
        found.append([data, str(rows), model, str(len(own)), *written])
    return markdown(("data", "rows", "model", "seeds", *names), found)


@command(
    data=several(_DATA),
    models=several(_MODELS),
    rows=flag(300, "training rows at most"),
    seeds=flag(3, "draws of training rows"),
    large=flag(False, "measure the cost of 100,000 rows instead"),
    records=RESULTS / "uncertainty.json",
)
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments)
    cases = [
        {"data": data, "rows": arguments.rows, "model": model, "seed": seed}
        for data in arguments.data
        for seed in range(arguments.seeds)
        for model in arguments.models
    ]
    if arguments.large:
        words = {"probabilities of the scores": None, "averaged": "laplace"}
        cases = [{"data": "made", "rows": _LARGE["rows"], "model": model, "seed": 0} for model in words]
    for case in cases:
        if record.wants(case):
            found = measure_large(words[case["model"]]) if arguments.large else measure(
                case["data"], case["model"], case["seed"], case["rows"]
            )  # fmt: skip
            record.add(case, found)
    record.show("\n".join(lines(record.runs)))
