"""Imports for reading model files: every class in a file must be imported before it is loaded."""

from labelweave.decisions import automatic, hierarchical  # noqa: F401
from labelweave.estimators import (  # noqa: F401
    binary_relevance,
    kernel_logistic,
    label_graph,
    label_tree,
    low_rank,
    max_margin,
    table_model,
    zero_shot,
)
from labelweave.model_files import load_object as load
from labelweave.model_files import pipelines  # noqa: F401

__all__ = ["load"]
