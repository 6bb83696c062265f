"""The facts about a model in lines of a name and words: for ``labelweave inspect``, and in notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from labelweave.app.facts.model_facts import model_facts
from labelweave.app.facts.record import LearningFacts, ModelFacts
from labelweave.decisions.layers import innermost
from labelweave.estimators.base import LabelClassifier

Lines = dict[str, str]

_MOST_NAMES = 8
_STYLE = (
    ".labelweave-facts th, .labelweave-facts td {text-align: left; vertical-align: top; padding: 0 0.6em; "
    "overflow-wrap: anywhere; max-width: 50em}"
)


def decision_lines(facts: ModelFacts, *, with_settings: bool = False) -> Lines:
    """Say what decides on the scores of a model, what is inside that, and what is guaranteed."""
    said = [
        f"{layer.classifier}: {layer.summary}"
        + (f" ({parameter_words(layer.parameters)})" if with_settings else "")
        for layer in facts.decisions
    ]
    around = "; around ".join(said[1:])
    lines = {"decides": "".join(said[:1]), "around": around, "guarantee": facts.guarantee}
    return {name: text for name, text in lines.items() if text}


def parameter_words(parameters: dict[str, Any]) -> str:
    """Write parameters as in a call."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


def label_lines(facts: ModelFacts) -> Lines:
    """Name the first labels or classes, and count the features."""
    count = f"{len(facts.labels)}: {_first(facts.labels)}"
    lines = {"classes" if facts.one_class_a_row else "labels": count}
    if facts.unobserved:
        lines["unobserved"] = unobserved_words(facts.unobserved)
    if facts.features is None:
        return lines
    return lines | {"features": f"{facts.features}, {'with' if facts.feature_names else 'without'} names"}


def unobserved_words(names: list[str]) -> str:
    """Name the labels that no training row told of, and say what their scores are worth."""
    return (
        f"{len(names)} by no training row: {_first(names)}; scores order rows by what relates these labels "
        "to others, and how often they are there is a guess"
    )


def _first(names: list[str]) -> str:
    """List the first names, in quotation marks where a comma would make one look like two."""
    shown = ", ".join(repr(name) if "," in name else name for name in names[:_MOST_NAMES])
    return shown + " ..." * (len(names) > _MOST_NAMES)


def fact_lines(facts: ModelFacts, factor_lines: Lines | None = None) -> Lines:
    """Say what a model is like, with more lines on its factors if given, and how its fit went."""
    support = "" if facts.support_rows is None else f", {facts.support_rows} support rows"
    own = None if facts.thresholds is None else facts.thresholds.words
    lines: dict[str, str | None] = {
        "taxonomy": _summary(facts.taxonomy),
        "kernel": None if facts.combination else f"{facts.kernel}{support}",
        "weights": _summary(facts.pruning),
        "missing": facts.imputed,
        "scaling": facts.scaling,
        "rank": None if facts.factors is None else facts.factors.rank_summary,
        **(factor_lines or {}),
        "threshold": facts.threshold if facts.factors is None else own,
        "graph": _summary(facts.graph),
        "penalty": f"regularization {facts.graph.regularization:.3g}" if facts.graph else None,
        "chosen": _summary(facts.choice),
        **({} if facts.learning is None else _learning_lines(facts.learning, facts.prior is not None)),
        **(facts.combination.lines if facts.combination else _end_lines(facts)),
    }
    return {name: text for name, text in lines.items() if text is not None}


def _summary(part: Any) -> str | None:
    return None if part is None else str(part.summary)


def _end_lines(facts: ModelFacts) -> Lines:
    """Say how a fit ended, and what it took."""
    fit, steps, pruning = facts.fit, facts.steps, facts.pruning
    end = "converged" if fit.converged else "not converged"
    if fit.first_gap is not None and fit.gap is not None:
        course = f"; gap {fit.first_gap:.1e} at the first of {fit.checks} checks"
        at = "" if pruning is None else f" at {pruning.gap_before:.1e}, then weights were left out"
        gap = {"gap": f"{fit.gap:.2e} ({end}{at})"}
    else:
        is_silent = fit.converged is None and fit.status != "interrupted"
        course = "" if is_silent else f", {(fit.status or end).replace('_', ' ')}"
        gap = {} if fit.gap_summary is None else {"gap": fit.gap_summary}
    if fit.objective is None:
        is_closed = not fit.rounds and fit.status != "interrupted"
        taken = "in closed form" if is_closed else f"{fit.rounds} {steps}"
        return gap | {"fit": f"{taken}{course}"}
    spent = f"{fit.rounds} {steps} in {fit.seconds:.1f} s, objective {fit.objective:.6g}"
    return gap | {"fit": f"{spent}{course}"}


def _learning_lines(learning: LearningFacts, has_prior: bool) -> Lines:
    """Say what was learned; a model without a prior says nothing where that is nothing."""
    if not learning.evaluations:
        return {"prior": learning.values, "learning": learning.summary} if has_prior else {}
    words = f"{learning.summary} from {learning.first_loss:.4f} in {learning.seconds:.1f} s"
    return {"prior" if has_prior else "learned": learning.values, "learning": words}


def facts_html(model: Any) -> str:
    """Write the facts about a fitted classifier as an HTML table, every text escaped; nothing of others."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return ""
    facts = model_facts(model)
    lines = {"model": " around ".join(facts.names)} | decision_lines(facts) | label_lines(facts)
    if isinstance(innermost(model), LabelClassifier):  # of others little is known
        lines |= (facts.combination.member_lines if facts.combination else {}) | fact_lines(facts)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in lines.items()
    )
    return f'<style>{_STYLE}</style><table class="labelweave-facts">{rows}</table>'
