"""What PLST and CPLST share: codes of the labels, regressed on the features, decoded linearly."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from labelweave.array_types import Array
from labelweave.baselines.baseline_classifier import FactorClassifier, TrainingData
from labelweave.baselines.centered_matrix import CenteredMatrix
from labelweave.baselines.label_directions import leading_directions
from labelweave.baselines.ridge import Ridge, make_ridge
from labelweave.estimators.low_rank.fit import RANKS, columns_for_rank
from labelweave.estimators.progress import FitProgress
from labelweave.labels import LabelMatrix
from labelweave.labels.label_names import shown_name
from labelweave.sklearn_compat import Interval

__all__ = ["LabelSpaceClassifier"]


class LabelSpaceClassifier(FactorClassifier):
    """Base of label space transformations: ``y = mean + H W^T (x - mean)`` with orthonormal H.

    A subclass says of which matrix over labels the columns of H are the leading eigenvectors.

    rank: the number of codes, or a share of the number of labels.
    regularization: the penalty of the regressions.
    center: whether to take the means of labels and features away.
    """

    regularization: float
    center: bool

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rank": RANKS,
        "regularization": [Interval(Real, 0, None, closed="left")],
        "center": ["boolean"],
    }

    def __init__(self, rank=100, *, regularization=0.0, center=True):
        self.rank = rank
        self.regularization = regularization
        self.center = center

    def _learn(self, data: TrainingData, progress: FitProgress) -> tuple[str, str]:
        inputs = CenteredMatrix(data.features.data, data.weights, center=self.center)
        targets = CenteredMatrix(data.labels.positives, data.weights, center=self.center)
        ridge = make_ridge(inputs, float(self.regularization))
        self.rank_ = int(min(columns_for_rank(self.rank, targets.shape[1]), *targets.shape))
        product = self._label_product(targets, inputs, ridge)
        self.label_factors_ = leading_directions(product, targets.shape[1], self.rank_)
        self.feature_factors_ = ridge.solve(targets.matmul(self.label_factors_))
        self.intercept_ = targets.means - self.label_factors_ @ (inputs.means @ self.feature_factors_)
        self.threshold_ = 0.5
        self.converged_ = ridge.converged
        return "converged" if ridge.converged else "iteration_limit", (
            "Least squares of the codes did not converge; scale the features or raise regularization."
        )

    def _label_product(
        self, targets: CenteredMatrix, inputs: CenteredMatrix, ridge: Ridge
    ) -> Callable[[Array], Array]:
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
