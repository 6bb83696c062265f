"""Pipelines in model files: steps of known kinds from scikit-learn and this library, without pickle.

A scikit-learn step is stored as the name of its kind, its parameters and its fitted attributes
(:mod:`labelweave.model_files.transformer_kinds`); a step of this library as any object.  Files of skops 0.16
do not hold what model files promise: equal steps get different bytes, the header of an array allocates 16 GB
(deflated zeros of 0.9 MB 1.9 GB) before an error, and a scale of 0 or a mean of another length is loaded.
"""

from __future__ import annotations

import inspect
from collections import UserList
from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.impute import MissingIndicator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder
from sklearn.utils.validation import check_is_fitted

from labelweave.foundation.arguments import checked
from labelweave.model_files.model_file import save_object
from labelweave.model_files.safe_file import ModelFileError
from labelweave.model_files.schema import (
    FLAG,
    TEXT,
    Anything,
    Field,
    Items,
    Maybe,
    Named,
    OneOf,
    Record,
    Texts,
    count,
    reads_numbers,
)
from labelweave.model_files.state import encode
from labelweave.model_files.storable import storable, storable_name
from labelweave.model_files.transformer_kinds import (
    FITTED,
    FUNCTIONS,
    NAMES,
    WITHOUT_WIDTH,
    check_fitted,
    check_parameters,
    fitted_of,
    infrequent_of,
    put_categories,
    put_words,
    words_of,
)
from labelweave.model_files.trial_rows import check_width, try_out

_WITH_WORDS = (CountVectorizer, TfidfVectorizer, DictVectorizer)
_WITH_CATEGORIES = (OneHotEncoder, OrdinalEncoder)
_COMPOSITES = {kind.__name__: kind for kind in (Pipeline, FeatureUnion, ColumnTransformer)}
_PLAIN = (bool, int, float, str, slice, type, np.dtype, np.generic, np.ndarray)
_NOT_KEPT = {"memory", "steps", "transformer_list", "transformers", "vocabulary", "remainder", "n_jobs"}


@checked
def save(model: Any, path: str | PathLike[str], *, key: bytes | None = None) -> None:
    """Write a fitted classifier or pipeline to one file, without pickle; load it with ``labelweave.load``.

    For path and key see :meth:`labelweave.MaxMarginClassifier.save`.

    Parameters
    ----------
    model : classifier, transformer or Pipeline
        An estimator of this library, or scikit-learn's Pipeline, FeatureUnion or ColumnTransformer of these
        and of scikit-learn's scalers, vectorizers, encoders, imputers and selectors, PCA and TruncatedSVD.

    Raises
    ------
    TypeError
        If a step is of another kind, named in the message, or has a custom function.
    NotFittedError
        If the model is not fitted.
    """
    kept = kept_form(model)
    try:
        storable_name(kept)
    except TypeError:
        best = "; save its best_estimator_" if hasattr(model, "best_estimator_") else ""
        raise TypeError(f"{_refused(model, 'The model')}{best}") from None
    _require_fitted(model)
    save_object(path, kept, key=key, name=type(model).__name__)


def kept_form(model: Any, place: str = "") -> Any:
    """Return what a model file stores of an estimator: itself, or the record of one from scikit-learn.

    place: its name in messages, by default its class.
    """
    is_kept = type(model) in FITTED or type(model) in _COMPOSITES.values()
    return KeptStep(model, place) if is_kept else model


@storable("ScikitLearn")
class KeptStep:
    """The record of a fitted scikit-learn estimator; reading it returns the estimator."""

    def __init__(self, step: Any, place: str = "") -> None:
        self.step, self.place = step, place or type(step).__name__

    def to_state(self) -> dict[str, Any]:
        return _described(self.step, self.place)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Any:
        """Rebuild the estimator with all checks; if numbers are read, also send trial rows through it."""
        step = _made(state)
        if reads_numbers():
            try_out(step)
        return step


def _described(step: Any, place: str) -> dict[str, Any]:
    """Describe a step as plain data; place: its name in messages."""
    kind = type(step)
    if kind in _COMPOSITES.values():
        parameters, fitted = _plain_parameters(step, place), _parts(step, place)
    elif kind in FITTED:
        check_parameters(step)
        _require_fitted(step)
        parameters, fitted = _plain_parameters(step, place), _fitted(step, place)
    else:
        raise _refused(step, place)
    names = getattr(step, "feature_names_in_", None)
    output = getattr(step, "_sklearn_output_config", {}).get("transform")
    return {
        "class": kind.__name__,
        "parameters": parameters,
        "fitted": fitted,
        "n_features": getattr(step, "n_features_in_", None) if kind is not Pipeline else None,
        "feature_names": None if names is None or kind is Pipeline else np.asarray(names, np.str_),
        "output": output,
    }


def _refused(step: Any, place: str) -> TypeError:
    return TypeError(
        f"{place} is a {type(step).__name__}, which model files cannot store; they store labelweave's "
        f"estimators and scikit-learn's {', '.join([*_COMPOSITES, *NAMES])}; use skops or pickle for others"
    )


def _plain_parameters(step: Any, place: str) -> dict[str, Any]:
    given = {name: value for name, value in step.get_params(deep=False).items() if name not in _NOT_KEPT}
    name = getattr(given.get("score_func"), "__name__", "")
    if name in FUNCTIONS and given["score_func"] is FUNCTIONS[name]:
        given["score_func"] = name
    return {name: _kept_value(value, f"The parameter {name} of {place}") for name, value in given.items()}


def _fitted(step: Any, place: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(step, _WITH_WORDS):
        found["words"] = np.array(words_of(step), dtype=np.str_)
        found["is_fixed"] = getattr(step, "vocabulary", None) is not None
        found["idf"] = np.array(step.idf_) if isinstance(step, TfidfVectorizer) and step.use_idf else None
    elif isinstance(step, _WITH_CATEGORIES):
        found = {"categories": list(step.categories_), "infrequent": infrequent_of(step)}
    else:
        found = fitted_of(step)
    return {name: _kept_value(value, f"{name} of {place}") for name, value in found.items()}


def _kept_part(part: Any, place: str) -> Any:
    if part is None or isinstance(part, str):
        return part
    if isinstance(part, FunctionTransformer) and part.func is None and part.inverse_func is None:
        return "passthrough"
    kept = kept_form(part, place)
    try:
        storable_name(kept)
    except TypeError:
        raise _refused(part, place) from None
    if kept is part:
        check_is_fitted(part)
    return kept


def _parts(step: Any, place: str) -> dict[str, Any]:
    if isinstance(step, ColumnTransformer):
        check_is_fitted(step)
        places = {name: list(map(int, at)) for name, at in step._transformer_to_input_indices.items()}
        # a part without columns is not fitted
        parts = [(name, part if places[name] else "drop", at) for name, part, at in step.transformers_]
        return {
            "parts": [[name, _kept_part(part, f"{place}'s {name}")] for name, part, _ in parts],
            "columns": [
                _kept_value(_listed(columns), f"The columns of {name}") for name, _, columns in parts
            ],
            "places": places,
            "outputs": {name: [at.start, at.stop] for name, at in step.output_indices_.items()},
            "is_sparse": bool(step.sparse_output_),
            "has_remainder": len(parts) > len(step.transformers),
        }
    pairs = step.steps if isinstance(step, Pipeline) else step.transformer_list
    return {"parts": [[name, _kept_part(part, f"{place}'s {name}")] for name, part in pairs]}


def _kept_value(value: Any, place: str) -> Any:
    """Return what is stored of a value; raise with its name if a model file cannot store it."""
    if isinstance(value, np.random.RandomState):
        return None  # the state of a generator is not used after the fit
    kept = kept_form(value, place)
    try:
        encode(kept, {})
    except TypeError:
        said = "which model files cannot store; use plain values"
        raise TypeError(f"{place} is a {type(value).__name__}, {said}.") from None
    return kept


def _require_plain(value: Any) -> None:
    if isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            _require_plain(part)
    elif value is not None and not isinstance(value, _PLAIN):
        raise ModelFileError(f"a step has a {type(value).__name__} where plain values are expected.")


_FITTED = Named(Anything())
_STEP = Record(
    {
        "class": TEXT,
        "parameters": _FITTED,
        "fitted": _FITTED,
        "n_features": Maybe(count("d", 1)),
        "feature_names": Maybe(Texts("d")),
        "output": OneOf((None, "default", "pandas", "polars")),
    },
    {"features with names are distinct": lambda state: _are_distinct(state["feature_names"])},
)
_PARTS: dict[str, Field] = {"parts": Items(Items(Anything(), "2"), "p", least=1)}
_COLUMNS: dict[str, Field] = _PARTS | {
    "columns": Items(Anything(), "p"),
    "places": Named(Items(count())),
    "outputs": Named(Items(count(), "2")),
    "is_sparse": FLAG,
    "has_remainder": FLAG,
}
_WORDS: dict[str, Field] = {"words": Texts("w"), "is_fixed": FLAG, "idf": Anything()}
_CATEGORIES: dict[str, Field] = {"categories": Items(Anything()), "infrequent": Maybe(Items(Anything()))}


def _are_distinct(names: Any) -> bool:
    return names is None or len(set(names.tolist())) == len(names)


def _made(state: dict[str, Any]) -> Any:
    _STEP.check(state, "step", {})
    name, fitted = state["class"], state["fitted"]
    kind = (_COMPOSITES | NAMES).get(name)
    if kind is None:
        raise ModelFileError(f"a step is of the unknown kind {str(name)!r}.")
    parameters = {key: value for key, value in state["parameters"].items() if key != "n_jobs"}
    _require_plain(parameters)
    if "score_func" in parameters:
        parameters["score_func"] = FUNCTIONS[parameters["score_func"]]
    strange = parameters.keys() - (set(inspect.signature(kind).parameters) - _NOT_KEPT)
    if strange:
        raise ModelFileError(f"its step {name} has the unknown parameters {', '.join(sorted(strange))}.")
    step = _composite(kind, parameters, fitted) if name in _COMPOSITES else kind(**parameters)
    check_parameters(step)
    _put_features(step, state["n_features"], state["feature_names"])
    if isinstance(step, ColumnTransformer):
        _put_columns(step, fitted)
    elif name in NAMES:
        _put_fitted(step, fitted)
    if state["output"] is not None:
        step.set_output(transform=state["output"])
    return step


def _put_features(step: Any, n_features: Any, names: Any) -> None:
    is_without = isinstance(step, (Pipeline, *WITHOUT_WIDTH))
    if (n_features is None) != is_without and not isinstance(step, (FeatureUnion, MissingIndicator)):
        raise ModelFileError(f"its {type(step).__name__} takes {n_features!r} features.")
    if n_features is None or isinstance(step, FeatureUnion):
        return
    step.n_features_in_ = n_features
    if names is not None:
        step.feature_names_in_ = names.astype(object)


def _put_fitted(step: Any, fitted: dict[str, Any]) -> None:
    name = type(step).__name__
    if isinstance(step, _WITH_WORDS):
        Record(_WORDS).check(fitted, name, {})
        if fitted["is_fixed"]:
            step.vocabulary = fitted["words"].tolist()
        put_words(step, fitted["words"], fitted["idf"])
    elif isinstance(step, _WITH_CATEGORIES):
        Record(_CATEGORIES).check(fitted, name, {})
        put_categories(step, fitted["categories"], fitted["infrequent"])
    else:
        check_fitted(step, fitted)
        for key, value in fitted.items():
            setattr(step, key, value)


def _checked_part(part: Any) -> Any:
    is_step = callable(getattr(part, "transform", getattr(part, "predict", None)))
    if part not in (None, "passthrough", "drop") and not is_step:
        raise ModelFileError("a step neither transforms nor predicts.")
    return part


def _composite(kind: Any, parameters: dict[str, Any], fitted: dict[str, Any]) -> Any:
    Record(_COLUMNS if kind is ColumnTransformer else _PARTS).check(fitted, kind.__name__, {})
    parts = [(name, _checked_part(part)) for name, part in fitted["parts"]]
    names = [name for name, _ in parts]
    if not all(type(name) is str and "__" not in name for name in names) or len(set(names)) < len(names):
        raise ModelFileError("its steps do not have distinct names.")
    if kind is Pipeline:
        _require_transformers([part for _, part in parts[:-1]])
        return Pipeline(parts, **parameters)
    _require_transformers([part for _, part in parts])
    if kind is FeatureUnion:
        return FeatureUnion(parts, **parameters)
    _require_plain(fitted["columns"])
    triples = [(name, part, at) for (name, part), at in zip(parts, fitted["columns"], strict=True)]
    given = [(name, _unfitted(part), at) for name, part, at in triples]
    remainder = given.pop()[1] if fitted["has_remainder"] is True else "drop"
    step = ColumnTransformer(given, remainder=remainder, **parameters)
    step.transformers_ = triples
    return step


def _require_fitted(step: Any) -> None:
    """Raise if a step is not fitted; scikit-learn before 1.7 raises for steps without a state."""
    if not isinstance(step, FeatureHasher | HashingVectorizer):
        check_is_fitted(step)


def _listed(columns: Any) -> Any:
    """Return the columns of a remainder as a list; scikit-learn before 1.9 uses its own list type."""
    return columns.data if isinstance(columns, UserList) else columns


def _require_transformers(parts: Iterable[Any]) -> None:
    for part in parts:
        if part not in (None, "passthrough", "drop") and not hasattr(part, "transform"):
            raise ModelFileError(f"its step {type(part).__name__} does not transform.")


def _unfitted(part: Any) -> Any:
    return part if part is None or isinstance(part, str) else clone(part)


def _put_columns(step: Any, fitted: dict[str, Any]) -> None:
    """Set the columns that fitted steps of a ColumnTransformer take, and the features they return."""
    width, places, outputs = step.n_features_in_, fitted["places"], fitted["outputs"]
    names = {name for name, *_ in step.transformers_}
    if not names <= places.keys() or {place for at in places.values() for place in at} != set(range(width)):
        raise ModelFileError(f"its columns do not cover the {width} input columns.")
    if not names <= outputs.keys() | {"remainder"}:
        raise ModelFileError("it does not list the features of its steps.")
    for name, part, _ in step.transformers_:
        if getattr(part, "n_features_in_", len(places[name])) != len(places[name]):
            raise ModelFileError(f"its step {name!r} does not take its {len(places[name])} columns.")
    step.transformers_ = [
        (name, _passing(step, places[name]) if part == "passthrough" else part, at)
        for name, part, at in step.transformers_
    ]
    step._columns = [at for *_, at in step.transformers_[: len(step.transformers)]]
    step._transformer_to_input_indices = {name: list(at) for name, at in places.items()}
    step._remainder = ("remainder", step.remainder, places.get("remainder", []))
    step.output_indices_ = {name: slice(*at) for name, at in outputs.items()}
    step.sparse_output_ = fitted["is_sparse"]
    check_width(step)


def _passing(step: Any, places: list[int]) -> FunctionTransformer:
    """Return the transformer that scikit-learn uses for passthrough columns."""
    passing = FunctionTransformer(accept_sparse=True, check_inverse=False, feature_names_out="one-to-one")
    passing.n_features_in_ = len(places)
    if hasattr(step, "feature_names_in_"):
        passing.feature_names_in_ = step.feature_names_in_[places]
    return passing
