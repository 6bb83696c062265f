"""scikit-learn's ``SVC(kernel="rbf")`` on the features, one label after another.

Timed: the calls of ``fit``.  scikit-learn carries a copy of LIBSVM that computes dense dot products with
BLAS.  The cache for kernel rows has the memory that the problem grants.
"""

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC

from benchmarks.peers.exchange import PeerProblem, Solution, Trainer, serve


def train_labels(machine: SVC, X: Any, Y: Any) -> Solution:
    labels = Y.toarray()
    coefficients = np.zeros((labels.shape[0] + 1, labels.shape[1]))
    seconds, steps = 0.0, 0
    for label, column in enumerate(labels.T):
        start = time.perf_counter()
        machine.fit(X, column)
        seconds += time.perf_counter() - start
        found = machine.dual_coef_  # sparse when X is
        coefficients[machine.support_, label] = (found.toarray() if sp.issparse(found) else found)[0]
        coefficients[-1, label] = machine.intercept_[0]
        steps += int(np.sum(machine.n_iter_))
    return Solution(machine.tol, seconds, coefficients, iterations=steps)


@serve
def prepare(problem: PeerProblem) -> Trainer:
    def train(tolerance: float) -> Solution:
        machine = SVC(
            C=problem.penalty, gamma=problem.gamma, tol=tolerance, cache_size=problem.kernel_megabytes
        )
        return train_labels(machine, problem.X, problem.Y)

    return train
