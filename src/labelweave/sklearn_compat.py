"""scikit-learn's private and moving names: a release of it that moves one is followed here, and only here.

Its decorator of ``fit`` carries no types; here it keeps those of what it decorates, for users' type checkers.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn import base
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.metrics._scorer import _BaseScorer
from sklearn.model_selection._split import _validate_shuffle_split
from sklearn.utils import _safe_indexing
from sklearn.utils._missing import is_pandas_na
from sklearn.utils._param_validation import (
    HasMethods,
    Hidden,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
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
    "validate_parameter_constraints",
    "with_callbacks",
]

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Method], _Method]:
    """Check parameters before a fit."""
    decorate = base._fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)
    return cast(Callable[[_Method], _Method], decorate)
