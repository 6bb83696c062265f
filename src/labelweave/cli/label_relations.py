"""The label covariance of a model: in print, as JSON, and as a picture; a picture of a label graph."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labelweave.display import LabelCovarianceDisplay, LabelGraphDisplay
from labelweave.labels import CliqueGraph, LabelCovariance
from labelweave.model_files.safe_file import replacing_file

__all__ = ["covariance_facts", "covariance_of", "draw_covariance", "draw_graph"]

_MOST_WRITTEN = 2000  # labels of which JSON holds the matrix
_SUFFIXES = (".png", ".pdf", ".svg")


def covariance_of(classifier: Any) -> LabelCovariance:
    """Give the label covariance of a classifier, with the names of its labels.

    Raises ValueError if it has none.
    """
    covariance = getattr(classifier, "label_covariance_", None)
    if hasattr(classifier, "prior_"):
        covariance = _of_prior(classifier.prior_)
    if not isinstance(covariance, LabelCovariance):
        raise ValueError(f"The model is a {type(classifier).__name__}, which has no label covariance.")
    names = classifier.label_names_
    if covariance.label_names is not None or len(names) != covariance.n_labels:  # two classes are one label
        return covariance
    named = copy.copy(covariance)
    named.label_names = names
    return named


def _of_prior(prior: Any) -> LabelCovariance:
    """Give the covariance of the labels' scores at a row where all kernels are one."""
    covariances: list[LabelCovariance] = [term.covariance for term in prior.terms]
    first, *others = covariances
    if not others:
        return first
    if first.n_labels > _MOST_WRITTEN:
        raise ValueError(
            f"The model has {len(others) + 1} kernels over {first.n_labels} labels; their covariances "
            f"are put together for at most {_MOST_WRITTEN} labels."
        )
    return LabelCovariance.dense(sum((term.to_dense() for term in others), first.to_dense()))


def covariance_facts(covariance: LabelCovariance) -> dict[str, Any]:
    """Give a covariance as plain data.

    Returns the structure, the labels, their variances and, up to 2,000 labels, the matrix.
    """
    names = covariance.label_names
    few = covariance.n_labels <= _MOST_WRITTEN
    return {
        "structure": covariance.kind,
        "labels": list(range(covariance.n_labels)) if names is None else names.tolist(),
        "variances": covariance.diagonal().tolist(),
        "covariance": covariance.to_dense().tolist() if few else None,
    }


def draw_covariance(covariance: LabelCovariance, path: str) -> None:
    """Draw the correlations into a file, which appears only once it is complete.

    path: the file; its name says the format.
    Raises ImportError if matplotlib is not installed.
    Raises ValueError if the name says no format.
    """
    _draw(lambda: LabelCovarianceDisplay.from_covariance(covariance).figure_, path)


def draw_graph(graph: CliqueGraph, path: str) -> None:
    """Draw a graph of labels into a file, which appears only once it is complete.

    path: the file; its name says the format.
    Raises ImportError if matplotlib or networkx is not installed.
    Raises ValueError if the name says no format, or the graph has no cliques.
    """
    _draw(lambda: LabelGraphDisplay.from_graph(graph).figure_, path)


def _draw(make_figure: Callable[[], Any], path: str) -> None:
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ValueError(f"The name {path} does not say its format; end it in {', '.join(_SUFFIXES)}.")
    _without_windows()
    with warnings.catch_warnings(), replacing_file(path) as file:
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # one line a character
        figure = make_figure()
        figure.savefig(file, format=suffix[1:], dpi=150)
    _close(figure)


def _without_windows() -> None:
    """Draw into files even where there is a screen."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError("Pictures need matplotlib: install labelweave[plot].") from None
    matplotlib.use("Agg")


def _close(figure: Any) -> None:
    from matplotlib import pyplot

    pyplot.close(figure)
