"""``labelweave demo``: tags for Debian packages, with and without a taxonomy of tags.

C is the one with the best micro-F1 in cross-validation over the training rows,
folds by source package, among 1/8, 1/4, 1/2, 1 and 2.  Under the taxonomy the
prior variance of a tag is 2, its facet's and its own, so both models come to
the same product of C and variance.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from labelweave import LabelMatrix, MaxMarginClassifier, Taxonomy
from labelweave.array_types import Array
from labelweave.cli.evaluate import metric_table
from labelweave.cli.messages import console
from labelweave.cli.progress import show_progress
from labelweave.datasets import load_debtags
from labelweave.metrics import score_table

__all__ = ["demo"]


_TOL = 1e-2
_METRICS = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "precision@1": "precision@1",
    "precision@3": "precision@3",
    "precision@5": "precision@5",
    "ndcg@5": "nDCG@5",
    "auc_label": "AUC, mean over tags",
    "ranking_loss": "ranking loss (low is good)",
    "hamming_loss": "Hamming loss (low is good)",
}
_PACKAGES = (
    "borgbackup", "foliate", "godot3", "lollypop", "neovim", "podman", "r-cran-ggplot2", "ripgrep",
    "wireguard-tools", "yt-dlp",
)  # fmt: skip


@dataclass(frozen=True)
class _Rows:
    """The bundled data set, perhaps cut."""

    X: sp.csr_array
    Y: LabelMatrix
    X_test: sp.csr_array
    Y_test: LabelMatrix
    taxonomy: Taxonomy
    bunch: Any


@click.command()
@click.option("--jobs", type=int, default=2, show_default=True, help="Threads.")
@click.option("--rows", type=click.IntRange(1), hidden=True, help="Use so many rows only.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def demo(jobs: int, rows: int | None, quiet: bool) -> None:
    """Tag Debian packages with the bundled data set.

    Fits one max-margin model in which tags of one facet share what they learn,
    and one of independent tags; compares both on packages that were set aside;
    proposes tags for ten packages that have none.
    """
    data = _load(rows)
    click.echo(
        f"Debian packages: {len(data.Y)} to learn from, {len(data.Y_test)} to test on.\n"
        f"{data.X.shape[1]} features; {data.Y.n_labels} tags in {_n_facets(data)} facets.\n"
    )
    models = _models(data.taxonomy, jobs)
    for name, model in models.items():
        _fit(model if quiet else show_progress(model, f"fitting, {name}"), name, data)
    click.echo("A gap certifies that the objective is at most that share above its minimum.")
    click.echo(f"\nOn the {len(data.Y_test)} test packages:")
    console().print(metric_table(_metrics(models, data)))
    _print_proposals(models["taxonomy"], data)


def _models(taxonomy: Taxonomy, jobs: int) -> dict[str, MaxMarginClassifier]:
    make: Any = MaxMarginClassifier
    return {
        "taxonomy": make(C=0.5, label_covariance=taxonomy, tol=_TOL, n_jobs=jobs),
        "independent": make(C=1.0, tol=_TOL, n_jobs=jobs),
    }


def _load(rows: int | None) -> _Rows:
    bunch = load_debtags()
    train, test = bunch.X.shape[0], bunch.X_test.shape[0]
    # the rows are sorted by package, so a part is taken at even steps
    chosen = np.linspace(0, train - 1, min(rows or train, train)).astype(np.intp)
    tested = np.linspace(0, test - 1, min(rows or test, test)).astype(np.intp)
    return _Rows(
        bunch.X[chosen],
        LabelMatrix(bunch.Y[chosen], None, bunch.label_names),
        bunch.X_test[tested],
        LabelMatrix(bunch.Y_test[tested], None, bunch.label_names),
        Taxonomy((facet, tag) for facet, tag in bunch.parents),
        bunch,
    )


def _n_facets(data: _Rows) -> int:
    return len({facet for facet, _ in data.bunch.parents})


def _fit(model: MaxMarginClassifier, name: str, data: _Rows) -> None:
    """Fit, and print the certificate."""
    started = time.perf_counter()
    model.fit(data.X, data.Y)
    seconds = time.perf_counter() - started
    click.echo(
        f"{name:12} C={model.C:<4g} {model.n_iter_:3d} rounds {seconds:6.1f} s   "
        f"duality gap {model.duality_gap_:.1e}"
    )


def _metrics(models: dict[str, MaxMarginClassifier], data: _Rows) -> dict[str, dict[str, float]]:
    columns = {name: model.decision_function(data.X_test) for name, model in models.items()}
    columns["frequent tags"] = np.broadcast_to(_frequency_scores(data.Y), data.Y_test.shape)
    return {name: _named_metrics(data.Y_test, scores) for name, scores in columns.items()}


def _named_metrics(Y: LabelMatrix, scores: Array) -> dict[str, float]:
    table = score_table(Y, scores)
    return {title: table[name] for name, title in _METRICS.items()}


def _frequency_scores(Y: LabelMatrix) -> Array:
    """Score tags by their frequency; as many as a package has on average are positive."""
    frequencies = Y.positive_counts() / len(Y)
    usual = round(float(frequencies.sum()))
    ordered = np.sort(frequencies)[::-1]
    between: Array = (ordered[usual - 1] + ordered[usual]) / 2
    return frequencies - between


def _print_proposals(model: MaxMarginClassifier, data: _Rows) -> None:
    names = data.bunch.names_untagged
    places = np.searchsorted(names.astype(str), _PACKAGES)
    labels, scores = model.predict_top(data.bunch.X_untagged[places])
    click.echo("Proposed for packages without tags: at most five, with their scores.")
    for place, best, values in zip(places, labels, scores, strict=True):
        click.echo(f"\n{names[place]} - {data.bunch.descriptions_untagged[place]}"[:80])
        pairs = zip(model.label_names_[best], values, strict=True)
        tags = [f"{tag} {score:.2f}" for tag, score in pairs if score > 0]
        click.echo(click.wrap_text(", ".join(tags) or "nothing", 80, "    ", "    "))
