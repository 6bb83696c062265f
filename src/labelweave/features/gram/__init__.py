"""The kernel matrix of the training rows as an operator: blocks, products, a memory budget.

A constant is added to every entry for the intercept (section 3 of the M3L paper).
The matrix is stored if the memory budget allows it, written as a product of features
if that is cheaper (Seeger 2008, appendix D.3) or close to the matrix (section 7.4.3), and otherwise computed
panel by panel in every product; callers see no difference.
"""

from labelweave.features.gram.choose import choose_gram
from labelweave.features.gram.low_rank import FactorGram, LowRankGram, incomplete_cholesky
from labelweave.features.gram.stored import FeatureGram, Gram, SparseFeatureGram, StoredGram, StreamedGram

__all__ = [
    "FactorGram",
    "FeatureGram",
    "Gram",
    "LowRankGram",
    "SparseFeatureGram",
    "StoredGram",
    "StreamedGram",
    "choose_gram",
    "incomplete_cholesky",
]
