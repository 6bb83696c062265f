"""User-defined features of cliques: ``F(y, x) = sum_k h_k^T x y_k + sum_c v_c(state of c)^T phi_c(x)``.

The joint features ``Psi_c(y^c, x)`` of Tan et al. 2015, equation 2, are the unit vector of the clique's
state, times features phi_c of the row that may be different for each clique (section 4.5, where all cliques
have the same).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array
from labelweave.model_files.storable import OwnParameters

Blocks = Mapping[tuple[int, ...], slice]


class CliqueFeatures(OwnParameters, ABC):
    """Features of rows for a clique, which its weights multiply instead of the model's features.

    Subclass it for ``inputs=`` of :class:`LabelGraphClassifier`.  Model files never hold code: a
    class that is registered with ``@storable`` is stored by name, and others are refused.
    """

    @abstractmethod
    def of(self, X: Any, clique: tuple[int, ...]) -> Any:
        """Return the features of rows for a clique.

        Parameters
        ----------
        X : ndarray or CSR array of shape (n, d)
            Some rows, as the model sees them: scaled where it scales, without a constant feature.
        clique : tuple of int
            The numbers of the labels, in increasing order.

        Returns
        -------
        {array-like, sparse matrix} of shape (n, p)
            Finite numbers, with the same p for every clique; a row's depend on that row alone.  Weights have
            no intercept; return a column of ones for one.
        """


def features_of_cliques(
    given: CliqueFeatures,
    features: FeatureMatrix,
    cliques: Sequence[tuple[int, ...]],
    width: int | None = None,
) -> list[FeatureMatrix]:
    """Return the user's features of each clique; ``width`` is their number, None for any."""
    found = []
    for clique in cliques:
        own = FeatureMatrix(given.of(features.data, clique)).astype(np.float64)
        width = width or own.shape[1]
        if own.shape != (len(features), width):
            raise ValueError(
                f"CliqueFeatures have shape {own.shape} for labels {clique}; return {len(features)} rows, "
                f"one for each of X, and {width} columns for every clique."
            )
        found.append(own)
    return found


def joined_features(
    inputs: FeatureMatrix, own: Sequence[FeatureMatrix], cliques: Sequence[tuple[int, ...]]
) -> tuple[FeatureMatrix, Blocks]:
    """Append the features of each clique to those of labels.

    Also returns their columns, those of labels for ``()``.
    """
    parts = [inputs, *own]
    ends = np.cumsum([0, *(part.shape[1] for part in parts)]).tolist()
    spans = map(slice, ends[:-1], ends[1:])
    is_sparse = any(part.is_sparse for part in parts)
    tables = [sp.csr_array(part.data) if is_sparse else part.data for part in parts]
    joined = sp.hstack(tables, format="csr") if is_sparse else np.hstack(tables)
    return FeatureMatrix(joined), dict(zip([(), *cliques], spans, strict=True))


def column_masks(n_features: int, blocks: Blocks, parts: Sequence[tuple[int, ...]]) -> Array:
    """Return which features (d, columns) the weights of each column multiply."""
    masks = np.zeros((n_features, len(parts)))
    for column, part in enumerate(parts):
        masks[blocks[part], column] = 1.0
    return masks


def column_squares(features: FeatureMatrix, blocks: Blocks, parts: Sequence[tuple[int, ...]]) -> Array:
    """Return the share (n, columns) of each column's features in the squared norms of the rows."""
    known = {part: FeatureMatrix(features.data[:, blocks[part]]).squared_norms() for part in set(parts)}
    total = np.maximum(features.squared_norms(), np.finfo(np.float64).tiny)
    return np.stack([known[part] / total for part in parts], axis=1)
