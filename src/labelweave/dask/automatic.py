"""The automatic model on partitions: every worker gets all rows; fits to folds of members are tasks."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from dask.sizeof import sizeof
from distributed import Client, Future
from distributed.protocol import pickle
from sklearn.base import clone

import dask
from labelweave.dask.data import ReadData, megabytes_of_workers
from labelweave.dask.partitions import NO_ROWS
from labelweave.dask.rows import (
    ReadRows,
    Sized,
    aligned,
    count_rows,
    is_empty,
    rows_of,
    size_in_bytes,
    stacked,
)
from labelweave.dask.waiting import LOST, gathered, returning_refusals
from labelweave.decisions.automatic import AutoLabelClassifier
from labelweave.decisions.automatic.given import named_members
from labelweave.decisions.automatic.members import Members
from labelweave.decisions.automatic.plan import Plan
from labelweave.decisions.automatic.table import Member, TrainingTable
from labelweave.foundation.arrays import Workers
from labelweave.foundation.frames import as_pandas, column_labels, is_frame
from labelweave.labels import ClassProbabilities, LabelMatrix
from labelweave.labels.tags import tag_rows
from labelweave.labels.targets import TargetForm, UnobservedLabelWarning, require_observed

_TIMES = 9  # memory of rows on a worker: as they are, in double precision, and in a fit to other folds
_TABLES = 16  # rows x labels in double precision, however labels are stored; most are scores per penalty


def fit_as_given(model: AutoLabelClassifier, client: Client, parts: Sequence[tuple[Any, ...]]) -> int:
    """Fit to partitions as given, of any kind that the model takes in memory; return the number of rows."""
    together = dask.delayed(_itself, pure=False)
    rows = client.compute([together(*part[:3]) for part in parts])
    return len(_fit_together(model, client, rows, None))


def fit_to(model: AutoLabelClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any) -> None:
    """Fit to partitions that workers have read."""
    _fit_together(model, client, client.map(_as_given, data.rows, pure=False), data.form)


def _fit_together(
    model: AutoLabelClassifier, client: Client, parts: Sequence[Future], form: TargetForm | None
) -> LabelMatrix:
    """Fit the members on the cluster, and combine them on the client; return the labels.

    parts: futures of rows, targets and weights.
    form: the original form of the labels; None if they still have it.
    """
    given = {} if isinstance(model.members, str) else named_members(model.members)
    _refuse_unsendable(given)
    rows = _brought_together(client, parts, model, tuple(given), form)
    (found,) = gathered(client, [client.submit(_Rows.small, rows, pure=False)])
    reader, table, plan = found.model, found.table, found.plan
    labels: LabelMatrix = found.labels
    model.__dict__.update(vars(reader) | model.get_params(deep=False))
    if not model._form.has_one_class and form is None:
        require_observed(labels)
    maker = _MembersOnWorkers(table, client, rows, given, is_verbose=bool(model.verbose))
    members, seconds = maker.make_all(plan)
    with Workers().running():
        model._combine(members, seconds, labels, table, plan)
    model.status_ = "complete"
    return labels


class _MembersOnWorkers(Members):
    """Members whose fits are tasks; the table on the client has no features."""

    def __init__(
        self, table: TrainingTable, client: Client, rows: Future, given: dict[str, Any], *, is_verbose: bool
    ) -> None:
        super().__init__(table, given=given)
        self._client, self._rows, self._is_verbose = client, rows, is_verbose
        self._fits: list[Future] = []  # of the member started last

    def submit(self, function: Callable[..., Any], *given: Any, step: str = "") -> Any:
        task = self._client.submit(_on_table, function, self._rows, *given, pure=False)
        if step:  # a small task is counted: its result may be large (trees, scores per penalty)
            self._fits.append(self._client.submit(_is_there, task, pure=False))
        return task

    def make_all(self, plan: Plan) -> tuple[list[Member], list[float]]:
        """Compute all members at once, and assemble them in order; also return the seconds."""
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
    """All rows as the ordinary estimator reads them, with its means, scaling and classes."""

    model: AutoLabelClassifier
    labels: LabelMatrix
    table: TrainingTable
    plan: Plan

    @classmethod
    @returning_refusals
    def read(
        cls, reader: AutoLabelClassifier, members: tuple[str, ...], form: TargetForm | None, seed: int,
        parts: list[tuple[Any, Any, Any]],
    ) -> _Rows:  # fmt: skip
        """Read partitions together.

        form: the form of labels that workers have read.
        """
        kept = []
        for number, part in enumerate(parts):
            try:
                kept += [] if is_empty(*part[:2]) else [part]
            except ValueError as error:
                raise ValueError(f"Partition {number}: {error}") from error
        if not kept:
            raise ValueError(NO_ROWS)
        names = enumerate(("X", "y", "sample_weight"))
        X, y, weights = (_joined([part[place] for part in kept], name) for place, name in names)
        del parts, kept
        with Workers().running(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UnobservedLabelWarning)  # the client warns
            rows = reader._read(X, y, weights, None, seed)
            if form is not None and not form.has_one_class:
                reader._form, reader.classes_ = form, form.classes
            plan = reader._plan(rows, members)
            return cls(reader, rows.labels, *reader._table(rows, plan, seed))

    @staticmethod
    def small(rows: _Rows | ValueError) -> _Rows | ValueError:
        """Drop the features, for the client."""
        return rows if isinstance(rows, ValueError) else replace(rows, table=rows.table.without_features())


def _on_table(function: Callable[..., Any], rows: _Rows, *given: Any) -> Any:
    with Workers().running():
        return function(rows.table, *map(aligned, given))


def _joined(parts: list[Any], name: str) -> Any:
    """Concatenate the rows of partitions of any type."""
    parts = list(map(as_pandas, parts))
    if parts[0] is not None and any(_columns(part) != _columns(parts[0]) for part in parts):
        raise ValueError(
            f"A partition of {name} has other columns than the first, or in another order; pass partitions "
            "with the same columns."
        )
    return stacked(parts)


def _columns(part: Any) -> list[Any] | None:
    """Return the column names of a part, for types that have names."""
    names = part.classes if isinstance(part, ClassProbabilities) else getattr(part, "names", None)
    return column_labels(part) if is_frame(part) else None if names is None else list(names)


def _brought_together(
    client: Client, rows: Sequence[Future], model: AutoLabelClassifier, members: tuple[str, ...],
    form: TargetForm | None,
) -> Future:  # fmt: skip
    """Replicate all rows to every worker."""
    is_verbose, reader = bool(model.verbose), clone(model)
    sizes = gathered(client, client.map(_bytes_of, rows, pure=False), "partitions read" if is_verbose else "")
    held, counts, widths = np.transpose(sizes)
    megabytes, table = 1e-6 * held.sum(), 8e-6 * counts.sum() * widths.max()
    limit = min(megabytes_of_workers(client), default=np.inf)
    if _TIMES * megabytes + _TABLES * table > limit:
        raise ValueError(
            f"All rows take {megabytes:.0f} MB, and fits {_TIMES} times that plus {_TABLES} tables of "
            f"{table:.0f} MB, but a worker is limited to {limit:.0f} MB; give workers more memory, or "
            "pass fewer rows."
        )
    table = client.submit(_Rows.read, reader, members, form, model._seed(), list(rows), pure=False)
    gathered(
        client, [client.submit(_is_there, table, pure=False)], "readings of all rows" if is_verbose else ""
    )
    try:
        client.replicate([table])  # otherwise Dask would leave most tasks to the worker that has it
    except (*LOST, KeyError, ValueError):  # a worker died: others get it with their first task
        pass
    return table


def _as_given(rows: ReadRows) -> tuple[Any, Any, Any]:
    return rows_of(rows.features), rows.targets, rows.weights


def _itself(*part: Any) -> tuple[Any, ...]:
    return part


def _is_there(_: Any) -> bool:
    return True


def _bytes_of(part: tuple[Any, ...]) -> tuple[int, int, int]:
    """Return the bytes of rows without a label table, and the numbers of rows and of labels or classes."""
    X, y, weights = part
    shape: Any = getattr(y, "shape", ())
    is_table = len(shape) == 2
    kept = (X, weights) if is_table else part
    found = sum(sizeof(one) if hasattr(one, "iloc") else size_in_bytes(one) for one in kept)
    return found, count_rows(X), shape[1] if is_table else _n_names(y)


def _n_names(y: Any) -> int:
    """Return the number of distinct classes or tags."""
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
                f"The member {name} cannot be sent to workers ({type(error).__name__}: {error}); use one "
                "that can be pickled."
            ) from error
