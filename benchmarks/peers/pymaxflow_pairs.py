"""PyMaxflow on attractive problems of label pairs: the best labels are a minimum cut.

In ``sum_k h_k y_k + sum w (2 y_a - 1)(2 y_b - 1)`` with w >= 0 a pair loses 2 w if its labels differ, an edge
of that capacity in either direction.  Timed: making the graph from arrays, the cut, and reading the labels.

Reference: Boykov and Kolmogorov (2004), An experimental comparison of min-cut/max-flow algorithms for energy
minimization in vision.
"""

import time
from typing import Any

import maxflow
import numpy as np

from benchmarks.peers.exchange import Arrays, answer


def _cut(unary: Any, ends: Any, weights: Any) -> Any:
    graph = maxflow.Graph[float](len(unary), len(weights))
    nodes = graph.add_nodes(len(unary))
    graph.add_edges(ends[:, 0], ends[:, 1], 2.0 * weights, 2.0 * weights)
    # nodes cut off from the source pay the first capacity, and get label 0
    graph.add_grid_tedges(nodes, np.maximum(unary, 0.0), np.maximum(-unary, 0.0))
    graph.maxflow()
    return ~graph.get_grid_segments(nodes)


def _score(labels: Any, unary: Any, weights: Any, ends: Any) -> float:
    signs = np.where(labels, 1.0, -1.0)
    return float(unary[labels].sum() + weights @ (signs[ends[:, 0]] * signs[ends[:, 1]]))


@answer
def main(given: Arrays, _: str) -> Arrays:
    unary, ends, pairs = given["unary"], given["ends"], given["pairs"]
    seconds = []
    for _ in range(int(given["repeats"])):
        begin = time.perf_counter()
        labels = [_cut(own, ends, weights) for own, weights in zip(unary, pairs, strict=True)]
        seconds.append(time.perf_counter() - begin)
    values = [_score(*row, ends) for row in zip(labels, unary, pairs, strict=True)]
    return {"values": np.array(values), "seconds": min(seconds)}
