"""What ``labelweave fit`` says at its end: a summary, and why it ended early if it did."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from labelweave.app.cli.fit_request import FitRequest
from labelweave.app.cli.messages import in_flags, note, one_line, print_lines, say, size_of
from labelweave.app.facts import (
    Section,
    decision_lines,
    fact_lines,
    label_lines,
    label_thresholds,
    model_facts,
)
from labelweave.decisions.base import layers
from labelweave.decisions.layers import innermost
from labelweave.estimators import TableModel

_INTERRUPTED = 130
_MOST_TIES = 20
_MOST_THRESHOLDS = 12
_SIGNS = {1: "together", -1: "apart", 0: "by row"}


class End(NamedTuple):
    """The end of a fit: to how many rows it was, and what fits said of early ends, that to all rows last."""

    n_rows: int
    seconds: float
    said: list[Warning]


def _print_summary(model: Any, end: End, out: str) -> None:
    """Write what was fitted to stderr."""
    facts = model_facts(model)
    lines = {"rows": str(end.n_rows), **label_lines(facts), **fact_lines(facts), **decision_lines(facts)}
    found = (
        label_thresholds(model) if (facts.threshold or "TunedThresholdClassifier" in facts.names) else None
    )
    if found is not None:
        shown = [f"{name} {value:.3g}" for name, value in [*found.by_label.items()][:_MOST_THRESHOLDS]]
        left = len(found.by_label) - len(shown)
        more = [f"and {left} more: labelweave inspect {out} --thresholds"] if left else []
        lines["by label"] = ", ".join(shown + more)
    print_lines(lines | {"seconds": f"{end.seconds:.1f}", "model": f"{out} ({size_of(out)})"}, 10, err=True)
    for line in tie_lines(facts.graph.cliques, _MOST_TIES) if facts.graph else ():
        say(line, err=True)
    for line in member_lines(facts.combination) if facts.combination else ():
        say(line, err=True)


def member_lines(found: Section) -> list[str]:
    """Write what was tried as a table, a line each."""
    width = max(len(one["name"]) for one in found.members)
    rows = [
        f"{one['weight']:6.2f}  {one['left_out_loss']:13.4f}  {one['seconds']:7.1f}  "
        f"{one['name']:{width}}  {one['words']}"
        for one in found.members
    ]
    return ["weight  left-out loss  seconds  member", *rows]


def tie_lines(ties: list[Section], most: int) -> list[str]:
    """Write cliques, a line each; of more than ``most`` the last line says how many are left out."""
    lines = [
        f"{tie.weight:10.4f}  {_SIGNS[tie.sign] if len(tie.labels) == 2 else '':9}"
        + one_line(", ".join(tie.labels))
        for tie in ties[:most]
    ]
    left = len(ties) - most
    return lines if left <= 0 else [*lines, f"{'...':>10}  and {left} weaker ones"]


@contextmanager
def endings() -> Iterator[list[Warning]]:
    """Keep what fits say of their early ends, instead of showing it at once."""
    said: list[Warning] = []
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def keep(message: Any, category: type[Warning], *place: Any, **options: Any) -> None:
            if issubclass(category, ConvergenceWarning):
                said.append(message)
            else:
                shown(message, category, *place, **options)

        warnings.showwarning = keep
        yield said


def save_fit(
    model: Any, request: FitRequest, end: End, vectorizer: Any, columns: Any, feature_names: Any,
    known: Mapping[str, Any],
) -> int:  # fmt: skip
    """Save a fitted model and say what came of it; give the exit code.

    vectorizer, columns: of a table; known: what the classifier keeps of rows of other formats.
    """
    whole = model if vectorizer is None else TableModel.of_fitted(vectorizer, model, columns)
    if vectorizer is None:
        for layer in layers(model) if feature_names is not None else ():
            layer.feature_names_in_ = np.asarray(feature_names, dtype=object)
        vars(innermost(model)).update({name: value for name, value in known.items() if value is not None})
    whole.save(request.out, key=request.key)
    if not request.quiet:
        _print_summary(whole, end, request.out)
    return _explain_end(model, request.out, end.said)


def _explain_end(model: Any, out: str, said: list[Warning]) -> int:
    """Say why the fit to all rows ended before its end, if it did; give the exit code."""
    facts = model_facts(model)
    ends = [end for end in (facts.fit, facts.choice, facts.learning) if end is not None]
    why = in_flags(said[-1]) if said else ""
    if any(end.status == "interrupted" for end in ends):
        note(f"interrupted; the model so far is saved in {out}. {why}")
        return _INTERRUPTED
    if facts.fit.converged is False and why:
        note(f"warning: {why}")
    if facts.learning and facts.learning.status == "iteration_limit":
        note(
            f"warning: hyper-parameters could still improve after --max-learning-iter "
            f"{innermost(model).max_learning_iter} evaluations; raise it."
        )
    return 0
