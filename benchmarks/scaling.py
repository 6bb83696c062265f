"""Seconds per round of ``MaxMarginClassifier`` against rows, labels and non-zeros per row.

A round is one sweep over all rows and two over those that still gain.  Each of
the three sizes grows by a factor of 100 while the other two stay.  The number of
rounds is fixed and the tolerance out of reach, so that every fit does the same
work: what is measured is the cost of a round, not how many are needed.  The clock
is the solver's (rounds and checks of the gap; neither reading X and Y nor
compilation), on one thread; the median of the repeats counts.

The slope of the logarithms is 1 where time is proportional to size.  It is printed
for the whole range and for its upper half.  Visits are dominated by memory: few rows
fit the processor's caches and many do not, so the slope over rows is above 1; long
rows name more of the frequent words, whose weights stay in the cache, so the slope
over non-zeros is below 1.  Labels are solved in blocks of 16 and are chosen as
multiples of it.

Example: ``python -m benchmarks.scaling --repeats 3``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.frame import (
    IMAGES,
    RESULTS,
    begin_picture,
    flag,
    read_options,
    write_json,
    write_picture,
)
from benchmarks.machine import describe_machine

_ROUNDS = 5
_FEATURES = 50_000
_GRIDS = {
    "rows": [{"rows": n, "labels": 32, "words": 40} for n in (10_000, 31_600, 100_000, 316_000, 1_000_000)],
    "labels": [{"rows": 20_000, "labels": k, "words": 40} for k in (16, 48, 160, 512, 1_600)],
    "non-zeros per row": [{"rows": 10_000, "labels": 32, "words": k} for k in (20, 63, 200, 630, 2_000)],
}
_SWEPT = {"rows": "rows", "labels": "labels", "non-zeros per row": "words"}


@dataclass
class Measurement:
    """One size: what was asked for, how many non-zeros came out, and the seconds of every repeat."""

    rows: int
    labels: int
    words: int
    non_zeros: int = 0
    seconds_per_round: list[float] = field(default_factory=list)


def main() -> None:
    arguments = read_options(
        __doc__,
        repeats=flag(3, "fits of each size; the median counts"),
        out=RESULTS / "scaling.json",
        figure=IMAGES / "scaling.png",
    )
    _measure(Measurement(500, 16, 10), 1)  # loads or compiles the loops
    panels = {name: [Measurement(**size) for size in sizes] for name, sizes in _GRIDS.items()}
    for measurements in panels.values():
        for measurement in measurements:
            _measure(measurement, arguments.repeats)
    slopes = {name: _slopes(name, measurements) for name, measurements in panels.items()}
    write_json(arguments.out, _results(panels, slopes, arguments.repeats))
    _draw(panels, slopes, arguments.figure)
    for name, slope in slopes.items():
        print(f"seconds per round ~ ({name}) ^ {slope['all']:.2f}; upper half: ^ {slope['upper half']:.2f}")


def _measure(measurement: Measurement, repeats: int) -> None:
    from labelweave.datasets import make_text_like

    data = make_text_like(
        measurement.rows, _FEATURES, measurement.labels, words_per_row=measurement.words, random_state=0
    )
    measurement.non_zeros = int(data.X.nnz)
    measurement.seconds_per_round = [_seconds_per_round(data.X, data.Y) for _ in range(repeats)]


def _seconds_per_round(X: Any, Y: Any) -> float:
    from sklearn.exceptions import ConvergenceWarning

    from labelweave import MaxMarginClassifier

    model = MaxMarginClassifier(tol=1e-12, max_iter=_ROUNDS, precision="float32", n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
    return float(model.trace_[-1].time / model.n_iter_)


def _sizes(name: str, measurements: Sequence[Measurement]) -> list[float]:
    if name == "non-zeros per row":
        return [m.non_zeros / m.rows for m in measurements]
    return [float(getattr(m, _SWEPT[name])) for m in measurements]


def _slopes(name: str, measurements: Sequence[Measurement]) -> dict[str, float]:
    """Fit lines through the logarithms, of all sizes and of the larger ones: 1 is linear growth."""
    sizes = np.log(_sizes(name, measurements))
    seconds = np.log([median(m.seconds_per_round) for m in measurements])
    upper = len(sizes) // 2
    return {
        "all": float(np.polyfit(sizes, seconds, 1)[0]),
        "upper half": float(np.polyfit(sizes[upper:], seconds[upper:], 1)[0]),
    }


def _results(
    panels: dict[str, list[Measurement]], slopes: dict[str, dict[str, float]], repeats: int
) -> dict[str, Any]:
    return {
        **describe_machine(),
        "threads": 1,
        "rounds": _ROUNDS,
        "features": _FEATURES,
        "repeats": repeats,
        "slopes": slopes,
        "panels": {name: [asdict(m) for m in measurements] for name, measurements in panels.items()},
    }


def _draw(panels: dict[str, list[Measurement]], slopes: dict[str, dict[str, float]], path: Path) -> None:
    figure, axes = begin_picture(1, 3, figsize=(11, 3.6), sharey=True)
    for axis, (name, measurements) in zip(axes, panels.items(), strict=True):
        sizes = np.array(_sizes(name, measurements))
        seconds = np.array([median(m.seconds_per_round) for m in measurements])
        axis.loglog(sizes, seconds, "o-", color="#1f5a92", label=_legend(slopes[name]))
        linear = seconds[-1] * sizes / sizes[-1]
        axis.loglog(sizes, linear, "--", color="0.55", label="linear", zorder=0)
        axis.set_xlabel(name)
        axis.set_title(_caption(name, measurements[0]), fontsize=9)
        axis.legend(frameon=False, fontsize=9)
        axis.grid(True, which="major", alpha=0.3)
    axes[0].set_ylabel("seconds per round, one thread")
    write_picture(figure, path)


def _legend(slope: dict[str, float]) -> str:
    return f"slope {slope['all']:.2f} (upper half {slope['upper half']:.2f})"


def _caption(name: str, first: Measurement) -> str:
    fixed = {
        "rows": f"{first.rows:,} rows",
        "labels": f"{first.labels} labels",
        "non-zeros per row": f"about {first.words} non-zeros a row",
    }
    return ", ".join(text for other, text in fixed.items() if other != name)


if __name__ == "__main__":
    main()
