"""What ``labelweave fit`` says at its end: a summary, and why it ended early if it did."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelweave.cli.messages import note, one_line, print_lines, say, size_of
from labelweave.decisions.layers import innermost
from labelweave.facts import (
    CliqueFacts,
    CombinationFacts,
    ModelFacts,
    decision_lines,
    fact_lines,
    label_lines,
    label_thresholds,
    model_facts,
)

_INTERRUPTED = 130
_MOST_TIES = 20
_MOST_THRESHOLDS = 12
_SIGNS = {1: "together", -1: "apart", 0: "by row"}


def print_summary(model: Any, n_rows: int, seconds: float, out: str) -> None:
    """Write what was fitted to stderr.

    n_rows: the rows it was fitted to.
    """
    facts = model_facts(model)
    lines = {"rows": str(n_rows), **label_lines(facts), **fact_lines(facts), **decision_lines(facts)}
    found = (
        label_thresholds(model) if (facts.threshold or "TunedThresholdClassifier" in facts.names) else None
    )
    if found is not None:
        shown = [f"{name} {value:.3g}" for name, value in [*found.by_label.items()][:_MOST_THRESHOLDS]]
        left = len(found.by_label) - len(shown)
        more = [f"and {left} more: labelweave inspect {out} --thresholds"] if left else []
        lines["by label"] = ", ".join(shown + more)
    print_lines(lines | {"seconds": f"{seconds:.1f}", "model": f"{out} ({size_of(out)})"}, 10, err=True)
    for line in tie_lines(facts.graph.cliques, _MOST_TIES) if facts.graph else ():
        say(line, err=True)
    for line in member_lines(facts.combination) if facts.combination else ():
        say(line, err=True)


def member_lines(found: CombinationFacts) -> list[str]:
    """Write what was tried as a table, a line each."""
    width = max(len(one["name"]) for one in found.members)
    rows = [
        f"{one['weight']:6.2f}  {one['left_out_loss']:13.4f}  {one['seconds']:7.1f}  "
        f"{one['name']:{width}}  {one['words']}"
        for one in found.members
    ]
    return ["weight  left-out loss  seconds  member", *rows]


def tie_lines(ties: list[CliqueFacts], most: int) -> list[str]:
    """Write cliques, a line each; of more than ``most`` the last line says how many are left out."""
    lines = [
        f"{tie.weight:10.4f}  {_SIGNS[tie.sign] if len(tie.labels) == 2 else '':9}"
        + one_line(", ".join(tie.labels))
        for tie in ties[:most]
    ]
    left = len(ties) - most
    return lines if left <= 0 else [*lines, f"{'...':>10}  and {left} weaker ones"]


def explain_end(model: Any, out: str) -> int:
    """Say in one line why the fit ended before its end, if it did; give the exit code."""
    facts, model = model_facts(model), innermost(model)
    interrupted = _interruption(facts, model)
    if interrupted is not None:
        note(f"interrupted {interrupted} {out}.")
        return _INTERRUPTED
    if facts.learning and facts.learning.status == "iteration_limit":
        note(
            f"warning: hyper-parameters could still improve after --max-learning-iter "
            f"{model.max_learning_iter} evaluations; raise it."
        )
    if facts.fit.converged is False:
        note(f"warning: the fit ended {_advice(facts, model)}")
    return 0


def _interruption(facts: ModelFacts, model: Any) -> str | None:
    """Say what an interrupt ended, and what is saved."""
    if facts.fit.status == "interrupted" and facts.combination is not None:
        done = f"{len(facts.combination.members)} of {len(facts.combination.plan['members'])} members"
        return f"after {done}; the combination of these is saved in"
    if facts.fit.status == "interrupted" and hasattr(model, "labels_fitted_"):
        done = f"{model.labels_fitted_} of {len(model.intercept_)} labels, the others are never predicted"
        return f"after {done}; the model so far is saved in"
    if facts.fit.status == "interrupted":
        return f"{_reached(facts, model)}; the best model so far is saved in"
    if facts.choice and facts.choice.status == "interrupted":
        folds = [model.cv_results_[f"split{fold}_test_score"] for fold in range(facts.choice.folds)]
        done = f"{int(np.isfinite(folds).sum())} of {np.size(folds)} fits to folds"
        return f"after {done}; the model with the best rank and regularization of them is saved in"
    if facts.learning and facts.learning.status == "interrupted":
        done = f"{facts.learning.evaluations} evaluations of hyper-parameters"
        return f"after {done}; the model with the best of them is saved in"
    return None


def _reached(facts: ModelFacts, model: Any) -> str:
    fit = facts.fit
    if facts.factors:
        return f"after {fit.rounds} rounds at an objective of {model.objective_:.6g}"
    gap = math.nan if fit.gap is None else fit.gap
    return f"after {fit.rounds} {'passes' if facts.graph else 'rounds'} at a gap of {gap:.2e}"


def _advice(facts: ModelFacts, model: Any) -> str:
    """Say where a fit ended that did not converge, and what to do."""
    if facts.fit.gap is None:
        flag = "--max-iter or --regularization" if "max_iter" in facts.parameters else "--regularization"
        return f"before it was exact; raise {flag}, or scale the features."
    if facts.factors:
        decrease = f"of which the last one took off {model.trace_[-1].decrease:.1e}"
        return f"{_reached(facts, model)}, {decrease}, above --tol {model.tol:g}; raise --max-iter."
    other = "--regularization" if facts.graph else f"lower {'--scale' if facts.prior else '--C'}"
    scaled = ["give --scaling auto"] if getattr(model, "scaling", None) == "none" else []
    ways = ["raise --max-iter", other, *scaled]
    return f"{_reached(facts, model)}, above --tol {model.tol:g}; {', '.join(ways[:-1])} or {ways[-1]}."
