"""Flags by which low-rank learning chooses its rank and regularization by cross-validation."""

from __future__ import annotations

import math
from typing import Any

import click

from labelweave.cli.data_options import Command, Options, with_options
from labelweave.estimators.low_rank.held_out_scores import SCORINGS

__all__ = ["check_choice_options", "choice_options", "chooses_rank", "parameters_to_choose", "rank_or_share"]

_CHOICE = ("ranks", "regularizations", "scoring", "rule")
_RULES = ("best", "one_standard_error")
_SINGLE = {"rank": "ranks", "regularization": "regularizations"}


def rank_or_share(text: str) -> int | float:
    """Read a rank, or a share of the labels.

    Returns A number of columns (int), or a share of the labels (float).
    Raises click.BadParameter if it is neither.
    """
    try:
        rank: int | float = int(text) if text.isdecimal() else float(text)
    except ValueError:
        rank = math.nan
    if (isinstance(rank, int) and rank >= 1) or (isinstance(rank, float) and 0 < rank <= 1):
        return rank
    raise click.BadParameter(
        f"{text!r} is neither a whole number from 1 on nor a share of the labels between 0 and 1, such as "
        "0.4."
    )


def _ranks(context: click.Context, parameter: click.Parameter, text: str | None) -> list[int | float] | None:
    return None if text is None else [rank_or_share(word.strip()) for word in text.split(",")]


def _regularizations(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> list[float] | int | None:
    """Read how many values are to be found from the data, or the values."""
    if text is None:
        return None
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    try:
        values = [] if text.isdecimal() else [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if values and all(0 <= value < math.inf for value in values):
        return values
    raise click.BadParameter(
        f"{text!r} is neither a list of numbers from 0 on, such as 0.1,1,10, nor how many of them are to be "
        "found from the data, such as 8."
    )


def choice_options(command: Command) -> Command:
    """Add the flags that choose rank and regularization.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--ranks", metavar="NUMBER|SHARE,...", callback=_ranks,
                     help="low-rank: choose among these by cross-validation, such as 0.2,0.4 or 50,100 "
                     "[where anything is chosen: --rank if given, or 0.2,0.4,0.6,0.8,1.0]."),
        click.option("--regularizations", metavar="COUNT|NUMBER,...", callback=_regularizations,
                     help="low-rank: choose among these too, such as 0.1,1,10, or among so many that are "
                     "found from the data [--regularization if given, or 10]."),
        click.option("--scoring", type=click.Choice(sorted(SCORINGS)),
                     help="low-rank: what is to be best on held-out rows [loss]."),
        click.option("--rule", type=click.Choice(_RULES),
                     help="low-rank: take the best pair, or the smallest rank within a standard error of it "
                     "[best]."),
    )(command)  # fmt: skip


def chooses_rank(options: Options) -> bool:
    """Tell whether rank and regularization are chosen by cross-validation.

    options: the values of all flags.
    Returns whether any flag asks for it.
    """
    return any(options[name] is not None for name in _CHOICE)


def check_choice_options(options: Options) -> None:
    """Refuse flags of the choice that make no sense together.

    options: the values of all flags.
    Raises click.UsageError if there are any.
    """
    for single, several in _SINGLE.items():
        if options[single] is not None and options[several] is not None:
            raise click.UsageError(f"--{single} and --{several} name the same thing; give one of them.")
    if chooses_rank(options) and all(options[single] is not None for single in _SINGLE):
        given = next(name for name in _CHOICE if options[name] is not None)
        raise click.UsageError(
            f"--rank and --regularization leave nothing to choose for --{given}; give --ranks or "
            "--regularizations."
        )


def parameters_to_choose(parameters: dict[str, Any]) -> dict[str, Any]:
    """Turn the parameters of the classifier into those of the one that chooses.

    parameters: keywords of the class and of the choice.
    """
    singles = {several: [parameters[name]] for name, several in _SINGLE.items() if name in parameters}
    return singles | {name: value for name, value in parameters.items() if name not in _SINGLE}
