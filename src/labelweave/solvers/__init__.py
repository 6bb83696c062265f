"""Algorithms.  They know nothing of labels, trees or scikit-learn."""

from labelweave.solvers.alternating_directions import AlternatingDirections, SplitState
from labelweave.solvers.block_ascent import BlockAscent, BlockDual
from labelweave.solvers.box_dual import SplitDual
from labelweave.solvers.dual_coordinate_ascent import BoxDual, DualCoordinateAscent
from labelweave.solvers.frame import Round, Solver, SolverResult, State, Status, TraceRecord
from labelweave.solvers.working_set_ascent import WorkingSetAscent, WorkingSetDual

__all__ = [
    "AlternatingDirections",
    "BlockAscent",
    "BlockDual",
    "BoxDual",
    "DualCoordinateAscent",
    "Round",
    "Solver",
    "SolverResult",
    "SplitDual",
    "SplitState",
    "State",
    "Status",
    "TraceRecord",
    "WorkingSetAscent",
    "WorkingSetDual",
]
