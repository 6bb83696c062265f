"""From a fitted model and labeled rows to one self-contained HTML page.

Jinja escapes every name, text and number.  The page's content security policy forbids all requests, and all
scripts but its own, given by digest; without scripts only sorting and filtering are lost.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from os import PathLike
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import labelweave

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ImportError:
    raise ImportError("Reports need jinja2: install labelweave[app].") from None

from labelweave.app.facts import (
    certificate_words,
    decision_lines,
    fact_lines,
    label_lines,
    model_facts,
    origin_lines,
    parameter_words,
)
from labelweave.app.report import pictures
from labelweave.app.report.label_numbers import (
    LabelNumbers,
    LabelStructure,
    count_words,
    label_numbers,
    node_numbers,
    weakest_labels,
)
from labelweave.app.report.measured import Measured, measure, metric_line
from labelweave.app.report.reported_rows import ReportedRows, read_rows
from labelweave.app.report.row_examples import RowExamples
from labelweave.app.report.weak_labels import chief_confusions, suspects, weak_labels
from labelweave.app.report.yardstick import baseline_metrics, intervals, verdict
from labelweave.decisions.layers import taxonomy_of
from labelweave.foundation.arguments import checked
from labelweave.metrics._inputs import read_weights
from labelweave.model_files.safe_file import replacing_file


@checked
@dataclass(frozen=True)
class ReportOptions:
    """The texts and the extent of a report.

    Parameters
    ----------
    title : str, default="Model report"
        The heading of the page.
    facts : mapping of str to str, default={}
        Further facts about model and data, such as the names of their files.
    weakest : int, default=20
        Maximum number of weak labels to analyze.
    examples : int, default=6
        Maximum number of rows to show with all their labels.
    unknown_labels : {"missed", "ignore", "raise"}, default="missed"
        How to treat labels or classes that the model lacks; missed ones are listed.
    sample_weight : array-like of shape (n,) or None, default=None
        Non-negative weights of the rows, in all metrics but those of single labels.

    Raises
    ------
    ValueError
        If a number is negative, or ``unknown_labels`` is invalid.
    """

    title: str = "Model report"
    facts: Mapping[str, str] = field(default_factory=dict)
    weakest: int = 20
    examples: int = 6
    unknown_labels: Literal["missed", "ignore", "raise"] = "missed"
    sample_weight: Any = None

    def __post_init__(self) -> None:
        for name in ("weakest", "examples"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be 0 or more.")
        if self.unknown_labels not in ("missed", "ignore", "raise"):
            raise ValueError(f"unknown_labels is {self.unknown_labels!r}; use 'missed', 'ignore' or 'raise'.")


def rendered(content: Mapping[str, Any]) -> str:
    script = (resources.files(__package__) / "templates" / "report.js").read_text(encoding="utf-8")
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _environment().get_template("report.html").render(content, script=script, digest=digest)


@cache
def _environment() -> Environment:
    blocks: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    environment = Environment(loader=PackageLoader(__package__), autoescape=True, **blocks)
    filters: dict[str, Callable[..., str]] = {
        "share": lambda value, digits=2: "–" if np.isnan(value) else f"{value:.{digits}f}",
        "decimal": lambda value: "undefined" if np.isnan(value) else f"{value:.4f}",
        "signed": lambda value, digits=3: f"{value:+.{digits}f}".replace("-", "−"),
        "whole": count_words,
    }
    environment.filters |= filters
    return environment


_MOST_LINES = 10_000  # in the table of all labels
_FREQUENT = 12


@checked
def write_report(
    model: Any, X: Any, y: Any, path: str | PathLike[str], *,
    row_names: Sequence[Any] | npt.NDArray[Any] | None = None, options: ReportOptions | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> None:  # fmt: skip
    """Write one HTML file about a fitted model and its quality on labeled rows.

    The file is self-contained, without network access and scripts.  It starts with a verdict and the metrics,
    with intervals and a baseline that always predicts the most frequent labels; explains weak labels and
    label structures, shows rows with what raised or lowered their labels' scores (exactly, for scores that
    are sums over features), and ends with the model, and its certificate.

    Parameters
    ----------
    model : classifier, TableModel or Pipeline
        A fitted classifier of this library, a meta-classifier around one, a model of table rows, or a
        scikit-learn pipeline with one of these as its last step.
    X : {array-like, sparse matrix, DataFrame, list of str} of n rows
        The input of the model.
    y : array-like of shape (n, L) or (n,), sparse matrix, DataFrame or LabelMatrix
        The labels, matched by name where they have names, NaN where not observed; or one class per row, None
        or NaN where unknown.  Unobserved values are never counted.
    path : path-like
        The file, replaced only once the new one is complete.
    row_names : sequence of length n or None, default=None
        The names of the rows; by default a DataFrame's index, else numbers from 0.
    options : ReportOptions or None, default=None
        Title, further facts, and how many weak labels and rows to show.
    on_progress : callable or None, default=None
        Called with a short text after every step.

    Raises
    ------
    TypeError
        If the model is not a fitted classifier of this library.
    ValueError
        If there are no rows or no labels, or they do not match the model.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from labelweave import MaxMarginClassifier, datasets
    >>> from labelweave.report import write_report
    >>> data = datasets.make_text_like(300, 200, 6)
    >>> model = MaxMarginClassifier().fit(data.X[:200], data.Y[:200])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "report.html"
    ...     write_report(model, data.X[200:], data.Y[200:], path)
    ...     path.read_text()[:15]
    '<!DOCTYPE html>'
    """
    options, tell = options or ReportOptions(), on_progress or (lambda words: None)
    rows = read_rows(model, X, row_names)
    if options.sample_weight is not None:
        rows = replace(rows, weights=read_weights(options.sample_weight, rows))
    measured = measure(rows, y, options.unknown_labels, tell)
    truth = measured.outcomes.truth
    if not truth.positives.nnz:
        raise ValueError(
            f"None of the {len(truth)} rows has a label; a report compares predictions with labels, so pass "
            "data with labels."
        )
    tell("analyzing weak labels")
    numbers = label_numbers(measured.outcomes, measured.probabilities)
    content = _performance(rows, measured, numbers, options) | _structure(rows, measured, numbers)
    tell("looking for label errors")
    content["suspects"] = suspects(rows, measured, content["structure"])
    tell("writing")
    facts = dict(options.facts) | _model_lines(model, content["structure"])
    html = rendered(content | {"title": options.title, "facts": facts})
    with replacing_file(path) as file:
        file.write(html.encode(errors="backslashreplace"))  # file names may contain bytes that are not text


def _performance(
    rows: ReportedRows, measured: Measured, numbers: LabelNumbers, options: ReportOptions
) -> dict[str, Any]:
    outcomes, names = measured.outcomes, measured.outcomes.names
    examples = RowExamples(rows, outcomes)
    baseline, found = baseline_metrics(measured, taxonomy_of(rows.classifier)), intervals(measured)
    weak = weak_labels(outcomes, numbers, weakest_labels(numbers, options.weakest), rows.has_classes)
    order = np.argsort(-numbers.positive, kind="stable")[:_MOST_LINES]
    return {
        "has_classes": rows.has_classes,
        "verdict": verdict(measured, numbers, found, baseline),
        "metrics": [metric_line(key, value) for key, value in measured.metrics.items()],
        "baseline": [baseline.get(key, np.nan) for key in measured.metrics],
        "intervals": [found.get(key) for key in measured.metrics],
        "measured": measured,
        "names": names,
        "numbers": numbers,
        "order": order.tolist(),
        "chief": chief_confusions(outcomes),
        "picture": pictures.frequency_picture(numbers, names),
        "reliability": pictures.reliability_picture(outcomes.truth, measured.probabilities),
        "weak": weak,
        "weak_examples": {label.label: examples.of_label(label.label) for label in weak},
        "examples": examples.across(options.examples),
        "linear": examples.linear,
    }


def _structure(rows: ReportedRows, measured: Measured, numbers: LabelNumbers) -> dict[str, Any]:
    structure, taxonomy = LabelStructure(rows.classifier), taxonomy_of(rows.classifier)
    correlations, graph = structure.correlations, structure.graph
    columns = measured.outcomes.columns
    frequent = np.argsort(-numbers.positive, kind="stable")[:_FREQUENT]
    is_closed = bool(getattr(rows.classifier, "_enforces", False))
    nodes = [] if taxonomy is None else node_numbers(taxonomy, measured, numbers, is_closed)
    return {
        "structure": structure,
        "tried": pictures.combination_picture(model_facts(rows.classifier).combination),
        "correlations": None
        if correlations is None
        else pictures.correlation_picture(correlations, structure.names),
        "graph_picture": None if graph is None else pictures.graph_picture(graph, structure.names),
        "nodes": nodes,
        "is_closed": is_closed,
        "branches": [] if taxonomy is None else pictures.tree_branches(taxonomy, nodes),
        "tree_picture": None if taxonomy is None else pictures.tree_picture(taxonomy, nodes),
        "frequent": [structure.neighbors(int(columns[label])) for label in frequent],
    }


def _model_lines(model: Any, structure: LabelStructure) -> dict[str, str]:
    facts, covariance = model_facts(model), structure.covariance
    lines = {
        "model": " around ".join(facts.names),
        **decision_lines(facts, "changed"),
        "changed parameters": parameter_words(facts.parameters, facts.changed),
        **origin_lines(facts),
        **label_lines(facts),
        "a priori": "" if covariance is None else f"label covariance ({covariance.kind})",
        **fact_lines(facts),
        "certificate": certificate_words(facts),
        "written by": f"labelweave {labelweave.__version__}",
    }
    return {name[0].upper() + name[1:]: text for name, text in lines.items() if text}
