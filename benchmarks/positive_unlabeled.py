"""Tags that are only forgotten: losses corrected by propensities compared with plain ones, on delicious.

A tag of a training row is kept with its propensity, by the formula of Jain et al.  (2016) with A = 0.55 and B
= 1.5 from the counts of all training rows, so that rare tags are forgotten more often.  Models are fitted to
4,000 training rows: plain, with the known propensities (``flip_rates=(1 - p, 0)``) and with those that the
same formula estimates from the remaining tags (``flip_rates="propensity"``); low-rank models also with the
weight of absent labels.  ``psp`` is propensity-scored precision on test rows whose tags are forgotten too,
``p`` the precision on their complete tags.  Every model has the penalty, of three or four, with the best
propensity-scored precision at 3 on 1,500 other training rows with forgotten tags, of a draw that is not
measured.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from benchmarks.frame import RESULTS, RecordedRuns, command, flag, groups, mean_and_error
from benchmarks.problems import read_tables
from labelweave import KernelLogisticClassifier, LowRankClassifier, MaxMarginClassifier, metrics

Array = npt.NDArray[Any]

_DRAWS, _ROWS, _HELD, _LOGISTIC_ROWS = 5, 4000, 1500, 1000
_PLACES = (1, 3, 5)
_COLUMNS = tuple(f"{name}@{k}" for name in ("psp", "p") for k in _PLACES)


class _Method(NamedTuple):
    """A model, the name of its penalty with values to choose from, and the rates that it gets."""

    model: Any
    name: str
    penalties: tuple[float, ...]
    rates: str = "plain"
    rows: int = _ROWS


_MARGINS = MaxMarginClassifier(tol=1e-2), "C", (0.03, 0.1, 0.3, 1.0)
_LOW_RANK = LowRankClassifier(100), "alpha", (3.0, 10.0, 30.0)
_LOGISTIC = KernelLogisticClassifier("linear", hyperparameters="fixed", tol=1e-2), "scale", (1.0,)
_METHODS = {
    "max-margin": _Method(*_MARGINS),
    "max-margin, known": _Method(*_MARGINS, "known"),
    "max-margin, estimated": _Method(*_MARGINS, "estimated"),
    "low-rank": _Method(*_LOW_RANK),
    "low-rank, known": _Method(*_LOW_RANK, "known"),
    "low-rank, estimated": _Method(*_LOW_RANK, "estimated"),
    "low-rank, negatives 0.5": _Method(LowRankClassifier(100, class_weight={0: 0.5}), *_LOW_RANK[1:]),
    "low-rank, negatives 0.2": _Method(LowRankClassifier(100, class_weight={0: 0.2}), *_LOW_RANK[1:]),
    "logistic": _Method(*_LOGISTIC, rows=_LOGISTIC_ROWS),
    "logistic, known": _Method(*_LOGISTIC, "known", _LOGISTIC_ROWS),
}


class _Data(NamedTuple):
    X: sp.csr_array
    Y: sp.csr_array
    X_test: sp.csr_array
    Y_test: sp.csr_array
    propensities: Array


def _read() -> _Data:
    X, Y, X_test, Y_test = read_tables("delicious", rows="unit")
    return _Data(sp.csr_array(X), Y, sp.csr_array(X_test), Y_test, metrics.propensities(Y))


def _forgotten(Y: sp.csr_array, propensities: Array, random: np.random.Generator) -> sp.csr_array:
    kept = sp.csr_array(Y, copy=True)
    kept.data = kept.data * (random.random(Y.nnz) < propensities[Y.indices])
    kept.eliminate_zeros()
    return kept


def _fitted(data: _Data, method: _Method, penalty: float, rows: Array, Y: sp.csr_array) -> Any:
    rates = {"plain": None, "known": (1.0 - data.propensities, 0.0), "estimated": "propensity"}
    model = clone(method.model).set_params(flip_rates=rates[method.rates], **{method.name: penalty})
    return model.fit(data.X[rows], Y[rows])


def _chosen(data: _Data, method: _Method) -> float:
    if len(method.penalties) == 1:
        return method.penalties[0]
    random = np.random.default_rng(1000)
    rows, Y = random.permutation(data.X.shape[0]), _forgotten(data.Y, data.propensities, random)
    train, held = rows[: method.rows], rows[-_HELD:]
    values = []
    for penalty in method.penalties:
        scores = _fitted(data, method, penalty, train, Y).decision_function(data.X[held])
        values.append(metrics.propensity_scored_precision_at_k(Y[held], scores, data.propensities, 3))
    return method.penalties[int(np.argmax(values))]


def _measured(data: _Data, method: _Method, penalty: float, draw: int) -> dict[str, float]:
    random = np.random.default_rng(draw)
    rows = np.sort(random.choice(data.X.shape[0], _ROWS, replace=False)[: method.rows])
    Y, Y_test = (_forgotten(one, data.propensities, random) for one in (data.Y, data.Y_test))
    scores = _fitted(data, method, penalty, rows, Y).decision_function(data.X_test)
    found = {}
    for k in _PLACES:
        scored = metrics.propensity_scored_precision_at_k(Y_test, scores, data.propensities, k)
        found |= {f"psp@{k}": scored, f"p@{k}": metrics.precision_at_k(data.Y_test, scores, k)}
    return found


def _table(runs: list[dict[str, Any]]) -> str:
    lines = [f"{'':26}{'penalty':>8}" + "".join(f"{column:>17}" for column in _COLUMNS)]
    for (name,), own in groups(runs, "method").items():
        cells = [mean_and_error([run[column] for run in own]) for column in _COLUMNS]
        lines.append(f"{name:26}{own[0]['penalty']:>8g}" + "".join(f"{cell:>17}" for cell in cells))
    return "\n".join([*lines, "mean ± standard error over draws; logistic models see 1,000 of the rows"])


@command(
    methods=flag(_METHODS, choices=tuple(_METHODS)), draws=_DRAWS, records=RESULTS / "positive_unlabeled.json"
)
def main(arguments: Any) -> None:
    recorded = RecordedRuns(arguments)
    data = _read() if recorded.measures else None
    for name in arguments.methods:
        cases = list(recorded.missing(method=[name], draw=range(arguments.draws)))
        if data is None or not cases:
            continue
        method, penalty = _METHODS[name], _chosen(data, _METHODS[name])
        for case in cases:
            found = recorded.add(case, {"penalty": penalty} | _measured(data, method, penalty, case["draw"]))
            print(
                {key: round(value, 4) if key in _COLUMNS else value for key, value in found.items()},
                flush=True,
            )
    recorded.show(_table(recorded.runs))
