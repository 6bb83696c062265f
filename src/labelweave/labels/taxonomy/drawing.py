"""A forest as indented text."""

from __future__ import annotations

import numpy as np

from labelweave.labels.taxonomy.forest import Forest

__all__ = ["drawn"]

_LINES = 30


def drawn(forest: Forest, most: int = _LINES) -> str:
    """Draw a forest, one node a line, the upper levels first if it is large.

    most: the most nodes to draw.
    Returns the lines.  A node below which some are left out says how many.
    """
    depths = forest.depth(forest.nodes)
    shown = np.zeros(len(depths), bool)
    shown[np.argsort(depths, kind="stable")[:most]] = True
    lines = [("  " * depth + name) for depth, name in zip(depths, forest.nodes, strict=True)]
    left_out = _left_out_below(forest, shown)
    text = [
        line + (f" (+{left_out[name]})" if name in left_out else "")
        for line, name, drawn_one in zip(lines, forest.nodes, shown, strict=True)
        if drawn_one
    ]
    rest = int((~shown).sum())
    return "\n".join([*text, f"... {rest} of {len(shown)} nodes left out"] if rest else text)


def _left_out_below(forest: Forest, shown: np.ndarray) -> dict[str, int]:
    """Count the nodes left out under the lowest shown node above each."""
    carrier, counts = dict[str, str](), dict[str, int]()
    for name, is_shown in zip(forest.nodes, shown.tolist(), strict=True):
        above = forest.parent.get(name)
        carrier[name] = name if is_shown or above is None else carrier[above]
        if not is_shown and above is not None:
            counts[carrier[name]] = counts.get(carrier[name], 0) + 1
    return counts
