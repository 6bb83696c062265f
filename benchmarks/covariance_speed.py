"""What a label covariance costs: labelweave with a dense R beside LIBLINEAR, which cannot use one.

R is the correlation matrix of the training labels, shrunk half way to the
identity.  labelweave fits to a relative duality gap of its own problem;
LIBLINEAR solves the independent problem at the tolerance that reaches the same
gap there (``benchmarks.linear_speed`` shows which one that is).  The programs
take turns, and the median of the rounds is printed.

Example: ``python -m benchmarks.covariance_speed --problem rcv1``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.machine import describe_machine
from benchmarks.needed_data import needs_data
from benchmarks.peers.exchange import PeerProblem, write_problem
from benchmarks.problems import DEFAULT_DATA, load_problem
from benchmarks.programs import PROGRAMS, Session
from benchmarks.results_file import write_json

__all__ = ["label_correlation", "main"]


@needs_data
def main() -> None:
    """Measure, print and write the results."""
    arguments = _parse_arguments()
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


def label_correlation(Y: sp.csr_array) -> Any:
    """Correlate the labels.

    Parameters
    ----------
    Y : csr_array of shape (n, L)
        Labels 0/1, each with both values.

    Returns
    -------
    ndarray of shape (L, L)
        The correlation matrix.
    """
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


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problem", default="rcv1")
    parser.add_argument("--penalty", type=float, default=1.0, help="LIBLINEAR's -c, twice labelweave's C")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--peer-tolerance", type=float, default=0.05, help="LIBLINEAR's -e")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
