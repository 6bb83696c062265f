"""The cost of a label covariance: labelweave with a dense R, and LIBLINEAR, which cannot use one.

R is the correlation matrix of the training labels, shrunk half way to the identity. labelweave fits to a
relative duality gap of its own problem; LIBLINEAR solves the independent problem at the tolerance that
reaches the same gap there (``benchmarks.margin_speed`` shows which).  The programs alternate, and the median
of the rounds is printed.
"""

import time
from statistics import median
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.frame import OUT, command, save, timed
from benchmarks.margin_runs import Search
from benchmarks.peers.exchange import PeerProblem
from benchmarks.problems import load_problem
from benchmarks.programs import PROGRAMS
from labelweave import LabelCovariance, MaxMarginClassifier

_PEER_TOLERANCE = 0.05  # LIBLINEAR's -e


@command(problem="rcv1", repeats=3, out=OUT)
def main(arguments: Any) -> None:
    X, Y = load_problem(arguments.problem)
    correlations = LabelCovariance.from_labels(Y, prior_count=0.0).to_dense()
    covariances = {"identity": None, "dense": (np.eye(Y.shape[1]) + correlations) / 2}
    plain = MaxMarginClassifier(C=0.5, random_state=0)
    models = {name: clone(plain).set_params(label_covariance=own) for name, own in covariances.items()}
    for model in models.values():
        model.fit(X, Y)  # compiles
    seconds: dict[str, list[float]] = {name: [] for name in models}
    search = Search(PeerProblem(X, Y, 1.0), PROGRAMS["liblinear"])
    peer = search.at(_PEER_TOLERANCE)
    for _ in range(arguments.repeats):
        for name, model in models.items():
            seconds[name].append(timed(model.fit, X, Y, clock=time.perf_counter)[1])
        search.repeat(peer)
    seconds["LIBLINEAR, identity"] = peer.all_seconds[1:]
    gaps = {name: model.duality_gap_ for name, model in models.items()}
    for name, times in seconds.items():
        print(f"{name:22s} {median(times):6.2f} s   gap {gaps.get(name, float('nan')):.1e}")
    asked = {"problem": arguments.problem, "penalty": 1.0, "tol": 1e-3, "peer_tolerance": _PEER_TOLERANCE}
    save(arguments.out, asked | {"repeats": arguments.repeats, "seconds": seconds, "gaps": gaps})
