"""``labelweave inspect``: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from labelweave import Taxonomy
from labelweave.cli.label_relations import covariance_facts, covariance_of, draw_covariance
from labelweave.cli.messages import note, print_json, size_of
from labelweave.cli.model_rows import Model, classifier_of, open_model
from labelweave.cli.model_words import (
    hyperparameter_words,
    kernel_words,
    learning_words,
    n_support_rows,
    taxonomy_words,
    words_of,
)
from labelweave.estimators import TableModel
from labelweave.features.kernels import Kernel
from labelweave.model_files import read_model_file

__all__ = ["inspect"]

Facts = dict[str, Any]
_MOST_NAMES = 8


@click.command()
@click.argument("model")
@click.option("--label", metavar="NAME", help="Show the features that speak for and against this label.")
@click.option("--features", "count", type=click.IntRange(1), default=10, show_default=True,
              help="With --label: how many features of each kind.")  # fmt: skip
@click.option("--covariance", is_flag=True, help="Show how the labels vary together a priori.")
@click.option("--out", "-o", metavar="FILE", help="With --covariance: draw it too (.png, .pdf, .svg).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(
    model: str, label: str | None, count: int, covariance: bool, out: str | None, as_json: bool
) -> None:
    """Say what a model file holds.

    \b
    Examples:
      labelweave inspect tags.lw
      labelweave inspect tags.lw --label role::program --features 20
      labelweave inspect tags.lw --covariance --out tags.png
      labelweave inspect tags.lw --json
    """
    if label is not None and covariance:
        raise click.UsageError("--label and --covariance show different things; give one of them.")
    if out is not None and not covariance:
        raise click.UsageError("--out goes with --covariance only.")
    loaded = open_model(model)
    if covariance:
        _show_covariance(loaded, out, as_json)
    elif label is not None:
        weights = _weights(loaded, label, count)
        print_json(weights) if as_json else _print_weights(weights)
    else:
        facts = _facts(loaded, model)
        print_json(facts) if as_json else _print_facts(facts)


def _show_covariance(model: Model, out: str | None, as_json: bool) -> None:
    covariance = covariance_of(classifier_of(model))
    if out is not None:
        draw_covariance(covariance, out)
        note(f"the picture is in {out}.")
    if as_json:
        print_json(covariance_facts(covariance))
    else:
        click.echo(str(covariance))


def _facts(model: Model, path: str) -> Facts:
    content = read_model_file(path, verify=False)
    classifier = classifier_of(model)
    facts = {
        "kind": content.kind,
        "file": path,
        "bytes": Path(path).stat().st_size,
        "versions": dict(content.versions),
        "classifier": type(classifier).__name__,
        "parameters": {name: _plain(value) for name, value in classifier.get_params(deep=False).items()},
        "labels": [str(name) for name in model.label_names_],
        "features": int(classifier.n_features_in_),
        "feature_names": _feature_names(model) is not None,
        "kernel": kernel_words(classifier),
        "support_rows": n_support_rows(classifier),
        "fit": _fit_facts(classifier),
    }
    facts |= {"columns": _columns(model)} if isinstance(model, TableModel) else {}
    return facts | _prior_facts(classifier)


def _prior_facts(classifier: Any) -> Facts:
    """Say what was learned of the prior, for models that learn it."""
    if not hasattr(classifier, "learning_status_"):
        return {}
    taxonomy, names = classifier.taxonomy_, [str(name) for name in classifier.classes_]
    tree = {} if taxonomy is None else {"taxonomy": _taxonomy_facts(taxonomy, names)}
    return tree | {
        "one_class_a_row": classifier._form.kind != "labels",
        "kernels": [
            words_of(term.kernel) if term.kernel else "precomputed" for term in classifier.prior_.terms
        ],
        "hyperparameters": classifier.hyperparameters_,
        "prior": hyperparameter_words(classifier),
        "learning": {
            "status": classifier.learning_status_,
            "evaluations": len(classifier.learning_trace_),
            "cross_validation_loss": float(classifier.cross_validation_loss_),
            "first_loss": float(classifier.learning_trace_[0].value) if classifier.learning_trace_ else None,
            "seconds": round(classifier.learning_trace_[-1].time, 3) if classifier.learning_trace_ else 0.0,
            "summary": learning_words(classifier),
        },
        "kernel_products": float(classifier.kernel_products_),
    }


def _taxonomy_facts(taxonomy: Taxonomy, names: list[str]) -> Facts:
    return {
        "nodes": len(taxonomy),
        "roots": len(taxonomy.roots),
        "leaves": len(taxonomy.leaves),
        "summary": taxonomy_words(taxonomy, names),
    }


def _fit_facts(classifier: Any) -> Facts:
    trace = classifier.trace_
    return {
        "converged": bool(classifier.converged_),
        "rounds": int(classifier.n_iter_),
        "gap": float(classifier.duality_gap_),
        "seconds": round(trace[-1].time, 3),
        "checks": len(trace),
        "first_gap": trace[0].gap,
        "objective": trace[-1].primal,
    }


def _columns(model: TableModel) -> Facts:
    names = ("text", "categorical", "numeric", "labels", "label_separator", "id")
    found = {name: getattr(model.columns, name) for name in names}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items() if v}


def _plain(value: Any) -> Any:
    """Give numbers and words as they are, anything larger by its type and size."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Kernel) or callable(value):
        return words_of(value)
    if isinstance(value, Taxonomy):
        return f"Taxonomy of {len(value)} nodes"
    if isinstance(value, (tuple, list)) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    size = getattr(value, "n_labels", None) or np.size(value)
    return f"{type(value).__name__} over {size} labels"


def _feature_names(model: Model) -> Any:
    source = model if isinstance(model, TableModel) else None
    return getattr(model, "feature_names_in_", None) if source is None else source.feature_names_


def _weights(model: Model, label: str, count: int) -> Facts:
    classifier, column = classifier_of(model), _column(model, label)
    if not hasattr(classifier, "coef_"):
        raise ValueError(
            f"The model has the kernel {kernel_words(classifier)}, with which features have no weights to "
            "show; --label goes with max-margin models of linear and cosine kernels."
        )
    weights = classifier.coef_[column]
    names = _feature_names(model)
    order = np.argsort(weights, kind="stable")
    chosen = {"for": order[::-1][:count], "against": order[:count]}
    sign = {"for": 1, "against": -1}
    return {"label": label, "intercept": float(classifier.intercept_[column])} | {
        side: [
            {"feature": str(k) if names is None else str(names[k]), "weight": float(f"{weights[k]:.6g}")}
            for k in places
            if sign[side] * weights[k] > 0
        ]
        for side, places in chosen.items()
    }


def _column(model: Model, label: str) -> int:
    """Give the row of the weights of a label."""
    names = [str(name) for name in model.label_names_]
    if label not in names:
        close = ", ".join(repr(name) for name in names[:_MOST_NAMES])
        raise ValueError(f"The model has no label {label!r}; it has {len(names)}, such as {close}.")
    if len(classifier_of(model).intercept_) < len(names):
        if label == names[0]:
            raise ValueError(
                f"Of two classes the model has weights for the second, {names[1]!r}; ask for it."
            )
        return 0
    return names.index(label)


def _print_facts(facts: Facts) -> None:
    fit, labels, is_learned = facts["fit"], facts["labels"], "learning" in facts
    more = " ..." if len(labels) > _MOST_NAMES else ""
    lines = {
        "kind": facts["kind"] if "columns" not in facts else f"{facts['kind']} with {facts['classifier']}",
        "file": f"{facts['file']}, {size_of(facts['file'])}",
        "written by": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
        "parameters": ", ".join(f"{name}={value}" for name, value in facts["parameters"].items()),
        **({"columns": _column_line(facts["columns"])} if "columns" in facts else {}),
        (
            "classes" if facts.get("one_class_a_row") else "labels"
        ): f"{len(labels)}: {', '.join(labels[:_MOST_NAMES])}{more}",
        "features": f"{facts['features']}, {'with' if facts['feature_names'] else 'without'} names",
        **({"taxonomy": facts["taxonomy"]["summary"]} if "taxonomy" in facts else {}),
        "kernel": _kernel_line(facts),
        **({"prior": facts["prior"], "learning": _learning_line(facts)} if is_learned else {}),
        "gap": f"{fit['gap']:.2e} ({'converged' if fit['converged'] else 'not converged'})",
        "fit": f"{fit['rounds']} {'Newton steps' if is_learned else 'rounds'} in {fit['seconds']:.1f} s, "
        f"objective {fit['objective']:.6g}; "
        f"gap {fit['first_gap']:.1e} at the first of {fit['checks']} checks",
    }
    for name, value in lines.items():
        click.echo(click.wrap_text(f"{name:12}{value}", 79, "", " " * 12))


def _learning_line(facts: Facts) -> str:
    learning = facts["learning"]
    if not learning["evaluations"]:
        return str(learning["summary"])
    return f"{learning['summary']} from {learning['first_loss']:.4f} in {learning['seconds']:.1f} s"


def _kernel_line(facts: Facts) -> str:
    rows = facts["support_rows"]
    return f"{facts['kernel']}{'' if rows is None else f', {rows} support rows'}"


def _column_line(columns: Facts) -> str:
    words = {name: ", ".join(v) if isinstance(v, list) else repr(v) for name, v in columns.items()}
    return "; ".join(f"{name} {value}" for name, value in words.items())


def _print_weights(facts: Facts) -> None:
    click.echo(f"{facts['label']} (intercept {facts['intercept']:+.4f})")
    for side in ("for", "against"):
        click.echo(f"\n{side}:" if facts[side] else f"\n{side}: nothing")
        for entry in facts[side]:
            click.echo(f"{entry['weight']:+10.4f}  {entry['feature']}")
