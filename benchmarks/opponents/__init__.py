"""Methods that the papers compare with: label codes, label dependence, quoted methods, a ranking (WSABIE)."""

from benchmarks.opponents.label_dependency import LEAD, MMOC, PLEM
from benchmarks.opponents.label_space import BCS, CPLST, PLST
from benchmarks.opponents.quoted_methods import LSG21, MLF, MLLS, MLRF
from benchmarks.opponents.wsabie import WSABIE

__all__ = ["BCS", "CPLST", "LEAD", "LSG21", "MLF", "MLLS", "MLRF", "MMOC", "PLEM", "PLST", "WSABIE"]
