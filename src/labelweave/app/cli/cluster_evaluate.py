"""``labelweave evaluate --dask``: files that workers read, one at a time, and sums over their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from labelweave.app.cli import cluster_fit
from labelweave.app.cli.answer_files import label_rows
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.model_rows import read_labeled_rows, truth_of
from labelweave.app.cli.pipeline_rows import as_taken
from labelweave.app.report.label_numbers import Counts
from labelweave.app.report.measured import OF_WHOLE_RANKINGS, Measured, class_notes, measure
from labelweave.app.report.reported_rows import ReportedRows, all_labels, read_rows
from labelweave.metrics.known_labels import Unknown, known_labels
from labelweave.metrics.summary import TableSums

_SIZES = (1, 3, 5)
_OF_CLASSES = ("accuracy", "mean_reciprocal_rank")  # of rows of a class, not of an inner node
_MEANS = (*_OF_CLASSES, "log_loss", "taxonomic_loss", "parent_accuracy")


@dataclass(frozen=True)
class ClassSums:
    """What rows of one class each add.

    n_known: rows whose class, or a node above it, is known; n_exact: those of a class.
    means: metrics that are means over rows, times the rows.
    """

    n_known: int
    n_exact: int
    means: dict[str, float]

    @classmethod
    def of(cls, measured: Measured) -> ClassSums:
        """Take the metrics that are means."""
        assert measured.true_nodes is not None, "rows have classes"
        found = cls(len(measured.true_nodes), len(measured.outcomes.truth), {})
        known = {name: value for name, value in measured.metrics.items() if name in _MEANS}
        counts = {name: found._rows_of(name) for name in known}
        return replace(found, means={name: known[name] * n if n else 0.0 for name, n in counts.items()})

    def _rows_of(self, metric: str) -> int:
        return self.n_exact if metric in _OF_CLASSES else self.n_known

    def __add__(self, other: ClassSums) -> ClassSums:
        means = {name: value + other.means[name] for name, value in self.means.items()}
        return ClassSums(self.n_known + other.n_known, self.n_exact + other.n_exact, means)

    def table(self) -> dict[str, float]:
        """Give the metrics; not whether parents are right where inner nodes do not tell all of them."""
        left_out = set() if self.n_exact == self.n_known else {"parent_accuracy"}
        counts = {name: self._rows_of(name) for name in self.means if name not in left_out}
        return {name: self.means[name] / n if n else np.nan for name, n in counts.items()}


@dataclass(frozen=True)
class FileSums:
    """What the rows of a file add to the metrics of a model.

    names: of the labels that are counted.
    classes: of rows of one class each.
    """

    n_rows: int
    names: list[str]
    sums: TableSums
    classes: ClassSums | None = None

    def plus(self, other: FileSums, path: str) -> FileSums:
        """Add the rows of another file, named ``path``."""
        if self.names != other.names:
            raise click.UsageError(
                f"{path} has other labels than the files before it; give files of the same."
            )
        classes = None if self.classes is None or other.classes is None else self.classes + other.classes
        n_rows, sums = self.n_rows + other.n_rows, self.sums + other.sums
        return replace(self, n_rows=n_rows, sums=sums, classes=classes)

    def counts(self) -> dict[str, int]:
        """Count rows and labels, or classes."""
        if self.classes is None:
            return {"rows": self.n_rows, "labels": len(self.names)}
        return {"rows": self.classes.n_known, "classes": len(self.names)}

    def notes(self) -> list[str]:
        """Say what was not counted."""
        classes = self.classes
        return [] if classes is None else class_notes(self.n_rows, classes.n_known, classes.n_exact)

    def table(self) -> dict[str, float]:
        """Give the metrics."""
        if self.classes is None:
            return self.sums.table()
        found = self.classes.table()
        return found if "log_loss" in found else found | self.sums.table()

    def label_rows(self) -> list[dict[str, Any]]:
        """Give the counts and shares of every label."""
        counts = self.sums.counts
        shares = Counts(counts.positive, counts.predicted, counts.hit)
        return label_rows(self.names, counts.observed, shares, {})


def measured_on_cluster(model: Any, data: str, source: DataFlags, where: str) -> FileSums:
    """Measure a model on the rows of files, each read by one worker.

    data: a file, a folder or a pattern.
    Raises ValueError if a file cannot be read, which is named.
    """
    import dask
    from labelweave.dask.files import files_of
    from labelweave.dask.waiting import gathered

    paths, one, kept = files_of([data]), dask.delayed(_sums_of, pure=False), dask.delayed(model)
    with cluster_fit.connected(where) as client:
        tasks = [one(kept, path, source) for path in paths]
        found = gathered(client, client.compute(tasks), "files measured")
    whole: FileSums | None = None
    for part, path in zip(found, paths, strict=True):
        if isinstance(part, Exception):
            raise part
        whole = part if whole is None else whole.plus(part, path)
    assert whole is not None, "there is a file"
    return whole


def _sums_of(model: Any, path: str, source: DataFlags) -> FileSums | Exception:
    try:
        data = read_labeled_rows(model, path, source)
        rows = read_rows(model, as_taken(model, data.X), None)
        measure_one = _class_sums if rows.has_classes else _label_sums
        return measure_one(rows, truth_of(model, data), source.unknown_labels)
    except (ValueError, click.ClickException) as error:  # the file is named in it
        return error


def _label_sums(rows: ReportedRows, y: Any, unknown: Unknown) -> FileSums:
    truth, columns = known_labels(y, rows.label_names, unknown)
    _, scores, predicted = all_labels(rows, columns, _silent)
    sums = TableSums.of(truth, scores, predicted, _SIZES, np.ones(len(truth)))
    if sp.issparse(scores):  # of the best labels alone
        sums = sums.without(OF_WHOLE_RANKINGS)
    return FileSums(len(rows), [str(name) for name in np.asarray(truth.names)], sums)


def _class_sums(rows: ReportedRows, y: Any, unknown: Unknown) -> FileSums:
    measured = measure(rows, y, unknown, _silent)
    found = measured.outcomes
    sums = TableSums.of(found.truth, found.scores, found.predicted, _SIZES, np.ones(len(found.truth)))
    return FileSums(len(rows), rows.label_names, sums, ClassSums.of(measured))


def _silent(words: str) -> None:
    """Say nothing: workers have no terminal."""
