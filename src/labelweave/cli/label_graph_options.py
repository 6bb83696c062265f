"""Flags of models with a graph of labels, and graphs from files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from labelweave.cli.data_options import Command, Options, with_options
from labelweave.cli.messages import flag_of
from labelweave.cli.taxonomy_files import lines_of_cells
from labelweave.datasets import DataFileError
from labelweave.estimators.label_graph.choice import GRAPHS

__all__ = ["check_label_graph_options", "given_graph", "label_graph_options", "read_graph"]

_NOT_NEGATIVE = click.FloatRange(min=0)
_LEARNING = ("cliques_per_round", "max_rounds", "graph_tol", "clique_size", "early_stopping", "refit")
_HEADERS = (["label", "label"], ["source", "target"], ["from", "to"])
_MOST_NAMES = 5


def _graph(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Refuse what is neither a word nor a file before the data are read."""
    if text is None or text in GRAPHS or Path(text).is_file():
        return text
    raise click.BadParameter(
        f"{text!r} is neither one of {', '.join(GRAPHS)} nor a file; give a file of lines label,label."
    )


def label_graph_options(command: Command) -> Command:
    """Add the flags of models with a graph of labels.

    command: the function of the command.
    Returns the same one, with more flags.
    """
    return with_options(
        click.option("--graph", metavar="learn|chow-liu|full|none|FILE", callback=_graph,
                     help="label-graph: which labels are scored together: learned pairs, the tree of largest "
                     "mutual information, all pairs, none, or those of a file of lines label,label[,...] "
                     "[learn]."),
        click.option("--cliques-per-round", metavar="NUMBER", type=click.IntRange(1),
                     help="label-graph: pairs that a round of learning adds [1]."),
        click.option("--max-rounds", metavar="NUMBER", type=click.IntRange(1),
                     help="label-graph: largest number of rounds [50]."),
        click.option("--graph-tol", type=_NOT_NEGATIVE,
                     help="label-graph: share of the objective that two rounds must take off for another "
                     "one; 0 ends where none would help [0.01]."),
        click.option("--clique-size", metavar="NUMBER", type=click.IntRange(2, 8),
                     help="label-graph: most labels scored together [2]."),
        click.option("--early-stopping", is_flag=True,
                     help="label-graph: keep the rounds up to the least Hamming loss on held-out rows."),
        click.option("--refit", is_flag=True,
                     help="label-graph: fit the weights of the learned graph again, with the penalty of a "
                     "given one."),
        click.option("--inference", type=click.Choice(["auto", "exact", "message_passing"]),
                     help="label-graph: exact elimination in narrow parts and search with bounds elsewhere; "
                     "exact alone; or message passing alone [auto]."),
        click.option("--exact-width", metavar="WIDTH", type=click.IntRange(0, 20),
                     help="label-graph: largest width of parts that are eliminated [12]."),
        click.option("--max-nodes", metavar="NUMBER", type=click.IntRange(1),
                     help="label-graph: nodes of branch and bound for a part of a row [1000]."),
    )(command)  # fmt: skip


def check_label_graph_options(options: Options) -> None:
    """Refuse flags that make no sense together.

    options: the values of all flags.
    Raises click.UsageError if there are any.
    """
    if options["model"] != "label-graph":
        return
    if options["regularization"] == 0:
        raise click.UsageError("--regularization 0: label-graph needs a penalty above 0.")
    if options["intercept_scaling"] is not None and options["no_intercept"]:
        raise click.UsageError(
            "--intercept-scaling has no intercept to scale, which --no-intercept rules out."
        )
    learning = (*_LEARNING, "validation_fraction")
    given = next((name for name in learning if options[name] not in (None, False)), None)
    if given is not None and options["graph"] not in (None, "learn"):
        flag = flag_of(given)
        raise click.UsageError(
            f"{flag} is about learning the graph, which --graph {options['graph']} rules out."
        )


def given_graph(label_names: Sequence[Any], options: Options) -> dict[str, Any]:
    """Give the graph that the flags stand for, as a keyword of the classifier.

    label_names: the labels of the data.
    options: the values of all flags.
    Returns ``graph``, if a flag says which.
    """
    graph = options["graph"]
    if graph is None:
        return {}
    return {"graph": graph if graph in GRAPHS else read_graph(graph, label_names)}


def read_graph(path: str, label_names: Sequence[Any]) -> list[tuple[int, ...]]:
    """Read the edges or larger cliques of a graph.

    path: A ``.csv`` or ``.tsv`` file, an edge a line: the names of its labels, two or more.  A first line
        ``source,target`` is passed over.
    label_names: the labels of the data.
    Raises DataFileError if a line is no edge, joins a label to itself, or repeats an edge.
    """
    place = {str(name): number for number, name in enumerate(label_names)}
    found: dict[tuple[int, ...], int] = {}
    for line, cells in lines_of_cells(path):
        if line == 1 and [cell.lower() for cell in cells] in _HEADERS and not set(cells) <= set(place):
            continue
        clique = _clique(path, line, cells, place)
        if clique in found:
            raise DataFileError(path, line, f"the edge of line {found[clique]} again", "every edge once")
        found[clique] = line
    if not found:
        raise DataFileError(path, None, "no edge", "lines label,label; or give --graph none")
    return list(found)


def _clique(path: str, line: int, cells: list[str], place: dict[str, int]) -> tuple[int, ...]:
    unknown = next((cell for cell in cells if cell not in place), None)
    if unknown is not None:
        some = ", ".join(list(place)[:_MOST_NAMES]) + (", ..." if len(place) > _MOST_NAMES else "")
        raise DataFileError(path, line, f"the unknown label {unknown[:40]!r}", f"labels of the data: {some}")
    clique = tuple(sorted(place[cell] for cell in cells))
    if len(clique) < 2:
        raise DataFileError(path, line, "a single label", "two labels or more")
    if len(set(clique)) < len(clique):
        raise DataFileError(path, line, "a label joined to itself", "an edge between different labels")
    return clique
