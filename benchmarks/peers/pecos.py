"""PECOS's dual coordinate descent for the hinge loss, all labels in one call.

The layer trainer of PECOS (``MLModel``) with one cluster that holds every label
and every row as a candidate is plain one-versus-all.  Nothing is pruned.

Timed: the C++ call, with its copy of the weights to a list of coordinates.  Not
timed: the conversion of the problem to PECOS's arrays and of the coordinates to a matrix.  PECOS reads
features in float32, keeps weights and dual variables in float64 and returns the weights in float32.

References: Yu, Zhong, Dhillon (2020), PECOS: Prediction for enormous and
correlated output spaces, arXiv:2010.05878, section 3.3.2.
"""

import time
from ctypes import byref

import numpy as np
import scipy.sparse as sp
from pecos.core import XLINEAR_SOLVERS, ScipyCoordinateSparseAllocator, clib
from pecos.xmc import MLProblem

from benchmarks.peers.exchange import PeerProblem, Solution, Trainer, serve

_MAX_PASSES = 10_000


def _train_layer(
    converted: MLProblem, coordinates: ScipyCoordinateSparseAllocator, problem: PeerProblem, tolerance: float
) -> None:
    """Call the C++ trainer as ``clib.xlinear_single_layer_train`` does, without its conversion afterwards."""
    threshold, max_nonzeros, bias = 0.0, 0, 1.0
    clib.clib_float32.c_xlinear_single_layer_train_csr_f32(
        byref(converted.pX), byref(converted.pY), byref(converted.pC), byref(converted.pM), None,
        coordinates.cfunc, threshold, max_nonzeros, XLINEAR_SOLVERS["L2R_L1LOSS_SVC_DUAL"],
        problem.penalty, problem.penalty, _MAX_PASSES, tolerance, bias, problem.threads,
    )  # fmt: skip


@serve
def prepare(problem: PeerProblem, _: str) -> Trainer:
    """Convert the problem once; the function returned trains all labels at a tolerance."""
    converted = MLProblem(
        sp.csr_matrix(problem.X, dtype=np.float32), sp.csr_matrix(problem.Y, dtype=np.float32)
    )

    def train(tolerance: float) -> Solution:
        coordinates = ScipyCoordinateSparseAllocator(dtype=np.float32)
        start = time.perf_counter()
        _train_layer(converted, coordinates, problem, tolerance)
        seconds = time.perf_counter() - start
        return Solution(seconds, coordinates.tocsc().toarray())

    return train
