"""scikit-learn's ``OneVsRestClassifier(LinearSVC(loss="hinge"))``, as a user would write it.

Timed: the whole of ``fit``, which converts X to LIBLINEAR's nodes again for each label.
``intercept_scaling=1`` makes the bias a penalized weight of a constant feature.
"""

import time

import numpy as np
import numpy.typing as npt
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from benchmarks.peers.exchange import PeerProblem, Solution, Trainer, serve

_MAX_PASSES = 10_000


def _weights(model: OneVsRestClassifier) -> npt.NDArray[np.float64]:
    columns = [np.append(one.coef_.ravel(), one.intercept_) for one in model.estimators_]
    return np.stack(columns, axis=1)


@serve
def prepare(problem: PeerProblem) -> Trainer:
    # scikit-learn 1.9's LabelBinarizer mixes up labels beyond 127 when they are int8
    labels = problem.Y.astype(np.int64)

    def train(tolerance: float) -> Solution:
        machine = LinearSVC(
            loss="hinge",
            C=problem.penalty,
            tol=tolerance,
            intercept_scaling=1.0,
            max_iter=_MAX_PASSES,
            random_state=0,
        )
        start = time.perf_counter()
        model = OneVsRestClassifier(machine, n_jobs=problem.threads).fit(problem.X, labels)
        seconds = time.perf_counter() - start
        passes = max(int(one.n_iter_) for one in model.estimators_)
        return Solution(tolerance, seconds, _weights(model), iterations=passes)

    return train
