"""Fit several models on the same folds and measure all that the library can measure."""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import column_or_1d
from sklearn.utils.parallel import Parallel, delayed

from labelweave.decisions.comparison.outcome import Comparison
from labelweave.decisions.label_scores import take_rows, targets_for
from labelweave.estimators.targets import has_many_labels, unknown_entries
from labelweave.foundation.arguments import checked, shown
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import checked_csr, is_collection
from labelweave.foundation.sklearn_compat import _num_samples
from labelweave.foundation.views import view
from labelweave.labels import LabelMatrix
from labelweave.labels.tags import tag_rows
from labelweave.metrics import class_summary, score_table
from labelweave.metrics._classes import read_values
from labelweave.metrics.known_labels import label_scores, truth_for
from labelweave.splits import IterativeStratifiedKFold
from labelweave.splits.splitters import splits_by

COSTS = ("fit_seconds", "predict_seconds", "megabytes")


Split = tuple[Array, Array]


class RowsToCompare(NamedTuple):
    """All rows; ``labels`` is None where there is one class a row."""

    X: Any
    y: Any
    labels: LabelMatrix | None


@checked
def compare(
    estimators: Any, X: Any, y: Any, cv: Any = 5, *, reference: str | None = None,
    random_state: int | None = 0, on_fit: Callable[[str, int], None] | None = None,
) -> Comparison:  # fmt: skip
    """Compare models on the same folds: metrics, time to fit and to predict, size, paired differences.

    Parameters
    ----------
    estimators : dict of str to estimator, list of estimator, list of (str, estimator), or estimator
        The models; each is cloned for every fold.  Models of a list are named by their classes.
    X : {array-like, sparse matrix, DataFrame} of shape (n, d), or partitions of Dask
        The rows.
    y : array-like of shape (n, L) or (n,), list, sparse matrix, DataFrame or LabelMatrix
        Labels 0/1 or -1/1 with NaN where unobserved, which no metric counts, lists of tags, or one class a
        row.
    cv : int, splitter or iterable of (train, test), default=5
        The folds; a number draws stratified ones (iterative stratification for labels).  One pair of
        row lists is a single split.
    reference : str or None, default=None
        The model with which others are compared; the first by default.
    random_state : int or None, default=0
        Draws the folds of a number.
    on_fit : callable or None, default=None
        Called with the model's name and the fold before every fit; before it is handed out, where several
        run at once.

    Returns
    -------
    Comparison
        Its ``repr`` is a table; ``to_frame()`` gives a frame, ``values`` every fold.  Of sets of classes
        there are "coverage", how often they have the true class, and "set_size", how many they have.

    Raises
    ------
    ValueError
        If there is no model, names are given twice, X and y differ in rows, cv makes no folds, or a row has
        no class and cv is a number.
    TypeError
        If what is given is no estimator.

    Notes
    -----
    One fit is made after the other, unless ``joblib.parallel_config`` says otherwise: ``"loky"`` for
    processes, ``"dask"`` for a cluster.  Fits that run at once take longer than each by itself, so that
    times are a model's own only where one runs at a time.
    """
    if is_collection(X):
        how = {"reference": reference, "random_state": random_state, "on_fit": on_fit}
        answer: Comparison = view("answer", "compare", estimators, X, y, cv, **how)
        return answer
    models = named_models(estimators, reference)
    rows = _read_rows(X, y)
    splits = splits_of(rows, cv, random_state)
    pairs = [(name, fold) for fold in range(len(splits)) for name in models]

    def fits() -> Iterator[Any]:
        for name, fold in pairs:
            if on_fit is not None:
                on_fit(name, fold)
            yield delayed(_measure)(clone(models[name]), *rows, *splits[fold])

    values: dict[str, list[dict[str, float]]] = {name: [] for name in models}
    for (name, _), found in zip(pairs, Parallel()(fits()), strict=True):
        values[name].append(found)
    return compared(values, splits, reference)


def named_models(estimators: Any, reference: str | None = None) -> dict[str, Any]:
    """Name the models; refuse a reference that is none of them."""
    if isinstance(estimators, BaseEstimator):
        estimators = [estimators]
    given = estimators.items() if isinstance(estimators, Mapping) else estimators
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) != 1:
        raise ValueError(f"estimators is {shown(estimators)}; give models, in a list or by name.")
    pairs = [one if isinstance(one, tuple) and len(one) == 2 else (None, one) for one in given]
    if not pairs:
        raise ValueError("No estimators were given; give at least one.")
    found: dict[str, Any] = {}
    for name, estimator in pairs:
        if not hasattr(estimator, "fit"):
            raise TypeError(f"One of the estimators is {shown(estimator)}; give models that can be fitted.")
        own = type(estimator).__name__ if name is None else str(name)
        if name is not None and own in found:
            raise ValueError(f"Two estimators are named {own!r}; give each a name of its own.")
        numbered = (f"{own} {number}" if number > 1 else own for number in count(1))
        found[next(name for name in numbered if name not in found)] = estimator
    if reference is not None and reference not in found:
        raise ValueError(f"reference is {reference!r}; it needs to be one of {', '.join(map(repr, found))}.")
    return found


def _read_rows(X: Any, y: Any) -> RowsToCompare:
    X, y = (checked_csr(part, name) if sp.issparse(part) else part for part, name in ((X, "X"), (y, "y")))
    labels = LabelMatrix.from_any(y) if has_many_labels(y) else None
    n_rows, n_targets = _num_samples(X), _num_samples(y) if labels is None else len(labels)
    if n_rows != n_targets:
        raise ValueError(f"X has {n_rows} rows but y has {n_targets}; they must be the same rows.")
    if labels is not None and tag_rows(y) is not None:
        y = labels  # in whose parts no tag is missing
    if labels is None and getattr(y, "ndim", 1) == 2:
        y = column_or_1d(y)
    return RowsToCompare(X, y, labels)


def splits_of(rows: RowsToCompare, cv: Any, random_state: int | None) -> list[Split]:
    """List the rows to learn from and to test on of each fold, stratified for a number of folds."""
    if isinstance(cv, Integral):
        if rows.labels is None and unknown_entries(np.asarray(rows.y)).any():
            raise ValueError("A row of y has no class; leave such rows out of a comparison.")
        kind: Any = StratifiedKFold if rows.labels is None else IterativeStratifiedKFold
        cv = kind(int(cv), shuffle=True, random_state=random_state)
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise ValueError(f"cv is {cv!r}; give a number of folds, a splitter, or pairs of row lists.")
    return splits_by(cv, rows.X, rows.y)


def _measure(
    estimator: Any, X: Any, y: Any, labels: LabelMatrix | None, train: Array, test: Array
) -> dict[str, float]:
    rows = RowsToCompare(X, y, labels)  # each by itself, which is sent to other processes once
    begin = time.perf_counter()
    estimator.fit(take_rows(rows.X, train), targets_for(estimator, take_rows(rows.y, train)))
    fitted = time.perf_counter()
    unseen = take_rows(rows.X, test)
    predicted = estimator.predict(unseen)
    done = time.perf_counter()
    if rows.labels is None:
        metrics = _class_metrics(estimator, unseen, take_rows(rows.y, test), predicted)
    else:
        metrics = _label_metrics(estimator, unseen, truth_for(rows.labels[test], estimator), predicted)
    seconds = {"fit_seconds": fitted - begin, "predict_seconds": done - fitted}
    return metrics | seconds | {"megabytes": size_of(estimator) / 1e6}


def _label_metrics(estimator: Any, unseen: Any, truth: LabelMatrix, predicted: Any) -> dict[str, float]:
    if truth.n_labels == 1 and np.ndim(predicted) == 1:  # as scikit-learn predicts one label
        predicted = np.reshape(predicted, (-1, 1))
    if not hasattr(estimator, "decision_function") and not hasattr(estimator, "predict_proba"):
        return score_table(truth, Y_pred=predicted)
    return score_table(truth, label_scores(estimator, unseen, truth.n_labels), Y_pred=predicted)


def _class_metrics(estimator: Any, unseen: Any, truth: Any, predicted: Any) -> dict[str, float]:
    if np.ndim(predicted) == 2:
        return metrics_of_class_sets(estimator, unseen, truth, predicted)
    if hasattr(estimator, "predict_proba"):
        shares = estimator.predict_proba(unseen)
        return class_summary(truth, shares, estimator.classes_, y_pred=predicted)
    values = read_values(truth, "y")
    is_right = (np.asarray(predicted) == values)[values != None]  # noqa: E711
    return {"accuracy": float(is_right.mean()) if len(is_right) else float("nan")}


def metrics_of_class_sets(estimator: Any, unseen: Any, truth: Any, predicted: Any) -> dict[str, float]:
    """Measure sets of classes, (n, C): how often they have the true one, and how many they have."""
    return {
        "coverage": float(estimator.score(unseen, truth)),
        "set_size": float(predicted.sum() / predicted.shape[0]),
    }


def size_of(estimator: Any) -> float:
    """Return the bytes of the model's file, or of its pickle where it has no file of its own, or NaN."""
    if hasattr(estimator, "save"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.lw")
            try:
                estimator.save(path)
                return float(os.path.getsize(path))
            except (TypeError, ValueError):  # around an estimator that has no file
                pass
    try:
        return float(len(pickle.dumps(estimator)))
    except (pickle.PicklingError, AttributeError, TypeError):
        return float("nan")


def compared(
    values: dict[str, list[dict[str, float]]], splits: Sequence[Split], reference: str | None
) -> Comparison:
    """Turn folds of metrics to metrics of folds, with the same metrics for all models, costs last."""
    names = list(dict.fromkeys(metric for folds in values.values() for fold in folds for metric in fold))
    ordered = [*(name for name in names if name not in COSTS), *COSTS]
    by_metric = {
        model: {name: np.asarray([fold.get(name, np.nan) for fold in folds]) for name in ordered}
        for model, folds in values.items()
    }
    share = float(np.mean([len(test) / len(train) for train, test in splits]))
    return Comparison(by_metric, share, reference or next(iter(values)))
