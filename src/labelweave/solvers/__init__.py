"""Algorithms.  They know nothing of labels, trees or scikit-learn."""

from labelweave.solvers.dual_coordinate_ascent import BoxDual, DualCoordinateAscent
from labelweave.solvers.result import SolverResult, Status
from labelweave.solvers.trace import TraceRecord

__all__ = ["BoxDual", "DualCoordinateAscent", "SolverResult", "Status", "TraceRecord"]
