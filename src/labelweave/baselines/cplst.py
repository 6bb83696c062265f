"""Conditional principal label space transformation (CPLST).

Chen and Lin, "Feature-aware label space dimension reduction for multi-label classification", NIPS 2012;
Yu et al. 2014 (LEML), section 2.1, claims 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable

from labelweave.array_types import Array
from labelweave.baselines.centered_matrix import CenteredMatrix
from labelweave.baselines.label_space_classifier import LabelSpaceClassifier
from labelweave.baselines.ridge import Ridge
from labelweave.model_files import storable

__all__ = ["CPLST"]


@storable("CPLST")
class CPLST(LabelSpaceClassifier):
    """Code the labels by the directions that the features predict best, and decode them linearly.

    The columns of H are the leading eigenvectors of ``Y^T X (X^T X + regularization I)^-1 X^T Y``, X and Y
    less their means (Chen and Lin 2012).  The codes Y H are regressed on X with the same penalty;
    predicted codes times H^T plus the means are scores, and a label is predicted where its score is above
    1/2.  The weights Z = W H^T minimise

    ``||Y - X Z||^2 + regularization ||Z||^2    subject to    rank(Z) <= rank``,

    whatever the penalty.  Without a penalty and means this is the closed form of claim 1 of Yu et al.
    (2014), V S^-1 (U^T Y)_k with X = U S V^T.

    All labels must be observed.  A sparse Y is never written out.

    Parameters
    ----------
    rank : int or float, default=100
        The number of codes, or a share of the number of labels (0 < rank <= 1.0).  One above what the
        labels can have, min(n, L), does what min(n, L) does.
    regularization : float, default=0.0
        The penalty.  With 0 the shortest of all solutions is taken where there are many.
    center : bool, default=True
        Whether to take the (weighted) means of labels and features away, which is an intercept
        without penalty; there is none without it.

    Attributes
    ----------
    feature_factors_ : ndarray of shape (d, k)
        W, a column a code.
    label_factors_ : ndarray of shape (L, k)
        H, orthonormal columns.
    intercept_ : ndarray of shape (L,)
        The intercepts of the scores.
    rank_ : int
        The number of codes k.
    threshold_ : float
        0.5; ``decision_function`` gives scores less this.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.
    n_features_in_ : int
        Features seen in fit.
    feature_names_in_ : ndarray of shape (d,)
        Their names, when X was a frame.
    converged_ : bool
        Whether the regressions are exact; only false for large X that are solved iteratively.
    status_ : {"converged", "iteration_limit"}
        Why the fit ended.

    See Also
    --------
    PLST : Codes that depend on the labels alone.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.baselines import CPLST
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = np.array([[0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]])
    >>> CPLST(rank=1).fit(X, Y).predict([[0.2], [2.9]])
    array([[0, 1, 0],
           [1, 0, 0]])
    """

    def _label_product(
        self, targets: CenteredMatrix, inputs: CenteredMatrix, ridge: Ridge
    ) -> Callable[[Array], Array]:
        return lambda vectors: targets.rmatmul(inputs.matmul(ridge.solve(targets.matmul(vectors))))
