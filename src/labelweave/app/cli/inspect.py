"""``labelweave inspect``: the contents of a model file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from labelweave.app.cli.fit_words import part_lines, tie_lines
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import (
    did_you_mean,
    excluded,
    note,
    one_line,
    print_json,
    print_lines,
    refuse,
    say,
    short,
    size_of,
)
from labelweave.app.cli.model_rows import Model, classifier_of, names_of, open_model, scorer_of
from labelweave.app.facts import (
    FactorGeometry,
    ModelFacts,
    class_words,
    clique_facts,
    covariance_of,
    decision_lines,
    fact_lines,
    label_lines,
    label_thresholds,
    model_facts,
    origin_lines,
    parameter_words,
    plain,
)
from labelweave.app.facts.model_facts import feature_names
from labelweave.estimators import LabelGraphClassifier
from labelweave.estimators.scorers import known_weights, label_weights
from labelweave.model_files import read_model_file
from labelweave.model_files.safe_file import replacing_file

_PARTS = ("label", "covariance", "graph", "thresholds")
_MOST_NAMES = 8
_MOST_TIES = 10
_MOST_WRITTEN = 2000  # largest number of labels whose covariance JSON holds
_MOST_LONGEST = 10
_FIRST_VALUES = 6
_SUFFIXES = (".png", ".pdf", ".svg")


def run(flags: DataFlags) -> None:
    """Print the contents of a model file, or one part of it."""
    refuse(excluded(vars(flags), [(_PARTS, _PARTS, "{} and {} show different parts; use one of them.")]))
    out, as_json, label = flags.out, flags.as_json, flags.label
    if out is not None and not (flags.covariance or flags.graph):
        raise click.UsageError("--out needs --covariance or --graph.")
    loaded = open_model(flags.model, flags.key)
    if flags.covariance:
        _show_covariance(loaded, out, as_json)
    elif flags.graph:
        _show_graph(loaded, out, as_json)
    elif flags.thresholds:
        _show_thresholds(loaded, as_json)
    elif label is not None:
        weights = _weights(loaded, label, flags.count)
        if not as_json:
            _print_weights(weights)
        else:
            print_json({name: plain(part) for name, part in weights.items()})
    else:
        _show_model(loaded, flags.model, as_json, flags.key)


def _show_thresholds(model: Model, as_json: bool) -> None:
    found = label_thresholds(model)
    if found is None:
        raise ValueError(
            f"The model is {class_words(classifier_of(model))}, which does not use thresholds of labels."
        )
    if as_json:
        print_json({"number": found.number, "thresholds": {n: short(v) for n, v in found.by_label.items()}})
        return
    say(f"Labels are predicted where their {found.number} is above")
    for name, value in found.by_label.items():
        say(one_line(f"{value:10.4g}  {name}"))


def _show_graph(model: Model, out: str | None, as_json: bool) -> None:
    classifier = scorer_of(model)
    facts = model_facts(classifier).graph
    if facts is None:
        raise ValueError(
            f"The model is {class_words(classifier)}, which has no graph of labels; fit one with "
            "--model label-graph."
        )
    if out is not None:
        from labelweave.app.display import LabelGraphDisplay

        _draw(lambda: LabelGraphDisplay.from_graph(classifier.label_graph_).figure_, out)
    if as_json:
        print_json(plain(facts))
        return
    say(facts.summary)
    for lines in (tie_lines(facts.cliques, len(facts.cliques)), _path_lines(facts.rounds)):
        if lines:
            say("".join(f"\n{line}" for line in lines))


def _path_lines(rounds: list[dict[str, Any]]) -> list[str]:
    """Return lines of the rounds of graph learning: objective, held-out loss if any, and cliques."""
    has_loss = any(entry["held_out_loss"] is not None for entry in rounds)
    lines = [f"round   objective  {'held-out  ' if has_loss else ''}added"]
    for entry in rounds:
        loss = f"{entry['held_out_loss']:8.4f}  " if has_loss else ""
        added = "; ".join(", ".join(clique) for clique in entry["cliques"]) or "no clique"
        lines.append(f"{entry['round']:5}  {entry['objective']:10.5g}  {loss}{one_line(added)}")
    return lines


def _show_covariance(model: Model, out: str | None, as_json: bool) -> None:
    covariance = covariance_of(scorer_of(model))
    if out is not None:
        from labelweave.app.display import LabelCovarianceDisplay

        _draw(lambda: LabelCovarianceDisplay.from_covariance(covariance).figure_, out)
    if not as_json:
        say(str(covariance))
        return
    names, n_labels = covariance.label_names, covariance.n_labels
    told = {
        "structure": covariance.kind,
        "labels": list(range(n_labels)) if names is None else names.tolist(),
        "variances": covariance.diagonal().tolist(),
        "covariance": covariance.to_dense().tolist() if n_labels <= _MOST_WRITTEN else None,
    }
    print_json(told)


def _draw(make_figure: Callable[[], Any], path: str) -> None:
    """Plot into a file, which appears once it is complete, without a display."""
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ValueError(f"The name {path} does not determine a format; use one of {', '.join(_SUFFIXES)}.")
    from labelweave.app.display.figures import pyplot

    pyplot().switch_backend("Agg")
    with warnings.catch_warnings(), replacing_file(path) as file:
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # one warning per character
        figure = make_figure()
        figure.savefig(file, format=suffix[1:], dpi=150)
    pyplot().close(figure)
    note(f"the plot is in {path}.")


def _weights(model: Model, label: str, count: int) -> dict[str, Any]:
    """Return the largest weights for and against a label, and with factors the most similar labels."""
    classifier: Any = scorer_of(model)
    column, facts = _column(model, label), model_facts(model)
    intercept = float(classifier.intercept_[column]) + known_weights(classifier, column)[1]
    found: dict[str, Any] = {"label": label, "intercept": intercept}
    if isinstance(classifier, LabelGraphClassifier):
        graph = classifier.label_graph_
        own = [number for number, clique in enumerate(graph.cliques) if column in clique]
        found["ties"] = clique_facts(graph, own)
    names = feature_names(model)
    if facts.factors is None:
        if not hasattr(classifier, "coef_"):
            what = f"has the kernel {facts.kernel}" if not facts.combination else "combines several models"
            raise ValueError(
                f"The model {what}, where features have no weights to show; --label is for max-margin "
                "models of linear and cosine kernels, and low-rank models."
            )
        return found | _strongest(label_weights(classifier, column), names, count)
    geometry = FactorGeometry(classifier)
    weights = geometry.feature_weights(column)
    similar = [{"label": name, "cosine": short(cosine)} for name, cosine in geometry.similar(column, count)]
    return found | ({} if weights is None else _strongest(weights, names, count)) | {"similar": similar}


def _strongest(weights: Any, names: Any, count: int) -> dict[str, Any]:
    order, found = np.argsort(weights, kind="stable"), dict[str, Any]()
    for side, places, sign in (("for", order[::-1][:count], 1), ("against", order[:count], -1)):
        found[side] = [
            {"feature": str(k) if names is None else str(names[k]), "weight": short(weights[k])}
            for k in places
            if sign * weights[k] > 0
        ]
    return found


def _column(model: Model, label: str) -> int:
    names = names_of(model)
    if label not in names:
        close = ", ".join(repr(name) for name in names[:_MOST_NAMES])
        asked = did_you_mean(label, names)
        raise ValueError(f"The model has no label {label!r}; it has {len(names)}, such as {close}.{asked}")
    has_one_row = len(scorer_of(model).intercept_) < len(names)
    if has_one_row and label == names[0]:
        raise ValueError(f"With two classes only the second has weights; use {names[1]!r}.")
    return 0 if has_one_row else names.index(label)


def _show_model(model: Model, path: str, as_json: bool, key: bytes | None) -> None:
    content = read_model_file(path, verify=False, key=key)
    facts, classifier = model_facts(model), scorer_of(model)
    factors = None if facts.factors is None else _factor_json(facts, FactorGeometry(classifier))
    if as_json:
        file = {"kind": content.kind, "file": path, "bytes": Path(path).stat().st_size}
        more = {} if factors is None else {"factors": factors}
        print_json(file | {"versions": dict(content.versions)} | facts.to_json() | more)
        return
    names = " around ".join(facts.names)
    lines: dict[str, str | None] = {
        "kind": names if content.kind == facts.names[0] else f"{content.kind} with {names}",
        "file": f"{path}, {size_of(path)}",
        "written by": ", ".join(f"{name} {version}" for name, version in content.versions.items()),
        **decision_lines(facts, "all"),
        "model": facts.classifier if facts.decisions else None,
        "parameters": parameter_words(facts.parameters),
        **origin_lines(facts),
        **label_lines(facts),
        **fact_lines(facts, factors and _factor_lines(factors)),
    }
    print_lines({name: value for name, value in lines.items() if value is not None}, 12)
    for line in part_lines(facts, _MOST_TIES):
        say(line)


def _factor_json(facts: ModelFacts, geometry: FactorGeometry) -> dict[str, Any]:
    values = geometry.singular_values
    longest = [{"label": name, "length": short(length)} for name, length in geometry.longest(_MOST_LONGEST)]
    return {
        **plain(facts.factors),
        "threshold": facts.thresholds and facts.thresholds.words,
        "singular_values": None if values is None else [short(value) for value in values],
        "longest_labels": longest,
    }


def _factor_lines(factors: dict[str, Any]) -> dict[str, str]:
    longest = ", ".join(f"{entry['label']} {entry['length']:.3g}" for entry in factors["longest_labels"])
    values = factors["singular_values"]
    singular = "not computed: the kernel of the support rows is not loaded, or too large"
    if values is not None:
        last = f", ..., {values[-1]:.4g}" if len(values) > _FIRST_VALUES else ""
        singular = ", ".join(f"{value:.4g}" for value in values[:_FIRST_VALUES]) + last
    return {"singular": singular, "strongest": f"labels with the longest weights: {longest}"}


def _print_weights(facts: dict[str, Any]) -> None:
    say(one_line(f"{facts['label']} (intercept {facts['intercept']:+.4f})"))
    for side in ("for", "against"):
        if side in facts:
            _print_list(side, [(entry["weight"], entry["feature"]) for entry in facts[side]])
    if "ties" in facts:
        lines = tie_lines(facts["ties"], len(facts["ties"]))
        say("\n".join(["\nties:" if lines else "\nties: none", *lines]))
    if "similar" in facts:
        _print_list("most similar labels", [(entry["cosine"], entry["label"]) for entry in facts["similar"]])


def _print_list(title: str, entries: list[tuple[float, str]]) -> None:
    say(f"\n{title}:" if entries else f"\n{title}: nothing")
    for value, name in entries:
        say(one_line(f"{value:+10.4f}  {name}"))
