"""``--dask`` of ``labelweave fit`` and ``evaluate``: workers read files, and fit or evaluate."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import click
import numpy as np
import scipy.sparse as sp

from labelweave.app.cli.answer_files import Evaluation, label_rows
from labelweave.app.cli.comparing import models_to_compare, name_of, on_folds
from labelweave.app.cli.fit_request import FitRequest
from labelweave.app.cli.fit_words import End, endings, save_fit
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.label_relations import in_taxonomy, is_graph_file, model_with_relations
from labelweave.app.cli.messages import hint, say
from labelweave.app.cli.model_flags import class_of, models_on_clusters
from labelweave.app.cli.model_rows import read_labeled_rows, truth_of
from labelweave.app.cli.pipeline_rows import as_taken
from labelweave.app.cli.table_roles import column_words, cut_where_listed, require_labels
from labelweave.app.report.label_numbers import Counts
from labelweave.app.report.measured import OF_WHOLE_RANKINGS, class_notes, measure_classes
from labelweave.app.report.reported_rows import ReportedRows, all_labels, read_rows
from labelweave.decisions.comparison import Comparison, compare
from labelweave.labels import LabelMatrix
from labelweave.metrics._inputs import row_observed_counts
from labelweave.metrics.known_labels import Unknown, known_labels, warn_of_missed, widened
from labelweave.metrics.summary import TableSums

_LOCAL = "local"
_SECONDS = 30  # to connect to a scheduler
_SIZES = (1, 3, 5)
_OF_CLASSES = ("accuracy", "mean_reciprocal_rank")  # metrics of rows of a class, not of an inner node
_MEANS = (*_OF_CLASSES, "log_loss", "taxonomic_loss", "parent_accuracy")


class OnCluster(NamedTuple):
    """A fit on a cluster: pairs of rows and labels, and a model.

    label_names: of labels to relate.
    vectorizer, columns: of a table.
    feature_names: of other formats with feature names.
    first_feature: the first feature index of svmlight files, 0 or 1.
    """

    pairs: list[Any]
    label_names: Sequence[str] | None
    vectorizer: Any = None
    columns: Any = None
    feature_names: Any = None
    first_feature: int | None = None
    model: Any = None


def prepared_on_cluster(client: Any, request: FitRequest, verbose: int) -> OnCluster:
    """Define how workers read the rows, and make the requested model."""
    from labelweave.dask.files import files_of, parts_of, with_classes
    from labelweave.foundation.config import BUDGET, USUAL_BUDGET

    parts = parts_of(files_of([request.data, *request.flags.more]), BUDGET.get("megabytes", USUAL_BUDGET))
    if request.why_this_model is not None:
        hint(request.why_this_model)
    hint(f"{client.dashboard_link} shows the workers' progress.")
    n_files = len({part.path for part in parts})
    hint(f"{n_files} file(s) in {len(parts)} partition(s), each read by one worker.")
    read = _pairs(client, parts, request)
    pairs, names = read.pairs, read.label_names or ()
    if request.one_class:
        pairs = with_classes(pairs, keeps_unknown=request.has("taxonomy"))
    request, _ = in_taxonomy(request, None)
    model = model_with_relations(request, names, read.columns, {"verbose": verbose})
    return read._replace(pairs=pairs, model=model)


def run_on_cluster(request: FitRequest) -> int:
    """Fit a model on a cluster and save it; return the exit status."""
    from labelweave.dask.models import fit_partitions
    from labelweave.dask.partitions import row_partitions

    flags, has_classes = request.flags, bool(request.one_class)
    others = models_to_compare(flags.compare, request.model, has_classes, models_on_clusters())
    with connected(flags.dask) as client:
        ready = prepared_on_cluster(client, request, 0 if flags.quiet else 1)
        model = ready.model
        if others:
            models = {name_of(request): model} | {name: class_of(name)() for name in others}
            say(repr(_compared(request, ready, models)))
        started = time.perf_counter()
        with endings() as said:
            n_rows = fit_partitions(model, row_partitions(ready.pairs, None))
        end = End(n_rows, time.perf_counter() - started, said)
    known = {"first_feature_": ready.first_feature}
    return save_fit(model, request, end, ready.vectorizer, ready.columns, ready.feature_names, known)


def _compared(request: FitRequest, ready: OnCluster, models: Mapping[str, Any]) -> Comparison:
    return on_folds(
        request, models, lambda given, folds, **how: compare(given, ready.pairs, None, folds, **how)
    )


def cross_validated_on_cluster(request: FitRequest) -> tuple[Comparison, int]:
    """Cross-validate a model; also count the rows, for which they are read once more."""
    import dask
    from labelweave.dask.waiting import gathered

    with connected(request.flags.dask) as client:
        ready = prepared_on_cluster(client, request, 0)
        found, count = (
            _compared(request, ready, {name_of(request): ready.model}),
            dask.delayed(_rows_of, pure=False),
        )
        return found, sum(gathered(client, client.compute([count(pair) for pair in ready.pairs])))


def _rows_of(pair: tuple[Any, Any]) -> int:
    return int(pair[0].shape[0])


@contextmanager
def connected(where: str) -> Iterator[Any]:
    """Connect to a cluster: ``local``, ``local:4`` processes, or the address of a scheduler."""
    from distributed import Client, LocalCluster

    kind, _, count = where.partition(":")
    if kind == _LOCAL:
        if count and not (count.isdigit() and 0 < int(count) <= 1024):
            raise click.UsageError(f"--dask {where}: {count!r} is no number of processes, such as local:4.")
        parts: dict[str, Any] = {"n_workers": int(count) if count else None, "threads_per_worker": 1}
        parts |= {"dashboard_address": ":0", "silence_logs": logging.ERROR}
        with LocalCluster(**parts) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(where, timeout=_SECONDS)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise click.UsageError(
            f"--dask {where}: no scheduler answers there ({reason}); use local, local:4, or the address "
            "that a scheduler prints at its start, such as tcp://host:8786."
        ) from None
    with client:
        yield client


def _pairs(client: Any, parts: list[Any], request: FitRequest) -> OnCluster:
    from labelweave.dask.files import WITH_NAMES, counted_alike, matrix_pairs, names_in, planned, table_pairs

    source, path = request.flags, parts[0].path
    needs_names = request.relates_labels or is_graph_file(request)
    format = source.format_of(path)
    other = next((part.path for part in parts if source.format_of(part.path) != format), None)
    if other is not None:
        raise click.UsageError(f"{path} and {other} have different formats; use files of one format.")
    if format != "table":
        options, labels, features = counted_alike(client, parts, format, source.matrix_keywords()), None, None
        first = None if "zero_based" not in options else int(not options["zero_based"])
        if needs_names or format in WITH_NAMES:
            labels, features = names_in(client, parts[0], format, options)
        pairs = matrix_pairs(client, parts, format, options, features)
        return OnCluster(pairs, labels if needs_names else None, feature_names=features, first_feature=first)
    first, given = parts[0].table(), source.columns()
    require_labels(first, given)
    if not request.one_class:
        given = cut_where_listed(first, given)
    columns = given.resolved(first)
    column_words(first, given, columns).show()
    plan = planned(client, parts, columns, source.vectorizer(columns), is_verbose=not request.flags.quiet)
    names = plan.label_names if needs_names else None
    return OnCluster(table_pairs(client, parts, plan), names, plan.vectorizer, plan.columns)


@dataclass(frozen=True)
class FileSums:
    """Contributions of a file's rows to the metrics of a model.

    names: of the labels that are counted.
    sums: including the labels unknown to the model, which come last; own: without them.
    missed: number of rows with each label unknown to the model.
    known: for classes, the rows with a known class or inner node, and those with a class of the model.
    """

    n_rows: int
    names: list[str]
    sums: TableSums
    own: TableSums
    missed: Counter[str]
    known: tuple[int, int] | None = None

    def plus(self, other: FileSums, path: str) -> FileSums:
        if self.names != other.names:
            raise click.UsageError(
                f"{path} has other labels than the files before it; use files of the same labels."
            )
        known = (
            self.known and other.known and (self.known[0] + other.known[0], self.known[1] + other.known[1])
        )
        sums, own, missed = self.sums + other.sums, self.own + other.own, self.missed + other.missed
        return FileSums(self.n_rows + other.n_rows, self.names, sums, own, missed, known)

    def evaluation(self) -> Evaluation:
        """Compute metrics from sums; without parent accuracy where inner nodes leave parents unknown."""
        metrics, counts = self.sums.table(), self.own.counts
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
    """Evaluate a model on the rows of files, each read by one worker.

    data: a file, a folder or a pattern.
    Raises ValueError if a file cannot be read; the message names it.
    """
    from labelweave.dask import files_of  # says what to install

    paths = files_of([data])
    from dask import delayed
    from labelweave.dask.waiting import gathered

    one, kept = delayed(_sums_of, pure=False), delayed(model)

    def of_files(missed: Sequence[str]) -> list[FileSums]:
        tasks = [one(kept, path, source, missed) for path in paths]
        found: list[Any] = gathered(client, client.compute(tasks), "files measured")
        for part in found:
            if isinstance(part, Exception):
                raise part
        return found

    with connected(where) as client:
        found = of_files([])
        missed = sorted(set[str]().union(*(part.missed for part in found)))
        if any(len(part.missed) < len(missed) for part in found):  # sums must have the same labels
            found = of_files(missed)
    whole = found[0]
    for part, path in zip(found[1:], paths[1:], strict=True):
        whole = whole.plus(part, path)
    warn_of_missed(whole.missed, "label" if whole.known is None else "class")
    return whole.evaluation()


def _sums_of(model: Any, path: str, source: DataFlags, missed: Sequence[str]) -> FileSums | Exception:
    try:
        data = read_labeled_rows(model, path, source)
        rows = read_rows(model, as_taken(model, data.X), None)
        measure_one = _class_sums if rows.has_classes else _label_sums
        unknown: Unknown = source.unknown_labels  # the caller warns of missed ones
        unknown = "kept" if unknown == "missed" else unknown
        return measure_one(rows, truth_of(model, data), unknown, missed)
    except (ValueError, click.ClickException) as error:  # the message names the file
        return error


def _silent(words: str) -> None:
    """Print nothing: workers have no terminal."""


def _label_sums(rows: ReportedRows, y: Any, unknown: Unknown, missed: Sequence[str]) -> FileSums:
    hierarchy = getattr(rows.classifier, "_hierarchy", None)
    truth, columns = known_labels(y, rows.label_names, unknown, hierarchy)
    names = truth.words[: len(columns)]
    if missed:
        truth = _with_missed(truth, [*names, *missed])
    _, scores, predicted = all_labels(rows, columns, _silent)
    table = widened(scores, truth, False), widened(predicted, truth)
    sums = TableSums.of(truth, *table, _SIZES, np.ones(len(truth)))
    if sp.issparse(scores):  # only of the best labels
        sums = sums.without(OF_WHOLE_RANKINGS)
    return FileSums(len(rows), names, sums, sums, _counts_behind(truth, len(names)))


def _with_missed(truth: LabelMatrix, names: list[str]) -> LabelMatrix:
    """Use one order of labels for all files; observed rows have the other files' labels as negative."""
    more = sorted(set(names) - set(truth.words))
    seen = np.repeat(row_observed_counts(truth)[:, None] > 0, len(more), axis=1)
    none = sp.csr_array(seen.shape)
    positives, observed, *flips = (
        None if part is None else sp.hstack([part, added], "csr")
        for part, added in zip(truth.parts(), (none, seen, none), strict=False)
    )
    place = {name: column for column, name in enumerate([*truth.words, *more])}
    wide = LabelMatrix(positives, observed, [*place], *flips)
    return wide.select_labels([place[name] for name in names])


def _counts_behind(truth: LabelMatrix, n_known: int) -> Counter[str]:
    counts = truth.positive_counts()[n_known:].tolist()
    return Counter(dict(zip(truth.words[n_known:], counts, strict=True)))


def _class_sums(rows: ReportedRows, y: Any, unknown: Unknown, missed: Sequence[str]) -> FileSums:
    measured = measure_classes(rows, y, unknown, _silent, missed)
    found = measured.outcomes
    assert measured.true_nodes is not None, "rows have classes"
    assert measured.table is not None, "rows have classes"
    truth, scores, predicted = measured.table
    n_known, n_exact = len(measured.true_nodes), len(truth)
    sums = TableSums.of(truth, scores, predicted, _SIZES, np.ones(n_exact))
    own = TableSums.of(found.truth, None, found.predicted, (), np.ones(len(found.truth)))
    others = _counts_behind(truth, len(rows.label_names))
    counts = {
        name: n_exact if name in _OF_CLASSES else n_known for name in _MEANS if name in measured.metrics
    }
    means = {name: (measured.metrics[name] * n if n else 0.0, float(n)) for name, n in counts.items()}
    sums = replace(sums, sums=sums.sums | means)
    return FileSums(len(rows), rows.label_names, sums, own, others, (n_known, n_exact))
