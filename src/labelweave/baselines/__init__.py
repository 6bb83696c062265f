"""The methods that low-rank multi-label learning is compared with (Yu et al. 2014, section 5)."""

from labelweave.baselines.binary_relevance import BinaryRelevance
from labelweave.baselines.label_space import CPLST, PLST
from labelweave.baselines.wsabie import WSABIE

__all__ = ["CPLST", "PLST", "WSABIE", "BinaryRelevance"]
