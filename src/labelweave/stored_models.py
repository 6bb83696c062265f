"""Reading model files: each class that they may hold has to be imported before a file names it."""

from labelweave import automatic, decisions
from labelweave.estimators import (
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
from labelweave.model_files import pipelines

HOMES = (
    automatic,
    binary_relevance,
    decisions,
    kernel_logistic,
    label_graph,
    label_tree,
    low_rank,
    max_margin,
    pipelines,
    table_model,
    zero_shot,
)

__all__ = ["load"]
