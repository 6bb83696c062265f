"""Optimization algorithms, independent of labels, trees and scikit-learn."""

from labelweave.solvers.alternating_directions import AlternatingDirections
from labelweave.solvers.block_ascent import BlockAscent
from labelweave.solvers.dual_coordinate_ascent import DualCoordinateAscent
from labelweave.solvers.frame import Round, Solver, SolverResult, State, Status, TraceRecord
from labelweave.solvers.pruned_ascent import PrunedAscent
from labelweave.solvers.working_set_ascent import WorkingSetAscent

__all__ = [
    "AlternatingDirections",
    "BlockAscent",
    "DualCoordinateAscent",
    "PrunedAscent",
    "Round",
    "Solver",
    "SolverResult",
    "State",
    "Status",
    "TraceRecord",
    "WorkingSetAscent",
]
