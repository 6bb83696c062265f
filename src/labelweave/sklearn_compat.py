"""scikit-learn's private and moving names: a release of it that moves one is followed here, and only here."""

from sklearn.base import _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.metrics._scorer import _BaseScorer
from sklearn.model_selection._split import _validate_shuffle_split
from sklearn.utils import _safe_indexing
from sklearn.utils._missing import is_pandas_na
from sklearn.utils._param_validation import HasMethods, Hidden, Interval, InvalidParameterError, StrOptions
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_sample_weight, _num_samples

__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Hidden",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "_BaseScorer",
    "_check_sample_weight",
    "_fit_context",
    "_num_samples",
    "_safe_indexing",
    "_safe_split",
    "_validate_shuffle_split",
    "is_pandas_na",
    "with_callbacks",
]
