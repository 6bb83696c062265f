"""Flags of low-rank learning and of the models it is compared with."""

from __future__ import annotations

import math

import click

from labelweave.cli.data_options import Command, Options, with_options
from labelweave.cli.rank_choice_options import (
    check_choice_options,
    choice_options,
    chooses_rank,
    rank_or_share,
)
from labelweave.estimators.held_out import THRESHOLD_RULES

__all__ = ["check_low_rank_options", "low_rank_options"]

_LOSSES = ("squared", "logistic", "squared_hinge")
_RULES = ("auto", *THRESHOLD_RULES)
_WITH_FEATURES = ("linear", "cosine")  # kernels of which no matrix is made
_POSITIVE = click.FloatRange(min=0, min_open=True)


def _rank(context: click.Context, parameter: click.Parameter, text: str | None) -> int | float | None:
    """Read a rank, or a share of the labels."""
    return None if text is None else rank_or_share(text)


def _threshold(context: click.Context, parameter: click.Parameter, text: str | None) -> str | float | None:
    """Read how label sets are made of scores."""
    if text is None or text in _RULES:
        return text
    try:
        level = float(text)
    except ValueError:
        level = math.nan
    if not math.isfinite(level):
        raise click.BadParameter(f"{text!r} is neither a number nor one of {', '.join(_RULES)}.")
    return level


def low_rank_options(command: Command) -> Command:
    """Add the flags of low-rank learning and of the models it is compared with.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--rank", metavar="NUMBER|SHARE", callback=_rank,
                     help="low-rank, plst, cplst, wsabie: the rank, or a share of the number of labels, such "
                     "as 0.4 [100]."),
        click.option("--loss", type=click.Choice(_LOSSES),
                     help="low-rank, binary-relevance: loss of an entry [squared]."),
        click.option("--regularization", type=click.FloatRange(min=0),
                     help="low-rank, label-graph, binary-relevance, plst, cplst: weight of the penalty [1; "
                     "label-graph 1/1000 of the rows' mean squared norm; plst and cplst 0]."),
        click.option("--penalty", type=click.Choice(["trace_norm", "ridge"]),
                     help="low-rank: penalise the trace norm of the weights, or their squares [trace_norm]."),
        click.option("--intercept-scaling", type=_POSITIVE,
                     help="low-rank, label-graph: the constant feature; the larger, the freer the "
                     "intercepts [1]."),
        click.option("--negative-weight", type=_POSITIVE,
                     help="low-rank: weight of entries that are not positive; below 1 where an absent label "
                     "only means that nobody gave it [1]."),
        click.option("--start", type=click.Choice(["svd", "random"]),
                     help="low-rank: where the labels' factor starts [svd]."),
        click.option("--threshold", metavar="auto|RULE|NUMBER", callback=_threshold,
                     help="max-margin, low-rank, kernel-logistic: scores, probabilities of the last, above "
                     "it are predicted: max-margin 0, low-rank 1/2 or 0 by the loss, kernel-logistic 1/2 "
                     "(auto), the one of the best micro F1 on held-out rows (f1), or one for every label "
                     "(micro_f1, macro_f1, example_f1, hamming_loss) [auto]."),
        click.option("--validation-fraction", metavar="SHARE",
                     type=click.FloatRange(0, 1, min_open=True, max_open=True),
                     help="Share of rows held out for these thresholds [0.1]; label-graph: for the loss "
                     "after every round [none; 0.1 to stop early]."),
        choice_options,
    )(command)  # fmt: skip


def check_low_rank_options(options: Options) -> None:
    """Refuse flags that make no sense together.

    options: the values of all flags.
    Raises click.UsageError if there are any.
    """
    model, kernel = options["model"], options["kernel"] or "linear"
    if model == "binary-relevance" and options["regularization"] == 0:
        raise click.UsageError("--regularization 0: binary-relevance needs a penalty above 0.")
    if model != "low-rank":
        return
    check_choice_options(options)
    learns, penalised = options["hyperparameters"] == "learn", (options["loss"], options["penalty"])
    if learns and not chooses_rank(options) and penalised not in (("squared", "ridge"), (None, "ridge")):
        raise click.UsageError("--hyperparameters learn goes with --loss squared and --penalty ridge only.")
    if options["intercept_scaling"] is not None and options["no_intercept"]:
        raise click.UsageError(
            "--intercept-scaling has no intercept to scale, which --no-intercept rules out."
        )
    if options["low_rank"] is not None and kernel in _WITH_FEATURES:
        raise click.UsageError(
            f"--low-rank stands for a kernel matrix, and --kernel {kernel} needs none; give --rank."
        )
    if options["precision"] == "auto":
        raise click.UsageError("--precision auto goes with --model max-margin; give float32 or float64.")
