"""scikit-learn's ``SVC(kernel="precomputed")``, the kernel computed once for all labels.

Timed: ``sklearn.metrics.pairwise.rbf_kernel``, once, as the shared seconds, and the calls of ``fit``.
"""

import time

from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from benchmarks.peers.exchange import PeerProblem, Solution, Trainer, serve
from benchmarks.peers.sklearn_svc import train_labels


@serve
def prepare(problem: PeerProblem) -> Trainer:
    """Compute the kernel; the function returned trains all labels at a tolerance."""
    rbf_kernel(problem.X[:10], gamma=problem.gamma)  # imports what the first call needs
    start = time.perf_counter()
    kernel = rbf_kernel(problem.X, gamma=problem.gamma)
    kernel_seconds = time.perf_counter() - start

    def train(tolerance: float) -> Solution:
        machine = SVC(
            C=problem.penalty, kernel="precomputed", tol=tolerance, cache_size=problem.kernel_megabytes
        )
        solution = train_labels(machine, kernel, problem.Y)
        solution.shared_seconds = kernel_seconds
        return solution

    return train
