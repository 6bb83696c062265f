"""Models on folds of the rows: ``labelweave cross-validate``, and ``fit --compare`` before a fit."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import click
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from labelweave.app.cli.decision_flags import DECISIONS
from labelweave.app.cli.fit_request import FitRequest
from labelweave.app.cli.label_relations import Targets
from labelweave.app.cli.messages import alternatives, console, did_you_mean
from labelweave.app.cli.model_flags import MODELS
from labelweave.decisions.automatic.table import drawn_folds, group_numbers
from labelweave.decisions.comparison import Comparison, compare
from labelweave.labels.targets import read_targets

_FOR_CLASSES = ("auto", "max-margin", "kernel-logistic")


def models_to_compare(
    text: str | None, own: str, are_classes: bool, on_cluster: Collection[str] | None = None
) -> list[str]:  # fmt: skip
    """Read the comma-separated names of the other models; raise for those that cannot be compared.

    on_cluster: the models for clusters; None for data in memory.
    """
    names = [] if text is None else [name.strip() for name in text.split(",")]
    for number, name in enumerate(names):
        said = f"--compare names {name}"
        if name not in MODELS:
            close = did_you_mean(name, MODELS)
            said = f"--compare names {name!r}, which is not a model; use one of {', '.join(MODELS)}.{close}"
            raise click.UsageError(said)
        if name == own or name in names[:number]:
            raise click.UsageError(f"{said} twice, counting the fitted model; name it once.")
        if on_cluster is not None and name not in on_cluster:
            raise click.UsageError(f"{said}, which --dask cannot compare; use {alternatives(on_cluster)}.")
        if are_classes and name not in _FOR_CLASSES:
            *first, last = _FOR_CLASSES
            said += ", which is for many labels per row; with one class per row use"
            raise click.UsageError(f"{said} {', '.join(first)} and {last}.")
    return names


def name_of(request: FitRequest) -> str:
    """Return the name of a model, including its decision flags."""
    deciding = (re.findall("[A-Z][a-z]+", DECISIONS[name])[0].lower() for name in request.decisions)
    return ", ".join([request.model, *deciding])


def compared(request: FitRequest, targets: Targets, models: Mapping[str, Any]) -> Comparison:
    """Compare models on folds of the rows, without rows of unknown class."""
    X, y, groups = targets.rows.X, targets.y, targets.rows.groups
    folds = request.flags.compare_folds
    if targets.are_classes:
        known = np.flatnonzero([entry is not None for entry in np.asarray(y)])
        X, y, groups = X[known], y[known], None if groups is None else groups[known]
    if X.shape[0] < folds:
        flag = "--compare-folds" if request.flags.compare else "--folds"
        raise click.UsageError(f"{flag} {folds} needs as many rows, but DATA has {X.shape[0]}.")
    cv: Any = folds
    if groups is not None:
        parts = drawn_folds(read_targets(y)[0], folds, request.seed, group_numbers(groups, len(groups)))
        cv = [(np.flatnonzero(parts != part), np.flatnonzero(parts == part)) for part in np.unique(parts)]
    return on_folds(request, models, lambda given, _, **how: compare(given, X, y, cv, **how))


def on_folds(
    request: FitRequest, models: Mapping[str, Any], compare_all: Callable[..., Comparison]
) -> Comparison:  # fmt: skip
    """Compare models without checkpoints, which belong to the fit of all rows; show which is fitted.

    compare_all: receives the models, the number of folds, and keywords of :func:`labelweave.compare`.
    """
    folds = request.flags.compare_folds
    if "checkpoint" in request.given:
        own = next(iter(models))
        models = {**models, own: clone(models[own]).set_params(checkpoint=None)}
    with warnings.catch_warnings(), console(stderr=True).status("comparing") as status:
        warnings.simplefilter("ignore", ConvergenceWarning)

        def tell(name: str, fold: int) -> None:
            if not request.flags.quiet:
                status.update(f"fitting {name}, fold {fold + 1} of {folds}")

        return compare_all(dict(models), folds, random_state=request.seed, on_fit=tell)
