"""LIBLINEAR's dual coordinate descent for the hinge loss (``-s 3 -B 1``), one label after another.

Timed: the calls of the C function ``train``.  Not timed: the conversion of X to LIBLINEAR's nodes, which is
done once, the change of y between labels, and the copy of the weights out of the C model.

The C code prints its dual value and its number of passes, and stops a label after 300 passes whatever the
tolerance; the text is read back from a file that stands in for the standard output during a call.  The order
of the examples comes from C's ``rand``, never seeded: it is the same for the same series of tolerances in a
fresh process.

References: Hsieh, Chang, Lin, Keerthi, Sundararajan (2008), A dual coordinate
descent method for large-scale linear SVM, Algorithm 3.
"""

import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from liblinear import liblinear as library

from benchmarks.peers.exchange import PeerProblem, Solution, Trainer, serve

_OBJECTIVE = re.compile(rb"Objective value = (\S+)")
_PASSES = re.compile(rb"#iter = (\d+)")


def _set_targets(targets: npt.NDArray[np.float64], columns: Any, label: int) -> None:
    targets[:] = -1.0
    targets[columns.indices[columns.indptr[label] : columns.indptr[label + 1]]] = 1.0


def _train_label(nodes: Any, parameters: Any, weights: npt.NDArray[np.float64]) -> float:
    start = time.perf_counter()
    model = library.liblinear.train(nodes, parameters)
    seconds = time.perf_counter() - start
    trained = library.toPyModel(model)
    weights[:] = np.ctypeslib.as_array(trained.w, weights.shape)
    return seconds


@contextmanager
def _standard_output_to_file() -> Iterator[BinaryIO]:
    """Redirect file descriptor 1 to a temporary file: C code bypasses ``sys.stdout``."""
    kept = os.dup(1)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 1)
        try:
            yield log
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def _read_all(log: BinaryIO) -> bytes:
    log.seek(0)
    return log.read()


@serve
def prepare(problem: PeerProblem, _: str) -> Trainer:
    """Convert the features once; the function returned trains all labels at a tolerance."""
    n_rows, n_labels = problem.Y.shape
    columns = problem.Y.tocsc()
    features = sp.csr_matrix(problem.X, dtype=np.float64)
    nodes = library.problem(np.ones(n_rows), features, bias=1.0)
    targets = np.ctypeslib.as_array(nodes.y, (n_rows,))

    def train(tolerance: float) -> Solution:
        parameters = library.parameter(f"-s 3 -c {problem.penalty!r} -e {tolerance!r} -B 1")
        weights = np.empty((problem.X.shape[1] + 1, n_labels))
        seconds = 0.0
        with _standard_output_to_file() as log:
            for label in range(n_labels):
                _set_targets(targets, columns, label)
                seconds += _train_label(nodes, parameters, weights[:, label])
            text = _read_all(log)
        duals = [-float(value) for value in _OBJECTIVE.findall(text)]
        passes = max(int(count) for count in _PASSES.findall(text))
        return Solution(seconds, weights, dual=sum(duals), iterations=passes)

    return train
