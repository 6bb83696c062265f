"""Flags for kernels and solvers, and their values in the words of the classifier."""

from __future__ import annotations

import math

import click

from labelweave.cli.data_options import Command, Options, with_options

__all__ = ["kernel_options", "kernel_parameters"]

_KERNELS = ("linear", "rbf", "polynomial", "laplacian", "cosine")
_SOLVERS = ("auto", "coordinate_ascent", "alternating_directions", "block_ascent", "working_set")
_FACTORIZATIONS = ("auto", "cholesky", "eigenvalues", "incomplete_cholesky")
_PRECISIONS = ("auto", "float32", "float64")

_PARAMETERS = ("kernel", "gamma", "degree", "coef0", "solver", "factorization", "memory_budget", "precision")
_WITH_GAMMA = ("rbf", "polynomial", "laplacian")
_KERNELS_OF = {"gamma": _WITH_GAMMA, "degree": ("polynomial",), "coef0": ("polynomial",)}
_SOLVERS_OF = {
    "factorization": ("alternating_directions",),
    "memory_budget": ("alternating_directions", "block_ascent", "working_set"),
}


def _width(context: click.Context, parameter: click.Parameter, text: str | None) -> float | str | None:
    """Read the width of a kernel."""
    if text is None or text in ("scale", "auto"):
        return text
    try:
        width = float(text)
    except ValueError:
        width = math.nan
    if not 0 < width < math.inf:
        raise click.BadParameter(f"{text!r} is neither a number > 0 nor 'scale' or 'auto'.")
    return width


def kernel_options(command: Command) -> Command:
    """Add the flags that say which kernel and which solver.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--kernel", type=click.Choice(_KERNELS),
                     help="The kernel between rows [linear; kernel-logistic rbf]."),
        click.option("--gamma", metavar="NUMBER|scale|auto", callback=_width,
                     help="rbf, polynomial, laplacian: their width; for kernel-logistic to start from "
                     "[scale; kernel-logistic 1 / (2 x sum of variances)]."),
        click.option("--degree", type=click.IntRange(1), help="polynomial: its degree [3]."),
        click.option("--coef0", type=click.FloatRange(0), help="polynomial: its constant [1]."),
        click.option("--solver", type=click.Choice(_SOLVERS), help="max-margin: how to solve [auto]."),
        click.option("--factorization", type=click.Choice(_FACTORIZATIONS),
                     help="max-margin, alternating_directions: of the kernel matrix [auto]."),
        click.option("--memory-budget", metavar="MB", type=click.FloatRange(0, min_open=True),
                     help="Memory for kernel matrices and their factors [2000; kernel-logistic and "
                     "low-rank 8000]."),
        click.option("--precision", type=click.Choice(_PRECISIONS),
                     help="max-margin: arithmetic while solving [auto]; low-rank: of the factors [float64]."),
    )(command)  # fmt: skip


def kernel_parameters(options: Options) -> Options:
    """Give the flags that were set, in the words of the classifier.

    options: the values of all flags.
    Returns keywords of the class of the model.
    Raises click.UsageError if a flag makes no sense with the kernel or the solver.
    """
    given = {name: options[name] for name in _PARAMETERS if options[name] is not None}
    usual = "rbf" if options["model"] == "kernel-logistic" else "linear"
    kernel, solver = given.get("kernel", usual), given.get("solver", "auto")
    for flag, kernels in _KERNELS_OF.items():
        if flag in given and kernel not in kernels:
            raise click.UsageError(f"--{flag} goes with --kernel {_either(kernels)}, not with {kernel}.")
    for flag, solvers in _SOLVERS_OF.items():
        if flag in given and solver not in ("auto", *solvers):
            name = flag.replace("_", "-")
            raise click.UsageError(f"--{name} goes with --solver {_either(solvers)}, not with {solver}.")
    if solver == "coordinate_ascent" and kernel in _WITH_GAMMA:
        raise click.UsageError(
            f"--solver coordinate_ascent walks features, which --kernel {kernel} has none of; "
            f"give {_either(_SOLVERS_OF['memory_budget'])}."
        )
    return given


def _either(words: tuple[str, ...]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
