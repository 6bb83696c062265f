"""What a model is, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

import labelweave
from labelweave.app.facts import ModelFacts, model_facts, unobserved_words
from labelweave.app.report.label_structure import LabelStructure
from labelweave.app.report.reported_rows import ReportedRows
from labelweave.decisions.layers import taxonomy_of


def model_lines(rows: ReportedRows) -> dict[str, str]:
    """Describe a model."""
    facts = model_facts(rows.classifier)
    lines = {"Model": " around ".join(facts.names)} | _decision_lines(facts)
    lines |= {"Other than by default": _settings(facts.parameters, facts.changed)}
    lines |= _input_lines(rows)
    lines["Classes" if facts.one_class_a_row else "Labels"] = f"{len(facts.labels)}"
    if facts.unobserved:
        lines["Unobserved"] = unobserved_words(facts.unobserved)
    lines["Kernel"] = facts.kernel if "kernel" in facts.parameters else ""
    lines["Keeps"] = "" if facts.support_rows is None else f"{facts.support_rows} training rows"
    lines |= _structure_lines(rows, facts)
    lines |= _fit_lines(facts)
    lines["Written by"] = f"labelweave {labelweave.__version__}"
    return {name: text for name, text in lines.items() if text}


def _settings(parameters: dict[str, Any], changed: tuple[str, ...]) -> str:
    return ", ".join(f"{name} = {parameters[name]}" for name in changed)


def _decision_lines(facts: ModelFacts) -> dict[str, str]:
    """Say how each wrapper decides, and what is guaranteed of its label sets."""
    lines, promise = {}, facts.guarantee
    for layer in facts.decisions:
        settings = _settings(layer.parameters, layer.changed)
        lines[layer.classifier] = f"{layer.summary} ({settings})" if settings else layer.summary
    return lines | ({} if promise is None else {"Guarantee": f"{promise[0].upper()}{promise[1:]}"})


def _input_lines(rows: ReportedRows) -> dict[str, str]:
    names = "" if rows.feature_names is not None else ", without names"
    lines = {"Features": f"{rows.X.shape[1]}{names}"}
    if rows.vectorizer is None:
        return lines
    kinds = {kind: getattr(rows.vectorizer, kind) for kind in ("text", "categorical", "numeric")}
    made = "; ".join(f"{kind} {', '.join(columns)}" for kind, columns in kinds.items() if columns)
    return lines | {"Made from columns": made}


def _structure_lines(rows: ReportedRows, facts: ModelFacts) -> dict[str, str]:
    tree, structure = taxonomy_of(rows.classifier), LabelStructure(rows.classifier)
    covariance, graph = structure.covariance, structure.graph
    return {
        "Taxonomy": "" if tree is None else f"{len(tree)} nodes, {len(tree.leaves)} of them leaves",
        f"{'Classes' if facts.one_class_a_row else 'Labels'} a priori": ""
        if covariance is None
        else f"vary together ({covariance.kind})",
        "Rank": "" if facts.factors is None else str(facts.factors.rank),
        "Label graph": "" if graph is None else f"{graph.n_cliques} cliques of labels",
        "Thresholds": facts.thresholds.words if facts.thresholds and not facts.thresholds.are_usual else "",
    }


def _fit_lines(facts: ModelFacts) -> dict[str, str]:
    """Say how the fit ended, and what certifies it."""
    fit = facts.fit
    taken = f" after {fit.rounds} round{'s' if fit.rounds != 1 else ''}" if fit.rounds else ""
    spent = f" in {fit.seconds:.1f} s" if fit.checks else ""
    said = f"{(fit.status or '').replace('_', ' ')}{taken}{spent}".strip()
    return {"Fit": said, "Certificate": _certificate(facts)}


def _certificate(facts: ModelFacts) -> str:
    gap = facts.fit.gap
    if facts.combination is not None:
        return "none: ridge regressions are solved in closed form, and trees have no bound"
    if gap is None:
        return "none: this method gives no bound of its objective"
    if np.isnan(gap):
        return "no bound with this penalty"
    others = "any" if facts.factors is None or "any rank" in (facts.fit.gap_summary or "") else "this"
    rivals = "its minimum" if facts.factors is None else f"that of factors of {others} rank"
    return f"duality gap {gap:.1e}: the training objective is at most that share of itself above {rivals}"
