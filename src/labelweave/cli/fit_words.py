"""What ``labelweave fit`` says at its end: a summary, and why it ended early if it did."""

from __future__ import annotations

from typing import Any

import click

from labelweave.cli.messages import note, size_of
from labelweave.cli.model_words import hyperparameter_words, kernel_words, learning_words, n_support_rows

__all__ = ["explain_end", "print_summary"]

_INTERRUPTED = 130


def print_summary(model: Any, n_rows: int, seconds: float, out: str) -> None:
    """Write what was fitted to stderr.

    Parameters
    ----------
    model : LabelClassifier
        The fitted model.
    n_rows : int
        The rows it was fitted to.
    seconds : float
        How long that took.
    out : str
        Where it was saved.
    """
    support, learning = n_support_rows(model), learning_words(model)
    is_newton = learning is not None
    lines = {
        "rows": str(n_rows),
        "features": str(model.n_features_in_),
        "labels" if model._form.kind == "labels" else "classes": str(len(model.classes_)),
        "kernel": kernel_words(model),
        **({} if learning is None else {"prior": hyperparameter_words(model), "learning": learning}),
        **({} if support is None else {"support": f"{support} of {n_rows} rows"}),
        "steps" if is_newton else "rounds": str(model.n_iter_),
        "gap": f"{model.duality_gap_:.2e} (asked for {model.tol:g})",
        "seconds": f"{seconds:.1f}",
        "model": f"{out} ({size_of(out)})",
    }
    for name, value in lines.items():
        click.echo(click.wrap_text(f"{name:10}{value}", 79, "", " " * 10), err=True)


def explain_end(model: Any, out: str) -> int:
    """Say in one line why the fit ended before its end, if it did.

    Parameters
    ----------
    model : LabelClassifier
        The fitted model.
    out : str
        Where it was saved.

    Returns
    -------
    int
        The exit code.
    """
    reached = f"after {model.n_iter_} rounds at a gap of {model.duality_gap_:.2e}"
    if model.status_ == "interrupted":
        note(f"interrupted {reached}; the best model so far is saved in {out}.")
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
        weight = "--scale" if hasattr(model, "scale") else "--C"
        note(
            f"warning: the fit ended {reached}, above --tol {model.tol:g}; raise --max-iter, lower {weight}, "
            "or scale the features."
        )
    return 0
