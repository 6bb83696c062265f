"""Calibration, thresholds and conformal sets on Dask's collections.

Rows are fitted and scored where they are; labels, and scores of the rows that are held out, come to the
client, where the ordinary classifier chooses its decisions on them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from distributed import Client
from sklearn.base import clone

from labelweave import decisions
from labelweave.dask.data import ReadData, gathered_labels, read
from labelweave.dask.partitions import row_partitions
from labelweave.dask.parts import Parts
from labelweave.dask.predictions import PartitionedPredictions, PartitionedProbabilities, connected
from labelweave.dask.rows import rows_of
from labelweave.decisions.base import DecisionClassifier, decision_fit
from labelweave.decisions.label_scores import (
    FittedPart,
    TrainingRows,
    most_scored,
    precision_of,
    rows_at_once,
    score_blocks,
)
from labelweave.estimators.base import LabelClassifier
from labelweave.estimators.held_out import HeldOutScores, Share, count_parts, held_out_count
from labelweave.estimators.parameters import RandomState, keep_parameters
from labelweave.features import FeatureMatrix
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels
from labelweave.inference.thresholds.objective import ObjectiveName
from labelweave.labels import LabelMatrix

_BYTES_A_LABEL = 5  # of an entry that is stored
_BUDGET = 2000.0  # megabytes, where the estimator says nothing


@dataclass(frozen=True, kw_only=True)
class PartitionedRows(TrainingRows):
    """The rows of a fit that are partitions on a cluster; X and y tell splitters how many rows there are.

    estimator: of this package, fitted to some of them; None if one was fitted elsewhere.
    """

    client: Client
    read: ReadData
    estimator: Any
    is_verbose: bool

    def fit(
        self, decider: Any, rows: Array | None = None, part: FittedPart | None = None, estimator: Any = None,
        *, is_kept: bool = False,
    ) -> Any:  # fmt: skip
        if self.is_verbose:
            what = "all rows" if rows is None else f"{len(rows)} of {len(self.labels)} rows"
            sys.stderr.write(f"labelweave: {type(decider).__name__} on Dask: a fit to {what}\n")
        data = self.read if rows is None else self.read.some_rows(self.client, rows)
        start = None if part is None or rows is not None else part.model
        is_part = rows is not None and not is_kept
        return self.estimator._fitted_to(self.client, data, is_part=is_part, start=start)

    def score_blocks(self, part: FittedPart, rows: Array, response: str) -> Iterator[Array]:
        n_labels = self.labels.n_labels
        parts = Parts(self.client, self.read.rows, [facts.n_rows for facts in self.read.facts])
        of_rows = partial(
            _scores, model=part.model, n_labels=n_labels, response=response, classes=self.classes
        )
        for some in panels(len(rows), rows_at_once(n_labels)):
            yield parts.mapped(of_rows, rows[some])

    def looked_at(self, part: FittedPart, response: str) -> Callable[[], HeldOutScores] | None:
        if part.rows is None:
            return None
        found = self._score_fitted(part, response)  # now, as the last fit gives the rows up
        return lambda: found


def _scores(
    features: FeatureMatrix, model: Any, n_labels: int, response: str, classes: Array | None
) -> Array:
    return np.concatenate(list(score_blocks(model, rows_of(features), n_labels, response, classes)))


@decision_fit
def _fit_ordinary(local: DecisionClassifier, data: PartitionedRows) -> Any:
    return local._fit_rows(data)


class PartitionedDecisions(PartitionedPredictions):
    """Base of classifiers on Dask's collections that decide on the scores of another one."""

    estimator: Any
    cv: Any
    validation_fraction: Share

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator on the cluster, and choose decisions on rows that a fit did not see.

        Parameters
        ----------
        X : dask array or DataFrame of shape (n, d), or list of delayed values or futures
            The rows, as the estimator takes them.
        y : dask array or DataFrame of shape (n, L) or (n,), list as X, or None, default=None
            Labels or classes, as the estimator takes them; unobserved labels do not count in the choice.
        sample_weight : dask array or Series of shape (n,), or list as X, default=None
            Weights of the rows, for the estimator and for the choice.

        Returns
        -------
        Self
            The fitted model itself.

        Raises
        ------
        ValueError
            If data or parameters make no sense; the partition is named.  If labels and scores take more
            than ``memory_budget`` of the estimator on the client.
        RuntimeError
            If workers die again and again, or lost what cannot be made again.
        """
        self._validate_params()
        local, client = self._reader(), self._connected()
        reader = innermost(local)
        parts = row_partitions(X, y, sample_weight)
        names = local._known
        is_named = names is not None and names.dtype.kind in "OU"
        known = local.estimator._form if is_named else None
        data = read(client, clone(reader), parts, is_verbose=bool(reader.verbose), known_tags=known)
        self._local, self._n_rows = self._fitted_to(client, data), data.n_rows
        return self

    def _fitted_to(self, client: Client, data: ReadData, *, is_part: bool = False, start: Any = None) -> Any:
        local = self._reader()
        reader, form = innermost(local), data.form
        self._refuse_many(data, getattr(reader, "memory_budget", _BUDGET))
        if form.kind != "labels":  # a fitted model may know of more classes
            form = local._read_targets(form.classes)[1]
        labels, weights = gathered_labels(client, replace(data, form=form))
        y: Any = labels
        if form.kind != "labels" and hasattr(self.cv, "split"):
            y = form.decide(labels.to_signs())
        labels, classes = local._keep_targets(labels, form)
        rows = PartitionedRows(
            X=np.empty((len(labels), 0)),
            y=y,
            labels=labels,
            weights=None if (weights == 1).all() else weights,
            classes=classes,
            client=client,
            read=self._to_fit(client, data, local),
            estimator=None if self._is_prefit else self.estimator,
            is_verbose=bool(reader.verbose),
        )
        return _fit_ordinary(local, rows)

    def _to_fit(self, client: Client, data: ReadData, local: Any) -> ReadData:
        """Give the rows with the labels that the estimator learns.

        local: the ordinary classifier, which has the targets' form.
        """
        return data

    @property
    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str)

    def _reader(self) -> Any:
        inner, name = self.estimator, type(self.estimator).__name__
        if isinstance(inner, PartitionedPredictions):
            inner = inner.to_local() if self._is_prefit else inner._reader()
        elif not self._is_prefit:
            raise ValueError(
                f"estimator is a {name} for data in memory; give one of labelweave.dask, or one that is "
                "fitted and cv='prefit'."
            )
        if not isinstance(innermost(inner), LabelClassifier):
            raise ValueError(
                f"estimator is a {name}, which reads no partitions of rows; give a model of labelweave.dask."
            )
        if not self._is_prefit and getattr(self.estimator, "checkpoint", None) is not None:
            raise ValueError(
                f"checkpoint keeps one fit, but {type(self).__name__} fits several times; leave it out, or "
                "fit the estimator first, and give it with cv='prefit'."
            )
        return self._ordinary(**self.get_params(deep=False) | {"estimator": inner})

    def _connected(self) -> Client:
        inner = self.estimator
        return inner._connected() if isinstance(inner, PartitionedPredictions) else connected(None)

    def _refuse_many(self, data: ReadData, budget: float) -> None:
        """Refuse to bring more labels and scores to the client than it takes."""
        n_rows, n_labels = data.n_rows, len(data.counts.positives)
        n_held = min(self._n_scored(n_rows), most_scored(n_labels))
        observed = data.counts.observed
        stored = data.counts.positives.sum() + (observed.sum() if (observed < n_rows).any() else 0)
        size = np.dtype(precision_of(n_held, n_labels)).itemsize
        megabytes = 1e-6 * (size * n_held * n_labels + _BYTES_A_LABEL * stored)
        if megabytes > budget:
            less = ", or give a smaller `validation_fraction`" if self._n_scored(n_rows) < n_rows else ""
            raise ParameterError(
                f"{type(self).__name__} brings the labels of {n_rows} rows to the client, and scores of "
                f"{n_held} of them for {n_labels} labels, which take {megabytes:.0f} MB, but `memory_budget` "
                f"is {budget:g}; raise it{less}."
            )

    def _n_scored(self, n_rows: int) -> int:
        """Count the rows whose scores decide."""
        if self.cv is not None or count_parts(self.validation_fraction, n_rows) > 1:
            return n_rows
        return held_out_count(self.validation_fraction, n_rows)


def innermost(classifier: Any) -> Any:
    """Give the classifier that reads rows."""
    while isinstance(classifier, DecisionClassifier):
        classifier = classifier.estimator
    return classifier


class CalibratedLabelClassifier(PartitionedProbabilities, PartitionedDecisions):
    """:class:`labelweave.CalibratedLabelClassifier` on Dask's collections.

    Rows are held out as on one machine, and clones fitted to the others and to all rows on the cluster.
    Labels of all rows and scores of those that are held out come to the client, where the ordinary classifier
    finds the maps.

    Parameters
    ----------
    estimator : classifier of labelweave.dask
        What gives scores.  With ``cv="prefit"`` a fitted one, of labelweave.dask or ordinary.
    method : {"auto", "sigmoid", "isotonic"}, default="auto"
        How probabilities rise with scores.  This and all further parameters are those of the ordinary
        classifier.
    pooling : bool, default=True
        Whether rare labels lean on the others.
    min_positives : int, default=500
        For isotonic maps with pooling.
    decision : {"half", "expected_f1"}, default="half"
        The label set of a row.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        What is calibrated.
    cv : int, "prefit", splitter, iterable or None, default=None
        Which rows are held out.
    validation_fraction : "auto" or float, default="auto"
        The share of rows held out, for ``cv=None``.
    random_state : int, RandomState instance or None, default=0
        Fixes which rows are held out.

    Attributes
    ----------
    estimator_ : classifier
        The ordinary one that was fitted.  This and all other fitted attributes are those of the ordinary
        classifier.
    calibration_ : SigmoidCalibration, SoftmaxCalibration or IsotonicCalibration
        The maps.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from labelweave import datasets
    >>> from labelweave.dask import CalibratedLabelClassifier, MaxMarginClassifier
    >>> data = datasets.make_text_like(200, 150, 6)
    >>> X = da.from_array(data.X.toarray(), chunks=(100, 150))
    >>> Y = da.from_array(data.Y.positives.toarray(), chunks=(100, 6))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = CalibratedLabelClassifier(MaxMarginClassifier(client, C=0.1)).fit(X, Y)
    ...     probabilities = model.predict_proba(X).compute()
    >>> probabilities.shape
    (200, 6)
    """

    _ordinary = decisions.CalibratedLabelClassifier
    _parameter_constraints: ClassVar[dict[str, Any]] = _ordinary._parameter_constraints

    def __init__(
        self, estimator: Any, method: Literal["auto", "sigmoid", "isotonic"] = "auto", *,
        pooling: bool = True, min_positives: int = 500, decision: Literal["half", "expected_f1"] = "half",
        response_method: str = "auto", cv: Any = None, validation_fraction: Share = "auto",
        random_state: RandomState = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())


class TunedThresholdClassifier(PartitionedProbabilities, PartitionedDecisions):
    """:class:`labelweave.TunedThresholdClassifier` on Dask's collections.

    Rows are held out as on one machine, and clones fitted to the others and to all rows on the cluster.
    Labels of all rows and scores of those that are held out come to the client, where the ordinary classifier
    chooses thresholds.

    Parameters
    ----------
    estimator : classifier of labelweave.dask
        What gives scores.  With ``cv="prefit"`` a fitted one, of labelweave.dask or ordinary.
    objective : {"micro_f1", "macro_f1", "example_f1", "hamming_loss", "precision", "recall"}, \
            default="micro_f1"
        What is to be best.  This and all further parameters are those of the ordinary classifier.
    scope : {"label", "global", "top_k"}, default="label"
        A threshold a label, one for all, or the same number of labels for every row.
    target : float or None, default=None
        The precision or recall to be reached.
    pooling : float or "auto", default="auto"
        How strongly labels with few positive rows are drawn to the best threshold for all labels.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        What thresholds are of.
    cv : int, "prefit", splitter, iterable or None, default=None
        Which rows are held out.
    validation_fraction : "auto" or float, default="auto"
        The share of rows held out, for ``cv=None``.
    random_state : int, RandomState instance or None, default=0
        Fixes which rows are held out.

    Attributes
    ----------
    estimator_ : classifier
        The ordinary one that was fitted.  This and all other fitted attributes are those of the ordinary
        classifier.
    thresholds_ : ndarray of float64, shape (L,)
        Probabilities or scores above are positive; not with "top_k".

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from labelweave import datasets
    >>> from labelweave.dask import MaxMarginClassifier, TunedThresholdClassifier
    >>> data = datasets.make_text_like(200, 150, 6)
    >>> X = da.from_array(data.X.toarray(), chunks=(100, 150))
    >>> Y = da.from_array(data.Y.positives.toarray(), chunks=(100, 6))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = TunedThresholdClassifier(MaxMarginClassifier(client, C=0.1), "macro_f1").fit(X, Y)
    >>> model.thresholds_.shape
    (6,)
    """

    _ordinary = decisions.TunedThresholdClassifier
    _parameter_constraints: ClassVar[dict[str, Any]] = _ordinary._parameter_constraints

    def __init__(
        self, estimator: Any, objective: ObjectiveName = "micro_f1", *,
        scope: Literal["label", "global", "top_k"] = "label", target: float | None = None,
        pooling: Literal["auto"] | float = "auto", response_method: str = "auto", cv: Any = None,
        validation_fraction: Share = "auto", random_state: RandomState = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())


class ConformalLabelClassifier(PartitionedDecisions):
    """:class:`labelweave.ConformalLabelClassifier` on Dask's collections, with the same guarantee.

    A clone is fitted to a part of the rows on the cluster.  Labels of all rows and scores of the calibration
    rows come to the client, where the ordinary classifier chooses the threshold.

    Parameters
    ----------
    estimator : classifier of labelweave.dask
        What gives scores.  With ``cv="prefit"`` a fitted one, of labelweave.dask or ordinary.
    control : {"false_negatives", "false_discoveries"}, default="false_negatives"
        What is bounded.  This and all further parameters are those of the ordinary classifier.
    level : float, default=0.1
        The bound.
    guarantee : {"probability", "expectation"}, default="probability"
        Whether the bound holds with a probability, or on average over draws of the calibration rows.
    confidence : float, default=0.95
        For "probability".
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        What the threshold is of.
    cv : int, "prefit" or None, default=None
        Which rows are calibration rows.
    validation_fraction : float, default=0.25
        The share of calibration rows, drawn at random, for ``cv=None``.
    random_state : int, RandomState instance or None, default=0
        Fixes which rows are held out.

    Attributes
    ----------
    estimator_ : classifier
        The ordinary one that was fitted.  This and all other fitted attributes are those of the ordinary
        classifier.
    threshold_ : float
        Labels with scores above are predicted.
    calibration_risk_ : float
        The mean share of mistakes of the calibration rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from labelweave import datasets
    >>> from labelweave.dask import ConformalLabelClassifier, MaxMarginClassifier
    >>> data = datasets.make_text_like(400, 150, 6)
    >>> X = da.from_array(data.X.toarray(), chunks=(200, 150))
    >>> Y = da.from_array(data.Y.positives.toarray(), chunks=(200, 6))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = ConformalLabelClassifier(MaxMarginClassifier(client, C=0.1), level=0.2).fit(X, Y)
    >>> model.calibration_risk_ <= 0.2
    True
    """

    _ordinary = decisions.ConformalLabelClassifier
    _parameter_constraints: ClassVar[dict[str, Any]] = _ordinary._parameter_constraints

    def __init__(
        self, estimator: Any, control: Literal["false_negatives", "false_discoveries"] = "false_negatives", *,
        level: float = 0.1, guarantee: Literal["probability", "expectation"] = "probability",
        confidence: float = 0.95, response_method: str = "auto", cv: Literal["prefit"] | int | None = None,
        validation_fraction: float = 0.25, random_state: RandomState = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())


class HierarchicalClassifier(PartitionedProbabilities, PartitionedDecisions):
    """:class:`labelweave.HierarchicalClassifier` on Dask's collections.

    Labels are completed by the hierarchy where they are; predictions obey it, partition by partition.

    Parameters
    ----------
    estimator : classifier of labelweave.dask
        What gives scores.  With ``cv="prefit"`` a fitted one, of labelweave.dask or ordinary.
    taxonomy : Taxonomy, or what ``Taxonomy.from_any`` reads
        The hierarchy.  This and all further parameters are those of the ordinary classifier.
    enforce : {"max", "projection", "none"}, default="max"
        How scores are made to obey.
    incomplete : bool, default=False
        Whether rows may have classes that nobody has noted.
    conditional : bool, default=False
        Whether a label is learned from rows that have all labels right above it.
    decision : {"threshold", "h_loss", "stepwise"}, default="threshold"
        How label sets are chosen.
    confidence : float, default=0.5
        For "stepwise".
    cv : "prefit" or None, default=None
        "prefit" takes the estimator as it is.

    Attributes
    ----------
    estimator_ : classifier
        The ordinary one that was fitted.  This and all other fitted attributes are those of the ordinary
        classifier.
    taxonomy_ : Taxonomy
        The hierarchy.

    Examples
    --------
    >>> import dask
    >>> import numpy as np, pandas as pd
    >>> from distributed import Client
    >>> from labelweave.dask import HierarchicalClassifier, MaxMarginClassifier
    >>> X = np.array([[0.0, 1], [1, 0], [1, 1], [0, 0]])
    >>> y = pd.DataFrame({"animal": [0, 0, 0, 0], "dog": [1, 0, 1, 0], "cat": [0, 1, 0, 0]})
    >>> tree = {"animal": ["dog", "cat"]}
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = HierarchicalClassifier(MaxMarginClassifier(client), tree)
    ...     model = model.fit([dask.delayed((X[:2], y[:2])), dask.delayed((X[2:], y[2:]))])
    >>> scores = model.decision_function(X)
    >>> bool((scores[:, [0]] >= scores).all())
    True
    """

    _ordinary = decisions.HierarchicalClassifier
    _parameter_constraints: ClassVar[dict[str, Any]] = _ordinary._parameter_constraints

    def __init__(
        self, estimator: Any, taxonomy: Any, enforce: Literal["max", "projection", "none"] = "max", *,
        incomplete: bool = False, conditional: bool = False,
        decision: Literal["threshold", "h_loss", "stepwise"] = "threshold", confidence: float = 0.5,
        cv: Literal["prefit"] | None = None,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _to_fit(self, client: Client, data: ReadData, local: Any) -> ReadData:
        return data.relabelled(client, partial(_completed, local))

    def _n_scored(self, n_rows: int) -> int:
        return 0


def _completed(classifier: decisions.HierarchicalClassifier, labels: LabelMatrix) -> LabelMatrix:
    return classifier._labels_to_fit(classifier._completed(labels))
