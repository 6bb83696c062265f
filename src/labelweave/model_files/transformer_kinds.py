"""What a model file keeps of each of scikit-learn's transformers, and how all of it is checked.

Only the kinds below are ever made from a file.  Parameters pass scikit-learn's own checks; of what was
fitted every name, type and length is checked, and what follows from the rest is computed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import feature_extraction, feature_selection, impute, preprocessing
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction import text

Fitted = dict[str, Any]

# A word is "floats", "ints", "bools" or "values" (of any kind) and the lengths of an array, where d is the
# number of features; or "count", "number", "flag", "dtype"; or "step".  A question mark: or None.
_MOMENTS = {"mean_": "floats d?", "var_": "floats d?", "scale_": "floats d?", "n_samples_seen_": "count"}
_BOUNDS = dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), "floats d")
_TESTED = {"scores_": "floats d", "pvalues_": "floats d?"}
_AXES = {
    "components_": "floats k d", "explained_variance_": "floats k", "explained_variance_ratio_": "floats k",
    "singular_values_": "floats k",
}  # fmt: skip
FITTED: dict[type, dict[str, str]] = {
    preprocessing.StandardScaler: _MOMENTS,
    preprocessing.MinMaxScaler: {**_BOUNDS, "n_samples_seen_": "count"},
    preprocessing.MaxAbsScaler: {"max_abs_": "floats d", "scale_": "floats d", "n_samples_seen_": "count"},
    preprocessing.RobustScaler: {"center_": "floats d?", "scale_": "floats d?"},
    preprocessing.QuantileTransformer: {
        "n_quantiles_": "count", "quantiles_": "floats q d", "references_": "floats q",
    },
    preprocessing.PowerTransformer: {"lambdas_": "floats d", "_scaler": "step?"},
    preprocessing.Normalizer: {},
    preprocessing.Binarizer: {},
    preprocessing.OneHotEncoder: {},
    preprocessing.OrdinalEncoder: {},
    impute.SimpleImputer: {
        "statistics_": "values d", "indicator_": "step?", "_fit_dtype": "dtype", "_fill_dtype": "dtype",
    },
    impute.KNNImputer: {
        "_fit_X": "floats n d", "_mask_fit_X": "bools n d", "_valid_mask": "bools d", "indicator_": "step?",
    },
    impute.MissingIndicator: {"features_": "places", "_n_features": "count", "_precomputed": "flag"},
    feature_selection.VarianceThreshold: {"variances_": "floats d"},
    feature_selection.SelectKBest: _TESTED,
    feature_selection.SelectPercentile: _TESTED,
    feature_selection.SelectFpr: _TESTED,
    feature_selection.SelectFdr: _TESTED,
    feature_selection.SelectFwe: _TESTED,
    feature_selection.GenericUnivariateSelect: _TESTED,
    feature_extraction.DictVectorizer: {},
    feature_extraction.FeatureHasher: {},
    text.CountVectorizer: {},
    text.TfidfVectorizer: {},
    text.TfidfTransformer: {"idf_": "floats d"},
    text.HashingVectorizer: {},
    PCA: _AXES | {
        "mean_": "floats d", "noise_variance_": "number", "n_samples_": "count", "n_components_": "count",
    },
    TruncatedSVD: _AXES,
}  # fmt: skip
NAMES = {kind.__name__: kind for kind in FITTED}
FUNCTIONS = {
    name: getattr(feature_selection, name)
    for name in (
        "chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression", "r_regression",
    )
}  # fmt: skip
_TYPES = {"floats": "f", "ints": "iu", "bools": "b", "values": "biufUO"}


def check_fitted(step: Any, fitted: Fitted) -> None:
    """Check what a file says was fitted: every name, type and length.

    Raises ValueError if something is not as scikit-learn would have it.
    """
    wanted = FITTED[type(step)]
    if fitted.keys() != _present(step, wanted).keys():
        raise ValueError(f"{type(step).__name__} has the fitted attributes {', '.join(fitted)}")
    lengths = {"d": getattr(step, "n_features_in_", fitted.get("_n_features"))}
    for name, value in fitted.items():
        if not _is_as_said(wanted[name], value, lengths):
            raise ValueError(f"{name} of {type(step).__name__} is not what it must be ({wanted[name]})")


def _present(step: Any, wanted: dict[str, str]) -> dict[str, str]:
    """Leave out what the parameters of a step say is not there."""
    if isinstance(step, preprocessing.PowerTransformer) and not step.standardize:
        return {name: word for name, word in wanted.items() if name != "_scaler"}
    if isinstance(step, text.TfidfTransformer) and not step.use_idf:
        return {}
    return wanted


def fitted_of(step: Any) -> Fitted:
    """Give what was fitted of a step."""
    return {name: getattr(step, name) for name in _present(step, FITTED[type(step)])}


def _is_as_said(word: str, value: Any, lengths: dict[str, Any]) -> bool:
    if value is None:
        return word.endswith("?")
    kind, *letters = word.removesuffix("?").split()
    if kind in _TYPES:
        return _is_array(value, _TYPES[kind], letters, lengths)
    if kind == "places":
        return _is_array(value, "iu", ["places"], lengths) and _are_places(value, lengths["d"])
    if kind == "count" and isinstance(value, np.ndarray):
        return _is_array(value, "iuf", ["d"], lengths)
    checks: dict[str, Callable[[Any], bool]] = {
        "count": lambda found: isinstance(found, (int, np.number)) and bool(found >= 0),
        "number": lambda found: isinstance(found, (int, float, np.number)),
        "flag": lambda found: isinstance(found, (bool, np.bool_)),
        "dtype": lambda found: isinstance(found, np.dtype),
        "step": lambda found: type(found) in FITTED,
    }
    return checks[kind](value)


def _is_array(value: Any, kinds: str, letters: list[str], lengths: dict[str, Any]) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds or value.ndim != len(letters):
        return False
    for letter, length in zip(letters, value.shape, strict=True):
        if lengths.setdefault(letter, length) != length:
            return False
    return True


def _are_places(places: Any, end: int) -> bool:
    return places.size == 0 or bool(places.min() >= 0 and places.max() < end)


def check_parameters(step: Any) -> None:
    """Check the parameters of a step, as scikit-learn does when it is fitted, and what it would not refuse.

    Raises ValueError if one makes no sense, or would read files.
    """
    if hasattr(step, "_parameter_constraints"):
        step._validate_params()
    if getattr(step, "input", "content") != "content":
        raise ValueError(f"{type(step).__name__} reads files (input={step.input!r}), which no model file may")
    re.compile(getattr(step, "token_pattern", None) or "")


def words_of(step: Any) -> list[Any]:
    """List the words or features of a vocabulary, in the order of their columns."""
    return sorted(step.vocabulary_, key=step.vocabulary_.__getitem__)


def put_words(step: Any, words: Any, idf: Any) -> None:
    """Give a vectorizer its words, and of tf-idf their weights.

    Raises ValueError if words come twice, or there is not one weight a word.
    """
    names = [str(word) for word in words]
    step.vocabulary_ = {word: place for place, word in enumerate(names)}
    if len(step.vocabulary_) < len(names):
        raise ValueError("a word comes twice")
    if isinstance(step, feature_extraction.DictVectorizer):
        step.feature_names_ = names
        return
    step.fixed_vocabulary_ = step.vocabulary is not None
    if not isinstance(step, text.TfidfVectorizer):
        return
    shared = ("norm", "use_idf", "smooth_idf", "sublinear_tf")
    step._tfidf = text.TfidfTransformer(**{name: getattr(step, name) for name in shared})
    step._tfidf.n_features_in_ = len(names)
    if step.use_idf:
        if not _is_array(idf, "f", ["d"], {"d": len(names)}):
            raise ValueError("there is not one weight a word")
        step._tfidf.idf_ = idf


def put_categories(step: Any, categories: Any, infrequent: Any) -> None:
    """Give an encoder its categories, and those that count as one because they are rare.

    Raises ValueError if these are no categories of as many features as it takes.
    """
    if len(categories) != step.n_features_in_ or not all(
        _is_array(c, "biufUO", ["c"], {}) for c in categories
    ):
        raise ValueError(f"{type(step).__name__} does not have one array of categories a feature")
    step.categories_ = list(categories)
    is_ordinal = isinstance(step, preprocessing.OrdinalEncoder)
    ends = [found[-1] if len(found) else None for found in categories]
    missing = [is_ordinal and isinstance(end, (float, np.floating)) and bool(np.isnan(end)) for end in ends]
    step._infrequent_enabled = infrequent is not None
    if infrequent is not None:
        if len(infrequent) != len(categories):
            raise ValueError(f"{type(step).__name__} does not say of each feature which categories are rare")
        # a category that is missing is never rare
        counts = [len(found) - is_missing for found, is_missing in zip(categories, missing, strict=True)]
        step._infrequent_indices = list(infrequent)
        step._default_to_infrequent_mappings = list(map(_mapping, infrequent, counts))
    if is_ordinal:
        step._missing_indices = {n: len(categories[n]) - 1 for n in np.flatnonzero(missing).tolist()}
        return
    step._set_drop_idx()
    step._n_features_outs = step._compute_n_features_outs()


def _mapping(rare: Any, n_categories: int) -> Any:
    """Number the categories, all rare ones alike and last."""
    if rare is None:
        return None
    if not (_is_array(rare, "iu", ["r"], {}) and _are_places(rare, n_categories)):
        raise ValueError("rare categories are none of the categories")
    frequent = np.setdiff1d(np.arange(n_categories), rare)
    mapping = np.full(n_categories, len(frequent))
    mapping[frequent] = np.arange(len(frequent))
    return mapping


def infrequent_of(step: Any) -> Any:
    """Say which categories of each feature an encoder takes as one; None where it does not."""
    return list(step._infrequent_indices) if step._infrequent_enabled else None
