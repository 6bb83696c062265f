"""The cost of a label covariance: labelweave with a dense R, and LIBLINEAR, which cannot use one.

R is the correlation matrix of the training labels, shrunk half way to the identity. labelweave fits to a
relative duality gap of its own problem; LIBLINEAR solves the independent problem at the tolerance that
reaches the same gap there (``benchmarks.linear_speed`` shows which).  The programs alternate, and the median
of the rounds is printed.

Example: ``python -m benchmarks.covariance_speed --problem rcv1``.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.frame import command, flag, write_json
from benchmarks.machine import describe_machine
from benchmarks.peers.exchange import PeerProblem, write_problem
from benchmarks.problems import DEFAULT_DATA, load_problem
from benchmarks.programs import PROGRAMS, Session


def label_correlation(Y: sp.csr_array) -> Any:
    positives = Y.astype(np.float64)
    n = positives.shape[0]
    mean = np.asarray(positives.sum(axis=0)).ravel() / n
    covariance = (positives.T @ positives).toarray() / n - np.outer(mean, mean)
    scale = np.sqrt(covariance.diagonal())
    return covariance / np.outer(scale, scale)


def _fit(X: Any, Y: Any, covariance: Any, arguments: argparse.Namespace) -> tuple[float, float]:
    from labelweave import MaxMarginClassifier

    start = time.perf_counter()
    model = MaxMarginClassifier(
        C=arguments.penalty / 2, label_covariance=covariance, tol=arguments.tol, random_state=0
    ).fit(X, Y)
    return time.perf_counter() - start, model.duality_gap_


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


@command(
    problem="rcv1",
    penalty=flag(1.0, "LIBLINEAR's -c, twice labelweave's C"),
    tol=1e-3,
    peer_tolerance=flag(0.05, "LIBLINEAR's -e"),
    repeats=3,
    data=DEFAULT_DATA,
    out=flag(type=Path),
)
def main(arguments: argparse.Namespace) -> None:
    X, Y = load_problem(arguments.problem, arguments.data)
    covariances = {"identity": None, "dense": (np.eye(Y.shape[1]) + label_correlation(Y)) / 2}
    seconds: dict[str, list[float]] = {name: [] for name in (*covariances, "LIBLINEAR, identity")}
    gaps: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        write_problem(path, PeerProblem(X, Y, arguments.penalty, 1))
        session = Session(path, 1)
        for round_number in range(arguments.repeats + 1):
            for name, covariance in covariances.items():
                taken, gaps[name] = _fit(X, Y, covariance, arguments)
                if round_number:  # the first one compiles
                    seconds[name].append(taken)
            if round_number:
                answer = session.run(PROGRAMS["liblinear"], [arguments.peer_tolerance])
                seconds["LIBLINEAR, identity"].append(answer[0].seconds)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{name:22s} {median:6.2f} s   gap {gaps.get(name, float('nan')):.1e}")
    if arguments.out is not None:
        results = {**vars(arguments), **describe_machine(), "seconds": seconds, "gaps": gaps}
        write_json(arguments.out, {key: _plain(value) for key, value in results.items()})
