"""The kernel matrix of the training rows as an operator: blocks, products, a memory budget.

A constant is added to every entry for the intercept (section 3 of the M3L paper).
The matrix is stored if the memory budget allows it, written as a product of features
if that is cheaper (Seeger 2008, appendix D.3) or close to the matrix (section 7.4.3), and otherwise computed
panel by panel in every product; callers see no difference.
"""

from labelweave.features.gram.choose import choose_gram as choose_gram
from labelweave.features.gram.low_rank import FactorGram as FactorGram
from labelweave.features.gram.low_rank import LowRankGram as LowRankGram
from labelweave.features.gram.low_rank import incomplete_cholesky as incomplete_cholesky
from labelweave.features.gram.stored import FeatureGram as FeatureGram
from labelweave.features.gram.stored import Gram as Gram
from labelweave.features.gram.stored import SparseFeatureGram as SparseFeatureGram
from labelweave.features.gram.stored import StoredGram as StoredGram
from labelweave.features.gram.stored import StreamedGram as StreamedGram
