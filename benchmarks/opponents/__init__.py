"""Methods that the papers compare with: codes of labels (PLST, CPLST, BCS), and a ranking (WSABIE)."""

from benchmarks.opponents.label_space import BCS, CPLST, PLST
from benchmarks.opponents.wsabie import WSABIE

__all__ = ["BCS", "CPLST", "PLST", "WSABIE"]
