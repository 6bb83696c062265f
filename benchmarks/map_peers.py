"""Other ways to find the best labels: SciPy's integer programs, and PyMaxflow where pairs attract.

With products z of the two labels of a pair the score is linear: ``w (2 y_a - 1)(2 y_b - 1)`` is
``w (1 - 2 y_a - 2 y_b + 4 z)``, with z at most y_a and y_b and at least ``y_a + y_b - 1``.  The constraints
of a graph are made once, and only the calls of ``milp`` are timed.

PyMaxflow runs in ``.venv-peers``.  Its graph is built anew for every example, and the time counts.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks.map_problems import Floats, PairProblem

_ROOT = Path(__file__).resolve().parents[1]


def solve_by_programs(problem: PairProblem) -> tuple[Floats, Floats]:
    """Solve each example as an integer program; give scores and seconds."""
    graph, ends = problem.graph, np.array(problem.graph.cliques).reshape(-1, 2)
    n_labels, n_pairs = graph.n_labels, graph.n_cliques
    constraint = LinearConstraint(_products(ends, n_labels), -np.inf, np.repeat([0.0, 0.0, 1.0], n_pairs))
    whole = np.repeat([1, 0], [n_labels, n_pairs])
    values, seconds = [], []
    for unary, pairs in zip(problem.unary, problem.pairs, strict=True):
        gains = np.concatenate([unary, 4.0 * pairs])
        np.add.at(gains, ends.ravel(), np.repeat(-2.0 * pairs, 2))
        begin = time.perf_counter()
        found = milp(
            -gains,
            integrality=whole,
            bounds=Bounds(0, 1),
            constraints=constraint,
            options={"mip_rel_gap": 0.0, "time_limit": 60.0},
        )
        seconds.append(time.perf_counter() - begin)
        values.append(pairs.sum() - found.fun)
    return np.array(values), np.array(seconds)


def _products(ends: Any, n_labels: int) -> Any:
    """Write z - y_a <= 0, z - y_b <= 0 and y_a + y_b - z <= 1, in that order."""
    n_pairs = len(ends)
    one = sp.csr_array((np.ones(n_pairs), (np.arange(n_pairs), ends[:, 0])), (n_pairs, n_labels))
    other = sp.csr_array((np.ones(n_pairs), (np.arange(n_pairs), ends[:, 1])), (n_pairs, n_labels))
    own = sp.eye_array(n_pairs)
    return sp.csr_array(sp.block_array([[-one, own], [-other, own], [one + other, -own]]))


def solve_by_cuts(problem: PairProblem, repeats: int) -> tuple[Floats, float]:
    """Solve an attractive problem with PyMaxflow; give scores and the seconds of the fastest run."""
    with tempfile.TemporaryDirectory() as folder:
        source, answer = Path(folder) / "problem.npz", Path(folder) / "answer.json"
        ends = np.array(problem.graph.cliques)
        np.savez(source, unary=problem.unary, ends=ends, pairs=problem.pairs)
        python = _ROOT / ".venv-peers" / "bin" / "python"
        command = [str(python), "-m", "benchmarks.peers.pymaxflow_pairs", str(source), str(answer)]
        subprocess.run([*command, "--repeats", str(repeats)], check=True, cwd=_ROOT)
        found = json.loads(answer.read_text())
    return np.array(found["values"]), float(found["seconds"])
