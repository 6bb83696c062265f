"""``labelweave evaluate --dask``: files that workers read, one at a time, and sums over their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from labelweave.app.cli import cluster_fit
from labelweave.app.cli.answer_files import Evaluation, label_rows
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.model_rows import read_labeled_rows, truth_of
from labelweave.app.cli.pipeline_rows import as_taken
from labelweave.app.report.label_numbers import Counts
from labelweave.app.report.measured import OF_WHOLE_RANKINGS, class_notes, measure
from labelweave.app.report.reported_rows import ReportedRows, all_labels, read_rows
from labelweave.metrics.known_labels import Unknown, known_labels
from labelweave.metrics.summary import TableSums

_SIZES = (1, 3, 5)
_OF_CLASSES = ("accuracy", "mean_reciprocal_rank")  # of rows of a class, not of an inner node
_MEANS = (*_OF_CLASSES, "log_loss", "taxonomic_loss", "parent_accuracy")


@dataclass(frozen=True)
class FileSums:
    """What the rows of a file add to the metrics of a model.

    names: of the labels that are counted.
    known: of classes, the rows where it, or a node above it, is known, and those of a class of the model.
    """

    n_rows: int
    names: list[str]
    sums: TableSums
    known: tuple[int, int] | None = None

    def plus(self, other: FileSums, path: str) -> FileSums:
        """Add the rows of another file, named ``path``."""
        if self.names != other.names:
            raise click.UsageError(
                f"{path} has other labels than the files before it; give files of the same."
            )
        known = (
            self.known and other.known and (self.known[0] + other.known[0], self.known[1] + other.known[1])
        )
        return FileSums(self.n_rows + other.n_rows, self.names, self.sums + other.sums, known)

    def evaluation(self) -> Evaluation:
        """Divide; not to whether parents are right where inner nodes do not tell all of them."""
        metrics, counts = self.sums.table(), self.sums.counts
        numbers = Counts(counts.positive, counts.predicted, counts.hit)
        of_labels = partial(label_rows, self.names, counts.observed, numbers, {})
        if self.known is None:
            return Evaluation([], {"rows": self.n_rows, "labels": len(self.names)}, metrics, of_labels)
        n_known, n_exact = self.known
        if n_exact < n_known:
            metrics.pop("parent_accuracy", None)
        if "log_loss" in metrics:
            metrics = {name: value for name, value in metrics.items() if name in _MEANS}
        notes = class_notes(self.n_rows, n_known, n_exact)
        return Evaluation(notes, {"rows": n_known, "classes": len(self.names)}, metrics, of_labels)


def measured_on_cluster(model: Any, data: str, source: DataFlags, where: str) -> Evaluation:
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
    return whole.evaluation()


def _sums_of(model: Any, path: str, source: DataFlags) -> FileSums | Exception:
    try:
        data = read_labeled_rows(model, path, source)
        rows = read_rows(model, as_taken(model, data.X), None)
        measure_one = _class_sums if rows.has_classes else _label_sums
        return measure_one(rows, truth_of(model, data), source.unknown_labels)
    except (ValueError, click.ClickException) as error:  # the file is named in it
        return error


def _silent(words: str) -> None:
    """Say nothing: workers have no terminal."""


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
    assert measured.true_nodes is not None, "rows have classes"
    n_known, n_exact = len(measured.true_nodes), len(found.truth)
    sums = TableSums.of(found.truth, found.scores, found.predicted, _SIZES, np.ones(n_exact))
    counts = {
        name: n_exact if name in _OF_CLASSES else n_known for name in _MEANS if name in measured.metrics
    }
    means = {name: (measured.metrics[name] * n if n else 0.0, float(n)) for name, n in counts.items()}
    return FileSums(len(rows), rows.label_names, replace(sums, sums=sums.sums | means), (n_known, n_exact))
