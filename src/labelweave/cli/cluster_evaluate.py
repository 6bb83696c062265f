"""``labelweave evaluate --dask``: files that workers read, one at a time, and sums over their rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import click
import numpy as np
import scipy.sparse as sp

from labelweave.cli import cluster_fit
from labelweave.cli.flags import DataFlags
from labelweave.cli.messages import short
from labelweave.cli.model_rows import has_one_class_a_row, read_labeled_rows, truth_of
from labelweave.cli.pipeline_rows import as_taken
from labelweave.metrics.known_labels import known_labels
from labelweave.metrics.summary import TableSums
from labelweave.report.label_numbers import Counts
from labelweave.report.measured import OF_WHOLE_RANKINGS
from labelweave.report.reported_rows import all_labels, read_rows

_SIZES = (1, 3, 5)


class FileSums(NamedTuple):
    """What the rows of a file add to the metrics of a model.

    names: of the labels that are counted.
    """

    n_rows: int
    names: list[str]
    sums: TableSums

    def plus(self, other: FileSums, path: str) -> FileSums:
        """Add the rows of another file, named ``path``."""
        if self.names != other.names:
            raise click.UsageError(
                f"{path} has other labels than the files before it; give files of the same."
            )
        return FileSums(self.n_rows + other.n_rows, self.names, self.sums + other.sums)

    def table(self) -> dict[str, float]:
        """Give the metrics."""
        return self.sums.table()

    def label_rows(self) -> list[dict[str, Any]]:
        """Give the counts and shares of every label."""
        counts = self.sums.counts
        shares = Counts(counts.positive, counts.predicted, counts.hit)
        return [
            {
                "label": name,
                "observed": int(counts.observed[label]),
                "positive": int(counts.positive[label]),
                "predicted": int(counts.predicted[label]),
                "found": int(counts.hit[label]),
                "precision": short(shares.precision[label]),
                "recall": short(shares.recall[label]),
                "f1": short(shares.f1[label]),
            }
            for label, name in enumerate(self.names)
        ]


def measured_on_cluster(model: Any, data: str, source: DataFlags, where: str) -> FileSums:
    """Measure a model on the rows of files, each read by one worker.

    data: a file, a folder or a pattern.
    Raises ValueError if a file cannot be read, which is named.
    """
    import dask
    from labelweave.dask.files import files_of
    from labelweave.dask.waiting import gathered

    if has_one_class_a_row(model):
        raise click.UsageError("--dask measures labels, and this model has one class a row; leave it out.")
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
        truth, columns = known_labels(truth_of(model, data), rows.label_names, source.unknown_labels)
        _, scores, predicted = all_labels(rows, columns, lambda words: None)
        sums = TableSums.of(truth, scores, predicted, _SIZES, np.ones(len(truth)))
    except (ValueError, click.ClickException) as error:  # the file is named in it
        return error
    if sp.issparse(scores):  # of the best labels alone
        sums = sums.without(OF_WHOLE_RANKINGS)
    return FileSums(len(rows), [str(name) for name in np.asarray(truth.names)], sums)
