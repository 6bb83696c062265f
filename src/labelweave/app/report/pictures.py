"""Data of the page's plots: positions in pixels from the upper left corner, texts and colors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import SimpleNamespace as Drawn
from typing import Any, NamedTuple

import numpy as np

from labelweave.app.display.figures import letters_across, shortened
from labelweave.app.display.graph_drawing import GraphDrawing, graph_drawing, line_widths, strongest
from labelweave.app.display.icicle import icicle_of, rarest_parents, tail_names
from labelweave.app.display.label_covariance_display import cluster_order
from labelweave.app.report.label_numbers import LabelNumbers, NodeNumbers, count_words
from labelweave.foundation.array_types import Array, Floats, LabelsByLabels, RowsByLabels
from labelweave.labels import CliqueGraph, LabelMatrix, Taxonomy
from labelweave.metrics.probabilities import CALIBRATION_FROM, calibration_bins

_MOST_POINTS = 2000
_MOST_SHOWN = 30
_DECIMALS = 9  # rounding must not decide between equal labels
_ENOUGH_FOR_MEDIAN = 50
_GROUPS = 10
_BALANCED = 2  # ratio of frequencies below which labels are about equally frequent
_MOST_BARS, _BAR = 40, 22.0
_LONGEST_NAME, _PHONE_LETTER = 24, 11.5  # phones have larger letters
_WIDTH, _HEIGHT = 640.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 72.0, 12.0, 12.0, 52.0  # margins for texts
_WORDS = 200.0  # space after the bars of members, also on phones
_MARGIN = 10.0
_ENOUGH_TICKS = 2
_SHORTEST_AXIS = 0.3  # in powers of ten
_MOST_CLIQUES = 40
_GRAPH_MARGIN = 8.0
_PADDING = 6.0  # letters in browsers are slightly wider than in the layout
_KINDS = {1: "for", -1: "against", 0: "either"}
_TREE_WIDTH, _NARROWEST = 720.0, 90.0  # pixels, of a level
_HEIGHT_A_LEAF = 16.0
_LEAST_HEIGHT, _MOST_HEIGHT = 96.0, 1600.0
_LINE = 13.0  # the height of a name
_LETTER = 7.6  # the width of a wide letter such as n
_MOST_NODES = 3000
_THINNEST, _HAIR = 2.0, 0.5  # leaves of equal heights, and visible cells; pixels
_FEW_NODES = 40  # one table can show them
_MOST_DEPTH = 100  # of nested branches
_BINS, _SIDE = 10, 240.0  # of the plot of probabilities
_SMALLEST, _LARGEST_POINT = 2.5, 9.0


def frequency_picture(numbers: LabelNumbers, names: list[str]) -> Drawn | None:
    """Place labels by their rows, on a logarithmic axis, and F1 scores; None if fewer than two have rows.

    Labels of about equal frequency, which would be one column of points, are ordered by F1.
    """
    shown = np.flatnonzero(numbers.positive > 0)
    if len(shown) < 2:
        return None
    shown = shown[np.argsort(numbers.positive[shown], kind="stable")]
    counts, f1 = numbers.positive[shown], numbers.f1[shown]
    if counts[-1] < _BALANCED * counts[0]:
        return _ranked_picture(shown[np.argsort(f1, kind="stable")], numbers, names)
    x, y = _across(counts, counts), _down(f1)
    kept = evenly(len(shown), _MOST_POINTS)
    points = [Drawn(x=x[k], y=y[k], name=names[shown[k]], n_rows=counts[k], f1=f1[k]) for k in kept.tolist()]
    ticks = _round_counts(math.ceil(counts[0]), int(counts[-1])) if counts[-1] >= 1 else []
    x_ticks = list(zip(_across(np.array(ticks), counts), [f"{count:,}" for count in ticks], strict=True))
    y_ticks = list(zip(_down(np.array([0.0, 0.5, 1.0])), ("0", "0.5", "1"), strict=True))
    edges = {"left": _LEFT, "right": _WIDTH - _RIGHT, "top": _TOP, "bottom": _HEIGHT - _BOTTOM}
    parts = {"x_ticks": x_ticks, "y_ticks": y_ticks, "median": _running_median(x, y), "is_ranked": False}
    omitted = len(shown) - len(kept)
    return Drawn(width=_WIDTH, height=_HEIGHT, points=points, omitted=omitted, **edges, **parts)


def reliability_picture(truth: LabelMatrix, probabilities: RowsByLabels | None) -> Drawn | None:
    """Place bins of relevant probabilities by their mean and the observed share; None without probabilities.

    A point's area grows with the entries of its bin.
    """
    if probabilities is None:
        return None
    bins = calibration_bins(truth, probabilities, _BINS, CALIBRATION_FROM).sum(axis=1)
    counts, announced, positives = bins[:, bins[0] > 0]
    if not len(counts):
        return None
    side, shares = _SIDE - 2 * _MARGIN, (announced / counts, positives / counts)
    x, y = _LEFT + _MARGIN + shares[0] * side, _TOP + _MARGIN + (1 - shares[1]) * side
    radii = np.maximum(_SMALLEST, _LARGEST_POINT * np.sqrt(counts / counts.max()))
    columns = [column.tolist() for column in (x.round(1), y.round(1), radii.round(1), counts, *shares)]
    fields = ("x", "y", "radius", "count", "announced", "observed")
    points = [Drawn(**dict(zip(fields, values, strict=True))) for values in zip(*columns, strict=True)]
    ticks = [(round(place * side + _MARGIN, 1), f"{place:g}") for place in (0.0, 0.25, 0.5, 0.75, 1.0)]
    size = {"width": _LEFT + _SIDE + _RIGHT, "height": _TOP + _SIDE + _BOTTOM}
    return Drawn(points=points, ticks=ticks, left=_LEFT, top=_TOP, side=_SIDE, margin=_MARGIN,
                 least=CALIBRATION_FROM, n_entries=int(counts.sum()), **size)  # fmt: skip


def evenly(count: int, most: int) -> Array:
    """Choose at most ``most`` of ``count`` things, at even steps."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(np.intp))


def _bars(left: float, scale: float, bars: Iterable[tuple[str, str, str, float, str]], **more: Any) -> Drawn:
    """Place one bar per line: its name on the left, its text, a kind, a value, and a longer text."""
    drawn = []
    for k, (name, words, kind, value, whole) in enumerate(bars):
        place = {"y": _TOP + k * _BAR, "width": round(scale * value, 1)}
        drawn.append(Drawn(name=name, words=words, kind=kind, whole=whole, **place))
    height = 2 * _TOP + len(drawn) * _BAR
    return Drawn(bars=drawn, width=_WIDTH, height=height, left=left, bar=_BAR, is_ranked=True, **more)


def _ranked_picture(shown: Array, numbers: LabelNumbers, names: list[str]) -> Drawn:
    """Place one bar per label in ascending order of F1 score, with names where they fit."""
    kept, counts = shown[evenly(len(shown), _MOST_BARS)].tolist(), numbers.positive[shown]
    longest = max(letters_across(names[label]) for label in kept)
    left = float(_PHONE_LETTER * min(longest, _LONGEST_NAME) + 2 * _MARGIN)
    bars = []
    for label in kept:
        f1, rows = float(numbers.f1[label]), count_words(numbers.positive[label])
        text, whole = shortened(names[label], _LONGEST_NAME), f"{names[label]}: {rows} rows, F1 {f1:.2f}"
        bars.append((text, f"{f1:.2f}", "for", f1, whole))
    more = {"omitted": len(shown) - len(kept), "between": (float(counts.min()), float(counts.max()))}
    return _bars(left, _WIDTH - left - _RIGHT - 5 * _PHONE_LETTER, bars, **more)


def combination_picture(found: Any) -> Drawn | None:
    """Place one bar per member of an automatic model, and one of the combination; None for other models."""
    if found is None:
        return None
    bars = []
    for one in found.members:
        loss, kind = one["oof_loss"], "for" if one["weight"] > 0 else "unused"
        bars.append((one["name"], f"{loss:.3f}, weight {one['weight']:.2f}", kind, loss, ""))
    bars.append(("combination", f"{found.loss:.3f}", "against", found.loss, ""))
    left = max(2 * _LEFT, 16 + _PHONE_LETTER * max(len(one["name"]) for one in found.members))
    scale = (_WIDTH - left - _WORDS) / max(*(bar[3] for bar in bars), 1e-9)
    return _bars(left, scale, bars, facts=found)


def _across(counts: Array, all_counts: Array) -> list[float]:
    low, high = np.log10(all_counts.min()), np.log10(all_counts.max())
    share = (np.log10(counts) - low) / max(high - low, _SHORTEST_AXIS)
    places = _LEFT + _MARGIN + share * (_WIDTH - _LEFT - _RIGHT - 2 * _MARGIN)
    return [float(place) for place in places.round(1)]


def _down(f1: Array) -> list[float]:
    places = _HEIGHT - _BOTTOM - _MARGIN - f1 * (_HEIGHT - _TOP - _BOTTOM - 2 * _MARGIN)
    return [float(place) for place in places.round(1)]


def _round_counts(low: int, high: int) -> list[int]:
    """Return ticks of the axis: powers of ten, or finer ones if these are few."""
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        powers = range(int(math.log10(low)), int(math.log10(high)) + 1)
        chosen = [round(step * 10**power) for power in powers for step in steps]
        inside = [count for count in dict.fromkeys(chosen) if low <= count <= high]
        if len(inside) >= _ENOUGH_TICKS:
            return inside
    return sorted({low, high})


def _running_median(x: list[float], y: list[float]) -> list[tuple[float, float]]:
    if len(x) < _ENOUGH_FOR_MEDIAN:
        return []
    groups = zip(np.array_split(x, _GROUPS), np.array_split(y, _GROUPS), strict=True)
    return [(round(float(np.median(a)), 1), round(float(np.median(b)), 1)) for a, b in groups]


def correlation_picture(correlations: LabelsByLabels, names: list[str]) -> Drawn:
    """Place the correlations of the most related labels, clustered.

    The strongest color is that of the largest correlation between different labels.
    """
    related = (correlations**2).sum(axis=1).round(_DECIMALS)
    chosen = np.sort(np.argsort(-related, kind="stable")[:_MOST_SHOWN])
    part = correlations[np.ix_(chosen, chosen)]
    order = cluster_order(part)
    ordered = np.round(part[np.ix_(order, order)], 2)
    pairs = np.argwhere(ordered != 0).tolist()
    squares = [Drawn(row=row, column=column, value=ordered[row, column]) for row, column in pairs]
    between = float(np.abs(ordered - np.diag(ordered.diagonal())).max())
    shown = [names[chosen[k]] for k in order]
    return Drawn(names=shown, squares=squares, n_labels=len(correlations), strongest=between or 1.0)


def graph_picture(graph: CliqueGraph, names: list[str]) -> Drawn | None:
    """Place the strongest cliques; None without cliques or networkx.

    Cliques of more than two labels are points, hubs.
    """
    if not graph.n_cliques:
        return None
    try:
        drawing = graph_drawing(strongest(graph, _MOST_CLIQUES), names)
    except ImportError:  # the table next to the plot has the same content
        return None
    width, height = drawing.size + 2 * _GRAPH_MARGIN
    x, y = (drawing.places + _GRAPH_MARGIN).round(1).T
    places = list(zip(x.tolist(), (height - y).round(1).tolist(), strict=True))
    lines = _lines(drawing, places, names)
    kinds = [kind for kind in _KINDS.values() if any(line.kind == kind for line in lines)]
    size = {"width": round(float(width), 1), "height": round(float(height), 1), "font": drawing.font}
    parts = {"names": _names(drawing, places, names), "lines": lines, "hubs": places[len(drawing.labels) :]}
    return Drawn(n_shown=drawing.graph.n_cliques, n_cliques=graph.n_cliques, kinds=kinds, **size, **parts)


def _names(drawing: GraphDrawing, places: list[tuple[float, float]], names: list[str]) -> list[Drawn]:
    parts = zip(drawing.labels, drawing.texts, places, drawing.boxes.round(1).tolist(), strict=False)
    return [
        Drawn(x=x, y=y, width=round(width + _PADDING, 1), height=height, text=text, whole=names[label])
        for label, text, (x, y), (width, height) in parts
    ]


def _lines(drawing: GraphDrawing, places: list[tuple[float, float]], names: list[str]) -> list[Drawn]:
    graph = drawing.graph
    widths = line_widths(graph).round(1)
    signs = np.zeros(graph.n_cliques, np.int8) if graph.signs is None else graph.signs
    found = []
    for (one, other), clique in drawing.lines:
        words = ", ".join(names[label] for label in graph.cliques[clique])
        if graph.weights is not None:
            words += f": weight {graph.weights[clique]:.3g}"
        (x1, y1), (x2, y2), kind = places[one], places[other], _KINDS[int(signs[clique])]
        found.append(Drawn(x1=x1, y1=y1, x2=x2, y2=y2, width=widths[clique], kind=kind, words=words))
    return found


def tree_picture(taxonomy: Taxonomy, nodes: list[NodeNumbers]) -> Drawn | None:
    """Place the nodes, each under its rarest parent, the tallest of many; None without levels."""
    if max(node.depth for node in nodes) == 0:
        return None
    tree = rarest_parents(taxonomy, _rows_of(nodes))
    of_name = dict(zip(taxonomy.nodes, nodes, strict=True))
    ordered, names = [of_name[name] for name in tree.nodes], tail_names(tree)
    rows, n_leaves = _rows_of(ordered), len(tree.leaves)
    height = float(np.clip(_HEIGHT_A_LEAF * n_leaves, _LEAST_HEIGHT, _MOST_HEIGHT))
    by_rows = bool(height < _THINNEST * n_leaves and rows[tree.is_leaf(tree.nodes)].any())
    whole = icicle_of(tree, rows if by_rows else None)
    places = whole.upper(int(_TREE_WIDTH / _NARROWEST))
    wide = _TREE_WIDTH / places.n_columns
    left, top, tall = places.columns * wide, height * places.top, height * (places.bottom - places.top)
    boxes = np.column_stack([left, top, np.full(len(left), wide), tall])
    shown = np.sort(np.argsort(-tall, kind="stable")[:_MOST_NODES])
    shown = shown[tall[shown] >= min(_HAIR, tall.max())]
    cells = [_cell(ordered[places.nodes[k]], names[places.nodes[k]], boxes[k]) for k in shown]
    several = sum(len(above) > 1 for above in taxonomy.parents.values())
    counts = {"omitted": len(places.nodes) - len(cells), "several": several, "by_rows": by_rows}
    levels = {"n_levels": whole.n_columns, "n_shown": places.n_columns}
    return Drawn(cells=cells, width=_TREE_WIDTH, height=height, **counts, **levels)


def _rows_of(nodes: list[NodeNumbers]) -> Floats:
    return np.array([node.positive for node in nodes], np.float64)


class Branch(NamedTuple):
    """A node with its descendants.

    others: its other parents.
    """

    node: NodeNumbers
    below: list[Branch]
    others: list[str]


def tree_branches(taxonomy: Taxonomy, nodes: list[NodeNumbers]) -> list[Branch]:
    """Nest the nodes of a large hierarchy, each under its rarest parent, those with most missed first."""
    if len(nodes) <= _FEW_NODES or max(node.depth for node in nodes) > _MOST_DEPTH:
        return []
    tree = rarest_parents(taxonomy, _rows_of(nodes))
    of_name = {node.name: node for node in nodes}
    found: dict[str, Branch] = {}
    for name in reversed(tree.nodes):  # descendants first
        below = sorted((found[child] for child in tree.children(name)), key=_most_missed)
        others = [up for up in taxonomy.parents.get(name, ()) if up not in tree.parents[name]]
        found[name] = Branch(of_name[name], below, others)
    return sorted((found[name] for name in tree.roots), key=_most_missed)


def _most_missed(branch: Branch) -> tuple[float, float, str]:
    return -branch.node.missed, -branch.node.positive, branch.node.name


def _cell(node: NodeNumbers, name: str, box: Array) -> Drawn:
    """Place a node with its name, if it fits, and the share that was predicted elsewhere."""
    text, (x, y, width, height) = "", (round(float(part), 1) for part in box)
    if box[3] >= _LINE:
        letters = int(box[2] / _LETTER * len(name) / max(1.0, letters_across(name))) - 1
        text = shortened(name, max(1, letters))
    words = f"{node.name}: {count_words(node.missed)} of {count_words(node.positive)} predicted elsewhere"
    return Drawn(x=x, y=y, width=width, height=height, text=text, words=words, missed=1.0 - node.recall)
