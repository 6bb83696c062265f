"""Low rank plus sparse for tail labels (after Xu, Tao and Xu, KDD 2016), in its simplest form.

Labels of few rows are what a low rank cannot hold.  Here a low-rank model is fitted to all labels (squared
loss, trace norm, rank 20 % of the labels), and then its residual on tail labels alone, those outside of the
most frequent 20 or 50 %: by a lasso a label ("+ sparse", scikit-learn's), or by a ridge on all features
("+ ridge", the low-rank model at full rank around the scores of the first one, its ``label_mean``).  The
paper fits both parts at once and bounds how many entries the second has; this has two steps.  Beside them
stands a ridge a label, "binary relevance", which is the model of full rank, "by PSP" with lambda by that.

Mulan's splits, rows of unit length.  lambda of the low rank and of binary relevance has the highest top-3
accuracy on a fifth of the training rows; the share of the tail and the penalty of its fit the highest
propensity-scored top-3 accuracy there ("PSP", by the propensities of the rows trained on), a penalty of
infinity, which leaves the low rank as it is, among them.  Then all training rows are fitted, and the test
rows are looked at once.  "non-zeros" is the share of the tail's weights that are not 0.

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.papers.tail_labels --sets bibtex``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.preprocessing import normalize

from benchmarks.frame import RESULTS, read_options, several
from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA, read_part
from benchmarks.recorded_runs import RecordedRuns
from labelweave import LabelMean, LowRankClassifier
from labelweave.metrics import precision_at_k, propensities, propensity_scored_precision_at_k

_SETS = ("bibtex", "delicious")
_BY_PSP = "binary relevance, by PSP"
_METHODS = ("binary relevance", _BY_PSP, "low rank", "low rank + sparse", "low rank + ridge")
_GRID = (0.3, 1.0, 3.0, 10.0)
_HEADS = (0.2, 0.5)  # shares of the labels, the most frequent ones
_PENALTIES = {"low rank + sparse": (1e-5, 3e-5, 1e-4, 3e-4), "low rank + ridge": (0.3, 1.0, 3.0, 10.0)}
_RANK = 0.2
_PLACES = (1, 3, 5)

Run = dict[str, Any]
Tail = tuple[Any, Any]  # numbers of the labels; their weights, intercepts last


@needs_data
def main() -> None:
    arguments = read_options(
        __doc__,
        sets=several(_SETS),
        methods=several(_METHODS),
        data=DEFAULT_DATA,
        records=RESULTS / "papers" / "tail_labels.json",
    )
    warnings.simplefilter("ignore", ConvergenceWarning)
    record = RecordedRuns(arguments)
    for name in arguments.sets if record.measures else ():
        train, test = (read_set(arguments.data, name, part) for part in ("train", "test"))
        for method in arguments.methods:
            case = {"set": name, "method": method}
            if record.wants(case):
                print(_line(record.add(case, measure(method, train, test))), flush=True)
    record.show(table(record.runs))


def read_set(data: Path, name: str, part: str) -> tuple[Any, Any]:
    """Read training or test rows, of length 1, and their labels."""
    rows = read_part(name, part, data)
    return normalize(rows.X), rows.Y.positives.toarray().astype(np.float64)


def measure(method: str, train: tuple[Any, Any], test: tuple[Any, Any]) -> Run:
    """Choose on training rows, fit and measure."""
    X, Y = train
    begin = time.process_time()
    is_held = np.random.default_rng(1).permutation(len(Y)) < len(Y) // 5
    part, held = (X[~is_held], Y[~is_held]), (X[is_held], Y[is_held])
    flat, measure = method.startswith("binary relevance"), "PSP@3" if method == _BY_PSP else "P@3"
    tried = {value: _low_rank(flat, value, *part) for value in _GRID}
    found = {value: _scored(model, None, part[1], *held)[measure] for value, model in tried.items()}
    best = max(found, key=found.__getitem__)
    chosen: Run = {"regularization": best}
    fit_tail: Callable[..., Tail] | None = None
    if method in _PENALTIES:
        known = {None: _scored(tried[best], None, part[1], *held)["PSP@3"]}
        ways = {pair: _tail_fit(method, *pair) for pair in product(_HEADS, _PENALTIES[method])}
        for pair, way in ways.items():
            known[pair] = _scored(tried[best], way(tried[best], *part), part[1], *held)["PSP@3"]
        pair = max(known, key=known.__getitem__)
        fit_tail = None if pair is None else ways[pair]
        chosen |= {"head": pair and pair[0], "penalty": pair and pair[1]}
    model = _low_rank(flat, best, X, Y)
    tail = None if fit_tail is None else fit_tail(model, X, Y)
    chosen["non-zeros"] = float(np.mean(tail[1][:, :-1] != 0)) if tail else None
    return chosen | _scored(model, tail, Y, *test) | {"processor seconds": time.process_time() - begin}


def _low_rank(flat: bool, regularization: float, X: Any, Y: Any) -> LowRankClassifier:
    rank, penalty = (1.0, "ridge") if flat else (_RANK, "trace_norm")
    return LowRankClassifier(rank, "squared", regularization, penalty=penalty, tol=3e-4, n_jobs=1).fit(X, Y)


def _tail_fit(method: str, head: float, penalty: float) -> Callable[..., Tail]:
    return partial(_sparse if method == "low rank + sparse" else _ridge, head, penalty)


def _tail_of(Y: Any, head: float) -> Any:
    """Give the labels outside of the most frequent ones."""
    return np.argsort(-Y.sum(axis=0), kind="stable")[round(head * Y.shape[1]) :]


def _sparse(head: float, penalty: float, model: LowRankClassifier, X: Any, Y: Any) -> Tail:
    labels = _tail_of(Y, head)
    residual = (Y - _scores(model, None, X))[:, labels]
    fits = [Lasso(penalty, max_iter=2000).fit(X, column) for column in residual.T]
    return labels, np.array([[*fit.coef_, fit.intercept_] for fit in fits])


def _ridge(head: float, penalty: float, model: LowRankClassifier, X: Any, Y: Any) -> Tail:
    labels = _tail_of(Y, head)
    known = LabelMean(model.coef_[labels], intercepts=model.intercept_[labels])
    fit = LowRankClassifier(
        1.0, "squared", penalty, penalty="ridge", label_mean=known, tol=3e-4, n_jobs=1
    ).fit(X, Y[:, labels])
    return labels, np.column_stack([fit.coef_, fit.intercept_])


def _scores(model: LowRankClassifier, tail: Tail | None, X: Any) -> Any:
    """Score labels on the scale of 0 and 1, the tail's by both parts."""
    scores = model.decision_function(X) + model.thresholds_.min()
    if tail is not None:
        labels, weights = tail
        scores[:, labels] += X @ weights[:, :-1].T + weights[:, -1]
    return scores


def _scored(model: LowRankClassifier, tail: Tail | None, Y_train: Any, X: Any, Y: Any) -> dict[str, float]:
    scores, chances = _scores(model, tail, X), propensities(Y_train)
    return {f"P@{k}": float(precision_at_k(Y, scores, k)) for k in _PLACES} | {
        f"PSP@{k}": float(propensity_scored_precision_at_k(Y, scores, chances, k)) for k in _PLACES
    }


def table(runs: list[Run]) -> str:
    """Write a line a method and set."""
    titles = "".join(f"{name}@{k}".rjust(8) for name in ("P", "PSP") for k in _PLACES)
    chosen = f"{'lambda':>8s}{'head':>6s}{'penalty':>9s}{'non-zeros %':>13s}{'seconds':>9s}"
    lines = [f"{'':36s}{titles}{chosen}"]
    return "\n".join([*lines, *(_line(run) for run in runs)])


def _line(run: Run) -> str:
    scores = "".join(f"{100 * run[f'{name}@{k}']:8.2f}" for name in ("P", "PSP") for k in _PLACES)
    second = ""
    if run.get("penalty"):
        second = f"{run['head']:6.1f}{run['penalty']:9g}{100 * run['non-zeros']:13.1f}"
    chosen = f"{run['regularization']:8g}{second:28s}"
    return f"{run['set']:10s}{run['method']:26s}{scores}{chosen}{run['processor seconds']:9.1f}"


if __name__ == "__main__":
    main()
