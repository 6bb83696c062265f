"""Methods that the papers compare with: label codes, label dependence, and a ranking (WSABIE)."""

from benchmarks.opponents.label_dependency import LEAD, MMOC, PLEM
from benchmarks.opponents.label_space import BCS, CPLST, PLST
from benchmarks.opponents.wsabie import WSABIE

__all__ = ["BCS", "CPLST", "LEAD", "MMOC", "PLEM", "PLST", "WSABIE"]
