"""The stored fields of each scikit-learn transformer in a model file, and their checks.

A file can only create the kinds below.  Parameters pass scikit-learn's own checks; for every fitted
attribute the name, type, length and numbers are checked, and derived attributes are computed again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn import feature_extraction, feature_selection, impute, preprocessing
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction import text

from labelweave.model_files import schema
from labelweave.model_files.safe_file import ModelFileError

Fitted = dict[str, Any]

_MOST = 1e50  # keeps numbers finite in a model's sums after two steps
_STEEPEST = 150.0  # powers


@dataclass(frozen=True)
class Cells:
    """A list of column values: numbers, possibly missing, or text, or objects that are any of these."""

    shape: str

    def check(self, value: Any, where: str, sizes: schema.Sizes) -> None:
        if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.kind not in "biufUO":
            schema.refuse(where, "a list of values")
        if value.dtype.kind in "biuf":
            schema.Numbers(self.shape, "biuf", -_MOST, _MOST, may_be_nan=True).check(value, where, sizes)
        schema.same_length(self.shape, len(value), where, sizes)
        if value.dtype.kind == "O" and not all(map(_is_cell, value.tolist())):
            schema.refuse(where, "a list of numbers and texts")


def _is_cell(value: Any) -> bool:
    if isinstance(value, (int, float)):
        return math.isnan(value) or -_MOST <= value <= _MOST
    return value is None or isinstance(value, str)


# d is the number of features; imputers may have NaN for a feature that was always missing
_ADDED = schema.Numbers("d", least=-_MOST, most=_MOST, may_be_nan=True)
_DIVIDED_BY = schema.Numbers("d", least=1 / _MOST, most=_MOST, may_be_nan=True)
_SQUARED = schema.Numbers("d", least=0.0, may_be_nan=True)
_SEEN = schema.Maybe(schema.Number(0, 2**62), schema.Numbers("d", "iuf", 0, 2**62), none=False)
_TOLD = schema.Numbers("d", infinite=True, may_be_nan=True)
_MOMENTS = {
    "mean_": schema.Maybe(_ADDED), "var_": schema.Maybe(_SQUARED), "scale_": schema.Maybe(_DIVIDED_BY),
    "n_samples_seen_": _SEEN,
}  # fmt: skip
_BOUNDS = dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), _ADDED)
_TESTED: dict[str, schema.Field] = {"scores_": _TOLD, "pvalues_": schema.Maybe(_TOLD)}
_INDICATOR = schema.Maybe(schema.Made(impute.MissingIndicator, {"d": "_n_features"}))
_AXES: dict[str, schema.Field] = {
    "components_": schema.Numbers("k d", least=-_MOST, most=_MOST),
    **dict.fromkeys(("explained_variance_", "explained_variance_ratio_", "singular_values_"), schema.Numbers(
        "k", least=0.0, may_be_nan=True
    )),
}  # fmt: skip
FITTED: dict[type, dict[str, schema.Field]] = {
    preprocessing.StandardScaler: {**_MOMENTS},
    preprocessing.MinMaxScaler: {**_BOUNDS, "n_samples_seen_": _SEEN},
    preprocessing.MaxAbsScaler: {"max_abs_": _ADDED, "scale_": _DIVIDED_BY, "n_samples_seen_": _SEEN},
    preprocessing.RobustScaler: {"center_": schema.Maybe(_ADDED), "scale_": schema.Maybe(_DIVIDED_BY)},
    preprocessing.QuantileTransformer: {
        "n_quantiles_": schema.count(),
        "quantiles_": schema.Numbers("q d", least=-_MOST, most=_MOST, may_be_nan=True),
        "references_": schema.Numbers("q", least=0.0, most=1.0),
    },
    preprocessing.PowerTransformer: {
        "lambdas_": schema.Numbers("d", least=-_STEEPEST, most=_STEEPEST, may_be_nan=True),
        "_scaler": schema.Made(preprocessing.StandardScaler, {"d": "n_features_in_"}),
    },
    preprocessing.Normalizer: {},
    preprocessing.Binarizer: {},
    preprocessing.OneHotEncoder: {},
    preprocessing.OrdinalEncoder: {},
    impute.SimpleImputer: {
        "statistics_": Cells("d"), "indicator_": _INDICATOR, "_fit_dtype": schema.Made(np.dtype),
        "_fill_dtype": schema.Made(np.dtype),
    },
    impute.KNNImputer: {
        "_fit_X": schema.Numbers("n d", least=-_MOST, most=_MOST, may_be_nan=True),
        "_mask_fit_X": schema.Numbers("n d", "b"), "_valid_mask": schema.Numbers("d", "b"),
        "indicator_": _INDICATOR,
    },
    impute.MissingIndicator: {
        "features_": schema.places("p"), "_n_features": schema.count("d", 1), "_precomputed": schema.FLAG,
    },
    feature_selection.VarianceThreshold: {"variances_": _SQUARED},
    feature_selection.SelectKBest: _TESTED,
    feature_selection.SelectPercentile: _TESTED,
    feature_selection.SelectFpr: _TESTED | {"pvalues_": _TOLD},
    feature_selection.SelectFdr: _TESTED | {"pvalues_": _TOLD},
    feature_selection.SelectFwe: _TESTED | {"pvalues_": _TOLD},
    feature_selection.GenericUnivariateSelect: _TESTED,
    feature_extraction.DictVectorizer: {},
    feature_extraction.FeatureHasher: {},
    text.CountVectorizer: {},
    text.TfidfVectorizer: {},
    text.TfidfTransformer: {"idf_": schema.Numbers("d", least=-_MOST, most=_MOST)},
    text.HashingVectorizer: {},
    PCA: _AXES | {
        "mean_": schema.Numbers("d", least=-_MOST, most=_MOST),
        "noise_variance_": schema.Number(0.0, may_be_nan=True),
        "n_samples_": schema.count(), "n_components_": schema.count("k", 1),
    },
    TruncatedSVD: _AXES,
}  # fmt: skip
# kinds whose input is not rows with a fixed number of features
WITHOUT_WIDTH = (
    text.CountVectorizer, text.HashingVectorizer, feature_extraction.DictVectorizer,
    feature_extraction.FeatureHasher,
)  # fmt: skip


def _knows_what_misses(step: Any, fitted: Fitted) -> bool:
    """Return whether the rows of a KNNImputer have numbers wherever its masks expect them."""
    mask, rows = fitted["_mask_fit_X"], fitted["_fit_X"]
    return not np.isnan(rows[~mask]).any() and bool((fitted["_valid_mask"] == ~mask.all(axis=0)).all())


def _has_moments(has_center: bool, is_scaled: bool, fitted: Fitted) -> bool:
    return has_center and is_scaled == (fitted["scale_"] is not None)


def _is_rising(table: Any) -> bool:
    return not (np.diff(table, axis=0) < 0).any()  # NaN in columns that are always missing


_RELATIONS: dict[type, dict[str, Callable[[Any, Fitted], bool]]] = {
    preprocessing.StandardScaler: {
        "it has the moments it uses": lambda step, fitted: _has_moments(
            step.with_mean <= (fitted["mean_"] is not None), step.with_std, fitted
        ),
    },
    preprocessing.RobustScaler: {
        "it has the moments it uses": lambda step, fitted: _has_moments(
            step.with_centering == (fitted["center_"] is not None), step.with_scaling, fitted
        ),
    },
    preprocessing.QuantileTransformer: {
        "quantiles rise": lambda _, fitted: (
            len(fitted["references_"]) > 0
            and _is_rising(fitted["quantiles_"])
            and _is_rising(fitted["references_"])
        ),
    },
    impute.KNNImputer: {
        "it has rows, with numbers where none are missing": lambda step, fitted: (
            len(fitted["_fit_X"]) > 0 and _knows_what_misses(step, fitted)
        ),
    },
    impute.MissingIndicator: {
        "its features are among its inputs": lambda _, fitted: _are_places(
            fitted["features_"], fitted["_n_features"]
        ),
    },
    feature_selection.GenericUnivariateSelect: {
        "it has the scores it selects by": lambda step, fitted: (
            fitted["pvalues_"] is not None or step.mode in ("k_best", "percentile")
        ),
    },
}  # fmt: skip
NAMES = {kind.__name__: kind for kind in FITTED}
FUNCTIONS = {
    name: getattr(feature_selection, name)
    for name in (
        "chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression", "r_regression",
    )
}  # fmt: skip


def check_fitted(step: Any, fitted: Fitted) -> None:
    """Check the fitted attributes in a file: every name, type, length and number, and their consistency.

    Raises ModelFileError if something differs from what scikit-learn would store.
    """
    name, width = type(step).__name__, getattr(step, "n_features_in_", None)
    schema.Record(_present(step)).check(fitted, name, {} if width is None else {"d": width})
    for said, holds in _RELATIONS.get(type(step), {}).items():
        if not holds(step, fitted):
            raise ModelFileError(f"its {name} is inconsistent: {said}.")


def _present(step: Any) -> dict[str, schema.Field]:
    """Return the fields of a step without those that its parameters rule out."""
    wanted = FITTED[type(step)]
    if isinstance(step, preprocessing.PowerTransformer) and not step.standardize:
        return {name: field for name, field in wanted.items() if name != "_scaler"}
    if isinstance(step, text.TfidfTransformer) and not step.use_idf:
        return {}
    return wanted


def fitted_of(step: Any) -> Fitted:
    known = vars(step)
    if "_fit_dtype" in known:  # the fill type, stored separately since scikit-learn 1.7
        known = {"_fill_dtype": step._fit_dtype} | known
    return {name: known[name] for name in _present(step)}


def _are_places(places: Any, end: int) -> bool:
    return places.size == 0 or bool(places.min() >= 0 and places.max() < end)


def check_parameters(step: Any) -> None:
    """Check the parameters of a step as scikit-learn's fit does, and those that it would not refuse.

    Raises ValueError if a parameter is invalid, or would read files.
    """
    if hasattr(step, "_parameter_constraints"):
        step._validate_params()
    if getattr(step, "input", "content") != "content":
        raise ValueError(f"{type(step).__name__} with input={step.input!r} reads files, which is not allowed")
    re.compile(getattr(step, "token_pattern", None) or "")
    fewest, most = getattr(step, "ngram_range", (1, 1))
    if not (type(fewest) is type(most) is int and 1 <= fewest <= most):
        raise ValueError(f"{type(step).__name__} has the invalid ngram_range ({fewest!r}, {most!r})")
    dtype = np.dtype(getattr(step, "dtype", None) or float)
    if dtype.kind not in "iuf":
        raise ValueError(f"{type(step).__name__} has the output type {dtype}, which is not numeric")
    if isinstance(step, preprocessing.OrdinalEncoder) and step.handle_unknown == "use_encoded_value":
        _check_code(step, step.unknown_value)


def _check_code(step: preprocessing.OrdinalEncoder, value: Any) -> None:
    """Raise for a code of unknown or missing values that the type of the codes cannot represent."""
    with np.errstate(all="ignore"):
        code = np.asarray(value, float).astype(step.dtype)
    if not (code == value or (np.isnan(value) and code.dtype.kind == "f")):
        raise ValueError(f"OrdinalEncoder has the code {value!r}, which {code.dtype} cannot represent")


def words_of(step: Any) -> list[Any]:
    return sorted(step.vocabulary_, key=step.vocabulary_.__getitem__)


def put_words(step: Any, words: Any, idf: Any) -> None:
    """Set the distinct words of a vectorizer and, for tf-idf, one weight each; otherwise raise ValueError."""
    names = [str(word) for word in words]
    step.vocabulary_ = {word: place for place, word in enumerate(names)}
    if len(step.vocabulary_) < len(names):
        raise ValueError("a word occurs twice")
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
        if not isinstance(idf, np.ndarray) or idf.shape != (len(names),):
            raise ValueError("there is not one weight per word")
        schema.Numbers("d", least=-_MOST, most=_MOST).check(idf, "weights of words", {})
        step._tfidf.idf_ = idf


def put_categories(step: Any, categories: Any, infrequent: Any) -> None:
    """Set the categories of an encoder, and the infrequent ones that count as one.

    Raises ValueError if these are not categories of its features.
    """
    if not isinstance(categories, list) or len(categories) != step.n_features_in_:
        raise ValueError(f"{type(step).__name__} does not have one array of categories per feature")
    for number, found in enumerate(categories):
        Cells("_").check(found, f"{type(step).__name__}.categories_[{number}]", {})
        if not _are_categories(found):
            raise ValueError(f"the categories of feature {number} are not distinct and sorted")
    step.categories_ = list(categories)
    is_ordinal = isinstance(step, preprocessing.OrdinalEncoder)
    ends = [found[-1] if len(found) else None for found in categories]
    missing = [is_ordinal and isinstance(end, (float, np.floating)) and bool(np.isnan(end)) for end in ends]
    step._infrequent_enabled = infrequent is not None
    if infrequent is not None:
        if len(infrequent) != len(categories):
            raise ValueError(f"{type(step).__name__} does not list the infrequent categories of each feature")
        # the missing category is never infrequent
        counts = [len(found) - is_missing for found, is_missing in zip(categories, missing, strict=True)]
        step._infrequent_indices = list(infrequent)
        step._default_to_infrequent_mappings = list(map(_mapping, infrequent, counts))
    if is_ordinal:
        if any(missing):
            _check_code(step, step.encoded_missing_value)
        step._missing_indices = {n: len(categories[n]) - 1 for n in np.flatnonzero(missing).tolist()}
        return
    step._set_drop_idx()
    step._n_features_outs = step._compute_n_features_outs()


def _are_categories(values: Any) -> bool:
    """Return whether values are distinct, with at most a final NaN; numbers and texts must be sorted."""
    known = values.tolist()
    known = known[:-1] if known and _is_nan(known[-1]) else known
    if values.dtype.kind == "O":
        return len(values) > 0 and not any(map(_is_nan, known)) and len(set(known)) == len(known)
    return len(values) > 0 and all(a < b for a, b in pairwise(known))  # false for NaN


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _mapping(rare: Any, n_categories: int) -> Any:
    """Number the categories; all infrequent ones share the last number."""
    if rare is None:
        return None
    schema.places("r").check(rare, "list of rare categories", {})
    if not _are_places(rare, n_categories):
        raise ValueError("infrequent categories are not among the categories")
    frequent = np.setdiff1d(np.arange(n_categories), rare)
    mapping = np.full(n_categories, len(frequent))
    mapping[frequent] = np.arange(len(frequent))
    return mapping


def infrequent_of(step: Any) -> Any:
    """Return the infrequent categories of each feature of an encoder; None if it has none."""
    return list(step._infrequent_indices) if step._infrequent_enabled else None
