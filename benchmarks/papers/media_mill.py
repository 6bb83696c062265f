"""Training times on synthetic rows of Media Mill's shape (M3L paper, Table 1d and section 7.1), one thread.

Rows have 120 features and 101 labels, 4.4 a row; a label's score is linear in a row's features and its
neighborhood in them, plus noise.  C = 1, R = I; labelweave fits to a gap of 1e-3.

The paper trains SVMStruct on its own problem too.  Here that is the cutting plane with one slack (Joachims,
Finley and Yu 2009), faster than the original: the most violated set of labels is found label by label, and
the quadratic program over all planes is solved by pairs.  It ends at 1 % above labelweave's dual value or
after 60 seconds (``--seconds``).  Seconds are the processor's.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, flag, timed
from benchmarks.recorded_runs import RecordedRuns
from labelweave import MaxMarginClassifier

_FEATURES, _LABELS, _MEAN_LABELS = 120, 101, 4.4
_C = 1.0
_PAPER = {
    ("linear", 30_993): "97",
    ("rbf", 30_993): "1,162",
    ("linear", 10_000): "19",
    ("cutting plane", 10_000): "1,995",
}


def _make(rows: int) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, _FEATURES)) / np.sqrt(1 + np.arange(_FEATURES))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    around = np.cos(4.0 * X @ random.normal(size=(_FEATURES, 30)))
    scores = X @ random.normal(size=(_FEATURES, _LABELS)) + 0.2 * around @ random.normal(size=(30, _LABELS))
    scores += 0.5 * random.normal(size=scores.shape)
    shares = 1.0 / (5.0 + np.arange(_LABELS))
    shares *= _MEAN_LABELS / shares.sum()
    limits = [np.quantile(column, 1.0 - share) for column, share in zip(scores.T, shares, strict=True)]
    return X, np.where(scores > limits, 1.0, -1.0)


def _fit(kind: str, rows: int) -> dict[str, Any]:
    model, (X, Y) = MaxMarginClassifier(C=_C, kernel=kind, n_jobs=1), _make(rows)
    model.fit(X[:200], Y[:200])  # compiled
    _, seconds = timed(model.fit, X, Y)
    return {"seconds": seconds, "gap": model.duality_gap_, "dual": model.trace_[-1].dual}


def _cut(rows: int, dual: float, most_seconds: float) -> dict[str, Any]:
    """Add planes; keep the least primal value so far, as a share above the optimum's lower bound."""
    X, Y = _make(rows)
    X = np.column_stack([X, np.ones(rows)])
    begin, limit, curve, best = time.process_time(), 2.0 * _C, [], np.inf
    planes, losses, gram = np.zeros((1, X.shape[1] * _LABELS)), np.zeros(1), np.zeros((1, 1))
    shares = np.array([limit])  # the plane without a loss takes what the others leave
    while not curve or (curve[-1][1] > 0.01 and curve[-1][0] < most_seconds):
        Z = (shares @ planes).reshape(X.shape[1], _LABELS)
        slack = 1.0 - Y * (X @ Z)
        best = min(best, 0.5 * (Z**2).sum() + limit * np.maximum(slack, 0.0).sum())
        plane = (X.T @ (Y * (slack > 0))).ravel()
        inner = planes @ plane
        gram = np.block([[gram, inner[:, None]], [inner, plane @ plane]])
        planes, losses = np.vstack([planes, plane]), np.append(losses, (slack > 0).sum())
        shares = _solve(gram, losses, np.append(shares, 0.0))
        curve.append([time.process_time() - begin, best / dual - 1.0])
    return {"seconds": curve[-1][0], "gap": curve[-1][1], "planes": len(curve), "curve": curve}


def _solve(gram: Any, losses: Any, shares: Any, most_steps: int = 5000) -> Any:
    """Maximize ``losses @ a - a @ gram @ a / 2`` over a >= 0 of the same sum, a pair at a time."""
    gradient = losses - gram @ shares
    for _ in range(most_steps):
        up, down = int(np.argmax(gradient)), int(np.argmin(np.where(shares > 0, gradient, np.inf)))
        gain = gradient[up] - gradient[down]
        if gain <= 1e-4 * losses.max():
            break
        step = min(shares[down], gain / (gram[up, up] + gram[down, down] - 2.0 * gram[up, down]))
        shares[up] += step
        shares[down] -= step
        gradient -= step * (gram[up] - gram[down])
    return shares


def table(runs: list[dict[str, Any]]) -> str:
    """Write seconds and distances from the optimum next to the paper's seconds on its own rows."""
    lines = [f"{'method':16s}{'rows':>8s}{'seconds':>10s}{'above the optimum':>19s}{'paper, seconds':>16s}"]
    lines += [
        f"{run['method']:16s}{run['rows']:8,d}{run['seconds']:10.2f}{run['gap']:19.1e}"
        f"{_PAPER.get((run['method'], run['rows']), ''):>16s}"
        for run in runs
    ]
    return "\n".join(lines)


@command(
    seconds=flag(60.0, "of the cutting plane at most"),
    kernel_rows=flag(10_000, "of the fit with the RBF kernel"),
    records=RESULTS / "papers" / "media_mill.json",
)
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments, C=_C)
    for kind, rows in (("linear", 10_000), ("linear", 30_993), ("rbf", arguments.kernel_rows)):
        case = {"method": kind, "rows": rows}
        if record.wants(case):
            print(record.add(case, _fit(kind, rows)), flush=True)
    case = {"method": "cutting plane", "rows": 10_000}
    known = record.find({"method": "linear", "rows": 10_000})
    if known and record.wants(case):
        record.add(case, _cut(10_000, known["dual"], arguments.seconds))
    record.show(table(record.runs))
