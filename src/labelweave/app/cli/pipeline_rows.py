"""Rows of a data file as a pipeline of scikit-learn takes them: a frame of columns, texts, or a matrix."""

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

_VECTORIZERS = (CountVectorizer, HashingVectorizer)  # of text; TfidfVectorizer is one of the first


def pipeline_in(model: Any) -> Pipeline | None:
    """Find the pipeline that a model is or decides on, if there is one."""
    found = innermost(model)
    return found if isinstance(found, Pipeline) else None


def takes_table(pipeline: Pipeline) -> bool:
    """Whether a pipeline was fitted to a frame or to texts; else it takes a matrix."""
    return hasattr(pipeline, "feature_names_in_") or _reads_texts(pipeline)


@dataclass(frozen=True)
class PipelineColumns:
    """What the columns of a table are to a pipeline.

    names: the columns of the frame it takes, or the one of texts.
    blank: columns of categories in which a blank cell is NaN, as pandas reads it.
    """

    roles: TableColumns
    names: list[str]
    blank: tuple[str, ...]

    @classmethod
    def of(cls, pipeline: Pipeline, path: str, given: TableColumns) -> PipelineColumns:
        """Read them off the steps; of texts the column is named by a flag, or the only one that is left."""
        if _reads_texts(pipeline):
            roles = given if given.text else given.resolved(next(raw_tables(path, no_header=given.no_header)))
            if len(roles.text or ()) != 1:
                raise ValueError(
                    f"The model takes texts, and {path} has {len(roles.text or ())} columns that look like "
                    "texts; name one with --text."
                )
            roles = replace(roles, categorical=None, numeric=None, vectors=None, drop=None)
            return cls(roles, list(roles.text), ())
        names = [str(name) for name in pipeline.feature_names_in_]
        words = {name for name, kind in _words(pipeline, names).items() if kind != "number"}
        blank = tuple(name for name, kind in _words(pipeline, names).items() if kind == "category")
        roles = replace(
            given,
            text=tuple(name for name in names if name in words) or None,
            categorical=None,
            numeric=tuple(name for name in names if name not in words) or None,
            drop=None,
        )
        return cls(roles, names, blank)

    def rows(self, frame: Any) -> Any:
        """Select the columns of the pipeline from a frame that was read with the roles."""
        frame = frame[self.names].copy()
        for name in self.blank:
            frame[name] = frame[name].astype(object).where(frame[name] != "", np.nan)
        return frame


def as_taken(model: Any, X: Any) -> Any:
    """Bring rows into the form of a model's pipeline: texts of the one column, a matrix with names."""
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
    """Go to the first step of pipelines that does something."""
    while isinstance(step, Pipeline):
        step = next((one for _, one in step.steps if one is not None and one != "passthrough"), None)
    return step


def _reads_texts(pipeline: Pipeline) -> bool:
    step = _first_step(pipeline)
    while isinstance(step, FeatureUnion):
        step = _first_step(step.transformer_list[0][1])
    return isinstance(step, _VECTORIZERS)


def _words(step: Any, names: list[str]) -> dict[str, str]:
    """Say which of the columns that a step takes are "text", "category" or "number"."""
    step = _first_step(step)
    if isinstance(step, FeatureUnion):
        return _joined(names, [(one, names) for _, one in step.transformer_list])
    if isinstance(step, ColumnTransformer):
        parts = [(one, _chosen(columns, names)) for _, one, columns in step.transformers_ if one != "drop"]
        return _joined(names, parts)
    if isinstance(step, _VECTORIZERS):
        return dict.fromkeys(names, "text")
    values = getattr(step, "categories_", None)
    if values is None:
        fills = getattr(step, "statistics_", None)
        values = [None] * len(names) if fills is None else [fills] * len(names)
    are_words = [found is not None and found.dtype.kind in "OUS" for found in values]
    kinds = [  # a blank cell is one of the categories, or NaN
        "number" if not is_word else "text" if "" in found.tolist() else "category"
        for found, is_word in zip(values, are_words, strict=True)
    ]
    return dict(zip(names, kinds, strict=True))


def _joined(names: list[str], parts: list[tuple[Any, list[str]]]) -> dict[str, str]:
    """Let words be words where any of several steps takes them so."""
    found = dict.fromkeys(names, "number")
    for step, columns in parts:
        found |= {name: kind for name, kind in _words(step, columns).items() if kind != "number"}
    return found


def _chosen(columns: Any, names: list[str]) -> list[str]:
    """Name the columns that a ColumnTransformer gives to a step; by name a range has its end too."""
    if isinstance(columns, slice):
        first, last = columns.start, columns.stop
        first = names.index(first) if isinstance(first, str) else first
        return names[first : names.index(last) + 1 if isinstance(last, str) else last : columns.step]
    listed: Any = np.atleast_1d(np.asarray(columns))
    chosen: list[str] = (listed if listed.dtype.kind in "OU" else np.asarray(names)[listed]).tolist()
    return chosen
