"""Facts about a fitted model, shared by the command line, reports and notebooks."""

from labelweave.app.facts.lines import (
    certificate_words,
    decision_lines,
    fact_lines,
    facts_html,
    label_lines,
    origin_lines,
    parameter_words,
)
from labelweave.app.facts.model_facts import (
    ModelFacts,
    Section,
    clique_facts,
    label_thresholds,
    model_facts,
    plain,
)
from labelweave.app.facts.words import FactorGeometry, class_words, covariance_of, prior_covariances

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
