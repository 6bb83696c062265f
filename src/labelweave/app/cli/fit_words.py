"""Output of ``labelweave fit``: progress, a summary, and the reason of an early end."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from sklearn.exceptions import ConvergenceWarning

from labelweave.app.cli.fit_request import FitRequest
from labelweave.app.cli.messages import console, hint, in_flags, note, one_line, print_lines, say, size_of
from labelweave.app.facts import (
    ModelFacts,
    Section,
    decision_lines,
    fact_lines,
    label_lines,
    label_thresholds,
    model_facts,
)
from labelweave.decisions import ConformalLabelClassifier, HierarchicalClassifier, LabelTextClassifier
from labelweave.decisions.base import DecisionClassifier, layers
from labelweave.decisions.layers import innermost
from labelweave.estimators import TableModel
from labelweave.estimators.held_out import count_parts
from labelweave.estimators.progress_lines import GapCallback, GapLines
from labelweave.foundation.frames import FrameForm

_INTERRUPTED = 130
_MOST_TIES = 20
_MOST_THRESHOLDS = 12
_SECONDS_BETWEEN = 2.0
_SIGNS = {1: "together", -1: "apart", 0: "by row"}


def show_progress(estimator: Any, n_rows: int, title: str = "fitting") -> Any:
    """Show the progress of an estimator's fits to this many rows, also inside a meta-classifier."""
    stderr, n_fits = console(stderr=True), _count_fits(estimator, n_rows)
    shown = (
        GapBar(stderr, title, n_fits) if stderr.is_terminal else GapLines(title, n_fits=n_fits, write=note)
    )
    scorer = estimator
    while isinstance(scorer, DecisionClassifier) and scorer.estimator is not None:
        scorer = scorer.estimator
    scorer.set_callbacks(shown)
    return estimator


def _count_fits(estimator: Any, n_rows: int) -> int:
    """Count the fits of the scoring classifier: one per fold and one to all rows."""
    if not isinstance(estimator, DecisionClassifier):
        return 1
    if isinstance(estimator, HierarchicalClassifier | LabelTextClassifier):
        return _count_fits(estimator.estimator, n_rows)
    inner, cv, share = estimator.estimator, estimator.cv, estimator.validation_fraction
    if cv is None and isinstance(estimator, ConformalLabelClassifier):  # no fit of all rows
        return _count_fits(inner, n_rows - round(float(share) * n_rows))
    parts = count_parts(share, n_rows) if cv is None else int(cv)
    held = 1 / parts if parts > 1 else 0.2 if share == "auto" else float(share)
    return parts * _count_fits(inner, n_rows - round(held * n_rows)) + _count_fits(inner, n_rows)


class ReadLines:
    """Print the number of rows read from a table, in one line every few seconds."""

    def __init__(self, path: str) -> None:
        self.path, self.last = path, time.monotonic()

    def __call__(self, number: int, n_rows: int) -> None:
        if time.monotonic() - self.last >= _SECONDS_BETWEEN:
            self.last = time.monotonic()
            hint(f"reading {self.path}, {('words', 'features')[number - 1]}: {n_rows:,} rows")


class GapBar(GapCallback):
    """Show a progress bar on terminals, which disappears at the end."""

    def __init__(self, on: Console, title: str = "fitting", n_fits: int = 1) -> None:
        super().__init__(title, n_fits)
        self.on = on

    def setup(self, estimator: Any, context: Any) -> None:
        super().setup(estimator, context)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"))
        self.bar = Progress(*columns, TimeElapsedColumn(), console=self.on, transient=True)
        self.bar.add_task(self.heading, total=None, state="")
        self.bar.start()

    def show(self) -> None:
        self.bar.update(TaskID(0), total=self.steps, completed=self.done, state=self.state)

    def teardown(self, estimator: Any, context: Any) -> None:
        self.bar.stop()


class End(NamedTuple):
    """The end of a fit: its number of rows, and the warnings of early ends, with the final fit last.

    has_gaps: whether features of rows are missing.
    """

    n_rows: int
    seconds: float
    said: list[Warning]
    has_gaps: bool = False


@contextmanager
def endings() -> Iterator[list[Warning]]:
    """Collect the warnings of fits that end early, instead of showing them at once."""
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
    """Save a fitted model and print a summary; return the exit status.

    vectorizer, columns: of a table; known: attributes that the classifier stores of other formats.
    """
    if columns is not None and isinstance(columns.labels, str) and not model._form.has_one_class:
        for layer in layers(model):  # predictions in Python are lists, like the cells
            layer._form = replace(layer._form, container="tags", frame=FrameForm("builtins"))
    whole = model if vectorizer is None else TableModel.of_fitted(vectorizer, model, columns)
    if vectorizer is None:
        for layer in layers(model) if feature_names is not None else ():
            layer.feature_names_in_ = np.asarray(feature_names, dtype=object)
        vars(innermost(model)).update({name: value for name, value in known.items() if value is not None})
    whole.save(request.out, key=request.flags.key)
    if not request.flags.quiet:
        _print_summary(whole, end, request.out)
    facts, why = model_facts(model), in_flags(end.said[-1]) if end.said else ""
    ends = [part for part in (facts.fit, facts.choice, facts.learning) if part is not None]
    if any(part.status == "interrupted" for part in ends):
        note(f"{why or 'The fit was interrupted.'} The model so far is saved in {request.out}.")
        return _INTERRUPTED
    is_short = facts.fit.converged is False and facts.fit.status != "settled"
    if why and (is_short or facts.fit.status == "time_limit"):
        note(f"warning: {why}")
    if facts.learning and facts.learning.status == "iteration_limit":
        note(
            f"warning: hyperparameters may still improve after --max-learning-iter "
            f"{innermost(model)._search.max_learning_iter} evaluations; raise it."
        )
    return 0


def _print_summary(model: Any, end: End, out: str) -> None:
    facts = model_facts(model)
    lines = {"rows": str(end.n_rows), **label_lines(facts), **fact_lines(facts), **decision_lines(facts)}
    if not end.has_gaps:
        lines.pop("missing", None)
    chooses = facts.threshold or "TunedThresholdClassifier" in facts.names
    found = label_thresholds(model) if chooses else None
    if found is not None:
        shown = [f"{name} {value:.3g}" for name, value in [*found.by_label.items()][:_MOST_THRESHOLDS]]
        left = len(found.by_label) - len(shown)
        more = [f"and {left} more: labelweave inspect {out} --thresholds"] if left else []
        lines["by label"] = ", ".join(shown + more)
    print_lines(lines | {"seconds": f"{end.seconds:.1f}", "model": f"{out} ({size_of(out)})"}, 10, err=True)
    for line in part_lines(facts, _MOST_TIES):
        say(line, err=True)


def part_lines(facts: ModelFacts, most: int) -> list[str]:
    """Return lines of a graph's cliques, up to ``most``, and of a combination's members."""
    lines = tie_lines(facts.graph.cliques, most) if facts.graph else []
    if not facts.combination:
        return lines
    members = facts.combination.members
    width = max(len(one["name"]) for one in members)
    return [
        *lines,
        "weight  out-of-fold loss  seconds  member",
        *(
            f"{one['weight']:6.2f}  {one['oof_loss']:16.4f}  {one['seconds']:7.1f}  "
            f"{one['name']:{width}}  {one['words']}"
            for one in members
        ),
    ]


def tie_lines(ties: list[Section], most: int) -> list[str]:
    """Return one line per clique, up to ``most``, and a last line that counts the others."""
    lines = [
        f"{tie.weight:10.4f}  {_SIGNS[tie.sign] if len(tie.labels) == 2 else '':9}"
        + one_line(", ".join(tie.labels))
        for tie in ties[:most]
    ]
    left = len(ties) - most
    return lines if left <= 0 else [*lines, f"{'...':>10}  and {left} weaker ones"]
