"""Probabilities of kernel logistic models compared with scikit-learn's Gaussian processes.

``GaussianProcessClassifier`` with its own search for a scale and a width (from 10 and 1 times the root of the
number of features, which are standardized) is compared with ``KernelLogisticClassifier``: hyperparameters of
the least cross-validated loss, with probabilities of the best scores ("cross-validation") or "averaged" over
Laplace's posterior; of the greatest marginal likelihood, averaged ("evidence"), also with 100 inducing
points; or a learned covariance of labels or classes ("coregionalized"), averaged. The linear models of
coregionalization of GPyTorch (300 steps of Adam) and GPflow (L-BFGS, at most 1,000 steps) run in processes of
their own, and are left out where these are not installed.

Data are scikit-learn's own (iris with two features and XOR are the examples of its user guide; breast cancer,
digits), the papers' (satimage, USPS), the examples of GPyTorch's documentation ("waves" are the signs of its
four tasks, labels per row; "rings" its three classes) and "latents", three functions drawn from a process,
the largest of which is the class, as in GPflow's. Every seed draws a number of training rows, or half of the
rows, and 1,000 test rows or the rest. Log loss, calibration error (over all entries of the table of classes)
and errors are those of the test rows; times are CPU seconds, of fit and ``predict_proba``.

``--large`` measures 100,000 rows of ten classes with 200 inducing points, with and without averages.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.metrics import log_loss
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks import frame
from benchmarks.problems import read_images
from benchmarks.programs import Program, ask
from labelweave import HyperparameterSearch, KernelLogisticClassifier
from labelweave.metrics import expected_calibration_error

_TEST_ROWS, _POINTS, _FACTORS = 1000, 100, 3
_LARGE = {"rows": 100_000, "classes": 10, "points": 200}


def _exclusive_or() -> tuple[Any, Any]:
    X = np.random.RandomState(0).randn(200, 2)
    return X, np.logical_xor(X[:, 0] > 0, X[:, 1] > 0).astype(int)


def _waves() -> tuple[Any, Any]:
    x, random = np.linspace(0, 1, 400)[:, None], np.random.RandomState(0)
    sine, cosine = np.sin(2 * np.pi * x), np.cos(2 * np.pi * x)
    tasks = np.hstack([sine, cosine, sine + 2 * cosine, -cosine])
    return x, (tasks + 0.2 * random.randn(*tasks.shape) > 0).astype(int)


def _rings() -> tuple[Any, Any]:
    X, phase = np.random.RandomState(0).randn(1000, 2), np.random.RandomState(1).rand()
    return X, np.rint(np.sin(0.15 * phase * np.pi * 10 * X.sum(axis=1)) + 1).astype(int)


def _latents() -> tuple[Any, Any]:
    random = np.random.RandomState(0)
    x = np.sort(random.rand(400, 1), axis=0)
    K = np.exp(-((x - x.T) ** 2) / (2 * 0.1**2)) + 1e-6 * np.eye(400)
    return x, (np.linalg.cholesky(K) @ random.randn(400, 3)).argmax(axis=1)


def _of_images(name: str) -> tuple[Any, Any]:
    X, y, X_test, y_test = read_images(name)
    return np.vstack([X, X_test]), np.concatenate([y, y_test])


_DATA: dict[str, Callable[[], tuple[Any, Any]]] = {
    "iris": lambda: (load_iris().data[:, :2], load_iris().target),
    "xor": _exclusive_or,
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "waves": _waves,
    "rings": _rings,
    "latents": _latents,
    "digits": lambda: load_digits(return_X_y=True),
    "satimage": lambda: _of_images("satimage"),
    "usps": lambda: _of_images("usps"),
}


def _ours(criterion: str, tie: str = "shared", **options: Any) -> Any:
    search = HyperparameterSearch(criterion=criterion, tie=tie)
    return KernelLogisticClassifier(hyperparameters=search, **options)


def _theirs(n_features: int) -> Any:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    kernel = ConstantKernel(10.0) * RBF(np.sqrt(n_features), (1e-2, 1e4))
    return GaussianProcessClassifier(kernel, random_state=0)


class _Peer:
    """A model of a package, whose process fits and predicts the rows that are given to ``predict_proba``."""

    seconds = (np.nan, np.nan)

    def __init__(self, package: str) -> None:
        name = package.lower()
        self.program = Program(package, f"benchmarks.peers.{name}_classes", name)

    def is_there(self) -> bool:
        words = [str(self.program.python), "-c", f"import {self.program.package}"]
        has_python = self.program.python.exists()
        return has_python and not subprocess.run(words, capture_output=True, check=False).returncode

    def fit(self, X: Any, y: Any) -> None:
        self.rows = X, y
        self.classes_ = np.unique(y)

    def predict_proba(self, new: Any) -> Any:
        X, y = self.rows
        y = y if y.ndim == 2 else np.searchsorted(self.classes_, y)
        found = ask(self.program, X=X, y=y, new=new)
        self.seconds = tuple(found["seconds"].tolist())
        return found["probabilities"]


_MODELS: dict[str, Callable[[int], Any]] = {
    "cross-validation": lambda _: _ours("cross_validation"),
    "averaged": lambda _: _ours("cross_validation", uncertainty="laplace"),
    "evidence": lambda _: _ours("marginal_likelihood", uncertainty="laplace"),
    "evidence, points": lambda _: _ours("marginal_likelihood", uncertainty="laplace", kernel_rank=_POINTS),
    "coregionalized": lambda _: _ours(
        "cross_validation", uncertainty="laplace", label_covariance=_FACTORS, tie="class"
    ),
    "scikit-learn": _theirs,
    "GPyTorch, coregionalized": lambda _: _Peer("GPyTorch"),
    "GPflow, coregionalized": lambda _: _Peer("GPflow"),
}


def measure(data: str, rows: int, seed: int, model: str) -> dict[str, float]:
    X, y = _DATA[data]()
    order = np.random.default_rng(seed).permutation(len(X))
    n = min(rows, len(X) // 2)
    train, test = order[:n], order[n : n + _TEST_ROWS]
    scaler = StandardScaler().fit(X[train])
    made, of_test = _MODELS[model](X.shape[1]), scaler.transform(X[test])
    if y.ndim == 2 and model == "scikit-learn":
        made = MultiOutputClassifier(made)
    with frame.quiet():
        _, seconds = frame.timed(made.fit, scaler.transform(X[train]), y[train])
    found, of_new = frame.timed(made.predict_proba, of_test)
    if isinstance(made, _Peer):
        seconds, of_new = made.seconds
    if isinstance(found, list):  # a table of two columns for each label
        found = np.stack([one[:, 1] for one in found], axis=1)
    truth = y[test] if y.ndim == 2 else np.asarray(y[test][:, None] == made.classes_, int)
    wrong = (found > 0.5) != truth if y.ndim == 2 else made.classes_[found.argmax(axis=1)] != y[test]
    losses = [log_loss(own, one, labels=[0, 1]) for own, one in zip(truth.T, found.T, strict=True)]
    return {
        "log loss": float(np.mean(losses) if y.ndim == 2 else log_loss(y[test], found, labels=made.classes_)),
        "calibration error": float(expected_calibration_error(truth, found)),
        "error": float(np.mean(wrong)),
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
    _, seconds = frame.timed(model.fit, X[:n], y[:n])
    found, of_new = frame.timed(model.predict_proba, X[n:])
    return {"log loss": float(log_loss(y[n:], found)), "fit": seconds, "predict": of_new}


def lines(runs: list[dict[str, Any]]) -> list[str]:
    names = ("log loss", "calibration error", "error", "fit", "predict")
    found = []
    for (data, rows, model), own in sorted(frame.groups(runs, "data", "rows", "model").items()):
        values = ([run[name] for run in own if name in run] for name in names)
        written = map(frame.mean_and_error, values, (3, 3, 3, 2, 2))
        found.append([data, str(rows), model, str(len(own)), *written])
    return frame.markdown(("data", "rows", "model", "seeds", *names), found)


@frame.command(
    data=frame.several(_DATA),
    models=frame.several(_MODELS),
    rows=frame.flag(300, "training rows at most"),
    seeds=frame.flag(3, "draws of training rows"),
    large=frame.flag(False, "measure the cost of 100,000 rows instead"),
    records=frame.RESULTS / "uncertainty.json",
)
def main(arguments: Any) -> None:
    record = frame.RecordedRuns(arguments)
    if arguments.large:
        words = {"probabilities of the scores": None, "averaged": "laplace"}
        for case in record.missing(data=["made"], rows=[_LARGE["rows"]], model=words, seed=[0]):
            record.add(case, measure_large(words[case["model"]]))
        arguments.data = []
    seeds, models = range(arguments.seeds), arguments.models
    for case in record.missing(data=arguments.data, rows=[arguments.rows], seed=seeds, model=models):
        made = _MODELS[case["model"]](1)
        if isinstance(made, _Peer) and not made.is_there():
            print(f"left out: {case['model']}, which is not installed for {made.program.python}")
        else:
            record.add(case, measure(**case))
    record.show("\n".join(lines(record.runs)))
