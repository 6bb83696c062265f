"""Optimization algorithms, independent of labels, trees and scikit-learn."""

from labelweave.solvers.alternating_directions import AlternatingDirections as AlternatingDirections
from labelweave.solvers.block_ascent import BlockAscent as BlockAscent
from labelweave.solvers.dual_coordinate_ascent import DualCoordinateAscent as DualCoordinateAscent
from labelweave.solvers.frame import Round as Round
from labelweave.solvers.frame import Solver as Solver
from labelweave.solvers.frame import SolverResult as SolverResult
from labelweave.solvers.frame import State as State
from labelweave.solvers.frame import Status as Status
from labelweave.solvers.frame import TraceRecord as TraceRecord
from labelweave.solvers.pruned_ascent import PrunedAscent as PrunedAscent
from labelweave.solvers.working_set_ascent import WorkingSetAscent as WorkingSetAscent
