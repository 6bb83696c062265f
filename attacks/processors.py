"""Fit and score as on other processors, and with other numbers of threads.

    python -m attacks.processors

OpenBLAS, NumPy and Numba choose their vector code by the processor; environment variables select that of an
older one.  Models fitted here score rows there, and all models are fitted there again:

- with another number of threads of OpenBLAS every bit must be the same;
- on another processor the scores of a model file differ only by rounding, and the certificates of both fits
  hold: neither lower bound is above the other's objective.  Hyperparameters, graphs and thresholds may be
  chosen differently there, so scores of new fits are only shown, and certificates are compared if the
  objective is given.

Rounding is counted in units of the last place of the sum of the absolute values of a score's terms: in any
order of summation of n numbers, the error is at most n such units, and fewer units of the sum itself cannot
be promised if terms cancel (Higham, Accuracy and Stability of Numerical Algorithms, 2002, sections 3.1 and
4.2).
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from benchmarks.frame import command, flag, several
from sklearn.base import clone

import labelweave
from attacks.small_fits import KINDS, data_of, fitted, scores_of
from labelweave.estimators.label_graph.model import CliqueScorer
from labelweave.estimators.label_tree.scorer import LabelTreeScorer
from labelweave.estimators.scorers import KernelScorer, LinearScorer
from labelweave.features import FeatureMatrix

_MOST_UNITS = 8.0
_ROUNDING = 1e-9  # of the objective
_ROWS, _TRAINED, _FEATURES = 700, 300, 40  # enough for the library to use several threads
_CHOOSES = {
    "margins, learned", "logistic, learned", "logistic, tree", "logistic, pivots", "low rank, learned",
    "low rank, path", "graph, learned", "graph, scores",
}  # fmt: skip
_ROOT = Path(__file__).parents[1]


def numpy_features(level: int) -> str:
    """List the CPU features that NumPy must not use: all that it chooses at run time but the first ones."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return " ".join([name for name in __cpu_dispatch__ if __cpu_features__[name]][level:])


THREADS = {f"{n} threads": {"OPENBLAS_NUM_THREADS": str(n), "OMP_NUM_THREADS": str(n)} for n in (1, 3, 8)}
PROCESSORS = {
    "OpenBLAS for Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "OpenBLAS for Nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "NumPy for AVX2": {"NPY_DISABLE_CPU_FEATURES": numpy_features(1)},
    "NumPy for SSE4": {"NPY_DISABLE_CPU_FEATURES": numpy_features(0)},
    "Numba for Haswell": {"NUMBA_CPU_NAME": "haswell"},
    "Numba for Nehalem": {"NUMBA_CPU_NAME": "nehalem"},
}
PROCESSORS["a Nehalem"] = (
    PROCESSORS["OpenBLAS for Nehalem"] | PROCESSORS["NumPy for SSE4"] | PROCESSORS["Numba for Nehalem"]
)


class Found(NamedTuple):
    """The result of a fit: scores of a model file of this processor, scores of its own, its last objectives.

    terms: the sums of the absolute values of the terms of every score of the model file.
    """

    stored: np.ndarray
    terms: np.ndarray
    own: np.ndarray
    primal: float
    dual: float


def _bounds(model: Any) -> tuple[float, float]:
    trace = getattr(model, "trace_", None)
    return (trace[-1].primal, trace[-1].dual) if trace else (np.nan, np.nan)


def _write_scores(names: list[str], folder: Path, out: Path) -> None:
    """Fit here, score rows with this model and with the model files of a folder, and store both."""
    found = {}
    for name in names:
        X, Y = data_of(name, _TRAINED, _FEATURES)
        many = data_of(name, _ROWS, _FEATURES, seed=1)[0]
        model = fitted(clone(KINDS[name]), X, Y)
        path = folder / f"{name}.lw"
        if not path.exists():
            model.save(path)
        stored = labelweave.load(path)
        found[f"{name}/stored"] = scores_of(stored, many)
        found[f"{name}/terms"] = sums_of_terms(stored, many)
        found[f"{name}/own"] = scores_of(model, many)
        found[f"{name}/bounds"] = np.array(_bounds(model))
    np.savez(out, **found)


def scores_under(settings: Mapping[str, str], names: list[str], folder: Path) -> dict[str, Found]:
    """Fit and score in a process with environment variables; missing model files are written."""
    out = folder / "found.npz"
    command = [sys.executable, "-m", "attacks.processors", "--child", os.fspath(folder), "--kinds", *names]
    environment = {**os.environ, **settings}
    subprocess.run(command, cwd=_ROOT, env=environment, check=True)
    with np.load(out) as found:
        return {
            name: Found(
                *(found[f"{name}/{part}"] for part in ("stored", "terms", "own")),
                *found[f"{name}/bounds"].tolist(),
            )
            for name in names
        }


def sums_of_terms(model: Any, X: np.ndarray) -> np.ndarray:
    """Sum the absolute values of the terms of every score.

    Scores of other models count as if each were as large as the largest, and had terms that cancel like those
    of the inner model.  Kernels are assumed to be positive, as they are here.
    """
    scorer = getattr(model, "scorer_", None)
    if scorer is None:
        scores, inner = scores_of(model, X), model.estimator_
        cancelled = np.max(sums_of_terms(inner, X)) / _largest(scores_of(inner, X))
        return np.full_like(scores, cancelled * _largest(scores))
    if isinstance(scorer, KernelScorer):
        parts = [replace(term, coefficients=np.abs(term.coefficients)) for term in scorer.terms]
        positive: Any = replace(scorer, terms=tuple(parts), intercept_=np.abs(scorer.intercept_))
        return np.asarray(positive.scores(FeatureMatrix(X)))
    if isinstance(scorer, CliqueScorer):
        return _of_labelings(scorer, X)
    if isinstance(scorer, LabelTreeScorer):
        return _of_paths(scorer, X)
    names = ("weights",) if isinstance(scorer, LinearScorer) else ("feature_factors_", "label_factors_")
    has_kernel = getattr(scorer, "support", None) is not None
    made = _with_absolute(scorer, "intercept_", *names)
    return np.asarray(made.scores(FeatureMatrix(X if has_kernel else np.abs(X))))


def _of_labelings(scorer: CliqueScorer, X: np.ndarray) -> np.ndarray:
    """Sum the terms of labels and of the largest state of every clique, the same for all labels."""
    inputs = FeatureMatrix(np.abs(X))
    if scorer.inputs_ is not None:
        inputs = _with_absolute(scorer.inputs_, "table", "constant").of(FeatureMatrix(X))
    names = ("intercept_", "coef_", "clique_coef_", "clique_intercept_")
    unary, tables = replace(_with_absolute(scorer, *names), inputs_=None).potentials(inputs)
    largest = np.maximum.reduceat(tables, scorer.label_graph.table_starts[:-1], axis=1)
    sums = unary.sum(axis=1) + largest.sum(axis=1)
    return np.tile(sums[:, None], (1, scorer.n_labels))


def _of_paths(scorer: LabelTreeScorer, X: np.ndarray) -> np.ndarray:
    """Sum the terms of the largest margin, once per node of the longest path.

    The log-odds of a path change at most by the sum of the changes of its margins.
    """
    sums = np.zeros(len(X))
    for weighted in scorer.trees:
        tree = weighted.tree
        nodes = np.repeat(np.arange(tree.n_nodes), np.diff(weighted.pair_ends))
        pairs = np.repeat(np.arange(len(nodes)), np.diff(weighted.starts))
        columns = tree.ends[nodes[pairs]] + weighted.columns
        sizes = np.abs(weighted.values * weighted.scales[columns])
        shape = scorer.n_features, len(tree.targets)
        weights = sp.csr_array((sizes, (weighted.features[pairs], columns)), shape=shape)
        margins = np.abs(X) @ weights + np.abs(weighted.intercepts)
        sums = np.maximum(sums, (1 + tree.depths.max()) * margins.max(axis=1))
    return np.tile(sums[:, None], (1, scorer.n_labels))


def _with_absolute(record: Any, *names: str) -> Any:
    return replace(record, **{name: np.abs(getattr(record, name)) for name in names})


def _largest(scores: np.ndarray) -> float:
    return float(np.abs(scores).max(initial=0.0))


def units(one: np.ndarray, other: np.ndarray, terms: np.ndarray | None = None) -> float:
    """Return the largest difference in units of the last place of sums of terms, or of the largest score."""
    of = _largest(one) if terms is None else terms
    differences = np.abs(one - other)
    return float((differences / np.spacing(np.where(differences, of, 1.0))).max(initial=0.0))


def wrong_with_threads(here: dict[str, Found], there: dict[str, Found]) -> list[str]:
    return [
        f"{name}: {what} differ by {units(getattr(found, part), getattr(there[name], part)):.3g} units"
        for name, found in here.items()
        for part, what in (("stored", "scores of a model file"), ("own", "scores of a new fit"))
        if not np.array_equal(getattr(found, part), getattr(there[name], part), equal_nan=True)
    ]


def wrong_on_processors(here: dict[str, Found], there: dict[str, Found]) -> list[str]:
    """Return where scores differ by more than rounding, and which certificates contradict each other."""
    found = []
    for name, own in here.items():
        other = there[name]
        apart = units(own.stored, other.stored, own.terms)
        if apart > _MOST_UNITS:
            found.append(f"{name}: scores differ by {apart:.0f} units")
        for one, two in () if name in _CHOOSES else ((own, other), (other, own)):
            if one.dual > two.primal + _ROUNDING * abs(two.primal):
                found.append(f"{name}: a lower bound of {one.dual}, and an objective of {two.primal}")
    return found


@command(
    kinds=several(KINDS),
    only=flag(help="by default all", nargs="+", choices=[*THREADS, *PROCESSORS]),
    child=flag(help=argparse.SUPPRESS, type=Path),
)
def main(chosen: Any) -> None:
    if chosen.child is not None:
        _write_scores(chosen.kinds, chosen.child, chosen.child / "found.npz")
        return
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        here = scores_under({}, chosen.kinds, Path(folder))
        for name, settings in (THREADS | PROCESSORS).items():
            if chosen.only is not None and name not in chosen.only:
                continue
            there = scores_under(settings, chosen.kinds, Path(folder))
            is_same = name in THREADS
            wrong = (wrong_with_threads if is_same else wrong_on_processors)(here, there)
            stored = {
                kind: units(found.stored, there[kind].stored, found.terms) for kind, found in here.items()
            }
            fits = {kind: units(found.own, there[kind].own) for kind, found in here.items()}
            most, most_of_fits = max(stored, key=stored.__getitem__), max(fits, key=fits.__getitem__)
            print(
                f"{name}: scores of model files differ by up to {stored[most]:.0f} units of the last place "
                f"({most}), those of new fits by {fits[most_of_fits]:.3g} ({most_of_fits})",
                *wrong, sep="\n  ", flush=True,
            )  # fmt: skip
            failed |= bool(wrong)
    raise SystemExit(failed)
