"""scikit-learn's support vector machines, as a user would write them.

- ``linear``: ``OneVsRestClassifier(LinearSVC(loss="hinge"))``.  Timed: the whole of ``fit``, which converts X
  to LIBLINEAR's nodes again for each label.  ``intercept_scaling=1`` makes the bias a penalized weight of a
  constant feature.
- ``rbf``: ``SVC(kernel="rbf")`` on the features, one label after another; timed: the calls of ``fit``.  The
  cache for kernel rows has the memory that the problem grants.  scikit-learn carries a copy of LIBSVM that
  computes dense dot products with BLAS.
- ``precomputed``: the same with the kernel computed once for all labels, by
  ``sklearn.metrics.pairwise.rbf_kernel``; timed: that, once, as the shared seconds, and the calls of ``fit``.
"""

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

from benchmarks.peers.exchange import PeerProblem, Solution, Trainer, serve

_MAX_PASSES = 10_000


def _linear(problem: PeerProblem, tolerance: float) -> Solution:
    settings = {"intercept_scaling": 1.0, "max_iter": _MAX_PASSES, "random_state": 0}
    machine = LinearSVC(loss="hinge", C=problem.penalty, tol=tolerance, **settings)
    # scikit-learn 1.9's LabelBinarizer mixes up labels beyond 127 when they are int8
    labels = problem.Y.astype(np.int64)
    start = time.perf_counter()
    model = OneVsRestClassifier(machine, n_jobs=problem.threads).fit(problem.X, labels)
    seconds = time.perf_counter() - start
    columns = [np.append(one.coef_.ravel(), one.intercept_) for one in model.estimators_]
    passes = max(int(one.n_iter_) for one in model.estimators_)
    return Solution(seconds, np.stack(columns, axis=1), iterations=passes)


def _labels(machine: SVC, X: Any, Y: Any) -> Solution:
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
    return Solution(seconds, coefficients, iterations=steps)


@serve
def prepare(problem: PeerProblem, variant: str) -> Trainer:
    def train(tolerance: float) -> Solution:
        if variant == "linear":
            return _linear(problem, tolerance)
        rows, shared = problem.X, 0.0
        if variant == "precomputed":
            rbf_kernel(problem.X[:10], gamma=problem.gamma)  # imports what the first call needs
            start = time.perf_counter()
            rows = rbf_kernel(problem.X, gamma=problem.gamma)
            shared = time.perf_counter() - start
        settings = {"kernel": variant, "gamma": problem.gamma, "cache_size": problem.kernel_megabytes}
        solution = _labels(SVC(C=problem.penalty, tol=tolerance, **settings), rows, problem.Y)
        solution.shared_seconds = shared
        return solution

    return train
