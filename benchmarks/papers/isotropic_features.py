"""Where low rank wins (LEML, Yu et al. 2014, section 4): isotropic features, few labels seen, many labels.

The paper bounds the excess risk of the trace norm by a number that does not grow with the labels where
features are normal and ``--seen`` labels of each row are observed, and shows that a ridge cannot have such a
bound; it has no table.  Here rows are normal, and a label has the probability 1/2 + x^T z_j, cut to [0, 1],
of weights of rank ``--rank`` that give probabilities a standard deviation of 0.2.  The squared loss of
observed entries is fitted with the trace norm and with a ridge, at ranks that bind neither; intercepts, which
the bound does not have, are as good as not penalised.  lambda is that of least error on a fifth of the
observed entries, after which all of them are fitted.  Shown is the excess risk, the mean squared distance of
scores to probabilities on 2,000 other rows, over the variance of these.

Results are kept after every run; ``--go-on`` measures only what is missing.

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.papers.isotropic_features``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, flag
from benchmarks.papers.low_rank_draws import GRID, Draw, measure, measure_all

_PENALTIES = ("trace_norm", "ridge")


def _measure(*, rows: int, labels: int, seen: int, penalty: str, **more: int) -> dict[str, float]:
    draw = Draw(rows=rows, labels=labels, **more)
    order = draw.random.random((rows, labels)).argsort(axis=1)[:, : min(seen, labels)]
    best, excess, _ = measure(draw, order, GRID, penalty)
    return {"regularization": best, "excess": float(excess.mean())}


def table(runs: list[dict[str, Any]]) -> str:
    """Write the excess risks of both penalties, and their medians of lambda."""
    lines = [f"{'labels':>8s}{'trace norm':>20s}{'ridge':>20s}{'lambdas':>20s}"]
    for n_labels in sorted({run["labels"] for run in runs}):
        own = {
            name: [run for run in runs if (run["labels"], run["penalty"]) == (n_labels, name)]
            for name in _PENALTIES
        }
        cells = [np.array([run["excess"] for run in own[name]]) for name in _PENALTIES]
        chosen = " / ".join(f"{np.median([run['regularization'] for run in own[name]]):g}" for name in own)
        shown = "".join(f"{f'{cell.mean():.3f} ± {cell.std():.3f}':>20s}" for cell in cells)
        lines.append(f"{n_labels:8d}{shown}{chosen:>20s}")
    return "\n".join(lines)


@command(
    labels=[10, 40, 160, 640],
    seeds=5,
    rows=2000,
    features=50,
    rank=3,
    seen=flag(5, "labels of a row"),
    records=RESULTS / "papers" / "isotropic_features.json",
)
def main(arguments: Any) -> None:
    choices = {"labels": arguments.labels, "seed": range(arguments.seeds), "penalty": _PENALTIES}
    measure_all(arguments, choices, _measure, table)
