"""Facts about a model as named lines, for ``labelweave inspect``, notebooks and reports."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from labelweave.app.facts.model_facts import ModelFacts, Plain, Section, model_facts
from labelweave.decisions.layers import innermost
from labelweave.estimators.base import LabelClassifier

Lines = dict[str, str]

_MOST_NAMES = 8
_STYLE = (
    ".labelweave-facts th, .labelweave-facts td {text-align: left; vertical-align: top; padding: 0 0.6em; "
    "overflow-wrap: anywhere; max-width: 50em}"
)


def _said(lines: Plain) -> Lines:
    return {name: text for name, text in lines.items() if text}


def parameter_words(parameters: Plain, chosen: Iterable[str] | None = None) -> str:
    """Return all or some parameters as in a call."""
    return ", ".join(f"{name}={parameters[name]}" for name in (parameters if chosen is None else chosen))


def decision_lines(facts: ModelFacts, settings: str = "none") -> Lines:
    """Describe the meta-classifiers of a model, the classifiers inside them, and the guarantee.

    settings: the parameters to include: "none", "changed" or "all".
    """
    said = []
    for layer in facts.decisions:
        chosen = {"none": (), "changed": layer.changed, "all": layer.parameters}[settings]
        words = parameter_words(layer.parameters, chosen)
        said.append(f"{layer.classifier}: {layer.summary}" + (f" ({words})" if words else ""))
    around = "; around ".join(said[1:])
    return _said({"decides": "".join(said[:1]), "around": around, "guarantee": facts.guarantee})


def origin_lines(facts: ModelFacts) -> Lines:
    """Describe the origin of features: steps of a pipeline, and columns of a table."""
    columns = {
        name: ", ".join(part) if isinstance(part, list) else repr(part)
        for name, part in (facts.columns or {}).items()
    }
    made = "; ".join(f"{name} {words}" for name, words in columns.items())
    return _said({"steps before": ", ".join(facts.steps_before), "columns": made})


def label_lines(facts: ModelFacts) -> Lines:
    """Return the first labels or classes, and the number of features."""
    unobserved, features = facts.unobserved, facts.features
    lines = {
        "classes" if facts.one_class_a_row else "labels": f"{len(facts.labels)}: {_first(facts.labels)}",
        "unobserved": unobserved
        and f"{len(unobserved)} without observed values: {_first(unobserved)}; their scores rely on "
        "relations between labels, and their frequencies are uncertain",
        "features": features and f"{features}, {'with' if facts.feature_names else 'without'} names",
    }
    return _said(lines)


def _first(names: list[str]) -> str:
    """Return the first names, in quotation marks if a name contains a comma."""
    shown = ", ".join(repr(name) if "," in name else name for name in names[:_MOST_NAMES])
    return shown + " ..." * (len(names) > _MOST_NAMES)


def fact_lines(facts: ModelFacts, factor_lines: Lines | None = None) -> Lines:
    """Describe a model and its fit, with further lines on its factors if given."""
    support = "" if facts.support_rows is None else f", {facts.support_rows} support rows"
    own = None if facts.thresholds is None else facts.thresholds.words
    lines: Plain = {
        "taxonomy": facts.taxonomy and facts.taxonomy.summary,
        "kernel": None if facts.combination else f"{facts.kernel}{support}",
        "weights": facts.pruning and _pruning_words(facts.pruning),
        "missing": facts.imputed,
        "scaling": facts.scaling,
        "rank": facts.factors and facts.factors.rank_summary,
        **(factor_lines or {}),
        "threshold": facts.threshold if facts.factors is None else own,
        "graph": facts.graph and facts.graph.summary,
        "penalty": facts.graph and f"alpha {facts.graph.alpha:.3g}",
        "chosen": facts.choice and facts.choice.summary,
        **({} if facts.learning is None else _learning_lines(facts.learning, facts.prior is not None)),
        **(_combination_lines(facts.combination) if facts.combination else _end_lines(facts)),
        "the rank": facts.fit.limit_summary,
        "advice": facts.advice,
    }
    return _said(lines)


def _pruning_words(found: Section) -> str:
    return (
        f"{found.weights:,} of {found.weights_before:,} kept ({found.share_kept:.1%}); gap "
        f"{found.gap_before:.1e} before, {found.gap:.1e} after, at most {found.largest_gap:.1e} per block"
    )


def _end_lines(facts: ModelFacts) -> Lines:
    fit, steps, pruning = facts.fit, facts.steps, facts.pruning
    end = "converged" if fit.converged else (fit.status or "not converged").replace("_", " ")
    if fit.first_gap is not None and fit.gap is not None:
        course = f"; gap {fit.first_gap:.1e} at the first of {fit.checks} checks"
        at = "" if pruning is None else f" at {pruning.gap_before:.1e}, then weights were dropped"
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


def certificate_words(facts: ModelFacts) -> str:
    """Return the bound of the objective, as a sentence."""
    gap = facts.fit.gap
    if facts.combination is not None:
        return "none: ridge regressions are solved in closed form, and trees have no bound"
    if gap is None:
        return "none: this method has no bound of its objective"
    if np.isnan(gap):
        return "no bound with this penalty"
    others = "any" if facts.factors is None or "any rank" in (facts.fit.gap_summary or "") else "this"
    rivals = "its minimum" if facts.factors is None else f"that of factors of {others} rank"
    more = f"; {facts.fit.limit_summary}" if facts.fit.limit_summary else ""
    return f"duality gap {gap:.1e}: the training objective is at most this fraction above {rivals}{more}"


def _learning_lines(learning: Section, has_prior: bool) -> Lines:
    """Describe learned hyperparameters; empty for a model without a prior that learned nothing."""
    if not learning.evaluations:
        return {"prior": learning.values, "learning": learning.summary} if has_prior else {}
    words = f"{learning.summary} from {learning.first_loss:.4f} in {learning.seconds:.1f} s"
    return {"prior" if has_prior else "learned": learning.values, "learning": words}


def _combination_lines(found: Section) -> Lines:
    least = min(one["oof_loss"] for one in found.members)
    worth = f"loss {found.loss:.4f} relative to label means, the best member {least:.4f}"
    if found.uncoupled_loss > found.loss:
        worth += f", without label correlations {found.uncoupled_loss:.4f}"
    if found.value is not None:
        worth += f"; {found.metric} {found.value:.4f}, standard error {found.error:.4f}"
    names, seconds = found.plan["members"], sum(one["seconds"] for one in found.members)
    taken = f"{len(found.members)} of {len(names)} members in {seconds:.1f} s"
    return {"out-of-fold": worth, "fit": f"{taken}; {found.plan['seconds']:.0f} s were planned for all"}


def _member_lines(found: Section) -> Lines:
    return {
        f"member {one['name']}": f"weight {one['weight']:.2f}, out-of-fold loss {one['oof_loss']:.4f}, "
        f"{one['seconds']:.1f} s: {one['words']}"
        for one in found.members
    }


def facts_html(model: Any) -> str:
    """Return the facts about a fitted classifier as an escaped HTML table; empty for other objects."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return ""
    facts = model_facts(model)
    lines = {"model": " around ".join(facts.names)} | decision_lines(facts)
    lines |= origin_lines(facts) | label_lines(facts)
    if isinstance(innermost(model), LabelClassifier):  # other classifiers have few facts
        lines |= (_member_lines(facts.combination) if facts.combination else {}) | fact_lines(facts)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in lines.items()
    )
    return f'<style>{_STYLE}</style><table class="labelweave-facts">{rows}</table>'
