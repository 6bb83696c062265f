"""Small fits of every kind, and a digest of all their bits, for attacks and for tests of all models."""

import hashlib
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from benchmarks.frame import quiet

import labelweave as lw
from attacks.own_solver import Fista
from labelweave.model_files import storable
from labelweave.testing import CliqueFeatures

N_LABELS = 5
_TIES = 0.6 * np.eye(N_LABELS) + 0.4
_TREE = {"x": ["a", "b"], "y": ["c", "d"]}
ONE_CLASS = "logistic, tree", "logistic, classes"  # kinds whose rows have one class

_SHORT = lw.HyperparameterSearch(max_learning_iter=7)
_OF_CLASSES = lw.HyperparameterSearch(max_learning_iter=7, tie="class")
_LOGISTIC = lw.KernelLogisticClassifier(hyperparameters="fixed")

CHECKPOINTED: dict[str, Any] = {
    "margins, coordinates": lw.MaxMarginClassifier(solver="coordinate_ascent"),
    "margins, coupled": lw.MaxMarginClassifier(solver="coordinate_ascent", label_covariance=_TIES),
    "margins, weighted": lw.MaxMarginClassifier(
        label_covariance=lw.LabelCovariance.weighted([np.eye(N_LABELS), _TIES])
    ),
    "margins, rbf": lw.MaxMarginClassifier(kernel="rbf", solver="alternating_directions"),
    "margins, rbf blocks": lw.MaxMarginClassifier(kernel="rbf", solver="block_ascent"),
    "margins, rbf pairs": lw.MaxMarginClassifier(kernel="rbf", solver="working_set"),
    "margins, own solver": lw.MaxMarginClassifier(kernel="rbf", solver=Fista(), max_iter=3000),
    "margins, learned": lw.MaxMarginClassifier(kernel="rbf", hyperparameters="learn", label_covariance=2),
    "logistic, fixed": _LOGISTIC,
    "logistic, learned": lw.KernelLogisticClassifier(hyperparameters=_SHORT),
    "logistic, tree": lw.KernelLogisticClassifier(
        taxonomy=_TREE, hyperparameters=lw.HyperparameterSearch(max_learning_iter=7, tie="level")
    ),
    "logistic, pivots": lw.KernelLogisticClassifier(kernel_rank=30, hyperparameters=_SHORT),
    "low rank": lw.LowRankClassifier(3),
    "low rank, logistic": lw.LowRankClassifier(3, loss="log_loss", kernel="rbf"),
    "low rank, learned": lw.LowRankClassifier(
        3, penalty="ridge", kernel="rbf", hyperparameters=lw.HyperparameterSearch(max_learning_iter=6)
    ),
    "low rank, path": lw.LowRankClassifier(lw.RankSearch([2, 4], 3, cv=3)),
    "tree": lw.LabelTreeClassifier(leaf_size=2, branching=2),
    "graph, learned": lw.LabelGraphClassifier(lw.GraphGrowth(max_rounds=3), alpha=0.05),
    "graph, given": lw.LabelGraphClassifier(graph="full", alpha=0.05, tol=0.02),
    "graph, proximal": lw.LabelGraphClassifier(graph="chow-liu", solver="proximal", alpha=0.05, max_iter=200),
    "graph, scores": lw.LabelGraphClassifier(graph="chow-liu", kernel="rbf", inputs="scores", tol=0.02),
}
"""Every solver of the estimators that take a checkpoint."""

OTHERS: dict[str, Any] = {
    "ridge of labels": lw.BinaryRelevance(),
    "LIBLINEAR of labels": lw.BinaryRelevance("log_loss"),
    "tuned": lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), cv=3),
    "calibrated": lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(kernel="rbf"), cv=3),
    "conformal": lw.ConformalLabelClassifier(lw.LowRankClassifier(3), validation_fraction=0.6),
}

KINDS = CHECKPOINTED | OTHERS
"""What attacks fit."""


@storable("attacks.OfPair", {})
class OfPair(CliqueFeatures):
    """Features of cliques: their own, and a constant."""

    def of(self, X: Any, clique: tuple[int, ...]) -> Any:
        own = X[:, [clique[0], clique[-1]]]
        return np.column_stack([own.toarray() if sp.issparse(own) else own, np.ones(X.shape[0])])


def embedding(texts: list[str]) -> np.ndarray:
    """Return vectors of names, similar for neighbors in the alphabet."""
    places = np.array([ord(text[0]) for text in texts]) / 3.0
    return np.stack([np.cos(places), np.sin(places)], axis=1)


SETTINGS: dict[str, Any] = {
    "margins, features": lw.MaxMarginClassifier(solver="alternating_directions"),
    "margins, features later": lw.MaxMarginClassifier(C=10.0),
    "margins, rbf coupled": lw.MaxMarginClassifier(kernel="rbf", label_covariance=_TIES),
    "margins, rbf columns": lw.MaxMarginClassifier(kernel="rbf", solver="incomplete_cholesky"),
    "margins, pruned": lw.MaxMarginClassifier(prune="certified", tol=0.05),
    "margins, factor of labels": lw.MaxMarginClassifier(
        label_covariance=lw.LabelCovariance.low_rank(np.ones((N_LABELS, 1)), 0.3)
    ),
    "tuned, by label": lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), "macro_f1", random_state=3),
    "logistic, related": lw.KernelLogisticClassifier(hyperparameters="fixed", label_covariance=_TIES),
    "logistic, symmetrized": lw.KernelLogisticClassifier(
        hyperparameters="fixed", solver="symmetrized_gradients", tol=1e-8
    ),
    "logistic, apart": lw.KernelLogisticClassifier(intercept_variance="learn", hyperparameters=_OF_CLASSES),
    "logistic, widths": lw.KernelLogisticClassifier("ard", hyperparameters=_SHORT),
    "logistic, coupled": lw.KernelLogisticClassifier(label_covariance=2, hyperparameters=_SHORT),
    "logistic, factors": lw.KernelLogisticClassifier(label_covariance=2, hyperparameters=_OF_CLASSES),
    "logistic, kernels": lw.KernelLogisticClassifier(
        ["rbf", "linear"],
        label_covariance=[lw.LabelCovariance.weighted([np.eye(N_LABELS), _TIES]), None],
        hyperparameters=_SHORT,
    ),
    "logistic, uncertain": lw.KernelLogisticClassifier(
        uncertainty="laplace",
        hyperparameters=lw.HyperparameterSearch(criterion="marginal_likelihood", max_learning_iter=4),
    ),
    "tuned, probabilities": lw.TunedThresholdClassifier(
        lw.KernelLogisticClassifier(hyperparameters=lw.HyperparameterSearch(max_learning_iter=6)), "macro_f1"
    ),
    "logistic, classes": lw.KernelLogisticClassifier(hyperparameters="fixed", taxonomy=_TREE),
    "low rank, linear logistic": lw.LowRankClassifier(3, loss="log_loss"),
    "low rank, ridge": lw.LowRankClassifier(3, penalty="ridge"),
    "low rank, bound": lw.LowRankClassifier(3, alpha=2.0, penalty="trace_bound"),
    "low rank, related": lw.LowRankClassifier(3, label_covariance=_TIES),
    "low rank, pivots": lw.LowRankClassifier(3, kernel="rbf", kernel_rank=20, loss="squared_hinge"),
    "low rank, path of kernels": lw.LowRankClassifier(
        lw.RankSearch([2, 3], [1.0, 0.1], cv=2), kernel="rbf", loss="log_loss"
    ),
    "low rank, exact path": lw.LowRankClassifier(lw.RankSearch([2, 4], 3, cv=3), penalty="ridge"),
    "squared hinge of labels": lw.BinaryRelevance("squared_hinge"),
    "tree of one node": lw.LabelTreeClassifier(),
    "graph, label sets": lw.LabelGraphClassifier("full", loss="f1", alpha=0.01, tol=0.02),
    "graph, own features": lw.LabelGraphClassifier("chow-liu", alpha=0.05, tol=0.02, inputs=OfPair()),
    "graph, none": lw.LabelGraphClassifier("none", alpha=0.05, tol=0.02),
    "graph, measured": lw.LabelGraphClassifier(
        lw.GraphGrowth(max_rounds=2, early_stopping=True, refit=True), alpha=0.05, tol=0.02
    ),
}
"""Other settings of these estimators."""

COMPOSED: dict[str, Any] = {
    "calibrated, steps": lw.CalibratedLabelClassifier(lw.LowRankClassifier(3), "isotonic", cv=3),
    "calibrated, sets": lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(), decision="expected_f1", cv=3),
    "tuned for all labels": lw.TunedThresholdClassifier(_LOGISTIC, "macro_f1", scope="global", cv=3),
    "tuned, top": lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), scope="top_k", cv=3),
    "automatic": lw.AutoLabelClassifier(members=["rbf"], time_budget=1e-3),
    "hierarchy": lw.HierarchicalClassifier(
        lw.KernelLogisticClassifier("linear", hyperparameters="fixed"), {"a": ["b", "c"], "d": ["e"]}
    ),
    "texts of labels": lw.LabelTextClassifier(_LOGISTIC, embedding=embedding),
    "zero-shot": lw.ZeroShotClassifier(None, np.eye(N_LABELS, dtype=int), temperature=1.0),
}
"""What decides, combines or prepares around models inside."""

EVERY = KINDS | SETTINGS | COMPOSED

NEEDS_NAMES = ("hierarchy", "texts of labels")
_TAKES_NO_GAPS = "low rank, path", "low rank, path of kernels", "low rank, exact path", "zero-shot"
_NOT_FOUND = {"estimator_", "kernel_products_"}  # digested separately; work, part of which may be repeated
_CLOCK = {"time", "seconds"}


class AtSubtask:
    """A scikit-learn callback that acts at the end of one subtask.

    act: the function to call; a true result stops the fit.
    """

    def __init__(self, at: int, act: Callable[[], bool | None] = lambda: True) -> None:
        self.at, self.act, self.done = at, act, 0

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> bool:
        self.done += context.parent is not None
        return context.parent is not None and self.done == self.at and bool(self.act())


_GROUPS = {"rank": lw.RankSearch, "hyperparameters": lw.HyperparameterSearch, "graph": lw.GraphGrowth}


def grouped(kind: Any, *given: Any, **parameters: Any) -> Any:
    """Make a classifier from parameters, some of which belong to an object that is itself a parameter."""
    own, taken = signature(kind).parameters, set[str]()
    for name, group in _GROUPS.items():
        known = [one for one in signature(group).parameters if one in parameters and one not in own]
        is_meant = set(known) - {"cv"} or (name == "hyperparameters" and known and "cv" not in taken)
        if name in own and is_meant:
            parameters[name] = group(**{one: parameters[one] for one in known})
            taken |= {*known}
    return kind(*given, **{name: one for name, one in parameters.items() if name not in taken})


def data_of(name: str, n: int = 120, d: int = 8, seed: int = 0) -> tuple[Any, Any]:
    """Draw the rows of a fit, and classes, or labels with a tenth unobserved."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    scores = np.tanh(X) @ random.normal(size=(d, N_LABELS)) + 0.5 * random.normal(size=(n, N_LABELS))
    if name in ONE_CLASS:
        return X, np.array(list("abcd"))[scores[:, :4].argmax(axis=1)]
    Y = (scores > 0.3).astype(float)
    if name not in _TAKES_NO_GAPS:
        Y[random.random(Y.shape) < 0.1] = np.nan
    return X, pd.DataFrame(Y, columns=list("abcde")) if name in NEEDS_NAMES else Y


def fitted(model: Any, X: Any, Y: Any, **weights: Any) -> Any:
    """Fit, where convergence does not matter."""
    with quiet():
        return model.fit(X, Y, **weights)


def mark(model: Any, X: Any) -> str:
    """Digest the results of a fit, except work and seconds, and its scores of rows."""
    digest = hashlib.sha256()
    for part in (model, getattr(model, "estimator_", None)):
        _add(digest, _found(part) if part is not None else None)
    _add(digest, scores_of(model, X))
    return digest.hexdigest()[:16]


def digest_of(value: Any) -> str:
    """Digest any result; for sparse arrays and labels their meaning."""
    digest = hashlib.sha256()
    _add(digest, _meaning(value))
    return digest.hexdigest()[:16]


def _meaning(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _meaning(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_meaning, value))
    if isinstance(value, lw.LabelMatrix):
        return value.to_dense()
    return value.toarray() if sp.issparse(value) else value


def scores_of(model: Any, X: Any) -> np.ndarray:
    score = getattr(model, "decision_function", None) or model.predict_proba
    scores = score(X)
    return np.asarray(scores.toarray() if sp.issparse(scores) else scores, dtype=np.float64)


def _found(model: Any) -> dict[str, Any]:
    names = [name for name in vars(model) if name.endswith("_") and name not in _NOT_FOUND]
    return {name: getattr(model, name) for name in names}


def _add(digest: Any, value: Any) -> None:
    """Digest nested values except seconds: arrays by their bytes, records by their parts."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif sp.issparse(value):
        _add(digest, [value.shape, value.indptr, value.indices, value.data])
    elif isinstance(value, dict):
        _add(digest, [[str(name), value[name]] for name in sorted(value, key=str) if name not in _CLOCK])
    elif hasattr(value, "_asdict"):
        _add(digest, value._asdict())
    elif isinstance(value, list | tuple | np.ndarray):
        for part in value:
            _add(digest, part)
    elif hasattr(value, "to_state"):  # lazily computed values are not part of it
        _add(digest, [type(value).__name__, value.to_state()])
    elif hasattr(value, "__dict__") and type(value).__module__.startswith("labelweave"):
        _add(digest, vars(value))
    else:
        digest.update(f"{type(value).__name__} {value!r};".encode())
