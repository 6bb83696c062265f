"""Trial rows for a pipeline from a file, to check before use whether its steps fit together.

Every step is checked on its own.  Whether a step accepts the output of the steps before it (columns, sparse
or not, numbers or text) depends on their code, so two rows are sent through.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PowerTransformer

from labelweave.model_files.safe_file import ModelFileError
from labelweave.model_files.schema import is_bounded
from labelweave.model_files.transformer_kinds import FITTED

_HASHERS = (HashingVectorizer, FeatureHasher)
_MOST_DENSE = 2**21  # numbers per row, in all steps together
# parameters that would refuse rows only because they are artificial
_LENIENT: dict[type, dict[str, Any]] = {
    OneHotEncoder: {"handle_unknown": "ignore"},
    OrdinalEncoder: {"handle_unknown": "use_encoded_value", "unknown_value": 0},
    MissingIndicator: {"error_on_new": False},
    PowerTransformer: {"method": "yeo-johnson"},
}
_LARGEST = 1e39  # below the limit of models
_PASSES = (None, "passthrough", "drop")


def try_out(step: Any) -> None:
    """Send two rows through all transformers; raise a ModelFileError for a step that fails."""
    step = _lenient(step)
    rows = trial_rows(step, _n_steps(step))
    if rows is None and not isinstance(step, Pipeline):
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _through(step, rows)


def _lenient(step: Any) -> Any:
    """Copy a step, and its parts, so that it checks the form of the rows and not their values."""
    if type(step) not in (*_LENIENT, Pipeline, FeatureUnion, ColumnTransformer):
        return step
    made = copy.copy(step)
    if isinstance(step, FeatureUnion | ColumnTransformer):
        made.n_jobs = None
    for name in ("steps", "transformer_list", "transformers_"):
        if hasattr(step, name):
            parts = [(of, _lenient(part), *at) for of, part, *at in getattr(step, name)]
            setattr(made, name, parts)
    for name, value in _LENIENT.get(type(step), {}).items():
        setattr(made, name, value)
    return made


def _n_steps(step: Any) -> int:
    return 1 + sum(map(_n_steps, _steps_in(step)))


def _steps_in(step: Any) -> list[Any]:
    named = getattr(step, "steps", getattr(step, "transformer_list", getattr(step, "transformers_", ())))
    return [part for _, part, *_ in named]


def _through(step: Any, rows: Any) -> Any:
    """Return the transformed rows; None at a step that predicts."""
    if isinstance(step, Pipeline):
        for _, part in step.steps:
            if rows is None:
                rows = _made_by(part)
            elif part not in _PASSES:
                rows = _through(part, rows)
        return rows
    if not hasattr(step, "transform"):
        return _check_features(step, rows)
    try:
        found = _transformed(step, rows)
    except ModelFileError:
        raise
    except Exception as error:  # scikit-learn's steps raise what they meet
        said = " ".join(str(error).split())[:200]
        name = type(step).__name__
        raise ModelFileError(f"its {name} does not accept the output before it ({said}).") from error
    if found.shape[0] != 2:
        raise ModelFileError(f"its {type(step).__name__} does not return one row per input row.")
    return found


def _transformed(step: Any, rows: Any) -> Any:
    found = step.transform(rows)
    if isinstance(step, ColumnTransformer):
        ends = [at.stop for at in step.output_indices_.values()]
        if max(ends, default=0) != found.shape[1]:
            raise ModelFileError(f"its {type(step).__name__} does not return the features that it names.")
    return found


def _check_features(model: Any, rows: Any) -> None:
    width = getattr(model, "n_features_in_", rows.shape[1])
    if rows.shape[1] != width:
        raise ModelFileError(f"its {type(model).__name__} takes {width} features, but gets {rows.shape[1]}.")
    numbers = rows.data if sp.issparse(rows) else np.asarray(rows)
    if numbers.dtype.kind in "fiu" and not (np.abs(numbers) <= _LARGEST).all():  # false for NaN
        raise ModelFileError(
            f"steps before its {type(model).__name__} turn 0 and 1 into NaN or numbers that are too large."
        )


def trial_rows(step: Any, n_steps: int = 1) -> Any:
    """Return two rows that fit a step, of so many; None if its input is unknown."""
    if isinstance(step, Pipeline | FeatureUnion):
        pairs = step.steps if isinstance(step, Pipeline) else step.transformer_list
        used = [part for _, part in pairs if part not in _PASSES]
        return trial_rows(used[0], n_steps) if used else None
    if isinstance(step, ColumnTransformer):
        return _columns(step)
    if isinstance(step, DictVectorizer | FeatureHasher | CountVectorizer | HashingVectorizer):
        return _documents(step)
    if isinstance(step, OneHotEncoder | OrdinalEncoder):
        return np.array([[found[0] for found in step.categories_]] * 2, object)
    return _table(step, n_steps) if type(step) in FITTED else None


def _documents(step: Any) -> list[Any]:
    if isinstance(step, DictVectorizer):
        return [{}, dict.fromkeys(step.feature_names_[:1], 1)]
    if isinstance(step, FeatureHasher):
        return [{}, {}] if step.input_type == "dict" else [[], []]
    return ["a word", ""]


def _table(step: Any, n_steps: int) -> Any:
    """Return rows of numbers, with missing ones for imputers and their indicators."""
    width = step._n_features if isinstance(step, MissingIndicator) else step.n_features_in_
    if getattr(step, "_precomputed", False):  # the indicator of a SimpleImputer takes a mask
        return np.array([[True], [False]]).repeat(width, axis=1)
    if not isinstance(step, SimpleImputer | KNNImputer | MissingIndicator):
        return _ones(width, n_steps)
    dtype = getattr(step, "_fit_dtype", np.dtype(float))
    rows = np.ones((2, width), dtype if dtype.kind == "O" else float)
    if dtype.kind == "O":
        rows[0] = step.statistics_
    rows[1, step.features_ if isinstance(step, MissingIndicator) else slice(None)] = step.missing_values
    return rows


def _ones(width: int, n_steps: int = 1) -> Any:
    if width * n_steps > _MOST_DENSE:
        return sp.csr_array((2, width))
    return np.array([[1.0], [0.0]]).repeat(width, axis=1)


def _made_by(step: Any) -> Any:
    return _ones(len(step.get_feature_names_out())) if hasattr(step, "get_feature_names_out") else None


def _columns(step: ColumnTransformer) -> Any:
    """Return the columns of all parts side by side, in a DataFrame if they have names."""
    width = step.n_features_in_
    columns: list[Any] = [np.array([1.0, 0.0])] * width
    for name, part, _ in step.transformers_:
        at = step._transformer_to_input_indices[name]
        rows = None if part in _PASSES else trial_rows(part)
        if rows is None:
            continue
        for place, column in zip(
            at, [rows] if isinstance(rows, list) else np.asarray(_dense(rows)).T, strict=False
        ):
            columns[place] = column
    if hasattr(step, "feature_names_in_"):
        import pandas as pd

        return pd.DataFrame(dict(zip(step.feature_names_in_, columns, strict=True)))
    made = np.empty((2, width), object if any(isinstance(column, list) for column in columns) else float)
    for place, column in enumerate(columns):
        made[:, place] = column
    return made


def _dense(rows: Any) -> Any:
    return rows.toarray() if sp.issparse(rows) else rows


def check_width(step: ColumnTransformer) -> None:
    """Raise for dense rows, made of hashed words, that are much wider than the file."""
    widest = _most_hashed(step)
    if not step.sparse_output_ and not is_bounded(8 * widest, 0):
        raise ModelFileError(f"its {type(step).__name__} returns {widest} dense features.")


def _most_hashed(step: Any) -> int:
    if isinstance(step, _HASHERS):
        return int(step.n_features)
    return max(map(_most_hashed, _steps_in(step)), default=0)
