"""Label correlations that differ between training and test (M3L paper, section 7.2.2, Table 3).

200 rows are drawn from the original training rows so that their labels go together
otherwise than in the test set; the labels of the remaining training rows, and nothing
else of them, give ``R = E[y y^T]``.  The paper does not say how its subset was drawn.
Here a row is drawn with a probability in proportion to ``exp(-8 r)``, r its rank by
typicality from 0 to 1, so that rows with the usual pairs of labels are rare among the
200.  Two measures of typicality change two things:

- "moments": ``y^T (E[y y^T] - I) y`` with labels in -1/1.  It changes what R states,
  how often labels agree, and with it how often they are there.
- "correlations": ``z^T (corr - I) z`` with standardised labels z.  It changes the
  correlations proper; they vanish or change sign.

Measures, strength and size were fixed on the remaining training rows, before any look
at a test set.  M3L takes ``(1 - shrinkage) R + shrinkage I``.  C, the shrinkage and, on
yeast, the width of the RBF kernel are chosen for each draw by four-fold
cross-validation on the 200 rows; validation losses are weighted by ``exp(8 r)``, the
inverse of how the rows were drawn, but by ``e^4`` times the least weight at most.
Independent classifiers are chosen in the same way.  Text is classified with a linear
kernel.  Test sets are as given; the first RCV1 subset, which has none, is split into
halves in file order.

Example: ``python -m benchmarks.papers.changed_correlations``.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold

from benchmarks.machine import describe_machine
from benchmarks.papers.animals import DATA
from benchmarks.papers.distances import median_distance
from benchmarks.results_file import write_json
from labelweave import LabelCovariance, MaxMarginClassifier, datasets

__all__ = ["main", "measure"]

_RESULTS = Path(__file__).resolve().parents[1] / "results" / "papers" / "changed_correlations.json"
_SIZE, _STRENGTH, _LARGEST_RATIO = 200, 8.0, 4.0
_PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_COARSE = 1e-2  # the gap of fits that only serve to choose
_WIDTHS = (0.25, 1.0, 4.0)
_SHRINKAGES = (0.0, 0.1, 0.3)
_PAPER = {"yeast": (24.99, 26.93), "tmc2007": (8.41, 11.15), "rcv1": (3.45, 4.25)}


@dataclass(frozen=True)
class Problem:
    """Training and test rows; labels are 0/1 and few enough to be dense."""

    X: Any
    Y: Any
    X_test: Any
    Y_test: Any


@dataclass(frozen=True)
class Draw:
    """The rows drawn, the weights that undo the drawing, and the covariance of the others' labels."""

    X: Any
    Y: Any
    weights: Any
    covariance: Any


Parameters = dict[str, float]


def main() -> None:
    """Measure, print the table, write the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", nargs="+", choices=sorted(_READERS), default=list(_READERS))
    parser.add_argument("--seeds", type=int, default=5, help="draws of training rows")
    parser.add_argument("--out", type=Path, default=_RESULTS)
    arguments = parser.parse_args()
    start = time.perf_counter()
    figures = {
        name: {rule: measure(name, rule, arguments.seeds) for rule in _TYPICALITY}
        for name in arguments.problems
    }
    print(_table(figures))
    results = {**describe_machine(), "seconds": time.perf_counter() - start, "rows": _SIZE}
    write_json(arguments.out, {**results, "problems": figures})


def measure(name: str, rule: str, n_seeds: int = 5) -> list[dict[str, Any]]:
    """Compare M3L with independent classifiers on one data set.

    Parameters
    ----------
    name : {"yeast", "tmc2007", "rcv1"}
        The data set.
    rule : {"moments", "correlations"}
        By which typicality rows are drawn.
    n_seeds : int
        The number of draws, seeds 0, 1, ...

    Returns
    -------
    list of dict
        For each draw the test Hamming losses in percent, what was chosen, and how the
        correlations of label pairs in the draw relate to those of the test set.
    """
    problem = _READERS[name]()
    return [_measure_draw(problem, rule, seed) for seed in range(n_seeds)]


def _measure_draw(problem: Problem, rule: str, seed: int) -> dict[str, Any]:
    draw = _draw_rows(problem, rule, seed)
    figures: dict[str, Any] = {"correlations": _compare_correlations(draw.Y, problem.Y_test)}
    for kind, shrinkages in (("independent", (1.0,)), ("M3L", _SHRINKAGES)):
        chosen = _choose(draw, shrinkages, seed)
        model = _fit(chosen, draw, draw.X, draw.Y)
        wrong = (model.decision_function(problem.X_test) > 0) != problem.Y_test
        figures[kind] = {"hamming": 100.0 * float(wrong.mean()), **chosen}
    return figures


def _draw_rows(problem: Problem, rule: str, seed: int) -> Draw:
    """Draw rows without replacement, untypical ones first (the largest Gumbel-perturbed weights)."""
    vectors = _TYPICALITY[rule](problem.Y)
    ranks = np.argsort(np.argsort(_agreement(vectors), kind="stable")) / (len(vectors) - 1)
    keys = -_STRENGTH * ranks + np.random.default_rng(seed).gumbel(size=len(ranks))
    order = np.argsort(-keys)
    drawn, others = np.sort(order[:_SIZE]), order[_SIZE:]
    powers = _STRENGTH * ranks[drawn]
    weights = np.exp(np.minimum(powers - powers.min(), _LARGEST_RATIO))
    covariance = LabelCovariance.from_labels(problem.Y[others]).to_dense()
    return Draw(problem.X[drawn], problem.Y[drawn], weights, covariance)


def _agreement(vectors: Any) -> Any:
    """Compute ``v^T (M - diag M) v`` of each row v, M their mean outer product."""
    moments = vectors.T @ vectors / len(vectors)
    np.fill_diagonal(moments, 0.0)
    return ((vectors @ moments) * vectors).sum(axis=1)


def _standardised(Y: Any) -> Any:
    spread = Y.std(axis=0)
    return (Y - Y.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _choose(draw: Draw, shrinkages: tuple[float, ...], seed: int) -> Parameters:
    """Find the parameters with the least weighted Hamming loss in cross-validation."""
    candidates = _candidates(draw, shrinkages)
    losses = np.zeros(len(candidates))
    for training, held in KFold(4, shuffle=True, random_state=seed).split(draw.Y):
        for number, candidate in enumerate(candidates):
            model = _fit(candidate, draw, draw.X[training], draw.Y[training], tol=_COARSE)
            wrong = ((model.decision_function(draw.X[held]) > 0) != draw.Y[held]).mean(axis=1)
            losses[number] += wrong @ draw.weights[held]
    return candidates[int(np.argmin(losses))]


def _candidates(draw: Draw, shrinkages: tuple[float, ...]) -> list[Parameters]:
    if sp.issparse(draw.X):
        return [{"C": C, "shrinkage": share} for C, share in product(_PENALTIES, shrinkages)]
    gammas = [width / median_distance(draw.X) for width in _WIDTHS]
    grid = product(_PENALTIES, shrinkages, gammas)
    return [{"C": C, "shrinkage": share, "gamma": gamma} for C, share, gamma in grid]


def _fit(parameters: Parameters, draw: Draw, X: Any, Y: Any, tol: float = 1e-3) -> MaxMarginClassifier:
    model = MaxMarginClassifier(C=parameters["C"], tol=tol)
    if "gamma" in parameters:
        model.set_params(kernel="rbf", gamma=parameters["gamma"])
    if parameters["shrinkage"] < 1.0:
        share = parameters["shrinkage"]
        model.set_params(label_covariance=(1.0 - share) * draw.covariance + share * np.eye(Y.shape[1]))
    return model.fit(X, Y)


def _compare_correlations(Y: Any, Y_test: Any) -> dict[str, float]:
    """Compare the tenth of label pairs that are most correlated in the test set."""
    here, test = _pair_correlations(Y), _pair_correlations(Y_test)
    strong = np.argsort(-np.abs(test))[: max(10, len(test) // 10)]
    return {
        "test": float(np.abs(test[strong]).mean()),
        "draw, in the direction of test": float((here[strong] * np.sign(test[strong])).mean()),
    }


def _pair_correlations(Y: Any) -> Any:
    standardised = _standardised(Y)
    return (standardised.T @ standardised / len(Y))[np.triu_indices(Y.shape[1], 1)]


def _read_mulan(folder: str, stem: str) -> Problem:
    place = DATA / "mulan" / folder
    parts = [
        datasets.read_mulan(place / f"{stem}-{part}.arff", place / f"{stem}.xml")
        for part in ("train", "test")
    ]
    labels = [part.Y.to_dense() for part in parts]
    return Problem(parts[0].X, labels[0], parts[1].X, labels[1])


def _read_tmc() -> Problem:
    """Read the counts of words and scale each row to unit length."""
    problem = _read_mulan("tmc2007", "tmc2007-500")
    return Problem(_unit_rows(problem.X), problem.Y, _unit_rows(problem.X_test), problem.Y_test)


def _unit_rows(X: Any) -> Any:
    from sklearn.preprocessing import normalize

    return normalize(X)


def _read_rcv1() -> Problem:
    with np.load(DATA / "rcv1" / "rcv1-subset1.npz") as file:
        X, Y = (
            sp.csr_array(
                (file[f"{k}_data"], file[f"{k}_indices"], file[f"{k}_indptr"]), shape=file[f"{k}_shape"]
            )
            for k in "XY"
        )
    labels, half = Y.toarray().astype(np.float64), X.shape[0] // 2
    return Problem(X[:half], labels[:half], X[half:], labels[half:])


_READERS = {"yeast": lambda: _read_mulan("yeast", "yeast"), "tmc2007": _read_tmc, "rcv1": _read_rcv1}


_TYPICALITY = {"moments": lambda Y: 2.0 * Y - 1.0, "correlations": _standardised}


def _table(figures: dict[str, dict[str, list[dict[str, Any]]]]) -> str:
    lines = [
        f"{'test Hamming loss %':22s}{'M3L':>12s}{'independent':>14s}{'difference':>18s}"
        f"{'paper (its own draw)':>24s}"
    ]
    for name, rules in figures.items():
        for rule, draws in rules.items():
            losses = np.array([[draw[kind]["hamming"] for kind in ("M3L", "independent")] for draw in draws])
            gains = losses[:, 1] - losses[:, 0]
            error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
            paper = "{:.2f} and {:.2f}".format(*_PAPER[name])
            lines.append(
                f"{name + ', ' + rule:22s}{losses[:, 0].mean():12.2f}{losses[:, 1].mean():14.2f}"
                f"{gains.mean():10.3f} ± {error:5.3f}{paper:>24s}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
