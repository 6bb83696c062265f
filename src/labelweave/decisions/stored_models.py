"""Imports for reading model files: every class in a file must be imported before it is loaded."""

from labelweave import estimators
from labelweave.decisions import automatic, hierarchical  # noqa: F401
from labelweave.model_files import load_object as load
from labelweave.model_files import pipelines  # noqa: F401

__all__ = ["load"]
_ = [getattr(estimators, name) for name in estimators.__all__]  # imported on first use
