"""LIBSVM's C-SVC with the RBF kernel (``-s 0 -t 2``), one label after another.

Timed: the calls of the C function ``svm_train``, which computes the kernel again for every label.  Not timed:
the conversion of X to LIBSVM's nodes, which is done once, the change of y between labels, and the copy of the
coefficients out of the C model.  The cache for kernel rows has the memory that the problem grants (``-m``).

The C code tells its dual value and its number of steps as text, which goes to a
function instead of the screen.

References: Chang, Lin (2011), LIBSVM: A library for support vector machines.
"""

import re
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from libsvm import svm as library

from benchmarks.peers.exchange import PeerProblem, Solution, Trainer, serve

_OBJECTIVE = re.compile(rb"obj = (\S+),")
_STEPS = re.compile(rb"#iter = (\d+)")


def _parameters(problem: PeerProblem, tolerance: float) -> Any:
    return library.svm_parameter(
        f"-s 0 -t 2 -c {problem.penalty!r} -g {problem.gamma!r} -e {tolerance!r} "
        f"-m {problem.kernel_megabytes!r}"
    )


def _train_label(nodes: Any, parameters: Any, coefficients: npt.NDArray[np.float64]) -> float:
    start = time.perf_counter()
    trained = library.libsvm.svm_train(nodes, parameters)
    seconds = time.perf_counter() - start
    model = library.toPyModel(trained)
    # the first label that the rows show counts as the positive one
    sign = float(model.get_labels()[0])
    support = np.array(model.get_sv_indices(), dtype=np.intp) - 1
    if len(support):
        coefficients[support] = sign * np.ctypeslib.as_array(model.sv_coef[0], support.shape)
    coefficients[-1] = -sign * model.rho[0]
    return seconds


@serve
def prepare(problem: PeerProblem, _: str) -> Trainer:
    """Convert the features once; the function returned trains all labels at a tolerance."""
    n_rows, n_labels = problem.Y.shape
    columns = problem.Y.toarray()
    nodes = library.svm_problem(np.ones(n_rows), sp.csr_matrix(problem.X, dtype=np.float64))
    targets = np.ctypeslib.as_array(nodes.y, (n_rows,))

    def train(tolerance: float) -> Solution:
        text: list[bytes] = []
        listener = library.PRINT_STRING_FUN(text.append)
        parameters = _parameters(problem, tolerance)
        library.libsvm.svm_set_print_string_function(listener)
        coefficients = np.zeros((n_rows + 1, n_labels))
        seconds = 0.0
        for label in range(n_labels):
            targets[:] = np.where(columns[:, label] > 0, 1.0, -1.0)
            seconds += _train_label(nodes, parameters, coefficients[:, label])
        told = b"".join(text)
        dual = -sum(float(value) for value in _OBJECTIVE.findall(told))
        steps = sum(int(count) for count in _STEPS.findall(told))
        return Solution(seconds, coefficients, dual=dual, iterations=steps)

    return train
