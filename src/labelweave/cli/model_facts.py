"""What a model file holds, as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from labelweave import Taxonomy
from labelweave.cli.choice_words import choice_facts, has_choice
from labelweave.cli.factor_words import factor_facts, gap_words, has_factors, tuned_threshold_words
from labelweave.cli.graph_words import graph_facts, has_graph
from labelweave.cli.model_rows import Model, classifier_of, scorer_of
from labelweave.cli.model_words import (
    hyperparameter_words,
    kernel_words,
    learning_words,
    n_support_rows,
    taxonomy_words,
    words_of,
)
from labelweave.decisions.layers import guarantee_words, layer_words
from labelweave.estimators import TableModel
from labelweave.features.kernels import Kernel
from labelweave.model_files import read_model_file

__all__ = ["Facts", "feature_names_of", "model_facts"]

Facts = dict[str, Any]


def model_facts(model: Model, path: str) -> Facts:
    """Describe a model."""
    content = read_model_file(path, verify=False)
    classifier = scorer_of(model)
    facts = {
        "kind": content.kind,
        "file": path,
        "bytes": Path(path).stat().st_size,
        "versions": dict(content.versions),
        "classifier": type(classifier).__name__,
        "parameters": _parameters(classifier),
        "one_class_a_row": classifier._form.kind != "labels",
        "labels": [str(name) for name in model.label_names_],
        "features": int(classifier.n_features_in_),
        "feature_names": feature_names_of(model) is not None,
        "kernel": kernel_words(classifier),
        "support_rows": n_support_rows(classifier),
        "fit": _fit_facts(classifier),
    }
    threshold = None if has_factors(classifier) else tuned_threshold_words(classifier)
    facts |= {} if threshold is None else {"threshold": threshold}
    facts |= {"columns": _columns(model)} if isinstance(model, TableModel) else {}
    facts |= {"factors": factor_facts(classifier)} if has_factors(classifier) else {}
    facts |= {"graph": graph_facts(classifier)} if has_graph(classifier) else {}
    facts |= {"choice": choice_facts(classifier)} if has_choice(classifier) else {}
    facts |= _decision_facts(classifier_of(model))
    return facts | _prior_facts(classifier) | _learning_facts(classifier)


def _decision_facts(classifier: Any) -> Facts:
    """Say what decides on the scores, for models with such layers, the outermost first."""
    decisions = [
        {"classifier": type(layer).__name__, "parameters": _parameters(layer), "summary": words}
        for layer, words in layer_words(classifier)
    ]
    if not decisions:
        return {}
    promise = guarantee_words(classifier)
    return {"decisions": decisions} | ({} if promise is None else {"guarantee": promise})


def _parameters(classifier: Any) -> Facts:
    given = classifier.get_params(deep=False)
    return {name: _plain(value) for name, value in given.items() if name != "estimator"}


def _prior_facts(classifier: Any) -> Facts:
    """Say what the prior is, for models that have one."""
    if not hasattr(classifier, "prior_"):
        return {}
    taxonomy, names = classifier.taxonomy_, [str(name) for name in classifier.classes_]
    tree = {} if taxonomy is None else {"taxonomy": _taxonomy_facts(taxonomy, names)}
    return tree | {
        "kernels": [
            words_of(term.kernel) if term.kernel else "precomputed" for term in classifier.prior_.terms
        ],
        "prior": hyperparameter_words(classifier),
        "kernel_products": float(classifier.kernel_products_),
    }


def _learning_facts(classifier: Any) -> Facts:
    """Say what was learned, for models that can."""
    if not hasattr(classifier, "learning_status_"):
        return {}
    trace = classifier.learning_trace_
    learning = {
        "status": classifier.learning_status_,
        "evaluations": len(trace),
        "cross_validation_loss": float(classifier.cross_validation_loss_),
        "first_loss": next((float(r.value) for r in trace if r.stage == trace[-1].stage), None),
        "stages": trace[-1].stage if trace else 0,
        "seconds": round(trace[-1].time, 3) if trace else 0.0,
        "values": hyperparameter_words(classifier),
        "summary": learning_words(classifier),
    }
    return {"hyperparameters": classifier.hyperparameters_, "learning": learning}


def _taxonomy_facts(taxonomy: Taxonomy, names: list[str]) -> Facts:
    return {
        "nodes": len(taxonomy),
        "roots": len(taxonomy.roots),
        "leaves": len(taxonomy.leaves),
        "summary": taxonomy_words(taxonomy, names),
    }


def _fit_facts(classifier: Any) -> Facts:
    """Say how the fit went; what a model has no notion of is None."""
    trace = classifier.trace_
    first, last = (trace[0], trace[-1]) if trace else (None, None)
    gap = getattr(classifier, "duality_gap_", None)
    objective = getattr(last, "objective", getattr(last, "primal", None))
    return {
        "converged": getattr(classifier, "converged_", None),
        "status": getattr(classifier, "status_", None),
        "rounds": int(getattr(classifier, "n_iter_", len(trace))),
        "gap": None if gap is None else float(gap),
        "seconds": 0.0 if last is None else round(last.time, 3),
        "checks": len(trace),
        "first_gap": None if first is None or np.isnan(first.gap) else first.gap,
        "objective": objective,
        "gap_summary": gap_words(classifier) if hasattr(classifier, "objective_") else None,
    }


def _columns(model: TableModel) -> Facts:
    names = ("text", "categorical", "numeric", "labels", "label_separator", "id")
    found = {name: getattr(model.columns, name) for name in names}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items() if v}


def _plain(value: Any) -> Any:
    """Give numbers and words as they are, anything larger by its type and size."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Kernel) or callable(value):
        return words_of(value)
    if isinstance(value, Taxonomy):
        return f"Taxonomy of {len(value)} nodes"
    if isinstance(value, (tuple, list)) and all(isinstance(item, (str, int, float)) for item in value):
        return ",".join(map(str, value))
    size = getattr(value, "n_labels", None) or np.size(value)
    return f"{type(value).__name__} over {size} labels"


def feature_names_of(model: Model) -> Any:
    """Give the names of the features, if they have any.

    Shapes: result (d,).
    """
    source = model if isinstance(model, TableModel) else None
    return getattr(model, "feature_names_in_", None) if source is None else source.feature_names_
