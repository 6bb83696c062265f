"""Methods that the papers compare with: label codes (PLST, CPLST, BCS), and a ranking (WSABIE)."""

from benchmarks.opponents.label_space import BCS, CPLST, PLST
from benchmarks.opponents.wsabie import WSABIE

__all__ = ["BCS", "CPLST", "PLST", "WSABIE"]
