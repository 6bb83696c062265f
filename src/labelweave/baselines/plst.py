"""Principal label space transformation (PLST).

Tai and Lin, "Multilabel classification with principal label-space transformation",
Neural Computation 24 (2012).
"""

from __future__ import annotations

from collections.abc import Callable

from labelweave.array_types import Array
from labelweave.baselines.centered_matrix import CenteredMatrix
from labelweave.baselines.label_space_classifier import LabelSpaceClassifier
from labelweave.baselines.ridge import Ridge
from labelweave.model_files import storable

__all__ = ["PLST"]


@storable("PLST")
class PLST(LabelSpaceClassifier):
    """Regress the principal components of the labels on the features, and decode them linearly.

    The columns of H are the leading right singular vectors of the 0/1 labels less their means
    (Tai and Lin 2012).  The codes ``(y - mean) H`` are regressed on the features by least squares or ridge
    regression; predicted codes times H^T plus the means are scores, and a label is predicted where its
    score is above 1/2.

    All labels must be observed.  A sparse Y is never written out.

    Parameters
    ----------
    rank : int or float, default=100
        The number of codes, or a share of the number of labels (0 < rank <= 1.0).  One above what the
        labels can have, min(n, L), does what min(n, L) does.
    regularization : float, default=0.0
        The penalty of the ridge regressions, ``||T - X W||^2 + regularization ||W||^2`` with T the
        codes.  With 0 the shortest of all solutions is taken where there are many.
    center : bool, default=True
        Whether to take the (weighted) means of labels and features away, which is an intercept
        without penalty.  Without it the singular vectors are those of the labels as they are, and there is no
        intercept.

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
    CPLST : Codes that the features can predict.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.baselines import PLST
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = np.array([[0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]])
    >>> PLST(rank=1).fit(X, Y).predict([[0.2], [2.9]])
    array([[0, 1, 0],
           [1, 0, 0]])
    """

    def _label_product(
        self, targets: CenteredMatrix, inputs: CenteredMatrix, ridge: Ridge
    ) -> Callable[[Array], Array]:
        return lambda vectors: targets.rmatmul(targets.matmul(vectors))
