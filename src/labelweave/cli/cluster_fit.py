"""``labelweave fit --dask``: files that workers read, a fit on a cluster, and an ordinary model file."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from sklearn.exceptions import ConvergenceWarning

from labelweave.cli.column_words import column_words
from labelweave.cli.decision_flags import with_decisions
from labelweave.cli.fit_request import FitRequest
from labelweave.cli.fit_words import explain_end, print_summary
from labelweave.cli.label_cells import cut_where_listed, require_labels
from labelweave.cli.label_relations import covariance_over, graph_over, is_graph_file
from labelweave.cli.messages import note
from labelweave.cli.model_table import model_table
from labelweave.datasets import read_taxonomy
from labelweave.estimators import TableModel

_LOCAL = "local"
_BUDGET = 2000.0  # megabytes, of models that have none
_SECONDS = 30  # for a scheduler to answer
_MODELS = {
    "kernel-logistic": "KernelLogisticClassifier",
    "label-graph": "LabelGraphClassifier",
    "label-tree": "LabelTreeClassifier",
    "low-rank": "LowRankClassifier",
    "max-margin": "MaxMarginClassifier",
}


def run_on_cluster(request: FitRequest) -> int:
    """Fit a model on a cluster and save it; give the exit code."""
    import labelweave.dask
    from labelweave.dask.files import files_of, parts_of, with_classes

    assert request.dask is not None, "a cluster is asked for"
    parameters = model_table().keywords(request.model, request.given)
    budget = float(request.value("memory_budget") or _BUDGET)
    parts = parts_of(files_of([request.data, *request.more]), budget)
    with connected(request.dask) as client:
        if not request.quiet:
            note(f"{client.dashboard_link} shows what the workers do.")
            _count(parts)
        pairs, vectorizer, columns, names = _pairs(client, parts, request)
        if request.one_class:
            pairs = with_classes(pairs, keeps_unknown=request.has("taxonomy"))
        if request.has("taxonomy") and request.relations.taxonomy:
            parameters["taxonomy"] = read_taxonomy(request.relations.taxonomy)
        elif request.has("graph") and request.graph is not None:
            parameters["graph"] = graph_over(names or (), request.graph)
        elif names is not None:
            parameters["label_covariance"] = covariance_over(names, request, columns)
        make = getattr(labelweave.dask, _MODELS[request.model])
        model = make(client, **parameters, verbose=0 if request.quiet else 1)
        tree = request.relations.taxonomy
        taxonomy = read_taxonomy(tree) if request.decisions and tree else None
        model = with_decisions(
            model, request.decisions, taxonomy, "labelweave.dask", random_state=request.seed
        )
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(pairs)
        seconds = time.perf_counter() - started
    local = model.to_local()
    if vectorizer is None:
        local.save(request.out, key=request.key)
    else:
        TableModel.of_fitted(vectorizer, local, columns).save(request.out, key=request.key)
    if not request.quiet:
        print_summary(local, model._n_rows, seconds, request.out)
    return explain_end(local, request.out)


def _count(parts: list[Any]) -> None:
    n_files = len({part.path for part in parts})
    note(f"{n_files} file(s) in {len(parts)} partition(s), each read by one worker.")


@contextmanager
def connected(where: str) -> Iterator[Any]:
    """Connect to a cluster: ``local``, ``local:4`` processes, or the address of a scheduler."""
    from distributed import Client, LocalCluster

    kind, _, count = where.partition(":")
    if kind == _LOCAL:
        if count and not (count.isdigit() and 0 < int(count) <= 1024):
            raise click.UsageError(f"--dask {where}: {count!r} is no number of processes, such as local:4.")
        n_workers = int(count) if count else None
        parts: dict[str, Any] = {"n_workers": n_workers, "threads_per_worker": 1}
        parts |= {"dashboard_address": ":0", "silence_logs": logging.ERROR}
        with LocalCluster(**parts) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(where, timeout=_SECONDS)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise click.UsageError(
            f"--dask {where}: no scheduler answers there ({reason}); give local, local:4, or the address "
            "that a scheduler writes when it starts, such as tcp://host:8786."
        ) from None
    with client:
        yield client


def _pairs(
    client: Any, parts: list[Any], request: FitRequest
) -> tuple[list[Any], Any, Any, Sequence[str] | None]:
    """Say how the parts are read; give vectorizer and columns of a table too, and labels to be related."""
    from labelweave.dask.files import label_names_of, matrix_pairs, planned, table_pairs

    source, path = request.source, parts[0].path
    needs_names = request.relates_labels or is_graph_file(request)
    format = source.format_of(path)
    other = next((part.path for part in parts if source.format_of(part.path) != format), None)
    if other is not None:
        raise click.UsageError(f"{path} and {other} are of different formats; give files of one.")
    if format != "table":
        options = source.matrix_keywords()
        names = label_names_of(client, parts[0], format, options) if needs_names else None
        return matrix_pairs(client, parts, format, options), None, None, names
    first, given = parts[0].table(), source.columns()
    require_labels(first, given)
    if not request.one_class:
        given = cut_where_listed(first, given, request.quiet)
    columns = given.resolved(first)
    if not request.quiet:
        column_words(first, given, columns).show()
    plan = planned(client, parts, columns, source.vectorizer(columns), is_verbose=not request.quiet)
    names = plan.label_names if needs_names else None
    return table_pairs(client, parts, plan), plan.vectorizer, plan.columns, names
