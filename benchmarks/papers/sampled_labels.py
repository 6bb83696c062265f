"""Theorem 6's setting (LEML, Yu et al.  2014, section 4): the constrained form, labels observed unevenly.

As ``benchmarks.papers.isotropic_features``: normal features, five labels of each row, probabilities 1/2
plus a product of rank 3.  Labels are observed in proportion to ``rank^-skew``.  The constrained form of the
paper, the least squared loss within a bound of the trace norm, is compared with a ridge and with the
penalized form; bound and lambda minimize the error on a fifth of the observed entries.  The result is the
excess risk over the variance of the probabilities, with entries of the test rows weighted by the frequency of
observation of their label, as in the theorem; and equally.
"""

from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, groups
from benchmarks.papers.isotropic_features import GRID, Draw, measure, measure_all

_GRIDS = {"trace_bound": 2.0 ** np.arange(-3, 8), "trace_norm": GRID, "ridge": GRID}


def _measure(
    *, rows: int, labels: int, seen: int, skew: float, penalty: str, **more: int
) -> dict[str, float]:
    draw = Draw(rows=rows, labels=labels, **more)
    shares = np.arange(1.0, labels + 1) ** -skew
    shares /= shares.sum()
    # the largest of exponential clocks: draws without replacement in proportion to the shares
    clocks = draw.random.exponential(size=(rows, labels)) / shares
    order = clocks.argsort(axis=1)[:, : min(seen, labels)]
    best, excess, counts = measure(draw, order, _GRIDS[penalty], penalty, tol=1e-3)
    return {
        "alpha": best,
        "excess": float(np.average(excess, weights=counts)),
        "even excess": float(excess.mean()),
    }


def table(runs: list[dict[str, Any]]) -> str:
    """Write the excess risks of all forms by skew and labels."""
    lines = [f"{'skew':>5s}{'labels':>8s}" + "".join(f"{name:>28s}" for name in _GRIDS)]
    for (skew, n_labels), some in sorted(groups(runs, "skew", "labels").items()):
        cells = []
        for name in _GRIDS:
            own = [run for run in some if run["penalty"] == name]
            excess, even = (np.array([run[key] for run in own]) for key in ("excess", "even excess"))
            cells.append(f"{excess.mean():.3f} ± {excess.std():.3f} ({even.mean():.3f})")
        lines.append(f"{skew:5.1f}{n_labels:8d}" + "".join(f"{cell:>28s}" for cell in cells))
    return "\n".join(lines)


@command(
    labels=[40, 160],
    skews=[0.0, 0.5, 1.0],
    seeds=3,
    rows=2000,
    records=RESULTS / "papers" / "sampled_labels.json",
)
def main(arguments: Any) -> None:
    choices = {
        "skew": arguments.skews,
        "labels": arguments.labels,
        "seed": range(arguments.seeds),
        "penalty": _GRIDS,
    }
    measure_all(arguments, choices, _measure, table)
