"""``labelweave inspect``: what a model file holds."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from labelweave.cli.factor_words import feature_weights, has_factors, similar_labels, singular_words
from labelweave.cli.graph_words import graph_facts, has_graph, label_ties, path_lines, tie_lines
from labelweave.cli.label_relations import covariance_facts, covariance_of, draw_covariance, draw_graph
from labelweave.cli.messages import note, print_json, size_of
from labelweave.cli.model_facts import Facts, feature_names_of, model_facts
from labelweave.cli.model_rows import Model, open_model, scorer_of
from labelweave.cli.model_words import kernel_words

__all__ = ["inspect"]

_MOST_NAMES = 8
_MOST_TIES = 10


@click.command()
@click.argument("model")
@click.option(
    "--label",
    metavar="NAME",
    help="Show the features that speak for and against this label; of a low-rank model also the "
    "labels most like it, of a label-graph model those it is tied to.",
)
@click.option("--features", "count", type=click.IntRange(1), default=10, show_default=True,
              help="With --label: how many features of each kind, and labels.")  # fmt: skip
@click.option("--covariance", is_flag=True, help="Show how the labels vary together a priori.")
@click.option("--graph", is_flag=True,
              help="Show which labels are tied to which, and in which order that was learned.")  # fmt: skip
@click.option("--out", "-o", metavar="FILE",
              help="With --covariance or --graph: draw it too (.png, .pdf, .svg).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(
    model: str, label: str | None, count: int, covariance: bool, graph: bool, out: str | None, as_json: bool
) -> None:
    """Say what a model file holds.

    \b
    Examples:
      labelweave inspect tags.lw
      labelweave inspect tags.lw --label role::program --features 20
      labelweave inspect bookmarks.lw --label music
      labelweave inspect tags.lw --covariance --out tags.png
      labelweave inspect scene.lw --graph --out scene.png
      labelweave inspect tags.lw --json
    """
    wishes = {"--label": label is not None, "--covariance": covariance, "--graph": graph}
    _check_wishes([flag for flag, wanted in wishes.items() if wanted], out)
    loaded = open_model(model)
    if covariance:
        _show_covariance(loaded, out, as_json)
    elif graph:
        _show_graph(loaded, out, as_json)
    elif label is not None:
        weights = _weights(loaded, label, count)
        print_json(weights) if as_json else _print_weights(weights)
    else:
        facts = model_facts(loaded, model)
        print_json(facts) if as_json else _print_facts(facts)


def _check_wishes(wishes: list[str], out: str | None) -> None:
    """Refuse flags that make no sense together."""
    if len(wishes) > 1:
        raise click.UsageError(f"{' and '.join(wishes)} show different things; give one of them.")
    if out is not None and wishes not in (["--covariance"], ["--graph"]):
        raise click.UsageError("--out goes with --covariance or --graph only.")


def _show_graph(model: Model, out: str | None, as_json: bool) -> None:
    classifier: Any = scorer_of(model)
    if not has_graph(classifier):
        raise ValueError(
            f"The model is a {type(classifier).__name__}, which has no graph of labels; fit one with "
            "--model label-graph."
        )
    if out is not None:
        draw_graph(classifier.label_graph_, out)
        note(f"the picture is in {out}.")
    facts = graph_facts(classifier)
    if as_json:
        print_json(facts)
        return
    click.echo(facts["summary"])
    parts = tie_lines(facts["cliques"], len(facts["cliques"])), path_lines(facts["rounds"])
    for lines in parts:
        click.echo("".join(f"\n{line}" for line in lines) if lines else "", nl=bool(lines))


def _show_covariance(model: Model, out: str | None, as_json: bool) -> None:
    covariance = covariance_of(scorer_of(model))
    if out is not None:
        draw_covariance(covariance, out)
        note(f"the picture is in {out}.")
    if as_json:
        print_json(covariance_facts(covariance))
    else:
        click.echo(str(covariance))


def _weights(model: Model, label: str, count: int) -> Facts:
    """Say what speaks for and against a label, and with factors which labels are like it."""
    classifier, column = scorer_of(model), _column(model, label)
    facts: Facts = {"label": label, "intercept": float(classifier.intercept_[column])}
    facts |= {"ties": label_ties(classifier, column)} if has_graph(classifier) else {}
    if not has_factors(classifier):
        return facts | _strongest(_label_weights(classifier, column), feature_names_of(model), count)
    weights = feature_weights(classifier, column)
    similar = {"similar": similar_labels(classifier, column, count)}
    return facts | ({} if weights is None else _strongest(weights, feature_names_of(model), count)) | similar


def _label_weights(classifier: Any, column: int) -> Any:
    if hasattr(classifier, "coef_"):
        return classifier.coef_[column]
    raise ValueError(
        f"The model has the kernel {kernel_words(classifier)}, with which features have no weights to "
        "show; --label goes with max-margin models of linear and cosine kernels, and with low-rank ones."
    )


def _strongest(weights: Any, names: Any, count: int) -> Facts:
    """Give the features of the largest and of the smallest weights."""
    order = np.argsort(weights, kind="stable")
    chosen = {"for": order[::-1][:count], "against": order[:count]}
    sign = {"for": 1, "against": -1}
    return {
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
    if len(scorer_of(model).intercept_) < len(names):
        if label == names[0]:
            raise ValueError(
                f"Of two classes the model has weights for the second, {names[1]!r}; ask for it."
            )
        return 0
    return names.index(label)


def _print_facts(facts: Facts) -> None:
    labels = facts["labels"]
    shown, more = ", ".join(labels[:_MOST_NAMES]), " ..." if len(labels) > _MOST_NAMES else ""
    lines = {
        "kind": _kind_line(facts),
        "file": f"{facts['file']}, {size_of(facts['file'])}",
        "written by": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
        **_decision_lines(facts),
        "parameters": _parameter_words(facts["parameters"]),
        **({"columns": _column_line(facts["columns"])} if "columns" in facts else {}),
        "classes" if facts["one_class_a_row"] else "labels": f"{len(labels)}: {shown}{more}",
        "features": f"{facts['features']}, {'with' if facts['feature_names'] else 'without'} names",
        **({"taxonomy": facts["taxonomy"]["summary"]} if "taxonomy" in facts else {}),
        "kernel": _kernel_line(facts),
        **({"threshold": facts["threshold"]} if "threshold" in facts else {}),
        **(_factor_lines(facts["factors"]) if "factors" in facts else {}),
        **({"graph": facts["graph"]["summary"]} if "graph" in facts else {}),
        **({"chosen": facts["choice"]["summary"]} if "choice" in facts else {}),
        **(_learning_lines(facts) if "learning" in facts else {}),
        **_end_lines(facts["fit"], _steps(facts)),
    }
    for name, value in lines.items():
        click.echo(click.wrap_text(f"{name:12}{value}", 79, "", " " * 12))
    for line in tie_lines(facts["graph"]["cliques"], _MOST_TIES) if "graph" in facts else ():
        click.echo(line)


def _kind_line(facts: Facts) -> str:
    """Name what the file holds, and what is in it, the outermost first."""
    inside = [*(layer["classifier"] for layer in facts.get("decisions", ())), facts["classifier"]]
    words = " around ".join(inside)
    return words if facts["kind"] == inside[0] else f"{facts['kind']} with {words}"


def _decision_lines(facts: Facts) -> dict[str, str]:
    """Say what decides on the scores, with its settings, and what is guaranteed."""
    said = [
        f"{layer['classifier']}: {layer['summary']} ({_parameter_words(layer['parameters'])})"
        for layer in facts.get("decisions", ())
    ]
    return {
        **({"decides": said[0]} if said else {}),
        **({"around": "; around ".join(said[1:])} if said[1:] else {}),
        **({"guarantee": facts["guarantee"]} if "guarantee" in facts else {}),
        **({"model": facts["classifier"]} if said else {}),
    }


def _parameter_words(parameters: Facts) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


def _steps(facts: Facts) -> str:
    if "graph" in facts:
        return "passes"
    return "Newton steps" if "prior" in facts else "rounds"


def _factor_lines(factors: Facts) -> dict[str, str]:
    longest = ", ".join(f"{entry['label']} {entry['length']:.3g}" for entry in factors["longest_labels"])
    return {
        "rank": factors["rank_summary"],
        "singular": singular_words(factors["singular_values"]),
        "strongest": f"labels with the longest weights: {longest}",
        "threshold": factors["threshold"],
    }


def _end_lines(fit: Facts, steps: str) -> dict[str, str]:
    """Say how a fit ended, and what it took."""
    end = "converged" if fit["converged"] else "not converged"
    if fit["first_gap"] is not None and fit["gap"] is not None:
        course = f"; gap {fit['first_gap']:.1e} at the first of {fit['checks']} checks"
        gap = {"gap": f"{fit['gap']:.2e} ({end})"}
    else:
        is_silent = fit["converged"] is None and fit["status"] != "interrupted"
        course = "" if is_silent else f", {(fit['status'] or end).replace('_', ' ')}"
        gap = {} if fit["gap_summary"] is None else {"gap": fit["gap_summary"]}
    if fit["objective"] is None:
        is_closed = not fit["rounds"] and fit["status"] != "interrupted"
        taken = "in closed form" if is_closed else f"{fit['rounds']} {steps}"
        return gap | {"fit": f"{taken}{course}"}
    spent = f"{fit['rounds']} {steps} in {fit['seconds']:.1f} s, objective {fit['objective']:.6g}"
    return gap | {"fit": f"{spent}{course}"}


def _learning_lines(facts: Facts) -> dict[str, str]:
    """Say what was learned; a model without a prior says nothing where that is nothing."""
    learning, is_prior = facts["learning"], "prior" in facts
    if not learning["evaluations"]:
        return {"prior": learning["values"], "learning": learning["summary"]} if is_prior else {}
    words = f"{learning['summary']} from {learning['first_loss']:.4f} in {learning['seconds']:.1f} s"
    return {"prior" if is_prior else "learned": learning["values"], "learning": words}


def _kernel_line(facts: Facts) -> str:
    rows = facts["support_rows"]
    return f"{facts['kernel']}{'' if rows is None else f', {rows} support rows'}"


def _column_line(columns: Facts) -> str:
    words = {name: ", ".join(v) if isinstance(v, list) else repr(v) for name, v in columns.items()}
    return "; ".join(f"{name} {value}" for name, value in words.items())


def _print_weights(facts: Facts) -> None:
    click.echo(f"{facts['label']} (intercept {facts['intercept']:+.4f})")
    for side in ("for", "against"):
        if side in facts:
            _print_list(side, [(entry["weight"], entry["feature"]) for entry in facts[side]])
    if "ties" in facts:
        lines = tie_lines(facts["ties"], len(facts["ties"]))
        click.echo("\n".join(["\nties:" if lines else "\nties: none", *lines]))
    if "similar" in facts:
        _print_list("labels most like it", [(entry["cosine"], entry["label"]) for entry in facts["similar"]])


def _print_list(title: str, entries: list[tuple[float, str]]) -> None:
    click.echo(f"\n{title}:" if entries else f"\n{title}: nothing")
    for value, name in entries:
        click.echo(f"{value:+10.4f}  {name}")
