"""``labelweave demo``: tags for Debian packages, in one call, and with and without a taxonomy of tags.

The one call has only defaults, a time budget and groups: the source packages, which differ between training
and test rows.  The two other models tune one threshold on held-out rows for micro-F1.  C has the best
micro-F1 in cross-validation over the training rows, with folds by source package, among 1/8 to 2; the
shrinkage of the taxonomy's covariance (none, half) was chosen on a quarter of the training packages.  Test
packages were not used in these choices.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import click
import numpy as np

from labelweave import (
    AutoLabelClassifier,
    LabelCovariance,
    LabelMatrix,
    MaxMarginClassifier,
    Taxonomy,
    TunedThresholdClassifier,
)
from labelweave.app.cli.fit_words import show_progress
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import console, metric_table
from labelweave.datasets import load_debtags
from labelweave.foundation.array_types import Array
from labelweave.metrics import score_table

_TOL = 1e-2
_SECONDS = 10.0
_METRICS = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "precision@1": "precision@1",
    "precision@3": "precision@3",
    "precision@5": "precision@5",
    "ndcg@5": "nDCG@5",
    "auc_label": "AUC, mean over tags",
    "ranking_loss": "ranking loss (to minimize)",
    "hamming_loss": "Hamming loss (to minimize)",
}
_PACKAGES = (
    "borgbackup", "foliate", "godot3", "lollypop", "neovim", "podman", "r-cran-ggplot2", "ripgrep",
    "wireguard-tools", "yt-dlp",
)  # fmt: skip


def run(flags: DataFlags) -> None:
    jobs, rows = flags.jobs, flags.rows
    bunch = load_debtags()
    X, Y, places = _chosen(bunch.X, bunch.Y, rows, bunch)
    X_test, Y_test, _ = _chosen(bunch.X_test, bunch.Y_test, rows, bunch)
    taxonomy = Taxonomy((facet, tag) for facet, tag in bunch.parents)
    click.echo(
        f"Debian packages: {len(Y)} for training, {len(Y_test)} for testing.\n"
        f"{X.shape[1]} features; {Y.n_labels} tags in {len({facet for facet, _ in bunch.parents})} facets.\n"
    )
    make: Any = MaxMarginClassifier
    related = LabelCovariance.from_taxonomy(taxonomy, bunch.label_names).shrink(0.5)
    settings = {"tol": _TOL, "n_jobs": jobs}
    tuned = partial(TunedThresholdClassifier, scope="global")
    models = {
        "one call": AutoLabelClassifier(time_budget=_SECONDS, n_jobs=jobs),
        "taxonomy": tuned(make(C=0.5, label_covariance=related, **settings)),
        "independent": tuned(make(C=1.0, **settings)),
    }
    for name, model in models.items():
        started = time.perf_counter()
        watched = model if flags.quiet else show_progress(model, Y.shape[0], f"fitting, {name}")
        watched.fit(X, Y, **({"groups": bunch.source_ids[places]} if name == "one call" else {}))
        seconds = time.perf_counter() - started
        click.echo(f"{name:12} {seconds:6.1f} s   {_words(model)}")
    click.echo("The duality gap bounds the relative distance of the objective to its minimum.")
    click.echo(f"\nOn the {len(Y_test)} test packages:")
    tables = {
        name: score_table(Y_test, model.decision_function(X_test), model.predict(X_test))
        for name, model in models.items()
    }
    tables["frequent tags"] = score_table(Y_test, np.broadcast_to(_frequency_scores(Y), Y_test.shape))
    shown = {name: {_METRICS[key]: table[key] for key in _METRICS} for name, table in tables.items()}
    console().print(metric_table(shown))
    _print_proposals(models["taxonomy"], bunch)


def _words(model: Any) -> str:
    if isinstance(model, AutoLabelClassifier):
        expected = f"{model.oof_score_:.4f} +- {model.oof_standard_error_:.4f}"
        names = [one["name"] for one in model.members_ if one["weight"]]
        return f"{names[0] if len(names) == 1 else f'{len(names)} models'}; expected micro-F1 {expected}"
    inner = model.estimator_
    return f"C={inner.C:<4g} {inner.n_iter_:3d} rounds, duality gap {inner.duality_gap_:.1e}"


def _chosen(X: Any, Y: Any, most: int | None, bunch: Any) -> tuple[Any, LabelMatrix, Array]:
    """Select rows at even steps, as they are sorted by package; return these, and their places."""
    places = np.linspace(0, X.shape[0] - 1, min(most or X.shape[0], X.shape[0])).astype(np.intp)
    return X[places], LabelMatrix(Y[places], None, bunch.label_names), places


def _frequency_scores(Y: LabelMatrix) -> Array:
    """Score tags by their frequency; as many as the mean per package are positive."""
    frequencies = Y.positive_counts() / len(Y)
    usual = round(float(frequencies.sum()))
    ordered = np.sort(frequencies)[::-1]
    between: Array = (ordered[usual - 1] + ordered[usual]) / 2
    return frequencies - between


def _print_proposals(model: TunedThresholdClassifier, bunch: Any) -> None:
    names = bunch.names_untagged
    places = np.searchsorted(names.astype(str), _PACKAGES)
    labels, scores = model.predict_top(bunch.X_untagged[places])
    click.echo("Proposed for packages without tags: at most five, with their scores.")
    for place, best, values in zip(places, labels, scores, strict=True):
        click.echo(f"\n{names[place]} - {bunch.descriptions_untagged[place]}"[:80])
        pairs = zip(model.label_names_[best], values, strict=True)
        tags = [f"{tag} {score:.2f}" for tag, score in pairs if score > 0]
        click.echo(click.wrap_text(", ".join(tags) or "nothing", 80, "    ", "    "))
