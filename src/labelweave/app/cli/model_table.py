"""The models that ``labelweave fit`` knows, and the flags that their constructors give.

What the constructors say is in ``model_flags.json``, which ``scripts/write_model_flags.py`` writes: importing
them takes seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

MODELS = {
    "auto": "labelweave.decisions.automatic:AutoLabelClassifier",
    "max-margin": "labelweave.estimators:MaxMarginClassifier",
    "kernel-logistic": "labelweave.estimators:KernelLogisticClassifier",
    "low-rank": "labelweave.estimators:LowRankClassifier",
    "label-graph": "labelweave.estimators:LabelGraphClassifier",
    "label-tree": "labelweave.estimators:LabelTreeClassifier",
    "binary-relevance": "labelweave.estimators:BinaryRelevance",
}
CHOOSING = {"low-rank": "labelweave.estimators:LowRankClassifierCV"}


class Parameter(NamedTuple):
    """What the constructor of one model says of a flag.

    kind: "value", "switch", "text" or "list".
    words, numbers: what it takes; numbers are "int", "float" or both.
    is_choice: whether only the class that chooses by cross-validation has it.
    """

    name: str
    kind: str
    default: Any
    words: list[str]
    numbers: list[str]
    is_choice: bool
    says: str


class ModelTable(NamedTuple):
    """Every flag with the models that have it; other parameters, objects of Python, with theirs."""

    flags: dict[str, dict[str, Parameter]]
    objects: dict[str, list[str]]

    def of(self, model: str) -> dict[str, Parameter]:
        """Give the flags of one model."""
        return {flag: owners[model] for flag, owners in self.flags.items() if model in owners}

    def choices(self, model: str) -> list[str]:
        """Name the flags by which a model is chosen by cross-validation."""
        return [flag for flag, parameter in self.of(model).items() if parameter.is_choice]

    def keywords(self, model: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Give flags in the words of the constructor."""
        own = {flag: parameter for flag, parameter in self.of(model).items() if flag in given}
        return {p.name: p.default is not True and given[flag] for flag, p in own.items()}


def class_of(model: str, *, choosing: bool = False) -> Any:
    """Import the class of a model, or the one that chooses by cross-validation."""
    module, name = (CHOOSING if choosing else MODELS)[model].split(":")
    return getattr(import_module(module), name)


def class_on_cluster(model: str) -> Any:
    """Import the class of a model that is fitted on a Dask cluster; None if there is none."""
    return getattr(import_module("labelweave.dask"), MODELS[model].split(":")[1], None)


def models_on_clusters() -> list[str]:
    """Name the models that are fitted on a Dask cluster."""
    return [model for model in MODELS if class_on_cluster(model) is not None]


@cache
def model_table() -> ModelTable:
    """Give what the constructors say."""
    kept = json.loads(Path(__file__).with_name("model_flags.json").read_text(encoding="utf-8"))
    flags = {
        flag: {model: Parameter(**parameter) for model, parameter in owners.items()}
        for flag, owners in kept["flags"].items()
    }
    return ModelTable(flags, kept["objects"])
