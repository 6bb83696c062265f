"""What is said of models whose weights are a product of two factors, after a fit and by ``inspect``.

Numbers about labels are those of the columns of Z = W H^T, so they do not depend on which pair of factors
makes the product: they are lengths and cosines of rows of H where W has orthonormal columns.  They need
the small matrices W^T W and H^T H only, which are summed in blocks; Z is never formed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

from labelweave.array_types import Array
from labelweave.arrays import panels
from labelweave.features import FeatureMatrix

__all__ = [
    "factor_facts",
    "feature_weights",
    "gap_words",
    "has_factors",
    "rank_words",
    "similar_labels",
    "singular_words",
    "threshold_words",
    "tuned_threshold_words",
]

Facts = dict[str, Any]

_ROWS_AT_ONCE = 8192
_KERNEL_ROWS_AT_ONCE = 512
_MOST_SUPPORT_ROWS = 5000  # whose kernel is computed to say what is in a model
_MOST_LABELS = 10
_FIRST_VALUES = 6


def has_factors(classifier: Any) -> bool:
    """Say whether the weights of a fitted classifier are a product of two factors."""
    return hasattr(classifier, "label_factors_")


def rank_words(classifier: Any) -> str:
    """Say which rank a model has, and which was asked for if that is another one.

    Returns such as ``64 (asked for 0.4 of the labels)``.
    """
    rank, asked = classifier.label_factors_.shape[1], getattr(classifier, "rank", None)
    if asked is None:
        return f"{rank} (chosen by cross-validation)"
    if isinstance(asked, float):
        return f"{rank} (asked for {asked:g} of the labels)"
    return str(rank) if asked == rank else f"{rank} (asked for {asked}; no product of factors has more)"


def gap_words(classifier: Any) -> str:
    """Say by how much other factors could be better.

    Returns the share of the objective, or that there is no bound of it.
    """
    gap = classifier.duality_gap_
    if math.isnan(gap):
        return f"no bound with the penalty {classifier.penalty}"
    return f"{gap:.2e} at most, to factors of any rank"


def threshold_words(classifier: Any) -> str | None:
    """Say from which scores on labels are predicted, or probabilities of models that have them.

    Returns one number, or the range where every label has its own; None for models without.
    """
    found = getattr(classifier, "thresholds_", getattr(classifier, "threshold_", None))
    if found is None:
        return None
    has_probabilities = hasattr(classifier, "predict_proba")
    low, high = (float(expit(f(found)) if has_probabilities else f(found)) for f in (np.min, np.max))
    words = f"{low:.4g}" if low == high else f"one a label, from {low:.4g} to {high:.4g}"
    return f"probability {words}" if has_probabilities else words


def tuned_threshold_words(classifier: Any) -> str | None:
    """Say from which scores on labels are predicted, where these are not the usual ones.

    Returns as :func:`threshold_words` does; None where nothing else than "auto" was asked for.
    """
    return None if getattr(classifier, "threshold", "auto") == "auto" else threshold_words(classifier)


def factor_facts(classifier: Any) -> Facts:
    """Describe the factors.

    Returns the rank, the singular values of Z (None where they need too many values of a kernel), and the
        labels with the longest weights.
    """
    gram, names = _feature_gram(classifier), _row_names(classifier)
    root = _root(classifier, gram)
    lengths = _lengths(classifier.label_factors_, root)
    longest = np.argsort(-lengths, kind="stable")[:_MOST_LABELS]
    return {
        "rank": int(classifier.label_factors_.shape[1]),
        "rank_summary": rank_words(classifier),
        "threshold": threshold_words(classifier),
        "singular_values": None if gram is None else _singular_values(classifier.label_factors_, root),
        "longest_labels": [{"label": names[k], "length": _short(lengths[k])} for k in longest],
    }


def singular_words(values: list[float] | None) -> str:
    """Say what the singular values of the weights are.

    values: all of them, falling; None if unknown.
    Returns the first ones and the last.
    """
    if values is None:
        return "not computed: the kernel of the support rows is not at hand, or too large"
    first = ", ".join(f"{value:.4g}" for value in values[:_FIRST_VALUES])
    return f"{first}, ..., {values[-1]:.4g}" if len(values) > _FIRST_VALUES else first


def similar_labels(classifier: Any, row: int, count: int) -> list[Facts]:
    """Find the labels whose weights point most nearly the same way.

    row: the row of the label's factor.
    Returns labels and cosines, the most similar first; labels whose weights are 0 are left out.
    """
    factors, names = classifier.label_factors_, _row_names(classifier)
    root = _root(classifier, _feature_gram(classifier))
    lengths = _lengths(factors, root)
    if not lengths[row]:
        return []
    along = root @ (factors[row].astype(np.float64) @ root)
    cosines = np.full(len(factors), -np.inf)
    for rows in panels(len(factors), _ROWS_AT_ONCE):
        safe = np.where(lengths[rows] > 0, lengths[rows] * lengths[row], np.inf)
        cosines[rows] = np.where(lengths[rows] > 0, factors[rows] @ along / safe, -np.inf)
    cosines[row] = -np.inf
    best = np.argsort(-cosines, kind="stable")[:count]
    return [{"label": names[k], "cosine": _short(cosines[k])} for k in best if np.isfinite(cosines[k])]


def feature_weights(classifier: Any, row: int) -> Array | None:
    """Compute the weights of one label.

    row: the row of the label's factor.
    Returns (d,): the weights of the features; None for a kernel that has no features.
    """
    if hasattr(classifier, "support_"):
        return None
    weights: Array = classifier.feature_factors_ @ classifier.label_factors_[row]
    return weights


def _row_names(classifier: Any) -> list[str]:
    """Name the rows of the labels' factor: of two classes it has the second one's."""
    names = [str(name) for name in classifier.label_names_]
    return names[len(names) - len(classifier.label_factors_) :]


def _feature_gram(classifier: Any) -> Array | None:
    """Sum ``W^T W``, in the kernel's space for a kernel; None where that takes too many kernel values."""
    factors = classifier.feature_factors_
    total = np.zeros((factors.shape[1], factors.shape[1]))
    if not hasattr(classifier, "support_"):
        for rows in panels(len(factors), _ROWS_AT_ONCE):
            block = factors[rows].astype(np.float64)
            total += block.T @ block
        return total
    if not hasattr(classifier, "support_vectors_") or len(factors) > _MOST_SUPPORT_ROWS:
        return None
    support = FeatureMatrix(classifier.support_vectors_)
    for rows in panels(len(factors), _KERNEL_ROWS_AT_ONCE):
        total += factors[rows].T @ (classifier.kernel_.block(support.rows(rows), support) @ factors)
    return total


def _root(classifier: Any, gram: Array | None) -> Array:
    """Give what turns rows of H into those of an orthonormal W; nothing where ``W^T W`` is not known."""
    if gram is None:
        return np.eye(classifier.label_factors_.shape[1])
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _lengths(factors: Array, root: Array) -> Array:
    lengths = np.empty(len(factors))
    for rows in panels(len(factors), _ROWS_AT_ONCE):
        lengths[rows] = np.linalg.norm(factors[rows] @ root, axis=1)
    return lengths


def _singular_values(factors: Array, root: Array) -> list[float]:
    total = np.zeros_like(root)
    for rows in panels(len(factors), _ROWS_AT_ONCE):
        block = factors[rows] @ root
        total += block.T @ block
    squares = np.linalg.eigvalsh(total)[::-1]
    return [_short(math.sqrt(max(value, 0.0))) for value in squares]


def _short(value: Any) -> float:
    return float(f"{value:.6g}")
