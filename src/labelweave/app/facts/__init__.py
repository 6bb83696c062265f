"""What is to be said of a fitted model, once: command line, report and notebooks speak from these records."""

from labelweave.app.facts.label_structure import FactorGeometry, covariance_of, prior_covariances
from labelweave.app.facts.lines import (
    certificate_words,
    decision_lines,
    fact_lines,
    facts_html,
    label_lines,
    origin_lines,
    parameter_words,
)
from labelweave.app.facts.model_facts import clique_facts, label_thresholds, model_facts
from labelweave.app.facts.record import ModelFacts, Section, plain
from labelweave.app.facts.words import class_words

__all__ = [
    "FactorGeometry",
    "ModelFacts",
    "Section",
    "certificate_words",
    "class_words",
    "clique_facts",
    "covariance_of",
    "decision_lines",
    "fact_lines",
    "facts_html",
    "label_lines",
    "label_thresholds",
    "model_facts",
    "origin_lines",
    "parameter_words",
    "plain",
    "prior_covariances",
]
