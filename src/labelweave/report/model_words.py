"""What a model is, in words."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import numpy as np
from scipy.special import expit

import labelweave
from labelweave.decisions.layers import guarantee_words, innermost, layer_words, layers
from labelweave.labels import Taxonomy
from labelweave.report.label_structure import LabelStructure
from labelweave.report.measured import taxonomy_of
from labelweave.report.reported_rows import ReportedRows

__all__ = ["model_lines"]

_MOST_VALUES = 8
_LONG_NUMBER = re.compile(r"\d+\.\d{6,}(?:e[+-]?\d+)?")


def model_lines(rows: ReportedRows) -> dict[str, str]:
    """Describe a model.

    rows: the model and its rows.
    """
    inner, names = innermost(rows.classifier), rows.label_names
    lines = {"Model": _model_line(rows.classifier)} | _decision_lines(rows.classifier)
    lines |= {"Other than by default": _parameters(inner)}
    lines |= _input_lines(rows)
    lines["Classes" if rows.has_classes else "Labels"] = f"{len(names)}"
    lines |= _kernel_lines(inner) | _structure_lines(rows) | _threshold_line(inner)
    lines |= _fit_lines(inner)
    lines["Written by"] = f"labelweave {labelweave.__version__}"
    return {name: text for name, text in lines.items() if text}


def _model_line(classifier: Any) -> str:
    return " around ".join(type(layer).__name__ for layer in layers(classifier))


def _decision_lines(classifier: Any) -> dict[str, str]:
    """Say how each wrapper decides, and what is guaranteed of its label sets."""
    lines, promise = {}, guarantee_words(classifier)
    for wrapper, words in layer_words(classifier):
        settings = _parameters(wrapper)
        lines[type(wrapper).__name__] = f"{words} ({settings})" if settings else words
    return lines | ({} if promise is None else {"Guarantee": f"{promise[0].upper()}{promise[1:]}"})


def _parameters(classifier: Any) -> str:
    """List the parameters that are not as by default."""
    defaults = {name: p.default for name, p in inspect.signature(type(classifier)).parameters.items()}
    given = classifier.get_params(deep=False)
    given.pop("estimator", None)
    return ", ".join(f"{k} = {_plain(v)}" for k, v in given.items() if not _is_same(v, defaults.get(k)))


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and not np.ndim(value) and value == default)


def _plain(value: Any) -> str:
    """Write small values, and describe larger ones by type and size."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return str(value)
    if isinstance(value, (tuple, list)) and len(value) <= _MOST_VALUES:
        return ", ".join(map(str, value))
    if isinstance(value, Taxonomy):
        return f"a taxonomy of {len(value)} nodes"
    size = getattr(value, "n_labels", None)
    return (
        repr(value)
        if size is None and not np.ndim(value)
        else f"{type(value).__name__} of {size or np.shape(value)}"
    )


def _input_lines(rows: ReportedRows) -> dict[str, str]:
    names = "" if rows.feature_names is not None else ", without names"
    lines = {"Features": f"{rows.X.shape[1]}{names}"}
    if rows.vectorizer is None:
        return lines
    kinds = {kind: getattr(rows.vectorizer, kind) for kind in ("text", "categorical", "numeric")}
    made = "; ".join(f"{kind} {', '.join(columns)}" for kind, columns in kinds.items() if columns)
    return lines | {"Made from columns": made}


def _kernel_lines(inner: Any) -> dict[str, str]:
    terms = [term.kernel for term in inner.prior_.terms] if hasattr(inner, "prior_") else []
    found = terms[0] if terms else getattr(inner, "kernel_", getattr(inner, "kernel", None))
    words = "" if found is None else _LONG_NUMBER.sub(lambda digits: f"{float(digits[0]):.6g}", str(found))
    more = f", the first of {len(terms)}" if len(terms) > 1 else ""
    support = f"{len(inner.support_)} training rows" if hasattr(inner, "support_") else ""
    return {"Kernel": f"{words}{more}" if words else "", "Keeps": support}


def _structure_lines(rows: ReportedRows) -> dict[str, str]:
    structure, inner = LabelStructure(rows.classifier), innermost(rows.classifier)
    taxonomy, covariance = taxonomy_of(rows.classifier), structure.covariance
    return {
        "Taxonomy": ""
        if taxonomy is None
        else f"{len(taxonomy)} nodes, {len(taxonomy.leaves)} of them leaves",
        f"{'Classes' if rows.has_classes else 'Labels'} a priori": ""
        if covariance is None
        else f"vary together ({covariance.kind})",
        "Rank": str(inner.label_factors_.shape[1]) if hasattr(inner, "label_factors_") else "",
        "Label graph": "" if structure.graph is None else f"{structure.graph.n_cliques} cliques of labels",
    }


def _threshold_line(inner: Any) -> dict[str, str]:
    found = getattr(inner, "thresholds_", getattr(inner, "threshold_", None))
    if found is None or not np.any(found):
        return {}
    has_log_odds = hasattr(inner, "predict_proba")
    low, high = (float(expit(f(found)) if has_log_odds else f(found)) for f in (np.min, np.max))
    words = f"{low:.3g}" if low == high else f"one a label, from {low:.3g} to {high:.3g}"
    return {"Thresholds": f"probability {words}" if has_log_odds else words}


def _fit_lines(inner: Any) -> dict[str, str]:
    """Say how the fit ended, and what certifies it."""
    trace = getattr(inner, "trace_", [])
    status = str(getattr(inner, "status_", "")).replace("_", " ")
    rounds = int(getattr(inner, "n_iter_", len(trace)))
    taken = f" after {rounds} round{'s' if rounds != 1 else ''}" if rounds else ""
    spent = f" in {trace[-1].time:.1f} s" if trace and hasattr(trace[-1], "time") else ""
    return {"Fit": f"{status}{taken}{spent}".strip(), "Certificate": _certificate(inner)}


def _certificate(inner: Any) -> str:
    gap = getattr(inner, "duality_gap_", None)
    if gap is None:
        return "none: this method gives no bound of its objective"
    if math.isnan(gap):
        return "no bound with this penalty"
    rivals = "that of factors of any rank" if hasattr(inner, "label_factors_") else "its minimum"
    return f"duality gap {gap:.1e}: the training objective is at most that share of itself above {rivals}"
