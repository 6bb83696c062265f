"""The flags of ``labelweave fit`` that are parameters of the models: their texts, and how values are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import click

from labelweave.cli.flags import reading
from labelweave.cli.messages import flag_of
from labelweave.cli.model_table import Parameter, Range, model_table

_TEXTS: dict[str, str | tuple[str, str]] = {  # help, or what stands for the value and help
    "metric": "What label sets are to be best for; scores and probabilities do not depend on it.",
    "time_budget": ("SECONDS", "How long the fit may take, by a cost model of the data's shape, so that the "
        "same data give the same model [300]."),
    "members": ("NAME,...", "Which models are combined, among linear, max-margin, rbf, forest and rbf+forest "
        "[by the size of the data]."),
    "tol": "Relative duality gap to reach; low-rank: share by which a round must lower the objective for "
        "another one.",
    "max_iter": "Largest number of rounds, of label-graph passes over the rows, of kernel-logistic Newton "
        "steps.",
    "checkpoint": ("FILE", "Keep the state of the fit here, every 30 s at most: where a fit was killed, the "
        "same command goes on from it."),
    "jobs": "Threads, -1 for all [1].",
    "seed": "Fixes the order in which rows are visited, folds, and random starts.",
    "C": "Weight of the losses; larger fits more closely.",
    "no_intercept": "All but kernel-logistic: leave the constant feature out.",
    "false_negative_cost": "Cost of missing a label that is there.",
    "false_positive_cost": "Cost of predicting a label that is not there.",
    "class_weight": "Weight classes, or positive and negative entries of every label, by how rare they are.",
    "flip_rates": ("MISSED,FALSE|propensity", "Labels are recorded wrongly: these shares of present ones as "
        "absent, and of absent ones as present, such as 0.1,0.02; losses and thresholds undo that. "
        "propensity: labels are only forgotten, rare ones more often (Jain et al. 2016)."),
    "kernel": "The kernel between rows.",
    "gamma": ("NUMBER|scale|auto", "rbf, polynomial, laplacian: their width; for kernel-logistic to start "
        "from [scale; kernel-logistic 1 / (2 x sum of variances)]."),
    "degree": "polynomial: its degree.",
    "coef0": "polynomial: its constant.",
    "scaling": "Features before all else: columns to mean 0 and deviation 1, columns to normal quantiles, "
        "rows to length 1, as they are; auto chooses on left-out rows [auto].",
    "solver": "How to solve.",
    "factorization": "Of the kernel matrix in alternating_directions.",
    "memory_budget": ("MB", "Memory for kernel matrices and their factors; of max-margin, also for dense "
        "weights: larger ones are kept sparse."),
    "precision": "Arithmetic while solving, of low-rank that of the factors.",
    "prune": ("off|certified|small|SIZE", "Keep sparse weights: drop the smallest while the gap of the "
        "others stays within --tol (certified), those below a fiftieth of the largest (small), or a size."),
    "branching": ("NUMBER", "Most branches of a node, rounded down to a power of two."),
    "leaf_size": ("LABELS", "Most labels of a node at the bottom."),
    "n_trees": ("NUMBER", "Trees from different starts, whose probabilities are averaged [3; 1 of a "
        "taxonomy or with --negatives all]."),
    "beam": ("NODES", "Look into so many nodes of each level for the best labels [as many as it takes; 10 "
        "with several trees]."),
    "negatives": "Let labels learn from the rows that reach their node, or from all as one-vs-rest.",
    "scale": "The kernel's factor to start from; larger fits closer.",
    "intercept_variance": ("NUMBER|learn", "Prior variance of the intercepts, 0 for none."),
    "tie": ("TIE[,TIE]", "What shares scales and kernel shapes: all (shared), all but the scale (scale), "
        "nothing (class), or a taxonomy's levels (level) or subtrees (subtree); two words for scale and "
        "shape."),
    "no_tree_prior": "Let every class have one function of its own; the taxonomy says how these are tied, "
        "what inner nodes mean and what mistakes cost.",
    "hyperparameters": "Learn scales and kernel parameters, or keep them; low-rank: the regularization and "
        "kernel parameters, for the squared loss with the ridge penalty.",
    "cv": "Folds to learn them on, or to choose a rank on (2 for that by default).",
    "learning_rows": ("ROWS", "Learn them on so many rows [all]."),
    "learning_blocks": ("NUMBER", "On so many disjoint blocks of them."),
    "max_learning_iter": "Largest number of evaluations to learn them.",
    "coupling": ("full|NUMBER", "Learn how labels vary together, fully or by so many factors."),
    "decision": "How one class a row is chosen.",
    "kernel_rank": ("ROWS", "Let so many rows stand for all in kernel matrices."),
    "rank": ("NUMBER|SHARE", "The rank, or a share of the number of labels, such as 0.4."),
    "loss": "Loss of an entry.",
    "regularization": "Weight of the penalty [1; label-graph 1/1000 of the rows' mean squared norm].",
    "penalty": "Penalise the trace norm of the weights, or their squares.",
    "intercept_scaling": "The constant feature; the larger, the freer the intercepts.",
    "negative_weight": "Weight of entries that are not positive; below 1 where an absent label only means "
        "that nobody gave it.",
    "start": "Where the labels' factor starts.",
    "threshold": ("auto|RULE|NUMBER", "Scores, probabilities of kernel-logistic, above it are predicted: "
        "max-margin 0, low-rank 1/2 or 0 by the loss, kernel-logistic 1/2 (auto), the one of the best micro "
        "F1 on held-out rows (f1), or one for every label (micro_f1, macro_f1, example_f1, hamming_loss)."),
    "validation_fraction": ("SHARE", "Share of rows held out for these thresholds [each fifth in turn up to "
        "5,000 rows, one fifth of more]; label-graph: for the loss after every round [none; 0.1 to stop "
        "early]."),
    "ranks": ("NUMBER|SHARE,...", "Choose among these by cross-validation, such as 0.2,0.4 or 50,100 [where "
        "anything is chosen: --rank if given, or 100]."),
    "regularizations": ("COUNT|NUMBER,...", "Choose among these too, such as 0.1,1,10, or among so many that "
        "are found from the data [--regularization if given, or 10,1]."),
    "scoring": "What is to be best on held-out rows.",
    "rule": "Take the best pair, or the smallest rank within a standard error of it.",
    "n_components": ("ROWS", "Let so many rows stand for all in the kernel's features [all, at most 4,000]."),
    "inputs": "Learn the graph on the kernel's features, or on the left-out scores of kernel ridge "
        "regressions.",
    "cliques_per_round": ("NUMBER", "Pairs that a round of learning adds."),
    "max_rounds": ("NUMBER", "Largest number of rounds."),
    "graph_tol": "Share of the objective that two rounds must take off for another one; 0 ends where none "
        "would help.",
    "clique_size": ("NUMBER", "Most labels scored together."),
    "early_stopping": "Keep the rounds up to the least Hamming loss on held-out rows.",
    "refit": "Fit the weights of the learned graph again, with the penalty of a given one.",
    "inference": "Exact elimination in narrow parts and search with bounds elsewhere; exact alone; or "
        "message passing alone.",
    "exact_width": ("WIDTH", "Largest width of parts that are eliminated."),
    "max_nodes": ("NUMBER", "Nodes of branch and bound for a part of a row."),
}  # fmt: skip
_WANTED = {  # of flags that take words and numbers
    "gamma": "a number > 0 nor 'scale' or 'auto'",
    "prune": "a number > 0 nor 'off', 'certified' or 'small'",
    "coupling": "'full' nor a number of factors from 1 on",
    "rank": "a whole number from 1 on nor a share of the labels between 0 and 1, such as 0.4",
}
_NOUNS = {"regularization": "a penalty", "threshold": "a probability"}
_MOST_PREFIXED = 3  # models that the help of a flag names
_PAIRED_TIES = ("shared", "class", "level", "subtree")


def model_flag_options() -> list[Callable[[Any], Any]]:
    """Make the flags of all models, those with a text here first."""
    flags = model_table().flags
    order = [*(flag for flag in _TEXTS if flag in flags), *(flag for flag in flags if flag not in _TEXTS)]
    return [_option(flag, flags[flag]) for flag in order]


def _option(flag: str, owners: dict[str, Parameter]) -> Callable[[Any], Any]:
    first = next(iter(owners.values()))
    off = "Turn off: " if first.default is True else ""
    text = _TEXTS.get(flag, off + first.says.replace("``", "") + ".")
    metavar, text = (None, text) if isinstance(text, str) else text
    name = "--C" if flag == "C" else flag_of(flag)
    words = [*dict.fromkeys(word for owner in owners.values() for word in owner.words)]
    ranges = [*dict.fromkeys(part for owner in owners.values() for part in owner.ranges)]
    read, options = _READERS.get(flag), dict[str, Any]()
    if read is None and words and ranges:
        read = _word_or_number(flag, words, ranges)
    elif read is None and words:
        options["type"] = click.Choice(words)
    elif ranges and first.kind == "value" and flag != "rank":
        options["type"] = _number(ranges)
    if first.kind == "switch":
        options = {"is_flag": True}
    elif read is not None:
        options["callback"] = reading(read)
    return click.option(name, flag, default=None, metavar=metavar, help=_help(text, owners), **options)


def _help(text: str, owners: dict[str, Parameter]) -> str:
    """Name the models before a text, and what they take where the flag is not given after it."""
    names = ", ".join(owners)
    if len(owners) <= _MOST_PREFIXED and not text.startswith(("polynomial:", "rbf,")):
        text = f"{names}: {text[0].lower()}{text[1:]}"
    if text.endswith(("].", "]")) or next(iter(owners.values())).kind == "switch":
        return text
    defaults: dict[str, list[str]] = {}
    for model, parameter in owners.items():
        default = "" if parameter.default is None else parameter.default
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        defaults.setdefault(shown, []).append(model)
    (usual, _), *others = defaults.items()
    words = [usual, *(f"{', '.join(models)} {value}" for value, models in others)]
    return f"{text.removesuffix('.')} [{'; '.join(words)}]." if usual or others else text


def _number(ranges: list[Range]) -> Any:
    """Make the type of the widest range."""
    widest = max(ranges, key=lambda part: (math.isinf(part.low), part.has_low))
    has_low, has_high = math.isfinite(widest.low), math.isfinite(widest.high)
    if not (has_low or has_high):
        return click.INT if widest.is_whole else click.FLOAT
    bounds: dict[str, Any] = {
        "min": widest.low if has_low else None,
        "max": widest.high if has_high else None,
        "min_open": has_low and not widest.has_low,
        "max_open": has_high and not widest.has_high,
    }
    return click.IntRange(**bounds) if widest.is_whole else click.FloatRange(**bounds)


def _read(text: str, words: list[str], ranges: list[Range]) -> Any:
    """Read a word, a whole number or any number; None for what is none of them."""
    if text in words:
        return text
    is_whole = text.isdecimal() and any(part.is_whole for part in ranges)
    try:
        value = int(text) if is_whole else float(text)
    except ValueError:
        return None
    return value if any(part.holds(value) for part in ranges) else None


def _word_or_number(flag: str, words: list[str], ranges: list[Range]) -> Callable[[str], Any]:
    wanted = _WANTED.get(flag)
    if wanted is None:
        bounds = "".join({f" {part.words}" for part in ranges if math.inf in (-part.low, part.high)})
        wanted = f"a number{bounds.rstrip()} nor one of {', '.join(words)}"

    def read(text: str) -> Any:
        found = _read(text, words, ranges)
        if found is None:
            raise click.BadParameter(f"{text!r} is neither {wanted}.")
        return found

    return read


_rank = _word_or_number("rank", [], [Range(True, 1, closed="left"), Range(False, 0, 1, "right")])


def _regularizations(text: str) -> list[float] | int:
    """Read how many values are to be found from the data, or the values."""
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    values = [_read(word, [], [Range(False, 0, closed="left")]) for word in text.split(",")]
    if None not in values and not text.isdecimal():
        return values
    raise click.BadParameter(
        f"{text!r} is neither a list of numbers from 0 on, such as 0.1,1,10, nor how many of them are to be "
        "found from the data, such as 8."
    )


def _jobs(count: int) -> int:
    """Refuse no threads."""
    if count == 0:
        raise click.BadParameter("0 threads can do nothing; give 1 or more, or -1 for all.")
    return count


def _tie(text: str) -> str | tuple[str, ...]:
    """Read which nodes share hyper-parameters: a word, or two for scale and shape."""
    single = model_table().flags["tie"]["kernel-logistic"].words
    if text in single:
        return text
    words = tuple(word.strip() for word in text.split(","))
    if len(words) != 2 or not set(words) <= set(_PAIRED_TIES):
        raise click.BadParameter(
            f"{text!r} is neither one of {', '.join(single)} nor two of {', '.join(_PAIRED_TIES)} with a "
            "comma between, for scales and kernel shapes."
        )
    return words


def _members(text: str) -> str | list[str]:
    """Read which models are combined."""
    from labelweave.automatic.plan import MEMBERS

    names = [word.strip() for word in text.split(",")]
    if names == ["auto"]:
        return "auto"
    if set(names) <= set(MEMBERS) and len(set(names)) == len(names):
        return names
    raise click.BadParameter(f"{text!r} is neither auto nor a list of some of {', '.join(MEMBERS)}.")


def _flip_rates(text: str) -> Any:
    """Read shares of forgotten and of false labels, or how they are found."""
    if text == "propensity":
        return text
    shares = [_read(word, [], [Range(False, 0, 1, "left")]) for word in text.split(",")]
    if len(shares) == 2 and None not in shares and sum(shares) < 1:
        return shares
    raise click.BadParameter(
        f"{text!r} is neither 'propensity' nor the shares of present labels recorded as absent and of absent "
        "ones recorded as present, such as 0.1,0.02, whose sum is below 1."
    )


_READERS: dict[str, Callable[[Any], Any]] = {
    "members": _members,
    "flip_rates": _flip_rates,
    "jobs": _jobs,
    "rank": _rank,
    "ranks": lambda text: [_rank(word.strip()) for word in text.split(",")],
    "regularizations": _regularizations,
    "tie": _tie,
}


def refused_values(model: str, given: dict[str, Any]) -> Iterator[str]:
    """Say which values another model takes, but not this one."""
    for flag, parameter in model_table().of(model).items():
        value = given.get(flag)
        if value is None or parameter.takes(value):
            continue
        if isinstance(value, str):
            others = [name for name, other in model_table().flags[flag].items() if other.takes(value)]
            yield (
                f"{flag_of(flag)} {value} goes with --model {alternatives(others)}; give "
                f"{alternatives(sorted(parameter.words))}."
            )
        noun, bounds = _NOUNS.get(flag, "a number"), alternatives([part.words for part in parameter.ranges])
        said = f"{model} needs {noun} {bounds}"
        if flag == "threshold":
            said = f"of {model} it is {noun}, {bounds}"
        yield f"{flag_of(flag)} {value:g}: {said}."


def alternatives(words: Any) -> str:
    """Write ``a, b or c``."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else str(last)
