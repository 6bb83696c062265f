"""The toy's errors by what section 5.2 of the label graph paper leaves open (Tan et al. 2015, Table 2).

The section draws features of 10 numbers and weights of 5, which do not go together, and scores a label by
one weight vector where its model has one a state.  The readings:

ten weights   all weights see all ten features, a label has one vector: ``datasets.make_clique_toy``
edges five    weights of the edges see five of the features
two states    a label has a vector a state, as in equation 2
both          both

Rows, penalty and the rule that ends the learning are those of ``benchmarks.papers.clique_toy``; each solve
ends at a relative duality gap of 1e-3.  Results are kept after every fit.

Example: ``python -m benchmarks.papers.clique_toy_readings``.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, read_options, several
from benchmarks.papers.graph_runs import Run, fit, make, score
from benchmarks.recorded_runs import RecordedRuns
from labelweave import LabelMatrix

_PAPER = {"none": 0.053, "Chow-Liu": 0.044, "full": 0.028, "learned": 0.011, "binary relevance": 0.054}
_READINGS = {"ten weights": (1, 10), "edges five": (1, 5), "two states": (2, 10), "both": (2, 5)}
_TRAINING_ROWS, _TEST_ROWS = 2000, 1000
_LABELS = _FEATURES = 10
_EDGES = ((0, 1), (0, 2), (0, 3), (0, 4))


def main() -> None:
    arguments = read_options(
        __doc__, seeds=3, methods=several(_PAPER), records=RESULTS / "papers" / "clique_toy_readings.json"
    )
    record = RecordedRuns(arguments, paper=_PAPER)
    for reading, method, seed in product(_READINGS, arguments.methods, range(arguments.seeds)):
        case = {"reading": reading, "method": method, "seed": seed}
        if record.wants(case):
            run = record.add(case, _measure(reading, method, seed))
            print(f"{reading}, {method}, seed {seed}: {run['hamming']:.4f}", flush=True)
    record.show(table(record.runs))


def table(runs: list[Run]) -> str:
    """Write means over the seeds, a line a method."""
    lines = [f"{'Hamming loss':18}{'paper':>8}" + "".join(f"{reading:>24}" for reading in _READINGS)]
    for method, paper in _PAPER.items():
        cells = ""
        for reading in _READINGS:
            losses = [run["hamming"] for run in runs if (run["reading"], run["method"]) == (reading, method)]
            span = f"{np.mean(losses):.3f} ({min(losses):.3f} to {max(losses):.3f})" if losses else ""
            cells += f"{span:>24}"
        lines.append(f"{method:18}{paper:8.3f}{cells}")
    return "\n".join(lines)


def _measure(reading: str, method: str, seed: int) -> Run:
    X, Y = _make_rows(*_READINGS[reading], seed)
    model = make(method, 1e-4, max_iter=500, graph_tol=0.05, random_state=seed)
    run = fit(model, X[:_TRAINING_ROWS], LabelMatrix.from_any(Y[:_TRAINING_ROWS]))
    return run | score(model, X[_TRAINING_ROWS:], LabelMatrix.from_any(Y[_TRAINING_ROWS:]))


def _make_rows(n_states: int, edge_features: int, seed: int) -> tuple[Any, Any]:
    """Draw rows and weights, and take the best of all labelings."""
    random = np.random.default_rng(seed)
    node_weights = random.normal(size=(_LABELS, n_states, _FEATURES))
    edge_weights = random.normal(size=(len(_EDGES), 2, 2, _FEATURES))
    edge_weights[..., edge_features:] = 0.0
    X = random.normal(size=(_TRAINING_ROWS + _TEST_ROWS, _FEATURES))
    # with two states only their difference decides
    of_labels = node_weights[:, 0] if n_states == 1 else node_weights[:, 1] - node_weights[:, 0]
    labelings = np.array(list(product((0, 1), repeat=_LABELS)), np.int8)
    scores = (X @ of_labels.T) @ labelings.T
    for edge, (first, second) in enumerate(_EDGES):
        states = X @ edge_weights[edge].reshape(4, _FEATURES).T
        scores += states[:, 2 * labelings[:, first] + labelings[:, second]]
    return X, labelings[scores.argmax(axis=1)]


if __name__ == "__main__":
    main()
