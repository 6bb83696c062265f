"""The record of facts about a fitted model, with one small function per family of classifiers.

Fields have the names of the JSON of ``labelweave inspect``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from labelweave.app.facts.words import (
    changed_parameters,
    kernel_words,
    number_words,
    plain_parameters,
    taxonomy_words,
)
from labelweave.datasets.table_columns import KINDS
from labelweave.decisions.automatic import AutoLabelClassifier
from labelweave.decisions.layers import guarantee_words, innermost, layer_words, shown_thresholds, taxonomy_of
from labelweave.estimators import (
    KernelLogisticClassifier,
    LabelGraphClassifier,
    LowRankClassifier,
    TableModel,
)
from labelweave.labels import CliqueGraph, Taxonomy

_THIN = 1e-3  # of the longest column; the trace norm removes shorter ones in rounds of small decreases
_MOSTLY = 0.5  # of the labels of rows
_CHOICE_COLUMNS = ("rank", "alpha", "mean_test_score", "std_test_score")
_COLUMNS = (*KINDS, "labels", "label_separator", "id")
Plain = dict[str, Any]
_UNTOLD = ("changed", "steps", "thresholds", "advice")  # not in JSON, which has all parameters
OF_SOME = ("factors", "graph", "choice", "taxonomy", "prior", "hyperparameters", "learning", "combination")


class Section(SimpleNamespace):
    """Facts about one aspect of a model: numbers, words, lists, and further sections."""


def plain(value: Any) -> Any:
    """Convert sections to dictionaries."""
    if isinstance(value, Section):
        return {name: plain(part) for name, part in vars(value).items()}
    return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value


class ModelFacts(Section):
    """Facts about a fitted model; None where they do not apply to a family of models.

    classifier: the class that computes scores.
    parameters: numbers and words as they are, larger objects by type and size.
    changed: the names of those that differ from the defaults.
    fit: the result of the fit; its gap is relative to the objective, NaN without a bound.
    steps: the name of the fit's iterations.
    thresholds: the scores or probabilities above which labels are predicted, in words.
    decisions: the meta-classifiers, the outermost first.
    graph: the cliques of a graph of labels, strongest first, and the rounds in which it grew.
    choice: of rank and penalty, by cross-validation.
    learning: of hyperparameters; its values are the current ones, in words.
    imputed: the imputation of missing features, in words.
    advice: what to do if the default threshold finds few of the labels; None for a loaded model.
    unobserved: the labels without observed values in training.
    steps_before: the kinds of the first steps of a pipeline, which transform features.
    combination: an ensemble; losses are squared errors of out-of-fold probabilities, relative to predicting
        each label's mean, "uncoupled" without label correlations; the metric is an out-of-fold estimate.
    pruning: weights that are kept sparse, and the relative gaps before and after the others were dropped.
    """

    @property
    def names(self) -> list[str]:
        """The meta-classifiers, from the outside, and the classifier that computes scores."""
        return [*(layer.classifier for layer in self.decisions), self.classifier]

    @property
    def threshold(self) -> str | None:
        """The threshold of predicted labels, if it is not the default."""
        is_said = self.thresholds is not None and self.thresholds.is_tuned and self.factors is None
        return str(self.thresholds.words) if is_said else None

    def to_json(self) -> Plain:
        found = {name: plain(value) for name, value in vars(self).items() if name not in _UNTOLD}
        for layer in found["decisions"]:
            del layer["changed"]
        found = {name: v for name, v in found.items() if name == "support_rows" or v not in (None, [])}
        found |= {} if self.threshold is None else {"threshold": self.threshold}
        prior: Plain = found.pop("prior", {})
        return found | prior


def model_facts(model: Any) -> ModelFacts:
    """Describe a fitted classifier, its meta-classifiers, and the table it was fitted to.

    The classifier that computes scores may be any scikit-learn classifier.
    """
    outer, before = outer_classifier(model)
    inner = innermost(outer)
    if isinstance(inner, Pipeline):
        before, inner = [*before, *inner[:-1]], innermost(inner[-1])
    support, tree = getattr(inner, "support_", None), taxonomy_of(outer)
    names = [str(name) for name in outer.label_names_]
    own: Plain = {
        "advice": _advice(outer, inner),
        "kernel": _kernel(inner),
        "steps": "rounds",
        **dict.fromkeys(OF_SOME),
    }
    own["taxonomy"] = None if tree is None else _taxonomy(tree, names, not outer._form.has_one_class)
    means = getattr(inner, "feature_means_", None)
    words = "missing values of {} features are imputed with training means"
    return ModelFacts(
        **_class_and_parameters(inner),
        one_class_a_row=outer._form.has_one_class,
        labels=names,
        features=getattr(outer, "n_features_in_", None),
        feature_names=feature_names(model) is not None,
        scaling=getattr(getattr(inner, "scaling_", None), "kind", None),
        support_rows=None if support is None else len(support),
        fit=_fit(inner),
        thresholds=_thresholds(inner),
        decisions=[Section(**_class_and_parameters(one), summary=words) for one, words in layer_words(outer)],
        guarantee=guarantee_words(outer),
        columns=_columns(model) if isinstance(model, TableModel) else None,
        imputed=None if means is None else words.format(len(means)),
        unobserved=[names[label] for label in outer._form.unobserved],
        pruning=_pruning(inner),
        steps_before=tuple(type(step).__name__ for step in before),
        **own | _own(inner),
    )


def _class_and_parameters(model: Any) -> Plain:
    parameters, changed = plain_parameters(model), changed_parameters(model)
    return {"classifier": type(model).__name__, "parameters": parameters, "changed": changed}


def outer_classifier(model: Any) -> tuple[Any, list[Any]]:
    """Return the outermost classifier, and the steps of a pipeline before it."""
    before = list(model[:-1]) if isinstance(model, Pipeline) else []
    last = model[-1] if isinstance(model, Pipeline) else model
    return last.classifier_ if isinstance(last, TableModel) else last, before


def _pruning(model: Any) -> Section | None:
    found = getattr(model, "pruning_", None)
    if found is None:
        return None
    gaps = {name: found[name] for name in ("gap_before", "gap", "largest_gap")}
    before, after = (int(found[name]) for name in ("weights_before", "weights"))
    return Section(**gaps, weights_before=before, weights=after, share_kept=after / max(1, before))


def feature_names(model: Any) -> Any:
    """Return the feature names of a classifier, or of the output of a table or steps; None without names."""
    if isinstance(innermost(model), Pipeline):
        model = innermost(model)
        with suppress(AttributeError, ValueError, NotFittedError):  # steps without names of their output
            return np.asarray(model[:-1].get_feature_names_out(), dtype=object) if len(model) > 1 else None
        return None
    return getattr(model, "feature_names_" if isinstance(model, TableModel) else "feature_names_in_", None)


def _columns(model: TableModel) -> Plain:
    found = {name: getattr(model.columns_, name) for name in _COLUMNS}
    known = model.vectorizer_.encoder_
    found["encoder"] = known and f"{known.name}, weight {model.vectorizer_.encoder_weight:g}"
    return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items() if v}


def _kernel(model: Any) -> str:
    """Return the kernel with its numbers; "precomputed" if X was the kernel."""
    fitted = getattr(model, "kernel_", None)
    found = getattr(model, "kernel", "linear") if fitted is None else fitted
    return _kernels([kernel_words(kernel) for kernel in (found if isinstance(found, list) else [found])])


def _kernels(words: list[str]) -> str:
    """Return the first of several kernels that differ in their numbers or kinds."""
    several = len(words) > 1 and words[0] != "precomputed"
    return f"{len(words)} kernels, the first {words[0]}" if several else words[0]


def label_thresholds(model: Any) -> Section | None:
    """Return the probabilities, or scores of ``predict``, above which labels are predicted; None without.

    Returns the ``number`` to compare, "probability" or "score", and its thresholds ``by_label``.
    """
    outer, _ = outer_classifier(model)
    found = None if outer._form.has_one_class else shown_thresholds(outer)
    if found is None:
        return None
    names = map(str, outer.label_names_)
    by_label = dict(zip(names, np.broadcast_to(found, len(outer.label_names_)).tolist(), strict=True))
    return Section(number="probability" if hasattr(outer, "predict_proba") else "score", by_label=by_label)


def _thresholds(model: Any) -> Section | None:
    own = getattr(model, "thresholds_", None)
    found = getattr(model, "threshold_", None) if own is None else own
    if found is None or model._form.columns is not None:
        return None
    low, high = float(np.min(found)), float(np.max(found))
    words = f"{low:.4g}" if low == high else f"one per label, from {low:.4g} to {high:.4g}"
    is_probability = isinstance(model, (KernelLogisticClassifier, AutoLabelClassifier))
    is_tuned = isinstance(model, AutoLabelClassifier) or getattr(model, "threshold", "auto") != "auto"
    return Section(words=f"probability {words}" if is_probability else words, is_tuned=is_tuned)


def _advice(outer: Any, inner: Any) -> str | None:
    """Advise on thresholds if scores are compared with the default one, and most labels of rows are rare."""
    is_usual = outer is inner and getattr(inner, "threshold", "auto") == "auto"
    share = getattr(inner, "_rare_share", 0.0)
    if not is_usual or outer._form.has_one_class or hasattr(inner, "predict_proba") or share < _MOSTLY:
        return None
    return (
        f"{share:.0%} of the labels that training rows have are rarer than one row in ten; the default "
        "threshold tends to miss these on new rows; TunedThresholdClassifier(model), or "
        "--tune-threshold micro_f1, tunes one threshold per label on held-out rows"
    )


def _fit(model: Any) -> Section:
    trace, gap = getattr(model, "trace_", None) or [], getattr(model, "duality_gap_", None)
    first, last = (trace[0], trace[-1]) if trace else (None, None)
    rounds = getattr(model, "n_iter_", None)
    return Section(
        converged=getattr(model, "converged_", None),
        status=getattr(model, "status_", None),
        rounds=len(trace) if rounds is None else int(np.max(rounds)),
        gap=None if gap is None else float(gap),
        seconds=0.0 if last is None else round(last.time, 3),
        checks=len(trace),
        first_gap=None if first is None or np.isnan(first.gap) else first.gap,
        objective=getattr(last, "primal", None),
        gap_summary=_gap_words(model) if isinstance(model, LowRankClassifier) else None,
        limit_summary=_limit_words(model) if isinstance(model, LowRankClassifier) else None,
    )


def _gap_words(model: Any) -> str:
    if math.isnan(model.duality_gap_):
        if model.penalty == "trace_norm":
            return "unknown, since the objective is at the level of rounding"
        return f"no bound with the penalty {model.penalty}"
    rivals = "any rank" if model.penalty != "ridge" else "this rank"
    return f"{model.duality_gap_:.2e} at most, to factors of {rivals}"


def _limit_words(model: Any) -> str | None:
    """Explain that the bound on the rank is active; None if it is not, or unknown."""
    if model.penalty != "trace_norm" or model.status_ != "settled" or math.isnan(model.duality_gap_):
        return None
    n_labels, rank = model.label_factors_.shape
    lengths = np.linalg.norm(model.label_factors_, axis=0)
    if rank == n_labels or lengths.min() <= _THIN * lengths.max():
        return None
    return (
        f"the factors converged at rank {rank}, and the gap is that of the problem without a limit on "
        "rank: a higher rank would reach a lower objective"
    )


def _own(model: Any) -> Plain:
    """Return the facts of particular families, as fields of :class:`ModelFacts`."""
    if isinstance(model, KernelLogisticClassifier):
        return _kernel_logistic(model)
    if isinstance(model, AutoLabelClassifier):
        return {"kernel": "those of the members", "steps": "steps", "combination": _combination(model)}
    if isinstance(model, LabelGraphClassifier):
        return {"steps": "passes", "graph": _graph(model)}
    if not isinstance(model, LowRankClassifier):
        return {}
    own = {"factors": _factors(model)} | _learning(model)
    return own | ({"choice": _choice(model)} if hasattr(model, "cv_results_") else {})


def _kernel_logistic(model: KernelLogisticClassifier) -> Plain:
    kernels = [kernel_words(term.kernel) if term.kernel else "precomputed" for term in model.prior_.terms]
    words, products = number_words(model.hyperparameters_), float(model.kernel_products_)
    prior = {"kernels": kernels, "prior": words, "kernel_products": products}
    return _learning(model) | {"kernel": _kernels(kernels), "steps": "Newton steps", "prior": prior}


def _taxonomy(tree: Taxonomy, names: list[str], of_labels: bool) -> Section:
    sizes = {"nodes": len(tree), "roots": len(tree.roots), "leaves": len(tree.leaves)}
    return Section(**sizes, summary=taxonomy_words(tree, names, "labels" if of_labels else "classes"))


def _combination(model: AutoLabelClassifier) -> Section:
    value, error = (float(x) for x in (model.oof_score_, model.oof_standard_error_))
    is_known = not math.isnan(value)
    return Section(
        members=[one | {"words": _short_numbers(one["words"])} for one in model.members_],
        loss=float(model.oof_loss_),
        uncoupled_loss=float(model.uncoupled_loss_),
        metric="accuracy" if model._form.has_one_class else model.metric,
        value=value if is_known else None,
        error=error if is_known else None,
        plan=model.plan_,
    )


def _short_numbers(words: str) -> str:
    return re.sub(r"\d+\.\d{5,}(e-?\d+)?", lambda found: f"{float(found[0]):.4g}", words)


def _factors(model: Any) -> Section:
    """Return the rank of a model, and the requested one if it differs."""
    rank, asked = int(model.label_factors_.shape[1]), getattr(model, "rank", None)
    words = f"{rank} (requested {asked}; no product of factors has more)"
    if hasattr(model, "best_rank_"):
        words = f"{rank} (chosen by cross-validation)"
    elif isinstance(asked, float):
        words = f"{rank} (requested {asked:g} of the labels)"
    elif asked == rank:
        words = str(rank)
    return Section(rank=rank, rank_summary=words)


def _choice(model: Any) -> Section:
    table = [np.asarray(model.cv_results_[name]).tolist() for name in _CHOICE_COLUMNS]
    search = model.rank
    how = "the best of" if search.rule == "best" else "within a standard error of the best of"
    ending = " (interrupted)" if model.search_status_ == "interrupted" else ""
    score = -model.best_score_ if search.scoring == "loss" else model.best_score_
    return Section(
        rank=model.best_rank_,
        alpha=model.best_alpha_,
        score=model.best_score_,
        scoring=search.scoring,
        rule=search.rule,
        folds=model.n_splits_,
        status=model.search_status_,
        pairs=[dict(zip(_CHOICE_COLUMNS, row, strict=True)) for row in zip(*table, strict=True)],
        summary=f"rank {model.best_rank_}, alpha {model.best_alpha_:.4g}, {how} "
        f"{len(table[0])} pairs on {model.n_splits_} folds: mean {search.scoring} {score:.4g}{ending}",
    )


def _learning(model: Any) -> Plain:
    trace, status = model.learning_trace_, model.learning_status_.replace("_", " ")
    loss, count = float(model.cross_validation_loss_), len(trace)
    is_cross_validated = getattr(model.hyperparameters, "criterion", "cross_validation") == "cross_validation"
    name = "cross-validation loss" if is_cross_validated else "minus log marginal likelihood per row"
    summary = f"{count} evaluations, {name} {loss:.4f} ({status})"
    if not trace:
        summary = "none, hyperparameters are as given" if status == "fixed" else f"none, {status}"
    learning = Section(
        status=model.learning_status_,
        evaluations=count,
        cross_validation_loss=loss,
        first_loss=next((float(r.value) for r in trace if r.stage == trace[-1].stage), None),
        stages=trace[-1].stage if trace else 0,
        seconds=round(trace[-1].time, 3) if trace else 0.0,
        values=number_words(model.hyperparameters_),
        summary=summary,
    )
    return {"hyperparameters": model.hyperparameters_, "learning": learning}


def _graph(model: Any) -> Section:
    graph, rounds = model.label_graph_, model.graph_trace_
    kind = "learned" if rounds else model.graph if isinstance(model.graph, str) else "given"
    most = graph.n_labels * (graph.n_labels - 1) // 2
    larger = graph.n_cliques - len(graph.edges)
    size = f"{len(graph.edges)} of {most} pairs" + (f" and {larger} larger cliques" if larger else "")
    reason = f": {model.graph_reason_}" if model.graph_reason_ else ""
    return Section(
        summary=f"{kind}, {size}, width {graph.width}{reason}",
        reason=model.graph_reason_ or None,
        alpha=model.alpha_,
        width=graph.width,
        components=len([part for part in graph.components if len(part) > 1]),
        cliques=clique_facts(graph, range(graph.n_cliques)),
        rounds=[_round(record, graph) for record in rounds],
    )


def clique_facts(graph: CliqueGraph, chosen: Iterable[int]) -> list[Section]:
    """Return some cliques of a graph with their weights and signs, the strongest first."""
    names = graph.shown_labels()
    weights = np.zeros(graph.n_cliques) if graph.weights is None else graph.weights
    signs = np.zeros(graph.n_cliques, int) if graph.signs is None else graph.signs
    return [
        Section(
            labels=[str(names[k]) for k in graph.cliques[c]],
            weight=float(f"{weights[c]:.6g}"),
            sign=int(signs[c]),
        )
        for c in sorted(chosen, key=lambda c: -weights[c])
    ]


def _round(record: Any, graph: CliqueGraph) -> Plain:
    names, loss = graph.shown_labels(), record.held_out_loss
    return {
        "round": record.round,
        "cliques": [[str(names[label]) for label in clique] for clique in record.cliques],
        "score": float(f"{record.score:.6g}"),
        "objective": float(f"{record.primal:.8g}"),
        "held_out_loss": None if math.isnan(loss) else float(f"{loss:.6g}"),
        "passes": record.n_iter,
        "seconds": round(record.time, 3),
    }
