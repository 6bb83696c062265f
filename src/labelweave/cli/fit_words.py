"""What ``labelweave fit`` says at its end: a summary, and why it ended early if it did."""

from __future__ import annotations

from typing import Any

import click

from labelweave.cli.choice_words import choice_words, fits_to_folds, has_choice
from labelweave.cli.factor_words import (
    gap_words,
    has_factors,
    rank_words,
    threshold_words,
    tuned_threshold_words,
)
from labelweave.cli.graph_words import graph_facts, graph_lines, has_graph, tie_lines
from labelweave.cli.messages import note, size_of
from labelweave.cli.model_words import hyperparameter_words, kernel_words, learning_words, n_support_rows
from labelweave.decisions.layers import guarantee_words, innermost, layer_words

__all__ = ["decision_lines", "explain_end", "print_lines", "print_summary"]

Lines = dict[str, str]

_INTERRUPTED = 130
_MOST_TIES = 20


def print_summary(model: Any, n_rows: int, seconds: float, out: str) -> None:
    """Write what was fitted to stderr.

    n_rows: the rows it was fitted to.
    """
    decided, model = decision_lines(model), innermost(model)
    support = n_support_rows(model)
    lines = {
        "rows": str(n_rows),
        "features": str(model.n_features_in_),
        "labels" if model._form.kind == "labels" else "classes": str(len(model.classes_)),
        "kernel": kernel_words(model),
        **({} if support is None else {"support": f"{support} of {n_rows} rows"}),
        **(_factor_lines(model) if has_factors(model) else _convex_lines(model)),
        **decided,
        "seconds": f"{seconds:.1f}",
        "model": f"{out} ({size_of(out)})",
    }
    print_lines(lines)
    for line in tie_lines(graph_facts(model)["cliques"], _MOST_TIES) if has_graph(model) else ():
        click.echo(line, err=True)


def print_lines(lines: Lines) -> None:
    """Write lines with their names to stderr."""
    for name, value in lines.items():
        click.echo(click.wrap_text(f"{name:10}{value}", 79, "", " " * 10), err=True)


def decision_lines(model: Any) -> Lines:
    """Say what decides on the scores of a model, and what is guaranteed.

    Returns A line for the outermost classifier that decides, one for those inside; none for others.
    """
    said = [f"{type(layer).__name__}: {words}" for layer, words in layer_words(model)]
    promise = guarantee_words(model)
    return {
        **({"decides": said[0]} if said else {}),
        **({"around": "; around ".join(said[1:])} if said[1:] else {}),
        **({} if promise is None else {"guarantee": promise}),
    }


def _convex_lines(model: Any) -> Lines:
    """Say how a fit went that ends at a gap, or a model a label."""
    learning = learning_words(model)
    prior = {} if learning is None else {"prior": hyperparameter_words(model), "learning": learning}
    steps = {_steps(model): str(model.n_iter_)}
    steps |= graph_lines(model) if has_graph(model) else {}
    if not hasattr(model, "duality_gap_"):
        return steps
    threshold = tuned_threshold_words(model)
    chosen = {} if threshold is None else {"threshold": threshold}
    return prior | steps | {"gap": f"{model.duality_gap_:.2e} (asked for {model.tol:g})"} | chosen


def _steps(model: Any) -> str:
    """Name what the iterations of a fit are."""
    if has_graph(model):
        return "passes"
    return "rounds" if learning_words(model) is None else "steps"


def _factor_lines(model: Any) -> Lines:
    """Say how a fit of two factors went."""
    lines = {"rank": rank_words(model)}
    lines |= {"chosen": choice_words(model)} if has_choice(model) else {}
    if getattr(model, "learning_status_", "fixed") != "fixed":
        lines |= {"learned": hyperparameter_words(model), "learning": str(learning_words(model))}
    if hasattr(model, "objective_"):
        lines |= {
            "rounds": str(model.n_iter_),
            "objective": f"{model.objective_:.6g}",
            "gap": gap_words(model),
            "status": model.status_.replace("_", " "),
        }
    elif model.trace_:
        lines["epochs"] = str(len(model.trace_))
    return lines | {"threshold": str(threshold_words(model))}


def explain_end(model: Any, out: str) -> int:
    """Say in one line why the fit ended before its end, if it did."""
    model = innermost(model)
    if not hasattr(model, "duality_gap_"):
        return _explain_plain_end(model, out)
    if model.status_ == "interrupted":
        note(f"interrupted {_reached(model)}; the best model so far is saved in {out}.")
        return _INTERRUPTED
    if getattr(model, "search_status_", "") == "interrupted":
        done, fits = fits_to_folds(model)
        note(
            f"interrupted after {done} of {fits} fits to folds; the model with the best rank and "
            f"regularization of them is saved in {out}."
        )
        return _INTERRUPTED
    learning = getattr(model, "learning_status_", "")
    if learning == "interrupted":
        count = len(model.learning_trace_)
        note(
            f"interrupted after {count} evaluations of hyper-parameters; the model with the best of them is "
            f"saved in {out}."
        )
        return _INTERRUPTED
    if learning == "iteration_limit":
        note(
            f"warning: hyper-parameters could still improve after --max-learning-iter "
            f"{model.max_learning_iter} evaluations; raise it."
        )
    if not model.converged_:
        note(f"warning: the fit ended {_reached(model)}, {_advice(model)}")
    return 0


def _reached(model: Any) -> str:
    if has_factors(model):
        return f"after {model.n_iter_} rounds at an objective of {model.objective_:.6g}"
    steps = "passes" if has_graph(model) else "rounds"
    return f"after {model.n_iter_} {steps} at a gap of {model.duality_gap_:.2e}"


def _advice(model: Any) -> str:
    if has_factors(model):
        decrease = model.trace_[-1].decrease
        return f"of which the last one took off {decrease:.1e}, above --tol {model.tol:g}; raise --max-iter."
    if has_graph(model):
        return f"above --tol {model.tol:g}; raise --max-iter or --regularization, or scale the features."
    weight = "--scale" if hasattr(model, "scale") else "--C"
    return f"above --tol {model.tol:g}; raise --max-iter, lower {weight}, or scale the features."


def _explain_plain_end(model: Any, out: str) -> int:
    """Say why a model that low-rank learning is compared with is not exact."""
    if model.status_ == "interrupted":
        note(f"interrupted after {_done_plainly(model)}; the model so far is saved in {out}.")
        return _INTERRUPTED
    if not getattr(model, "converged_", True):
        flag = "--max-iter or --regularization" if hasattr(model, "max_iter") else "--regularization"
        note(f"warning: the fit ended before it was exact; raise {flag}, or scale the features.")
    return 0


def _done_plainly(model: Any) -> str:
    if hasattr(model, "labels_fitted_"):
        return f"{model.labels_fitted_} of {len(model.intercept_)} labels, the others are never predicted"
    return f"{len(model.trace_)} of {model.n_epochs} epochs"
