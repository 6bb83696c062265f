"""Adding labels to a fitted model through their relation to its labels, without a refit.

A label with no observed value in training has dual variables 0, so it changes no other; its weights follow
from theirs: with D the deviations of the weights from their mean, a fit with such labels n would have had

    d_n = D_o R_oo^-1 R_on,

which is the prediction of Gaussian process regression for scores of n from those of the existing labels o.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from labelweave.estimators.parameters import CovarianceLike, MeanLike
from labelweave.estimators.scorers import FactorScorer, KernelScorer, LinearScorer, Scorer
from labelweave.foundation.array_types import Array
from labelweave.foundation.frames import FrameForm
from labelweave.labels import LabelCovariance, LabelMean
from labelweave.labels.covariance.base import read_covariance
from labelweave.labels.label_mean import read_label_mean
from labelweave.labels.label_names import as_given, as_text, checked_names
from labelweave.labels.targets import TargetForm

_NEGLIGIBLE = 1e-10  # of the largest eigenvalue of R


def add_labels(
    self: Any, names: Sequence[str], label_covariance: CovarianceLike = None, label_mean: MeanLike = None
) -> Any:
    """Add labels without training rows, by their relation to the existing labels; nothing is refitted.

    Parameters
    ----------
    names : sequence of str
        The new labels.
    label_covariance : LabelCovariance, Taxonomy, array-like of shape (L + k, L + k) or None, default=None
        The covariance of all labels, the new ones last or matched by name, which agrees with that of the fit
        on the others; None where only a mean describes the new ones.
    label_mean : LabelMean, array-like of shape (L + k, d) or None, default=None
        The mean of all labels, which agrees with that of the fit on the others.

    Returns
    -------
    Self
        The model itself; scores of other labels are unchanged, and the thresholds of new labels are the
        median of theirs.

    Raises
    ------
    ValueError
        If a label exists already, no relation or that of other labels is passed, rows have one class
        each, labels share several kernels, or weights are stored sparse (``prune``).
    """
    check_is_fitted(self)
    if "posterior_" in vars(self):
        raise ValueError(
            "add_labels does not extend the posterior of uncertainty='laplace'; fit with uncertainty=None."
        )
    every = _every_name(self, names)
    n_old = len(self.classes_)
    new = np.arange(n_old, len(every))
    mean = read_label_mean(label_mean, every, self.n_features_in_)
    if label_covariance is None and mean is None:
        raise ValueError(
            "Nothing relates the new labels to others; pass label_covariance or label_mean, over all labels."
        )
    mix = np.zeros((n_old, len(new)))
    covariance: LabelCovariance = LabelCovariance.identity(len(every))
    if label_covariance is not None:
        covariance = read_covariance(label_covariance, len(every), every)
        mix = related_weights(covariance, n_old)
    self.scorer_ = _widened(self, self.scorer_, mix, self.label_mean_, mean)
    if mean is not None:
        self.label_mean_ = self.label_mean = mean
    _keep_added(self, names, covariance if label_covariance is not None else None)
    return self


def _every_name(self: Any, names: Sequence[str]) -> list[str]:
    if self._form.has_one_class or self._form.columns is not None:
        raise ValueError(
            "add_labels is for many labels per row, but the model has one class per row or column."
        )
    is_list = isinstance(names, list | tuple) or getattr(names, "ndim", 0) == 1
    if not is_list or sp.issparse(names) or not len(names):
        shown = repr(names) if isinstance(names, str | list) else f"a {type(names).__name__}"
        raise ValueError(f"names is {shown:.60}; pass a list of new labels.")
    every = [str(name) for name in (*self.classes_, *names)]
    checked_names(every, len(every))
    return every


def _widened(self: Any, scorer: Scorer, mix: Array, old: LabelMean | None, new: LabelMean | None) -> Scorer:
    """Add columns of new labels to the scorer.

    mix (L, k): the coefficients of the existing labels' deviations for each new label.
    """
    level = 0.0 if old is None or not scorer.holds_mean else old.intercepts
    own = (scorer.intercept_ - level) @ mix if self._couples_intercepts else np.zeros(mix.shape[1])
    if isinstance(scorer, LinearScorer):
        holds_mean = scorer.holds_mean
        deviations = scorer.coef_ if old is None or not holds_mean else scorer.coef_ - old.weights()
        added = mix.T @ deviations
        if new is not None and holds_mean:
            last = new.columns(np.arange(len(mix), new.n_labels))
            added, own = added + last.weights(), own + last.intercepts
        wider = np.append(scorer.intercept_, own), np.vstack([scorer.coef_, added])
        return type(scorer).of_labels(*wider, scorer.kernel)
    if isinstance(scorer, FactorScorer):
        factors = np.vstack([scorer.label_factors_, mix.T @ scorer.label_factors_])
        return replace(scorer, intercept_=np.append(scorer.intercept_, own), label_factors_=factors)
    if not isinstance(scorer, KernelScorer) or len(scorer.terms) != 1:
        raise ValueError(
            "add_labels needs one kernel and dense weights, but there are several kernels or sparse weights; "
            "fit again with the new labels unobserved."
        )
    (term,) = scorer.terms
    table = np.zeros((len(term.rows), len(mix)))
    table[:, term.labels] = term.coefficients
    wide = replace(term, labels=np.arange(sum(mix.shape)), coefficients=np.hstack([table, table @ mix]))
    return replace(scorer, intercept_=np.append(scorer.intercept_, own), terms=(wide,))


def _keep_added(self: Any, names: Sequence[str], covariance: LabelCovariance | None) -> None:
    n_new = len(names)
    self._form = with_more_labels(self._form, names)
    self.classes_ = self._form.classes
    self.thresholds_ = np.append(self.thresholds_, np.full(n_new, np.median(self.thresholds_)))
    vars(self).update(_seen=None, _end=None)  # the next warm start starts from scratch
    self._keep_wider(n_new, covariance)


def related_weights(covariance: LabelCovariance, n_old: int) -> Array:
    """Compute ``R_oo^-1 R_on``, where R may be singular, with a pseudo-inverse: shape (n_old, k).

    n_old: the number of existing labels, which come first.
    """
    old, new = np.arange(n_old), np.arange(n_old, covariance.n_labels)
    across = covariance.block(old, new)
    values, vectors = sl.eigh(covariance.block(old, old), check_finite=False)
    kept = values > _NEGLIGIBLE * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
    part = vectors[:, kept]
    return np.asarray(part @ ((part.T @ across) / values[kept][:, None]))


def widened_covariance(covariance: LabelCovariance, n_new: int) -> LabelCovariance:
    """Append labels that covary with none, of the mean variance of the others."""
    table, n_old = covariance.to_dense(), covariance.n_labels
    wide = np.diag(np.full(n_old + n_new, float(np.mean(np.diagonal(table)))))
    wide[:n_old, :n_old] = table
    return LabelCovariance.dense(wide)


def with_more_labels(form: TargetForm, names: Sequence[Any]) -> TargetForm:
    """Return the form of targets with unobserved labels appended; numbers where all names are numbers."""
    n_old, added = len(form.classes), [str(name) for name in names]
    more = np.array(added, object)
    if form.classes.dtype.kind in "OUS":
        classes = np.concatenate([form.classes.astype(object), more])
    else:
        classes = as_given([*map(as_text, form.classes), *added], form.classes)
        classes = classes.astype(object) if classes.dtype.kind == "U" else classes
    wide = form.widened(replace(form, classes=more, frame=_called(added, form.frame)), classes)
    return replace(wide, unobserved=(*form.unobserved, *range(n_old, n_old + len(more))))


def _called(names: list[str], frame: FrameForm | None) -> FrameForm | None:
    """Convert new labels to the type of a frame's numeric column names; None where this is impossible."""
    if frame is None or not all(isinstance(label, Real) for label in frame.labels or [""]):
        return None
    called = as_given(names, np.array(frame.labels))
    return None if called.dtype.kind == "U" else replace(frame, labels=called.tolist())
