"""The fraction of a forest's trees that put two rows into the same leaf."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.forest import Forest, single
from labelweave.features.kernels.distances import narrow_csr
from labelweave.features.kernels.kernel import Kernel, value_type
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays.linear_algebra import HOME, as_type, empty, is_foreign, placed, to_numpy
from labelweave.model_files import storable
from labelweave.model_files.schema import Made, Maybe, count

_MOST_TREES = 100_000
_LEAF = 5  # minimum rows per leaf of random trees


@storable(
    "ForestKernel",
    {"forest": Maybe(Made(Forest)), "n_trees": count(least=1), "random_state": count(most=2**32)},
)
class ForestKernel(Kernel):
    """The fraction of trees in which two rows end in the same leaf (the proximity of Breiman 2001).

    It is the dot product of explicit sparse features, one per leaf, with the value ``1 / sqrt(trees)`` for
    the leaves of a row, and hence positive semi-definite.  Trees fitted to labels put rows with the same
    labels together, above all their own training rows: choose penalties on held-out rows.

    Parameters
    ----------
    forest : Forest or None, default=None
        The trees; None for random trees, split without labels (Geurts, Ernst and Wehenkel 2006) and grown
        on the training rows.  :meth:`of` takes a forest of scikit-learn.
    n_trees : int, default=200
        The number of random trees, at most 100,000, since all of them are stored.
    random_state : int, default=0
        Seed of the random trees.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.features import FeatureMatrix, ForestKernel
    >>> rows = FeatureMatrix(np.random.default_rng(0).normal(size=(50, 3)))
    >>> kernel = ForestKernel(n_trees=20).resolved(rows)
    >>> kernel.block(rows, rows).diagonal()[:3].tolist()
    [1.0, 1.0, 1.0]
    """

    _may_overflow = False

    def __init__(self, forest: Forest | None = None, n_trees: int = 200, random_state: int = 0) -> None:
        self.forest = forest
        self.n_trees = n_trees
        self.random_state = random_state

    @classmethod
    def of(cls, forest: Any) -> Self:
        """Use the trees of a fitted forest of scikit-learn.

        Parameters
        ----------
        forest : RandomForestClassifier, ExtraTreesRegressor, RandomTreesEmbedding or similar
            An estimator with trees in ``estimators_``, or a tree.

        Returns
        -------
        ForestKernel
            The kernel; it no longer depends on scikit-learn's estimator.
        """
        listed = getattr(forest, "estimators_", [forest])
        is_list = isinstance(listed, (list, np.ndarray)) and hasattr(forest, "estimators_")
        trees: list[Any] = np.ravel(listed).tolist() if is_list else [forest]
        if not trees or not all(hasattr(tree, "tree_") for tree in trees):
            raise ValueError(f"forest is {forest!r}; pass a fitted forest or tree of scikit-learn.")
        seen = getattr(forest, "estimators_features_", [])
        if not all(np.array_equal(own, np.arange(forest.n_features_in_)) for own in seen):
            raise ValueError("The trees of forest differ in features; pass one whose trees use all of them.")
        return cls(Forest.of_trees([tree.tree_ for tree in trees]), len(trees))

    def _check_parameters(self) -> None:
        if self.forest is not None and not isinstance(self.forest, Forest):
            raise ValueError(
                f"ForestKernel has forest={self.forest!r}; pass None, or a forest of scikit-learn through "
                "ForestKernel.of(forest)."
            )
        for name, least, most in (("n_trees", 1, _MOST_TREES), ("random_state", 0, 2**32 - 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or not least <= int(value) <= most:
                raise ValueError(
                    f"ForestKernel has {name}={value!r}; pass an integer from {least} to {most}."
                )

    def _resolved(self, features: FeatureMatrix) -> Kernel:
        if self.forest is not None:
            return copy(self)
        from sklearn.ensemble import ExtraTreesRegressor

        target = np.random.RandomState(self.random_state).uniform(size=len(features))
        trees = ExtraTreesRegressor(
            self.n_trees, max_features=1, min_samples_leaf=_LEAF, random_state=self.random_state
        )
        trees.fit(_columns(features.data) if features.is_sparse else single(features.data), target)
        kernel = type(self).of(trees)
        kernel.random_state = self.random_state
        return kernel

    def _grown(self) -> Forest:
        if self.forest is None:
            raise ValueError(
                "ForestKernel has no trees yet; call its method resolved(features) with the training rows "
                "and use what it returns, or ForestKernel.of(forest)."
            )
        return self.forest

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        forest = self._grown()
        if is_foreign(rows.data):
            return self._block_there(rows, columns)
        # counts, which are exact
        left = rows.once(("rows", forest), lambda: forest.indicators(rows.data, dtype=np.float32))
        right = left.T if rows is columns else columns.once(forest, lambda: self._turned(columns))
        values = (left @ right).toarray(order="C").astype(value_type(rows, columns), copy=False)
        values /= forest.n_trees
        return np.asarray(values)

    def _block_there(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        """Compare the leaves of one tree after the other, which are looked up here."""
        forest = self._grown()

        def leaves(part: FeatureMatrix) -> Array:
            return part.once(("leaves", forest), lambda: placed(forest.leaves(to_numpy(part.data))))

        left, right = leaves(rows), leaves(columns)
        kind = value_type(rows, columns)
        values = empty((len(rows), len(columns)), kind)
        values[...] = 0.0
        for tree in range(forest.n_trees):
            values += as_type(left[:, tree, None] == right[None, :, tree], kind)
        values /= forest.n_trees
        return values

    def _turned(self, columns: FeatureMatrix) -> sp.csr_array:
        return self._grown().indicators(columns.data, dtype=np.float32).T.tocsr()

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        self._grown()
        return np.ones(len(rows))

    def _explicit_features(self, features: FeatureMatrix) -> FeatureMatrix | None:
        forest = self._grown()
        if HOME.get() is not None:  # where they would be dense, one column per leaf
            return None
        value = 1.0 / np.sqrt(forest.n_trees)
        return FeatureMatrix(forest.indicators(features.data, value, features.data.dtype))


def _columns(csr: Any) -> Any:
    """Convert sparse rows to the form in which scikit-learn grows the same trees as on dense rows."""
    parts = single(csr.data), csr.indices, csr.indptr
    return narrow_csr(sp.csr_array(parts, shape=csr.shape)).tocsc()
