"""Predictions and metrics of a fitted model on Dask collections, one partition at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from labelweave.dask.client import connected
from labelweave.dask.comparison import compare, right_classes, summed, table_sums
from labelweave.dask.models import fit
from labelweave.dask.partitions import lazily
from labelweave.dask.rows import count_rows
from labelweave.estimators import TableModel
from labelweave.foundation.arguments import checked
from labelweave.metrics.known_labels import has_columns


def answer(method: str, model: Any, X: Any, *given: Any, **named: Any) -> Any:
    """Run a method of a model whose X is a collection; ``compare`` has several models."""
    if method not in _ANSWERS:
        raise ValueError(f"{type(model).__name__}.{method} does not take Dask collections; pass arrays.")
    if method not in ("fit", "compare"):
        check_is_fitted(model)
        if has_columns(model):
            raise ValueError(
                f"{type(model).__name__}.{method} takes no Dask collections where y had columns of classes; "
                "pass arrays."
            )
    return _ANSWERS[method](model, X, *given, **named)


def _predict(model: Any, X: Any) -> Any:
    form = _scoring(model)._form
    if form.has_one_class:
        return _lazily("predict", model, X, form.classes[:0], None)
    if form.container == "tags":
        return _lazily("predict", model, X, np.empty(0, object), None)
    empty = np.empty((0, len(form.classes)), np.int64)
    meta = form.join([sp.csr_array(empty) if form.container == "sparse" else empty], None)
    return _lazily("predict", model, X, meta, len(form.classes))


def _decision_function(model: Any, X: Any) -> Any:
    width = None if _scoring(model)._form.is_pair else len(model.classes_)
    return _lazily("decision_function", model, X, np.empty((0, width) if width else 0), width)


def _predict_proba(model: Any, X: Any) -> Any:
    width = len(model.classes_)
    return _lazily("predict_proba", model, X, np.empty((0, width)), width)


def _predict_top(model: Any, X: Any, k: int = 5) -> tuple[Any, Any]:
    _scoring(model)._check_k(k)
    labels = _lazily("predict_top", model, X, np.empty((0, k), np.intp), k, k=k, part=0)
    return labels, _lazily("predict_top", model, X, np.empty((0, k)), k, k=k, part=1)


def _score(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    if _has_classes(model):
        right, weight = summed(connected(), model, right_classes, X, y, sample_weight)
        return float(right / weight) if weight else np.nan
    sums = summed(connected(), model, table_sums, X, y, sample_weight, None)
    return float(sums.table()["subset_accuracy"])


@checked
def score_table(
    model: Any, X: Any, y: Any = None, sample_weight: Any = None, k: Sequence[int] = (1, 3, 5)
) -> dict[str, float]:
    """Compute the usual metrics of a model, one partition at a time: only sums over rows come to the client.

    Parameters
    ----------
    model : classifier
        A fitted model of labels.
    X : dask array or DataFrame, or list of delayed values or futures
        The rows.
    y : dask array or DataFrame, list as X, or None, default=None
        Their labels.  None for a list of pairs (X, y).
    sample_weight : dask array or Series of shape (n,), or list as X, default=None
        Weights of the rows.
    k : sequence of int, default=(1, 3, 5)
        For precision and discounted gain at k; those above the number of labels are ignored.

    Returns
    -------
    dict of str to float
        The metrics of :func:`labelweave.metrics.score_table` except "auc_label", which needs all scores of
        a label in one place.  NaN where a metric is undefined.

    Raises
    ------
    ValueError
        If data are invalid, with the partition, or the model predicts one class per row.
    """
    check_is_fitted(model)
    if _has_classes(model):
        raise ValueError("score_table is for labels, but this model predicts one class per row; use score.")
    return dict(summed(connected(), model, table_sums, X, y, sample_weight, tuple(k)).table())


_ANSWERS: dict[str, Callable[..., Any]] = {
    "compare": compare,
    "decision_function": _decision_function,
    "fit": fit,
    "predict": _predict,
    "predict_proba": _predict_proba,
    "predict_top": _predict_top,
    "score": _score,
}


def _scoring(model: Any) -> Any:
    """Return the classifier that has the form of the labels."""
    return model.classifier_ if isinstance(model, TableModel) else model


def _has_classes(model: Any) -> bool:
    """Return whether a row has one class, even if predictions are sets of classes."""
    inner = _scoring(model)
    return inner._form.has_one_class or getattr(inner, "_one_of", None) is not None


def _lazily(method: str, model: Any, X: Any, meta: Any, width: int | None, **more: Any) -> Any:
    return lazily(X, partial(_of_rows, method=method, empty=meta, **more), model, meta, width)


def _of_rows(
    rows: Any, model: Any, method: str, empty: Any, k: int | None = None, part: int | None = None
) -> Any:
    """Call a method of the model on the rows of a partition, possibly none."""
    if count_rows(rows) == 0:
        return empty
    found = getattr(model, method)(rows, *(() if k is None else (k,)))
    return found if part is None else found[part]
