"""Rows of a data file as input of a scikit-learn pipeline: a DataFrame, texts, or a matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.pipeline import FeatureUnion, Pipeline

from labelweave.datasets import TableColumns
from labelweave.datasets.table_files import raw_tables
from labelweave.decisions.layers import innermost

_VECTORIZERS = (CountVectorizer, HashingVectorizer)  # TfidfVectorizer is a CountVectorizer


def pipeline_in(model: Any) -> Pipeline | None:
    found = innermost(model)
    return found if isinstance(found, Pipeline) else None


def takes_table(pipeline: Pipeline) -> bool:
    """Whether a pipeline was fitted to a DataFrame or to texts, not to a matrix."""
    return hasattr(pipeline, "feature_names_in_") or _reads_texts(pipeline)


@dataclass(frozen=True)
class PipelineColumns:
    """The columns of a table for a pipeline.

    names: the columns of its DataFrame, or its column of texts.
    blank: columns of categories in which blank cells are NaN, as in pandas.
    """

    roles: TableColumns
    names: list[str]
    blank: tuple[str, ...]

    @classmethod
    def of(cls, pipeline: Pipeline, path: str, given: TableColumns) -> PipelineColumns:
        """Infer them from the steps; a flag names the column of texts, unless only one is left."""
        if _reads_texts(pipeline):
            roles = given if given.text else given.resolved(next(raw_tables(path, no_header=given.no_header)))
            if len(roles.text or ()) != 1:
                raise ValueError(
                    f"The model takes texts, but {path} has {len(roles.text or ())} columns that look like "
                    "texts; name one with --text."
                )
            roles = replace(roles, categorical=None, numeric=None, vectors=None, drop=None)
            return cls(roles, list(roles.text), ())
        names = [str(name) for name in pipeline.feature_names_in_]
        kinds = _words(pipeline, names)
        numeric = tuple(name for name in names if kinds[name] == "number") or None
        text = tuple(name for name in names if kinds[name] != "number") or None
        roles = replace(given, text=text, categorical=None, numeric=numeric, drop=None)
        return cls(roles, names, tuple(name for name in names if kinds[name] == "category"))

    def rows(self, frame: Any) -> Any:
        """Select the pipeline's columns from a DataFrame that was read with the roles."""
        frame = frame[self.names].copy()
        for name in self.blank:
            frame[name] = frame[name].astype(object).where(frame[name] != "", np.nan)
        return frame


def as_taken(model: Any, X: Any) -> Any:
    """Convert rows to the input of a model's pipeline: texts of the one column, a matrix with names."""
    pipeline = pipeline_in(model)
    if pipeline is None:
        return X
    if _reads_texts(pipeline):
        return X.iloc[:, 0].tolist()
    if not isinstance(X, np.ndarray) or not hasattr(pipeline, "feature_names_in_"):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=pipeline.feature_names_in_)


def _first_step(step: Any) -> Any:
    """Return the first step of a pipeline that is not a passthrough."""
    while isinstance(step, Pipeline):
        step = next((one for _, one in step.steps if one is not None and one != "passthrough"), None)
    return step


def _reads_texts(pipeline: Pipeline) -> bool:
    step = _first_step(pipeline)
    while isinstance(step, FeatureUnion):
        step = _first_step(step.transformer_list[0][1])
    return isinstance(step, _VECTORIZERS)


def _words(step: Any, names: list[str]) -> dict[str, str]:
    """Return which of a step's columns are "text", "category" or "number"."""
    step, parts = _first_step(step), list[tuple[Any, list[str]]]()
    if isinstance(step, FeatureUnion):
        parts = [(one, names) for _, one in step.transformer_list]
    if isinstance(step, ColumnTransformer):
        parts = [(one, _chosen(columns, names)) for _, one, columns in step.transformers_ if one != "drop"]
    if isinstance(step, FeatureUnion | ColumnTransformer):
        found = dict.fromkeys(names, "number")
        for one, columns in parts:  # text takes precedence
            found |= {name: kind for name, kind in _words(one, columns).items() if kind != "number"}
        return found
    if isinstance(step, _VECTORIZERS):
        return dict.fromkeys(names, "text")
    values = getattr(step, "categories_", None)
    if values is None:
        fills = getattr(step, "statistics_", None)
        values = [None] * len(names) if fills is None else [fills] * len(names)
    are_words = [found is not None and found.dtype.kind in "OUS" for found in values]
    kinds = [  # a blank cell is a category, or NaN
        "number" if not is_word else "text" if "" in found.tolist() else "category"
        for found, is_word in zip(values, are_words, strict=True)
    ]
    return dict(zip(names, kinds, strict=True))


def _chosen(columns: Any, names: list[str]) -> list[str]:
    """Return the names of a ColumnTransformer's columns; ranges by name include their end."""
    if isinstance(columns, slice):
        first, last = columns.start, columns.stop
        first = names.index(first) if isinstance(first, str) else first
        return names[first : names.index(last) + 1 if isinstance(last, str) else last : columns.step]
    listed: Any = np.atleast_1d(np.asarray(columns))
    chosen: list[str] = (listed if listed.dtype.kind in "OU" else np.asarray(names)[listed]).tolist()
    return chosen
