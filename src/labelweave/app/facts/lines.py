"""The facts about a model in lines of a name and words: for ``labelweave inspect``, notebooks and reports."""

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
    """Write parameters as in a call, all or some."""
    return ", ".join(f"{name}={parameters[name]}" for name in (parameters if chosen is None else chosen))


def decision_lines(facts: ModelFacts, settings: str = "none") -> Lines:
    """Say what decides on the scores of a model, what is inside that, and what is guaranteed.

    settings: the parameters that are said of each: "none", "changed" or "all".
    """
    said = []
    for layer in facts.decisions:
        chosen = {"none": (), "changed": layer.changed, "all": layer.parameters}[settings]
        words = parameter_words(layer.parameters, chosen)
        said.append(f"{layer.classifier}: {layer.summary}" + (f" ({words})" if words else ""))
    around = "; around ".join(said[1:])
    return _said({"decides": "".join(said[:1]), "around": around, "guarantee": facts.guarantee})


def origin_lines(facts: ModelFacts) -> Lines:
    """Say what features are made from: steps of a pipeline, and columns of a table."""
    columns = {
        name: ", ".join(part) if isinstance(part, list) else repr(part)
        for name, part in (facts.columns or {}).items()
    }
    made = "; ".join(f"{name} {words}" for name, words in columns.items())
    return _said({"steps before": ", ".join(facts.steps_before), "columns": made})


def label_lines(facts: ModelFacts) -> Lines:
    """Name the first labels or classes, and count the features."""
    unobserved, features = facts.unobserved, facts.features
    lines = {
        "classes" if facts.one_class_a_row else "labels": f"{len(facts.labels)}: {_first(facts.labels)}",
        "unobserved": unobserved
        and f"{len(unobserved)} by no training row: {_first(unobserved)}; scores order rows by what relates "
        "these labels to others, and how often they are there is a guess",
        "features": features and f"{features}, {'with' if facts.feature_names else 'without'} names",
    }
    return _said(lines)


def _first(names: list[str]) -> str:
    """List the first names, in quotation marks where a comma would make one look like two."""
    shown = ", ".join(repr(name) if "," in name else name for name in names[:_MOST_NAMES])
    return shown + " ..." * (len(names) > _MOST_NAMES)


def fact_lines(facts: ModelFacts, factor_lines: Lines | None = None) -> Lines:
    """Say what a model is like, with more lines on its factors if given, and how its fit went."""
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
        "penalty": facts.graph and f"regularization {facts.graph.regularization:.3g}",
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
        f"{found.gap_before:.1e} before, {found.gap:.1e} after, of a block at most {found.largest_gap:.1e}"
    )


def _end_lines(facts: ModelFacts) -> Lines:
    fit, steps, pruning = facts.fit, facts.steps, facts.pruning
    end = "converged" if fit.converged else (fit.status or "not converged").replace("_", " ")
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


def certificate_words(facts: ModelFacts) -> str:
    """Say in a sentence what bounds the objective."""
    gap = facts.fit.gap
    if facts.combination is not None:
        return "none: ridge regressions are solved in closed form, and trees have no bound"
    if gap is None:
        return "none: this method gives no bound of its objective"
    if np.isnan(gap):
        return "no bound with this penalty"
    others = "any" if facts.factors is None or "any rank" in (facts.fit.gap_summary or "") else "this"
    rivals = "its minimum" if facts.factors is None else f"that of factors of {others} rank"
    more = f"; {facts.fit.limit_summary}" if facts.fit.limit_summary else ""
    return (
        f"duality gap {gap:.1e}: the training objective is at most that share of itself above {rivals}{more}"
    )


def _learning_lines(learning: Section, has_prior: bool) -> Lines:
    """Say what was learned; a model without a prior says nothing where that is nothing."""
    if not learning.evaluations:
        return {"prior": learning.values, "learning": learning.summary} if has_prior else {}
    words = f"{learning.summary} from {learning.first_loss:.4f} in {learning.seconds:.1f} s"
    return {"prior" if has_prior else "learned": learning.values, "learning": words}


def _combination_lines(found: Section) -> Lines:
    least = min(one["left_out_loss"] for one in found.members)
    worth = f"loss {found.loss:.4f} of the labels' variance, the best member alone {least:.4f}"
    if found.uncoupled_loss > found.loss:
        worth += f", without what labels say of each other {found.uncoupled_loss:.4f}"
    if found.value is not None:
        worth += f"; {found.metric} {found.value:.4f}, standard error {found.error:.4f}"
    names, seconds = found.plan["members"], sum(one["seconds"] for one in found.members)
    taken = f"{len(found.members)} of {len(names)} members in {seconds:.1f} s"
    return {"left out": worth, "fit": f"{taken}; {found.plan['seconds']:.0f} s were foreseen for all"}


def _member_lines(found: Section) -> Lines:
    return {
        f"member {one['name']}": f"weight {one['weight']:.2f}, left-out loss {one['left_out_loss']:.4f}, "
        f"{one['seconds']:.1f} s: {one['words']}"
        for one in found.members
    }


def facts_html(model: Any) -> str:
    """Write the facts about a fitted classifier as an HTML table, every text escaped; nothing of others."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return ""
    facts = model_facts(model)
    lines = {"model": " around ".join(facts.names)} | decision_lines(facts)
    lines |= origin_lines(facts) | label_lines(facts)
    if isinstance(innermost(model), LabelClassifier):  # of others little is known
        lines |= (_member_lines(facts.combination) if facts.combination else {}) | fact_lines(facts)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in lines.items()
    )
    return f'<style>{_STYLE}</style><table class="labelweave-facts">{rows}</table>'
