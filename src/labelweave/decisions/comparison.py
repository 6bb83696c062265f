"""Comparison of models on the same folds: metrics, times, sizes, and intervals of their differences.

Folds share training rows, so that values are dependent and the usual standard error is too small.  Intervals
use the corrected variance of Nadeau and Bengio, "Inference for the generalization error", Machine
Learning 52, 2003: ``(1 / k + n_test / n_train) s^2`` for k folds, with k - 1 degrees of freedom.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import t as student
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import column_or_1d
from sklearn.utils.parallel import Parallel, delayed

from labelweave.decisions.label_scores import targets_for
from labelweave.foundation.arguments import checked, shown
from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import checked_csr, is_collection
from labelweave.foundation.sklearn_compat import _num_samples
from labelweave.foundation.views import view
from labelweave.labels import LabelMatrix
from labelweave.labels.label_names import unknown_entries
from labelweave.labels.tags import TagRows
from labelweave.labels.targets import has_many_labels, read_labels, tags_read
from labelweave.metrics import class_summary, score_table
from labelweave.metrics._classes import read_values
from labelweave.metrics.known_labels import has_columns, known_labels, label_scores, tags_of_model, truth_for
from labelweave.splits import IterativeStratifiedKFold
from labelweave.splits.splitters import splits_by, take_rows

COSTS = ("fit_seconds", "predict_seconds", "megabytes")


Split = tuple[Array, Array]
_WIDTH = 79


@dataclass(frozen=True)
class Difference:
    """A metric of one model minus that of the reference, on the same folds.

    mean: the mean over the folds.
    low, high: the interval; NaN with a single fold.
    """

    mean: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Comparison:
    """Values of every model on every fold.

    values (folds,): by model, by metric; NaN where a model does not have the metric.
    test_share: test rows divided by training rows, mean over the folds.
    reference: the model to compare others with.
    """

    values: dict[str, dict[str, Floats]]
    test_share: float
    reference: str

    @property
    def models(self) -> list[str]:
        return list(self.values)

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics, with "fit_seconds", "predict_seconds" and "megabytes" last."""
        return list(self.values[self.reference])

    def means(self) -> dict[str, dict[str, float]]:
        return {
            model: {metric: float(np.mean(folds)) for metric, folds in rows.items()}
            for model, rows in self.values.items()
        }

    def difference(
        self, model: str, metric: str, reference: str | None = None, level: float = 0.95
    ) -> Difference:
        """Compare two models fold by fold.

        reference: the other model; by default the comparison's.
        level: the level of the interval.
        Returns mean and interval of the model's value minus the other's.
        Raises KeyError if a model or metric is unknown.
        Raises ValueError if the level is not between 0 and 1.
        """
        other = self.reference if reference is None else reference
        return self._around_mean(self.values[model][metric] - self.values[other][metric], level)

    def interval(self, model: str, metric: str, level: float = 0.95) -> Difference:
        """Return the mean of a metric over the folds with its interval, as :meth:`difference` does."""
        return self._around_mean(self.values[model][metric], level)

    def _around_mean(self, values: Floats, level: float) -> Difference:
        if not 0 < level < 1:
            raise ValueError(f"level is {level}; it must be between 0 and 1, such as 0.95.")
        mean = float(np.mean(values))
        if len(values) < 2 or not np.isfinite(values).all():
            return Difference(mean, float("nan"), float("nan"))
        spread = np.sqrt((1.0 / len(values) + self.test_share) * values.var(ddof=1))
        half = float(student.ppf(0.5 + 0.5 * level, len(values) - 1) * spread)
        return Difference(mean, mean - half, mean + half)

    def differences(self, reference: str | None = None) -> dict[str, dict[str, Difference]]:
        """Compare all models with one.

        reference: the model to compare with; by default the comparison's.
        Returns differences by model, by metric; without the reference itself.
        """
        other = self.reference if reference is None else reference
        return {
            model: {metric: self.difference(model, metric, other) for metric in self.metrics}
            for model in self.models if model != other
        }  # fmt: skip

    def to_frame(self) -> Any:
        """Return a DataFrame with one row per metric, and for each model the mean, difference and interval.

        Returns columns (model, "mean"), and for all but the reference (model, "difference"), (model, "low")
            and (model, "high").
        """
        import pandas as pd

        columns, differences = {}, self.differences()
        for model, means in self.means().items():
            columns[model, "mean"] = list(means.values())
            found = differences.get(model, {}).values()
            for name in ("difference", "low", "high") if found else ():
                part = "mean" if name == "difference" else name
                columns[model, name] = [getattr(one, part) for one in found]
        return pd.DataFrame(columns, index=pd.Index(self.metrics, name="metric"))

    def __repr__(self) -> str:
        means = self.means()
        first, *others = [["metric", *self.metrics]] + [
            [model, *(self._cell(model, name, means) for name in self.metrics)] for model in self.models
        ]
        lines = []
        for columns in _side_by_side(others, _WIDTH - max(map(len, first))):
            shown = [_padded(first, "<"), *(_padded(column, ">") for column in columns)]
            lines += [*("  ".join(cells) for cells in zip(*shown, strict=True)), ""]
        folds = len(self.values[self.reference][self.metrics[0]])
        where = "on a single fold" if folds == 1 else f"mean over {folds} folds"
        if folds > 1 and len(self.models) > 1:
            where += (
                f";\nin brackets the 95 % interval of the difference to\n{self.reference}, * where it "
                "excludes 0"
            )
        lines.append(where)
        return "\n".join(lines)

    def _cell(self, model: str, metric: str, means: dict[str, dict[str, float]]) -> str:
        value = f"{means[model][metric]:.4g}"
        if model == self.reference:
            return value
        found = self.difference(model, metric)
        if np.isnan(found.low):
            return value
        return f"{value} [{found.low:+.2g}, {found.high:+.2g}]{'*' if found.is_clear else ' '}"


def _padded(cells: list[str], side: str) -> list[str]:
    width = max(map(len, cells))
    return [f"{cell:{side}{width}}" for cell in cells]


def _side_by_side(columns: list[list[str]], width: int) -> Iterator[list[list[str]]]:
    """Divide columns into tables of this width; a wider column has its own table."""
    part, left = list[list[str]](), width
    for column in columns:
        own = 2 + max(map(len, column))
        if part and own > left:
            yield part
            part, left = [], width
        part.append(column)
        left -= own
    yield part


class RowsToCompare(NamedTuple):
    """All rows; ``labels`` is None with one class per row."""

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
        Labels 0/1 or -1/1 with NaN where unobserved, which no metric counts, lists of tags, or one class per
        row.  If a model obeys a hierarchy, all are evaluated on labels completed by it.
    cv : int, splitter or iterable of (train, test), default=5
        The folds; a number draws stratified ones (iterative stratification for labels).  One pair of
        row indices is a single split.
    reference : str or None, default=None
        The model to compare others with; the first by default.
    random_state : int or None, default=0
        Seed of the folds, for a number of folds.
    on_fit : callable or None, default=None
        Called with the model's name and the fold before every fit; before it is submitted, if several run
        in parallel.

    Returns
    -------
    Comparison
        Its ``repr`` is a table; ``to_frame()`` returns a DataFrame, ``values`` holds every fold.  Sets of
        classes have "coverage", the share that contain the true class, and "set_size", their mean size.

    Raises
    ------
    ValueError
        If there is no model, names repeat, X and y differ in rows, cv makes no folds, or a row has no class
        and cv is a number.
    TypeError
        If an object is no estimator.

    Notes
    -----
    Fits run one after the other, unless ``joblib.parallel_config`` sets ``"loky"`` for processes or
    ``"dask"`` for a cluster.  Parallel fits take longer each, so compare times only where one runs at a
    time.
    """
    if is_collection(X):
        how = {"reference": reference, "random_state": random_state, "on_fit": on_fit}
        answer: Comparison = view("answer", "compare", estimators, X, y, cv, **how)
        return answer
    models = named_models(estimators, reference)
    rows = _read_rows(X, y)
    trees = (getattr(getattr(model, "classifier", model), "_hierarchy", None) for model in models.values())
    truth: Any = rows.labels
    if (tree := next(filter(None, trees), None)) and getattr(truth, "names", None) is not None:
        rows = rows._replace(labels=known_labels(truth, truth.words, "missed", tree)[0])  # of all models
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
    """Return the models by name; raise if the reference is none of them."""
    if isinstance(estimators, BaseEstimator):
        estimators = [estimators]
    given = estimators.items() if isinstance(estimators, Mapping) else estimators
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) != 1:
        raise ValueError(f"estimators is {shown(estimators)}; pass models, in a list or by name.")
    pairs = [one if isinstance(one, tuple) and len(one) == 2 else (None, one) for one in given]
    if not pairs:
        raise ValueError("No estimators were given; pass at least one.")
    found: dict[str, Any] = {}
    for name, estimator in pairs:
        if not hasattr(estimator, "fit"):
            raise TypeError(f"One of the estimators is {shown(estimator)}; pass models with fit.")
        own = type(estimator).__name__ if name is None else str(name)
        if name is not None and own in found:
            raise ValueError(f"Two estimators are named {own!r}; use distinct names.")
        numbered = (f"{own} {number}" if number > 1 else own for number in count(1))
        found[next(name for name in numbered if name not in found)] = estimator
    if reference is not None and reference not in found:
        raise ValueError(f"reference is {reference!r}; it must be one of {', '.join(map(repr, found))}.")
    return found


def _read_rows(X: Any, y: Any) -> RowsToCompare:
    X, y = (checked_csr(part, name) if sp.issparse(part) else part for part, name in ((X, "X"), (y, "y")))
    y = tags_read(y)
    labels = read_labels(y) if has_many_labels(y) else None
    n_rows, n_targets = _num_samples(X), _num_samples(y) if labels is None else len(labels)
    if n_rows != n_targets:
        raise ValueError(f"X has {n_rows} rows but y has {n_targets}; they must be the same rows.")
    if labels is not None and (isinstance(y, TagRows) or labels.class_columns is not None):
        y = labels  # so that splits keep all tags and classes
    if labels is None and getattr(y, "ndim", 1) == 2:
        y = column_or_1d(y)
    return RowsToCompare(X, y, labels)


def splits_of(rows: RowsToCompare, cv: Any, random_state: int | None) -> list[Split]:
    """Return the training and test rows of each fold, stratified for a number of folds."""
    if isinstance(cv, Integral):
        if rows.labels is None and unknown_entries(np.asarray(rows.y)).any():
            raise ValueError("A row of y has no class; remove such rows.")
        kind: Any = StratifiedKFold if rows.labels is None else IterativeStratifiedKFold
        cv = kind(int(cv), shuffle=True, random_state=random_state)
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise ValueError(f"cv is {cv!r}; pass a number of folds, a splitter, or pairs of row lists.")
    return splits_by(cv, rows.X, rows.y)


def _measure(
    estimator: Any, X: Any, y: Any, labels: LabelMatrix | None, train: Array, test: Array
) -> dict[str, float]:
    rows = RowsToCompare(X, y, labels)  # separate arguments, which joblib sends to processes once
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
    predicted = tags_of_model(predicted, estimator) if has_columns(estimator) else predicted
    if truth.n_labels == 1 and np.ndim(predicted) == 1:  # the shape in which scikit-learn predicts one label
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
    """Evaluate sets of classes, (n, C): the share with the true class, and their mean size."""
    return {
        "coverage": float(estimator.score(unseen, truth)),
        "set_size": float(predicted.sum() / predicted.shape[0]),
    }


def size_of(estimator: Any) -> float:
    """Return the bytes of the model's file, or of its pickle if it cannot have a file, or NaN."""
    if hasattr(estimator, "save"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.lw")
            try:
                estimator.save(path)
                return float(os.path.getsize(path))
            except (TypeError, ValueError):  # contains an estimator that cannot be in a file
                pass
    try:
        return float(len(pickle.dumps(estimator)))
    except (pickle.PicklingError, AttributeError, TypeError):
        return float("nan")


def compared(
    values: dict[str, list[dict[str, float]]], splits: Sequence[Split], reference: str | None
) -> Comparison:
    """Convert metrics per fold to folds per metric, with the same metrics for all models, costs last."""
    names = list(dict.fromkeys(metric for folds in values.values() for fold in folds for metric in fold))
    ordered = [*(name for name in names if name not in COSTS), *COSTS]
    by_metric = {
        model: {name: np.asarray([fold.get(name, np.nan) for fold in folds]) for name in ordered}
        for model, folds in values.items()
    }
    share = float(np.mean([len(test) / len(train) for train, test in splits]))
    return Comparison(by_metric, share, reference or next(iter(values)))
