"""Flags of the max-margin and the kernel logistic model, and what makes sense together."""

from __future__ import annotations

import click

from labelweave.cli.data_options import Command, Options, with_options
from labelweave.cli.decision_options import decides
from labelweave.cli.label_graph_options import check_label_graph_options
from labelweave.cli.low_rank_options import check_low_rank_options
from labelweave.cli.messages import flag_of
from labelweave.cli.model_flags import MODELS, check_model_flags
from labelweave.cli.rank_choice_options import chooses_rank
from labelweave.estimators.held_out import THRESHOLD_RULES

__all__ = ["check_model_options", "logistic_options", "model_options"]

_POSITIVE = click.FloatRange(min=0, min_open=True)
_NOT_NEGATIVE = click.FloatRange(min=0)
_TIES = ("shared", "scale", "class", "level", "subtree")
_PAIRED_TIES = ("shared", "class", "level", "subtree")
_TREE_TIES = ("level", "subtree")
_TREES = ("taxonomy", "data_taxonomy", "class_paths")
_COVARIANCES = ("covariance", "covariance_from", "signatures")
_LEARNING = ("cv", "learning_rows", "learning_blocks", "max_learning_iter", "coupling")


def _jobs(context: click.Context, parameter: click.Parameter, count: int | None) -> int | None:
    """Refuse no threads."""
    if count == 0:
        raise click.BadParameter("0 threads can do nothing; give 1 or more, or -1 for all.")
    return count


def _tie(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> str | tuple[str, ...] | None:
    """Read which nodes share hyper-parameters: a word, or two for scale and shape."""
    if text is None or text in _TIES:
        return text
    words = tuple(word.strip() for word in text.split(","))
    if len(words) != 2 or not set(words) <= set(_PAIRED_TIES):
        raise click.BadParameter(
            f"{text!r} is neither one of {', '.join(_TIES)} nor two of {', '.join(_PAIRED_TIES)} with a "
            "comma between, for scales and kernel shapes."
        )
    return words


def _coupling(context: click.Context, parameter: click.Parameter, text: str | None) -> str | int | None:
    """Read how many factors a learned covariance has."""
    if text is None or text == "full":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise click.BadParameter(f"{text!r} is neither 'full' nor a number of factors from 1 on.")
    return int(text)


def model_options(command: Command) -> Command:
    """Add the flags of the model, those of several models among them.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--model", type=click.Choice(MODELS), default=MODELS[0], show_default=True,
                     help="max-margin gives label sets, kernel-logistic probabilities, low-rank learns few "
                     "factors of many labels, label-graph which labels to score together; the "
                     "others are what low-rank learning is compared with."),
        click.option("--tol", type=_POSITIVE,
                     help="Relative duality gap to reach [1e-3; kernel-logistic 1e-4]; low-rank: share by "
                     "which a round must lower the objective for another one [1e-4]; binary-relevance "
                     "[1e-4]."),
        click.option("--max-iter", type=click.IntRange(1),
                     help="Largest number of rounds, of label-graph passes over the rows [1000; "
                     "kernel-logistic 100 Newton steps; low-rank 100; wsabie 10 epochs]."),
        click.option("--jobs", type=int, callback=_jobs, help="Threads, -1 for all [1]."),
        click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
                     help="Fixes the order in which rows are visited, folds, and random starts."),
        click.option("--C", "C", type=_POSITIVE, default=1.0, show_default=True,
                     help="max-margin: weight of the losses; larger fits more closely."),
        click.option("--no-intercept", is_flag=True,
                     help="All but kernel-logistic: leave the constant feature out."),
        click.option("--false-negative-cost", type=_NOT_NEGATIVE, default=1.0, show_default=True,
                     help="max-margin, label-graph: cost of missing a label that is there."),
        click.option("--false-positive-cost", type=_NOT_NEGATIVE, default=1.0, show_default=True,
                     help="max-margin, label-graph: cost of predicting a label that is not there."),
    )(command)  # fmt: skip


def logistic_options(command: Command) -> Command:
    """Add the flags of kernel logistic classification alone.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    decisions = click.Choice(["most_probable", "least_expected_loss", "best_parent"])
    return with_options(
        click.option("--scale", type=_POSITIVE,
                     help="kernel-logistic: the kernel's factor to start from; larger fits closer [10]."),
        click.option("--intercept-variance", type=_NOT_NEGATIVE,
                     help="kernel-logistic: prior variance of the intercepts, 0 for none [1]."),
        click.option("--tie", metavar="TIE[,TIE]", callback=_tie,
                     help="kernel-logistic: what shares scales and kernel shapes: all (shared), all but the "
                     "scale (scale), nothing (class), or a taxonomy's levels (level) or subtrees (subtree); "
                     "two words for scale and shape [shared]."),
        click.option("--hyperparameters", type=click.Choice(["learn", "fixed"]),
                     help="kernel-logistic: learn scales and kernel parameters, or keep them [learn]; "
                     "low-rank: the regularization and kernel parameters, for the squared loss with the "
                     "ridge penalty [fixed]."),
        click.option("--cv", type=click.IntRange(2),
                     help="kernel-logistic, low-rank: folds to learn them on, or to choose a rank on [5]."),
        click.option("--learning-rows", metavar="ROWS", type=click.IntRange(2),
                     help="kernel-logistic, low-rank: learn them on so many rows [all]."),
        click.option("--learning-blocks", metavar="NUMBER", type=click.IntRange(1),
                     help="kernel-logistic: on so many disjoint blocks of them [1]."),
        click.option("--max-learning-iter", type=click.IntRange(1),
                     help="kernel-logistic, low-rank: largest number of evaluations to learn them [100]."),
        click.option("--coupling", metavar="full|NUMBER", callback=_coupling,
                     help="kernel-logistic: learn how labels vary together, fully or by so many factors."),
        click.option("--decision", type=decisions,
                     help="kernel-logistic: how one class a row is chosen [most_probable]."),
        click.option("--low-rank", metavar="ROWS", type=click.IntRange(1),
                     help="kernel-logistic, low-rank: let so many rows stand for all in kernel matrices."),
    )(command)  # fmt: skip


def check_model_options(context: click.Context, options: Options) -> None:
    """Refuse flags of another model, and flags that make no sense together.

    context: knows which flags were given.
    options: the values of all flags.
    Raises click.UsageError if there are any.
    """
    check_model_flags(context, options["model"], ("seed",) if decides(options) else ())
    check_low_rank_options(options)
    check_label_graph_options(options)
    _check_learning(options)
    _check_threshold(options)
    if options["model"] == "kernel-logistic":
        _check_structure(options)


def _check_learning(options: Options) -> None:
    wanted = [name for name in _LEARNING if options[name] is not None]
    given = next((name for name in wanted if name != "cv" or not chooses_rank(options)), None)
    usual = "learn" if options["model"] == "kernel-logistic" else "fixed"
    if given is None or (options["hyperparameters"] or usual) == "learn":
        return
    if options["hyperparameters"] == "fixed":
        raise click.UsageError(
            f"{flag_of(given)} is about learning, which --hyperparameters fixed rules out."
        )
    if given == "cv":
        raise click.UsageError(
            "--cv is about learning; give --hyperparameters learn too, or --ranks or --regularizations."
        )
    raise click.UsageError(f"{flag_of(given)} is about learning; give --hyperparameters learn too.")


def _check_threshold(options: Options) -> None:
    threshold = options["threshold"]
    thresholds_are_held_out = options["validation_fraction"] is not None and options["model"] != "label-graph"
    if thresholds_are_held_out and threshold not in THRESHOLD_RULES:
        rules = ", ".join(THRESHOLD_RULES)
        raise click.UsageError(f"--validation-fraction goes with --threshold and one of {rules}.")
    is_level = isinstance(threshold, float)
    if options["model"] == "kernel-logistic" and is_level and not 0 < threshold < 1:
        raise click.UsageError(
            f"--threshold {threshold:g}: of kernel-logistic it is a probability, between 0 and 1."
        )


def _check_structure(options: Options) -> None:
    tree = next((name for name in _TREES if options[name]), None)
    covariance = next((name for name in _COVARIANCES if options[name]), None)
    structure = tree or covariance
    if options["coupling"] is not None and structure is not None:
        raise click.UsageError(
            f"--coupling and {flag_of(structure)} both describe the labels; give one of them."
        )
    if options["shrink"] is not None and tree is not None:
        given = ", ".join(map(flag_of, _COVARIANCES))
        raise click.UsageError(f"--shrink goes with {given} here; with {flag_of(tree)} scales are learned.")
    _check_tie(
        options["tie"] or "shared", tree, "coupling" if options["coupling"] is not None else covariance
    )
    if options["decision"] not in (None, "most_probable") and tree is None:
        raise click.UsageError(f"--decision {options['decision']} needs a taxonomy; {_HOW_TO_GIVE_A_TREE}")


_HOW_TO_GIVE_A_TREE = f"give one of {', '.join(map(flag_of, _TREES))}."


def _check_tie(tie: str | tuple[str, ...], tree: str | None, other: str | None) -> None:
    words = (tie,) if isinstance(tie, str) else tie
    needs_tree = next((word for word in words if word in _TREE_TIES), None)
    if other is not None and tie != "shared":
        raise click.UsageError(
            f"--tie {','.join(words)} does not go with {flag_of(other)}, which shares one kernel."
        )
    if needs_tree is not None and tree is None:
        raise click.UsageError(f"--tie {needs_tree} needs a taxonomy; {_HOW_TO_GIVE_A_TREE}")
