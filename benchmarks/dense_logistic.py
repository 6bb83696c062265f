"""Logistic models of dense rows compared with scikit-learn's logistic regression, one thread, CPU seconds.

The bundled debtags by truncated SVD to 384 dimensions in rows of unit length, delicious with its 500 features
as dense rows, and synthetic rows of 384 columns; the most frequent labels of each. scikit-learn fits one
label at a time (lbfgs, C = 1).  The low-rank model has its default penalty, the trace norm, and the ridge
penalty with lambda = 1, whose objective is scikit-learn's except that it penalizes the intercepts.  Kernel
logistic classification has a linear kernel of scale 10, the default (C = 10 there), and of scale 1, whose
objective is scikit-learn's except for the intercepts.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.dense_logistic --problems debtags:50 delicious:50 --runs 3
"""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from benchmarks.frame import command, flag, several, timed
from benchmarks.problems import read_parts
from labelweave import KernelLogisticClassifier, LowRankClassifier

_ROWS, _WIDTH = 20_000, 384


def _warm(data: tuple[Any, ...], models: list[str]) -> None:
    for model in models:
        _MODELS[model](data[0][:500], data[1][:500, :3])


def _log_loss(probabilities: Any, Y: Any) -> float:
    clipped = np.clip(probabilities, 1e-12, 1 - 1e-12)
    return float(-np.where(Y > 0, np.log(clipped), np.log1p(-clipped)).mean())


def _data(name: str, n_labels: int) -> tuple[Any, Any, Any, Any]:
    if name == "synthetic":
        return made_rows(n_labels)
    train, test = read_parts(name)
    X, Y, X_test, Y_test = train.X, train.Y.positives, test.X, test.Y.positives
    if name == "debtags":
        from sklearn.decomposition import TruncatedSVD
        from sklearn.preprocessing import normalize

        axes = TruncatedSVD(_WIDTH, random_state=0).fit(X)
        X, X_test = (normalize(axes.transform(part)) for part in (X, X_test))
    X, Y, X_test, Y_test = (
        np.asarray(a.toarray() if hasattr(a, "toarray") else a) for a in (X, Y, X_test, Y_test)
    )
    kept = np.argsort(-Y.sum(axis=0), kind="stable")[:n_labels]
    return X.astype(float), Y[:, kept].astype(np.int8), X_test.astype(float), Y_test[:, kept].astype(np.int8)


def made_rows(n_labels: int) -> tuple[Any, Any, Any, Any]:
    """Make rows with 40 leading directions, and labels with frequencies from 1 to 20 %."""
    rng, n = np.random.default_rng(0), _ROWS + _ROWS // 4
    X = rng.standard_normal((n, 40)) @ rng.standard_normal((40, _WIDTH)) / 6 + rng.standard_normal(
        (n, _WIDTH)
    )
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    shared = rng.standard_normal((_WIDTH, 20)) @ rng.standard_normal((20, n_labels)) / 4
    scores = 4 * X @ (shared + 0.5 * rng.standard_normal((_WIDTH, n_labels)))
    scores += rng.logistic(size=scores.shape)
    limits = [
        np.quantile(column, 1 - share)
        for column, share in zip(scores.T, rng.uniform(0.01, 0.2, n_labels), strict=True)
    ]
    Y = (scores > limits).astype(np.int8)
    return X[:_ROWS], Y[:_ROWS], X[_ROWS:], Y[_ROWS:]


def _peer(X: Any, Y: Any) -> Callable[[Any], Any]:
    from sklearn.linear_model import LogisticRegression

    models = [LogisticRegression(max_iter=1000).fit(X, y) for y in Y.T]
    return lambda rows: np.column_stack([model.predict_proba(rows)[:, 1] for model in models])


def _own(model: Any) -> Callable[[Any, Any], Callable[[Any], Any]]:
    def fit(X: Any, Y: Any) -> Callable[[Any], Any]:
        own = clone(model).fit(X, Y)
        return getattr(own, "predict_proba", lambda rows: expit(rows @ own.coef_.T + own.intercept_))

    return fit


_LOW_RANK = LowRankClassifier(loss="log_loss", n_jobs=1)
_KERNEL = KernelLogisticClassifier("linear", hyperparameters="fixed", n_jobs=1)
_MODELS: dict[str, Callable[[Any, Any], Callable[[Any], Any]]] = {
    "scikit-learn, C = 1": _peer,
    "low rank, trace norm": _own(_LOW_RANK),
    "low rank, ridge": _own(clone(_LOW_RANK).set_params(penalty="ridge")),
    "kernel logistic, scale 10": _own(clone(_KERNEL).set_params(scale=10.0)),
    "kernel logistic, scale 1": _own(clone(_KERNEL).set_params(scale=1.0)),
}


@command(
    problems=["debtags:50", "synthetic:50", "synthetic:500", "delicious:50", "delicious:500"],
    models=several(_MODELS),
    runs=flag(3, "interleaved; the median is told"),
)
def main(arguments: Any) -> None:
    print("| problem | model | CPU seconds | log loss of test entries |\n|---|---|---|---|")
    for problem in arguments.problems:
        name, n_labels = problem.split(":")
        data = _data(name, int(n_labels))
        _warm(data, arguments.models)
        seconds: dict[str, list[float]] = {model: [] for model in arguments.models}
        losses = {}
        for _ in range(arguments.runs):
            for model in arguments.models:
                predict, spent = timed(_MODELS[model], *data[:2])
                seconds[model].append(spent)
                losses[model] = _log_loss(predict(data[2]), data[3])
        for model in arguments.models:
            median = statistics.median(seconds[model])
            print(f"| {problem} | {model} | {median:.1f} | {losses[model]:.5f} |", flush=True)
