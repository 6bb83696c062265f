"""Label space transformations: codes of the labels, regressed on the features, decoded linearly.

PLST: Tai and Lin, "Multilabel classification with principal label-space transformation", Neural Computation
24 (2012).  CPLST: Chen and Lin, "Feature-aware label space dimension reduction for multi-label
classification", NIPS 2012; Yu et al. 2014 (LEML), section 2.1, claims 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from labelweave.array_types import Array, PerRow
from labelweave.baselines.baseline_classifier import FactorClassifier, TrainingData
from labelweave.baselines.ridge import CenteredMatrix, Ridge, leading_directions, make_ridge
from labelweave.estimators.low_rank.fit import columns_for_rank
from labelweave.estimators.parameters import NON_NEGATIVE, SHARED, ClassWeight, keep_parameters
from labelweave.estimators.progress import FitProgress
from labelweave.estimators.scorers import FactorScorer
from labelweave.labels import LabelMatrix
from labelweave.labels.label_tables import shown_name
from labelweave.model_files import storable

Product = Callable[[Array], Array]


class LabelSpaceClassifier(FactorClassifier):
    """Base of label space transformations: ``y = mean + H W^T (x - mean)`` with orthonormal H.

    A subclass says of which matrix over labels the columns of H are the leading eigenvectors.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED,
        "regularization": [NON_NEGATIVE],
        "center": ["boolean"],
    }

    def __init__(
        self, rank: float = 100, *, regularization: float = 0.0, center: bool = True,
        class_weight: ClassWeight = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _class_weighted(self, labels: LabelMatrix, weights: PerRow) -> PerRow:
        return self._rows_by_class(labels, weights)

    def _learn(self, data: TrainingData, progress: FitProgress) -> tuple[str, str]:
        inputs = CenteredMatrix(data.features.data, data.weights, center=self.center)
        targets = CenteredMatrix(data.labels.positives, data.weights, center=self.center)
        ridge = make_ridge(inputs, float(self.regularization))
        self.rank_ = int(min(columns_for_rank(self.rank, targets.shape[1]), *targets.shape))
        product = self._label_product(targets, inputs, ridge)
        labels = leading_directions(product, targets.shape[1], self.rank_)
        factors = ridge.solve(targets.matmul(labels))
        self.scorer_ = FactorScorer(targets.means - labels @ (inputs.means @ factors), factors, labels)
        self.threshold_ = 0.5
        self.converged_ = ridge.converged
        return "converged" if ridge.converged else "iteration_limit", (
            "Least squares of the codes did not converge; scale the features or raise regularization."
        )

    def _label_product(self, targets: CenteredMatrix, inputs: CenteredMatrix, ridge: Ridge) -> Product:
        """Give the product with the matrix whose leading eigenvectors code the labels."""
        raise NotImplementedError

    def _check_labels(self, labels: LabelMatrix) -> None:
        if labels.observed is None or not labels.has_missing:
            return
        row = int(np.argmax(np.diff(labels.observed.indptr) < labels.n_labels))
        seen = np.zeros(labels.n_labels, bool)
        seen[labels.observed[[row]].indices] = True
        raise ValueError(
            f"Y at row {row}, label {shown_name(labels.names, int(np.argmin(seen)))} is not observed, and "
            f"{type(self).__name__} needs every label of every row; BinaryRelevance, WSABIE, "
            "LowRankClassifier, MaxMarginClassifier and KernelLogisticClassifier learn from observed entries."
        )


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
    class_weight : {"balanced"}, dict or None, default=None
        Weights of classes, by which those of rows are multiplied where a row has one class: a dict, or
        "balanced" for rows / (classes x rows of the class), with rows counted by their weights.  Refused for
        many labels a row: codes of all labels have one regression, with one weight a row.
    verbose : bool or int, default=0
        Whether to write to stderr how far a fit is: a line every two seconds, later more rarely, and one at
        the end; 2 for a line at every step.

    Attributes
    ----------
    feature_factors_, label_factors_ : ndarray of shape (d, k), ndarray of shape (L, k)
        W, a column a code, and H, orthonormal columns.
    coef_, intercept_ : ndarray of shape (L, d), ndarray of shape (L,)
        H W^T, made anew at every look, and the intercepts of the scores.
    rank_ : int
        The number of codes k.
    threshold_ : float
        0.5; ``decision_function`` gives scores less this.
    classes_ : ndarray of shape (L,)
        The label names, label numbers, or classes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Features seen in fit, and their names, when X was a frame.
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

    def _label_product(self, targets: CenteredMatrix, inputs: CenteredMatrix, ridge: Ridge) -> Product:
        return lambda vectors: targets.rmatmul(targets.matmul(vectors))


@storable("CPLST")
class CPLST(LabelSpaceClassifier):
    """Code the labels by the directions that the features predict best, and decode them linearly.

    The columns of H are the leading eigenvectors of ``Y^T X (X^T X + regularization I)^-1 X^T Y``, X and Y
    less their means (Chen and Lin 2012).  The codes Y H are regressed on X with the same penalty; predicted
    codes times H^T plus the means are scores, and a label is predicted where its score is above 1/2.  The
    weights Z = W H^T minimise

    ``||Y - X Z||^2 + regularization ||Z||^2    subject to    rank(Z) <= rank``,

    whatever the penalty.  Without a penalty and means this is the closed form of claim 1 of Yu et al. (2014),
    V S^-1 (U^T Y)_k with X = U S V^T.  All labels must be observed.

    Parameters
    ----------
    rank : int or float, default=100
        The number of codes, as of :class:`PLST`.
    regularization : float, default=0.0
        The penalty.  With 0 the shortest of all solutions is taken where there are many.
    center : bool, default=True
        Whether to take the means away, as of :class:`PLST`.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of classes where a row has one, as of :class:`PLST`.
    verbose : bool or int, default=0
        Whether to write to stderr how far a fit is: a line every two seconds, later more rarely, and one at
        the end; 2 for a line at every step.

    See Also
    --------
    PLST : Codes that depend on the labels alone; fitted attributes are the same.

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

    def _label_product(self, targets: CenteredMatrix, inputs: CenteredMatrix, ridge: Ridge) -> Product:
        return lambda vectors: targets.rmatmul(inputs.matmul(ridge.solve(targets.matmul(vectors))))
