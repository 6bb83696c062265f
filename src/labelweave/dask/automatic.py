"""The one call on Dask's collections: fits to the folds of each member are tasks."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from dask.sizeof import sizeof
from distributed import Client, Future
from distributed.protocol import pickle

import dask
from labelweave.dask.classifier import PartitionedClassifier
from labelweave.dask.data import ReadData, megabytes_of_workers
from labelweave.dask.partitions import row_partitions
from labelweave.dask.predictions import PartitionedProbabilities
from labelweave.dask.rows import ReadRows, Sized, aligned, count_rows, rows_of, size_in_bytes, targets_alone
from labelweave.dask.waiting import LOST, gathered
from labelweave.decisions.automatic import AutoLabelClassifier as LocalAutoLabelClassifier
from labelweave.decisions.automatic.classifier import Metric
from labelweave.decisions.automatic.given import named_members
from labelweave.decisions.automatic.members import Members
from labelweave.decisions.automatic.plan import Plan, Shape, make_plan
from labelweave.decisions.automatic.table import Member, TrainingTable
from labelweave.estimators.parameters import ClassWeight, FlipRatesLike, RandomState, keep_parameters
from labelweave.estimators.targets import TargetForm, UnobservedLabelWarning, require_observed
from labelweave.foundation.arrays import Workers
from labelweave.foundation.frames import as_pandas, column_labels, is_frame
from labelweave.labels import ClassProbabilities, LabelMatrix
from labelweave.labels.tags import tag_rows

_TIMES = 9  # what rows take of a worker: as they are, in double precision, and in a fit to other folds
_TABLES = 16  # of rows x labels in double precision, however labels are kept; most are scores by penalties


class AutoLabelClassifier(PartitionedProbabilities, PartitionedClassifier):
    """:class:`labelweave.AutoLabelClassifier` on Dask's collections, with the same bits.

    All rows are brought to one place, and each worker gets them once: its memory must hold them nine times,
    as they are read and in fits, and sixteen tables of rows x labels.  What is fitted to the other rows of a
    fold, or to all rows, of each member is one task, and so are 25 trees of a forest; left-out scores come to
    the client, which combines them.  The bits are those of the ordinary estimator on the same rows in memory.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The cluster; None is the client made last.
    metric : {"micro_f1", "macro_f1", "example_f1", "hamming_loss", "jaccard", "subset_accuracy"}, \
            default="micro_f1"
        What label sets are to be best for.
    time_budget : float or None, default=None
        Seconds that a fit may take on one machine, by a cost model; None for 300.
    members : "auto" or list of {"linear", "max-margin", "rbf", "forest", "rbf+forest"} or estimators, \
            default="auto"
        What is combined.  Estimators are sent to workers, so they must be such as can be pickled.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of classes, where a row has one class.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly.
    n_jobs : int or None, default=None
        Threads of a worker that grow trees.
    random_state : int, RandomState instance or None, default=0
        Fixes folds and trees.
    verbose : bool or int, default=0
        Whether to write to stderr how far a fit is.

    Attributes
    ----------
    members_ : list of dict
        What was tried; ``seconds`` are those that the client waited for each, after the ones before it.
        This and all other fitted attributes are those of the ordinary estimator.
    left_out_value_ : float
        The metric on left-out rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from labelweave import datasets
    >>> from labelweave.dask import AutoLabelClassifier
    >>> data = datasets.make_text_like(300, 200, 8)
    >>> X, Y = (da.from_array(part, chunks=(100, -1)) for part in (data.X.toarray(), data.Y.to_dense()))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = AutoLabelClassifier(client, time_budget=5).fit(X, Y)
    ...     probabilities = model.predict_proba(X[:2]).compute()
    >>> probabilities.shape
    (2, 8)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LocalAutoLabelClassifier._parameter_constraints,
        "client": [Client, None],
    }
    _ordinary = LocalAutoLabelClassifier
    _one_machine: ClassVar[dict[str, tuple[Any, ...]]] = {}

    def __init__(
        self, client: Client | None = None, metric: Metric = "micro_f1", *,
        time_budget: float | None = None, members: Literal["auto"] | Sequence[Any] = "auto",
        class_weight: ClassWeight = None, flip_rates: FlipRatesLike = None, n_jobs: int | None = None,
        random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Fit the members on the cluster, and combine them.

        Parameters
        ----------
        X : dask array or DataFrame of shape (n, d), or list of delayed values or futures
            The training rows, in blocks that are dense or CSR, NaN where a feature is not known; or a list
            with the rows of each partition.
        y : dask array or DataFrame of shape (n, L) or (n,), list as X, or None, default=None
            Labels 0/1 or -1/1 with NaN where unobserved, LabelMatrix partitions, or one class a row.  None
            for a list of pairs (X, y).
        sample_weight : dask array or Series of shape (n,), or list as X, default=None
            Non-negative weights of the rows' errors, on any scale; rows of weight 0 are left out.

        Returns
        -------
        AutoLabelClassifier
            The fitted model itself.

        Raises
        ------
        ValueError
            If the data make no sense, the rows, counted over all partitions, being named; if a worker's
            memory does not hold them, or a member cannot be sent.
        RuntimeError
            If workers die again and again, or lost what cannot be made again.

        Warns
        -----
        UserWarning
            If no task has ended for a minute; it says why, as far as the scheduler knows.
        """
        self._validate_params()
        client, parts = self._connected(), row_partitions(X, y, sample_weight)
        together = dask.delayed(_itself, pure=False)
        rows = client.compute([together(*part[:3]) for part in parts])
        self._local, labels = self._fitted_together(client, rows, None)
        self._n_rows = len(labels)
        return self

    def _fitted_to(self, client: Client, data: ReadData, *, is_part: bool = False, start: Any = None) -> Any:
        rows = client.map(_as_given, data.rows, pure=False)
        return self._fitted_together(client, rows, data.form)[0]

    def _fitted_together(
        self, client: Client, parts: Sequence[Future], form: TargetForm | None
    ) -> tuple[LocalAutoLabelClassifier, LabelMatrix]:
        """Fit the ordinary estimator; give the labels too.

        parts: give rows, targets and weights.
        form: that labels had; None where they have it still.
        """
        reader = self._reader()
        given = {} if isinstance(self.members, str) else named_members(self.members)
        _refuse_unsendable(given)
        rows = _brought_together(client, parts, reader, tuple(given), form, is_verbose=bool(self.verbose))
        found = gathered(client, [client.submit(_Rows.small, rows, pure=False)])[0]
        if isinstance(found, ValueError):
            raise found
        local, labels, table, plan = found.local, found.labels, found.table, found.plan
        if local._form.kind == "labels" and form is None:
            require_observed(labels)
        maker = _MembersOnWorkers(table, client, rows, given, is_verbose=bool(self.verbose))
        members, seconds = maker.make_all(plan)
        with Workers().running():
            local._combine(members, seconds, labels, table, plan)
        local.status_ = "complete"
        return local, labels


class _MembersOnWorkers(Members):
    """Members whose fits are tasks; the table here has no features."""

    trees_a_task = 25

    def __init__(
        self, table: TrainingTable, client: Client, rows: Future, given: dict[str, Any], *, is_verbose: bool
    ) -> None:
        super().__init__(table, given=given)
        self._client, self._rows, self._is_verbose = client, rows, is_verbose
        self._fits: list[Future] = []  # of the member that was begun last

    def submit(self, function: Callable[..., Any], *given: Any, step: str = "") -> Any:
        task = self._client.submit(_on_table, function, self._rows, *given, pure=False)
        if step:  # the one counted holds no result: trees, and scores by all penalties, are large
            self._fits.append(self._client.submit(_is_there, task, pure=False))
        return task

    def make_all(self, plan: Plan) -> tuple[list[Member], list[float]]:
        """Have all members computed at once, and put one after the other together; give the seconds too."""
        tasks: list[Any] = []
        for name in plan.members:
            self._fits = []
            tasks.append((name, *self.begin(name), self._fits))
        members, seconds = [], []
        while tasks:
            begun, (name, folds, whole, fits) = time.perf_counter(), tasks.pop(0)
            what = f"fits of {name} done" if self._is_verbose else ""
            *scores, found = gathered(self._client, [*folds, whole], what, fits)
            members.append(self.made(name, scores, found))
            seconds.append(time.perf_counter() - begun)
        return members, seconds


@dataclass(frozen=True)
class _Rows(Sized):
    """All rows as the ordinary estimator reads them, which has learned their means, scaling and classes."""

    local: LocalAutoLabelClassifier
    labels: LabelMatrix
    table: TrainingTable
    plan: Plan

    @classmethod
    def read(
        cls, reader: LocalAutoLabelClassifier, members: tuple[str, ...], form: TargetForm | None, seed: int,
        parts: list[tuple[Any, Any, Any]],
    ) -> _Rows | ValueError:  # fmt: skip
        """Read partitions together; give the error where they make no sense.

        form: of labels that were read.

        Errors that tasks raise are written to the logs of workers.
        """
        try:
            for number, (X, y, _) in enumerate(parts):
                if isinstance(y, ValueError):
                    raise ValueError(f"Partition {number}: {y}")
                if count_rows(X) == 0 and (error := targets_alone(y, number)):
                    raise error
            parts = [part for part in parts if count_rows(part[0])]
            if not parts:
                raise ValueError("X has no rows in any of its partitions; at least one row is needed.")
            names = enumerate(("X", "y", "sample_weight"))
            X, y, weights = (_joined([part[place] for part in parts], name) for place, name in names)
            del parts
            with Workers().running(), warnings.catch_warnings():
                warnings.simplefilter("ignore", UnobservedLabelWarning)  # the client says so
                features, labels, weights = reader._read(X, y, weights)
                if form is not None and form.kind == "labels":
                    reader._form, reader.classes_ = form, form.classes
                plan = make_plan(Shape.of_data(features, labels), members or None, reader.time_budget)
                return cls(reader, labels, reader._table(features, labels, weights, plan, seed), plan)
        except ValueError as error:
            return error

    @staticmethod
    def small(rows: _Rows | ValueError) -> _Rows | ValueError:
        """Leave out the features, for the client."""
        return rows if isinstance(rows, ValueError) else replace(rows, table=rows.table.without_features())


def _on_table(function: Callable[..., Any], rows: _Rows, *given: Any) -> Any:
    with Workers().running():
        return function(rows.table, *map(aligned, given))


def _joined(parts: list[Any], name: str) -> Any:
    """Put the rows of partitions below one another, of whatever kind they are."""
    parts = list(map(as_pandas, parts))
    first = parts[0]
    if first is None:
        return None
    if any(_columns(part) != _columns(first) for part in parts):
        raise ValueError(
            f"A partition of {name} has other columns than the first, or in another order; all partitions "
            "have the same columns."
        )
    if isinstance(first, LabelMatrix):
        return LabelMatrix.stacked(parts)
    if isinstance(first, ClassProbabilities):
        return ClassProbabilities._of(np.concatenate([part.table for part in parts]), first.classes)
    if isinstance(first, (pd.DataFrame, pd.Series)):
        return pd.concat(parts)
    return _joined_arrays(parts)


def _joined_arrays(parts: list[Any]) -> Any:
    if any(map(sp.issparse, parts)):
        return sp.csr_array(sp.vstack([sp.csr_array(part) for part in parts]))
    if isinstance(parts[0], list):
        return [row for part in parts for row in part]
    return (np.ma if any(map(np.ma.isMaskedArray, parts)) else np).concatenate(parts)


def _columns(part: Any) -> list[Any] | None:
    """Name the columns of a part, of those kinds that have names."""
    names = part.classes if isinstance(part, ClassProbabilities) else getattr(part, "names", None)
    return column_labels(part) if is_frame(part) else None if names is None else list(names)


def _brought_together(
    client: Client, rows: Sequence[Future], reader: LocalAutoLabelClassifier, members: tuple[str, ...],
    form: TargetForm | None, *, is_verbose: bool,
) -> Future:  # fmt: skip
    """Bring all rows to every worker that there is."""
    sizes = gathered(client, client.map(_bytes_of, rows, pure=False), "partitions read" if is_verbose else "")
    held, counts, widths = np.transpose(sizes)
    megabytes, table = 1e-6 * held.sum(), 8e-6 * counts.sum() * widths.max()
    limit = min(megabytes_of_workers(client), default=np.inf)
    if _TIMES * megabytes + _TABLES * table > limit:
        raise ValueError(
            f"All rows in one place take {megabytes:.0f} MB, and {_TIMES} times that while members are "
            f"fitted, with {_TABLES} tables of rows x labels of {table:.0f} MB, but the memory of a worker "
            f"is limited to {limit:.0f} MB; give workers more memory, or fit some of the rows."
        )
    table = client.submit(_Rows.read, reader, members, form, reader._drawn_seed(), list(rows), pure=False)
    gathered(
        client, [client.submit(_is_there, table, pure=False)], "readings of all rows" if is_verbose else ""
    )
    try:
        client.replicate([table])  # Dask would leave most tasks to the worker that has it
    except (*LOST, KeyError, ValueError):  # a worker died meanwhile: others get it with their first task
        pass
    return table


def _as_given(rows: ReadRows) -> tuple[Any, Any, Any]:
    return rows_of(rows.features), rows.targets, rows.weights


def _itself(*part: Any) -> tuple[Any, ...]:
    return part


def _is_there(_: Any) -> bool:
    return True


def _bytes_of(part: tuple[Any, ...]) -> tuple[int, int, int]:
    """Say how large rows are, but for a table of labels, how many, and of how many labels or classes."""
    X, y, weights = part
    shape: Any = getattr(y, "shape", ())
    is_table = len(shape) == 2
    kept = (X, weights) if is_table else part
    found = sum(sizeof(one) if hasattr(one, "iloc") else size_in_bytes(one) for one in kept)
    return found, count_rows(X), shape[1] if is_table else _n_names(y)


def _n_names(y: Any) -> int:
    """Count the classes or tags of rows."""
    tags = tag_rows(y)
    if tags is not None:
        return len(set().union(*filter(np.iterable, tags)))
    return 0 if y is None or isinstance(y, ValueError) else len(pd.unique(np.asarray(y)))


def _refuse_unsendable(given: dict[str, Any]) -> None:
    for name, estimator in given.items():
        try:
            pickle.dumps(estimator)
        except Exception as error:
            raise ValueError(
                f"The member {name} cannot be sent to workers ({type(error).__name__}: {error}); give one "
                "that can be pickled."
            ) from error
