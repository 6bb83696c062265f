"""Classifiers of labels in a hierarchy: completed labels in the fit, consistent predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.label_scores import TrainingRows, decision_level, row_blocks, score_blocks
from labelweave.estimators.journal import where_rows_are
from labelweave.estimators.label_predictions import LabelPredictions
from labelweave.estimators.parameters import keep_parameters
from labelweave.foundation.array_types import Array
from labelweave.foundation.sklearn_compat import Interval, StrOptions
from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.labels.targets import TargetForm
from labelweave.model_files import ModelFileError, storable
from labelweave.model_files.schema import Field, Made
from labelweave.postprocessing.hierarchy import LabelOrder


@storable("HierarchicalClassifier")
class HierarchicalClassifier(DecisionClassifier):
    """Make any multi-label classifier consistent with a hierarchy, in which nodes may have several parents.

    Before the fit labels are completed (:meth:`Taxonomy.with_ancestors`): a row with a class has its
    ancestors, and a row observed not to have one has none of its descendants.  Scores, probabilities and
    label sets obey the hierarchy: no label scores higher than its ancestors, and a label is predicted with
    all its ancestors. Meta-classifiers around this one, such as :class:`TunedThresholdClassifier`, use
    completed labels and consistent scores, and their predictions obey the hierarchy too.

    Parameters
    ----------
    estimator : classifier
        Any for many labels per row.
    taxonomy : Taxonomy, or what ``Taxonomy.from_any`` reads
        The hierarchy; labels are matched to its nodes by name, and need not be all its nodes.
    enforce : {"max", "projection", "none"}, default="max"
        How to make scores consistent: each label gets the highest score of itself and its descendants, or
        scores become the nearest consistent ones in least squares
        (:func:`labelweave.postprocessing.enforce_hierarchy`). Predictions follow in the same way from scores
        minus thresholds.  "none" leaves both unchanged.
    incomplete : bool, default=False
        Whether rows may lack labels that they should have: descendants of the most specific classes of a row
        are then unobserved in the fit, not negative.  For estimators that accept missing labels.
    conditional : bool, default=False
        Whether to learn each label from the rows that have all its parents, the others left unobserved, and
        to multiply probabilities down the hierarchy; several parents contribute their minimum.  For
        estimators with missing labels and probabilities.  Labels with a probability above 1/2 are predicted.
    decision : {"threshold", "h_loss", "stepwise"}, default="threshold"
        How to choose label sets: by the estimator's own decisions; by the least expected loss of first errors
        (:func:`~labelweave.postprocessing.h_loss_sets`), from probabilities; or from the roots down while a
        label has more than ``confidence`` times the probability of its parents.
    confidence : float, default=0.5
        Threshold of "stepwise", between 0 and 1.
    cv : "prefit" or None, default=None
        "prefit" uses the estimator as it is.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator.
    taxonomy_ : Taxonomy
        The hierarchy.
    classes_ : ndarray of shape (L,)
        The label names.
    n_features_in_, feature_names_in_ : int, ndarray of shape (d,)
        Number and names of the features seen in fit, if the estimator has them.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from labelweave import BinaryRelevance, HierarchicalClassifier
    >>> X = np.array([[0.0, 1], [1, 0], [1, 1], [0, 0]])
    >>> y = pd.DataFrame({"animal": [0, 0, 0, 0], "dog": [1, 0, 1, 0], "cat": [0, 1, 0, 0]})
    >>> model = HierarchicalClassifier(BinaryRelevance(), {"animal": ["dog", "cat"]}).fit(X, y)
    >>> scores = model.decision_function(X)
    >>> bool((scores[:, [0]] >= scores).all())
    True
    """

    _stored: ClassVar[dict[str, Field]] = {"taxonomy_": Made(Taxonomy)}
    _kept_as: ClassVar[dict[str, str]] = {"taxonomy": "taxonomy_"}
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": DecisionClassifier._shared_constraints["estimator"],
        "taxonomy": "no_validation",
        "enforce": [StrOptions({"max", "projection", "none"})],
        "incomplete": ["boolean"],
        "conditional": ["boolean"],
        "decision": [StrOptions({"threshold", "h_loss", "stepwise"})],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "cv": [StrOptions({"prefit"}), None],
    }

    taxonomy_: Taxonomy

    def __init__(
        self, estimator: Any, taxonomy: Any, enforce: Literal["max", "projection", "none"] = "max", *,
        incomplete: bool = False, conditional: bool = False,
        decision: Literal["threshold", "h_loss", "stepwise"] = "threshold", confidence: float = 0.5,
        cv: Literal["prefit"] | None = None,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _fit_rows(self, data: TrainingRows) -> Self:
        if self._is_prefit:
            check_is_fitted(self.estimator)
            self._keep_estimator(self.estimator)
            data = self._announced(data, 0)
        else:
            data = self._announced(data, 1)
            self._keep_estimator(replace(data, y=self._labels_to_fit(data.labels)).fit(self))
        needs = self.conditional or self.decision != "threshold"
        if needs and not hasattr(self.estimator_, "predict_proba"):
            raise ValueError(
                f"{'conditional=True' if self.conditional else 'decision=' + repr(self.decision)} needs "
                f"probabilities, which {type(self.estimator_).__name__} lacks; wrap it in "
                "CalibratedLabelClassifier, and that in HierarchicalClassifier."
            )
        self._close(data)
        return self

    def _keep_targets(self, labels: LabelMatrix, form: TargetForm) -> tuple[LabelMatrix, Array | None]:
        self.taxonomy_ = Taxonomy.from_any(self.taxonomy)
        self.__dict__.pop("_order", None)
        kept = super()._keep_targets(labels, form)
        if form.has_one_class:
            raise ValueError(
                "y has one class per row, but HierarchicalClassifier is for many labels per row; pass one "
                "column per class, named by the nodes of the taxonomy."
            )
        return kept

    def _labels_to_fit(self, completed: LabelMatrix) -> LabelMatrix:
        """Return the labels for the estimator, from the completed labels of rows."""
        return self._order.conditional(completed) if self.conditional else completed

    def _completed(self, labels: LabelMatrix) -> LabelMatrix:
        if labels.names is None:
            raise ValueError(
                "y has no label names, which match labels to the taxonomy; pass a DataFrame, lists of "
                "tags, or LabelMatrix.from_any(y, names=...)."
            )
        inner = super()._completed(labels)
        return Taxonomy.from_any(self.taxonomy).with_ancestors(inner, incomplete=bool(self.incomplete))

    @property
    def _hierarchy(self) -> Taxonomy:
        return vars(self).get("taxonomy_") or Taxonomy.from_any(self.taxonomy)

    @cached_property
    def _order(self) -> LabelOrder:
        return LabelOrder.of(self.taxonomy_, self.label_names_)

    def _obeying(self, scores: Array) -> Array:
        if self.enforce == "none":
            return super()._obeying(scores)
        return self._order.enforced(scores, self.enforce)

    @property
    def _enforces(self) -> bool:
        return self.enforce != "none" or super()._enforces

    @property
    def _response(self) -> str:
        return "predict_proba" if self.conditional else "auto"

    def _words(self, is_inside: bool) -> str:
        how = {
            "max": "each label has the highest score of itself and its descendants",
            "projection": "scores are the nearest consistent ones in least squares",
            "none": "scores and label sets need not obey it",
        }[self.enforce]
        known = ", incomplete annotation" if self.incomplete else ""
        known += ", each learned from rows that have its parents" if self.conditional else ""
        sets = {
            "threshold": "",
            "h_loss": "; label sets of least h-loss",
            "stepwise": f"; stepwise label sets above {self.confidence:g}",
        }["threshold" if is_inside else self.decision]
        return f"a hierarchy of {len(self.taxonomy_)} nodes, which completes labels{known}; {how}{sets}"

    def _ranked(self, scores: Array) -> Array:
        if self.conditional:
            return self._order.multiplied(scores) - 0.5
        return scores - decision_level(self.estimator_)

    def _deciding_blocks(self, X: Any) -> Iterator[Array]:
        check_is_fitted(self)
        if self.decision == "h_loss":
            yield from map(self._order.h_loss_gains, self._probability_blocks(X))
            return
        if self.decision == "stepwise":
            for block in self._probability_blocks(X):
                yield self._order.least_steps(block) - self.confidence
            return
        if self.conditional:
            yield from self._score_blocks(X)
            return
        for part in row_blocks(self.estimator_, X, self._n_columns):
            if isinstance(self.estimator_, LabelPredictions):
                yield from map(self._obeying, self.estimator_._deciding_blocks(part))
            else:
                found = self.estimator_.predict(part)
                found = np.reshape(found, (-1, 1)) if np.ndim(found) == 1 and self._n_columns == 1 else found
                yield self._obeying(LabelMatrix.from_any(found).to_signs().astype(np.float64))

    @available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), "predict_proba"))
    @where_rows_are
    def predict_proba(self, X: Any) -> Array:
        """Return consistent probabilities; see :meth:`KernelLogisticClassifier.predict_proba`."""
        check_is_fitted(self)
        return np.concatenate(list(self._probability_blocks(X)))

    def _probability_blocks(self, X: Any) -> Iterator[Array]:
        blocks = score_blocks(self.estimator_, X, self._n_columns, "predict_proba")
        if self.conditional:
            blocks = map(self._order.multiplied, blocks)
        return map(self._obeying, blocks)

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        super()._check_state(state)
        taxonomy, names = state["fitted"]["taxonomy_"], [str(name) for name in state["classes"]]
        if state["form"]["kind"] != "labels" or not all(name in taxonomy for name in names):
            raise ModelFileError(f"its {cls.__name__} has labels that are not nodes of its taxonomy.")
