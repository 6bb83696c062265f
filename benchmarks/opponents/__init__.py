"""The methods that the papers compare with: PLST and CPLST (codes of the labels), and WSABIE (a ranking)."""

from benchmarks.opponents.label_space import CPLST, PLST
from benchmarks.opponents.wsabie import WSABIE

__all__ = ["CPLST", "PLST", "WSABIE"]
