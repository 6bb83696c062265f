"""What ``labelweave fit`` says at its end: a summary, and why it ended early if it did."""

from __future__ import annotations

import math
from typing import Any

import click
import numpy as np

from labelweave.cli.messages import note, print_lines, size_of
from labelweave.decisions.layers import innermost
from labelweave.facts import CliqueFacts, ModelFacts, decision_lines, model_facts

Lines = dict[str, str]

_INTERRUPTED = 130
_MOST_TIES = 20
_SIGNS = {1: "together", -1: "apart", 0: "by row"}


def print_summary(model: Any, n_rows: int, seconds: float, out: str) -> None:
    """Write what was fitted to stderr.

    n_rows: the rows it was fitted to.
    """
    facts = model_facts(model)
    support, is_factored = facts.support_rows, facts.factors is not None
    lines = {
        "rows": str(n_rows),
        "features": str(facts.features),
        "classes" if facts.one_class_a_row else "labels": str(len(facts.labels)),
        "kernel": facts.kernel,
        **({} if support is None else {"support": f"{support} of {n_rows} rows"}),
        **(_factor_lines if is_factored else _convex_lines)(facts, innermost(model)),
        **decision_lines(facts),
        "seconds": f"{seconds:.1f}",
        "model": f"{out} ({size_of(out)})",
    }
    print_lines(lines, 10, err=True)
    for line in tie_lines(facts.graph.cliques, _MOST_TIES) if facts.graph else ():
        click.echo(line, err=True)


def tie_lines(ties: list[CliqueFacts], most: int) -> list[str]:
    """Write cliques, a line each; of more than ``most`` the last line says how many are left out."""
    lines = [
        f"{tie.weight:10.4f}  {_SIGNS[tie.sign] if len(tie.labels) == 2 else '':9}{', '.join(tie.labels)}"
        for tie in ties[:most]
    ]
    left = len(ties) - most
    return lines if left <= 0 else [*lines, f"{'...':>10}  and {left} weaker ones"]


def _convex_lines(facts: ModelFacts, model: Any) -> Lines:
    """Say how a fit went that ends at a gap, or a model a label."""
    steps = {facts.steps.split()[-1]: str(facts.fit.rounds)}
    if facts.graph:
        chosen = " (auto)" if model.regularization == "auto" else ""
        words = f"regularization {facts.graph.regularization:.3g}{chosen}"
        steps |= {"graph": facts.graph.summary, "penalty": words}
    if facts.fit.gap is None:
        return steps
    learned = facts.learning and {"prior": facts.learning.values, "learning": facts.learning.summary}
    threshold = {} if facts.threshold is None else {"threshold": facts.threshold}
    gap = {"gap": f"{facts.fit.gap:.2e} (asked for {model.tol:g})"}
    return (learned or {}) | steps | gap | threshold


def _factor_lines(facts: ModelFacts, model: Any) -> Lines:
    """Say how a fit of two factors went."""
    lines = {"rank": facts.factors.rank_summary if facts.factors else ""}
    lines |= {"chosen": facts.choice.summary} if facts.choice else {}
    if facts.learning and facts.learning.status != "fixed":
        lines |= {"learned": facts.learning.values, "learning": facts.learning.summary}
    if facts.fit.gap_summary is not None:
        lines |= {
            "rounds": str(facts.fit.rounds),
            "objective": f"{model.objective_:.6g}",
            "gap": facts.fit.gap_summary,
            "status": str(facts.fit.status).replace("_", " "),
        }
    elif facts.fit.checks:
        lines["epochs"] = str(facts.fit.checks)
    return lines | ({"threshold": facts.thresholds.words} if facts.thresholds else {})


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
    if facts.fit.status == "interrupted" and facts.fit.gap is None:  # a model without a certificate
        done = f"{facts.fit.checks} of {getattr(model, 'n_epochs', 0)} epochs"
        if facts.factors is None:
            n_labels = len(model.intercept_)
            done = f"{model.labels_fitted_} of {n_labels} labels, the others are never predicted"
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
    if facts.graph:
        remedy = "raise --max-iter or --regularization, or scale the features."
    else:
        remedy = f"raise --max-iter, lower {'--scale' if facts.prior else '--C'}, or scale the features."
    return f"{_reached(facts, model)}, above --tol {model.tol:g}; {remedy}"
