"""What is to be said of a fitted model, once: command line, report and notebooks speak from these records."""

from labelweave.app.facts.factor_geometry import FactorGeometry
from labelweave.app.facts.label_structure import covariance_of, prior_covariances
from labelweave.app.facts.lines import (
    decision_lines,
    fact_lines,
    facts_html,
    label_lines,
    parameter_words,
    unobserved_words,
)
from labelweave.app.facts.model_facts import clique_facts, label_thresholds, model_facts
from labelweave.app.facts.record import CliqueFacts, CombinationFacts, GraphFacts, ModelFacts
from labelweave.app.facts.words import class_words

__all__ = [
    "CliqueFacts",
    "CombinationFacts",
    "FactorGeometry",
    "GraphFacts",
    "ModelFacts",
    "class_words",
    "clique_facts",
    "covariance_of",
    "decision_lines",
    "fact_lines",
    "facts_html",
    "label_lines",
    "label_thresholds",
    "model_facts",
    "parameter_words",
    "prior_covariances",
    "unobserved_words",
]
