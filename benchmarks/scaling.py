"""Seconds per round of ``MaxMarginClassifier`` against rows, labels and non-zeros per row.

A round is one sweep over all rows and two over those that still gain. Each of the three sizes grows by a
factor of 100 while the other two stay. The number of rounds is fixed and the tolerance out of reach, so that
every fit does the same work. The time is the solver's (rounds and checks of the gap), on one thread; the
median of the repeats counts. The slope of the logarithms is 1 where time is proportional to size; it is
printed for the whole range and for its upper half. Visits are dominated by memory: few rows fit the
processor's caches and many do not, so the slope over rows is above 1; long rows contain more of the frequent
words, whose weights stay in the cache, so the slope over non-zeros is below 1. Labels are solved in blocks of
16, and their numbers are multiples of it.
"""

from statistics import median
from typing import Any

from benchmarks import frame

_ROUNDS = 5
_FEATURES = 50_000
_GRIDS = {
    "rows": [{"rows": n, "labels": 32, "words": 40} for n in (10_000, 31_600, 100_000, 316_000, 1_000_000)],
    "labels": [{"rows": 20_000, "labels": k, "words": 40} for k in (16, 48, 160, 512, 1_600)],
    "non-zeros per row": [{"rows": 10_000, "labels": 32, "words": k} for k in (20, 63, 200, 630, 2_000)],
}
_FIXED = {
    "rows": "{rows:,} rows",
    "labels": "{labels} labels",
    "non-zeros per row": "about {words} non-zeros a row",
}


def _measure(size: dict[str, int], repeats: int) -> frame.Run:
    """Return the requested sizes, the number of non-zeros, and the seconds of every repeat."""
    from labelweave.datasets import make_text_like

    data = make_text_like(
        size["rows"], _FEATURES, size["labels"], words_per_row=size["words"], random_state=0
    )
    seconds = [_seconds_per_round(data.X, data.Y) for _ in range(repeats)]
    return size | {"non_zeros": int(data.X.nnz), "seconds_per_round": seconds}


def _seconds_per_round(X: Any, Y: Any) -> float:

    from labelweave import MaxMarginClassifier

    model = MaxMarginClassifier(tol=1e-12, max_iter=_ROUNDS, dtype="float32", n_jobs=1)
    with frame.quiet():
        model.fit(X, Y)
    return float(model.trace_[-1].time / model.n_iter_)


def _curve(name: str, runs: list[frame.Run]) -> tuple[list[float], list[float]]:
    sizes = [
        run["non_zeros"] / run["rows"] if name == "non-zeros per row" else float(run[name]) for run in runs
    ]
    return sizes, [median(run["seconds_per_round"]) for run in runs]


@frame.command(
    repeats=frame.flag(3, "fits of each size; the median counts"),
    out=frame.RESULTS / "scaling.json",
    figure=frame.IMAGES / "scaling.png",
)
def main(arguments: Any) -> None:
    _measure({"rows": 500, "labels": 16, "words": 10}, 1)  # loads or compiles the loops
    panels = {name: [_measure(size, arguments.repeats) for size in grid] for name, grid in _GRIDS.items()}
    grown = []
    for name, runs in panels.items():
        fixed = ", ".join(text for other, text in _FIXED.items() if other != name).format(**runs[0])
        sizes, seconds = _curve(name, runs)
        grown.append(frame.Growth(name, sizes, {"round": seconds}, fixed))
    facts = {"threads": 1, "rounds": _ROUNDS, "features": _FEATURES, "repeats": arguments.repeats}
    slopes = {one.name: one.slopes("round") for one in grown}
    frame.save(arguments.out, facts | {"slopes": slopes, "panels": panels})
    frame.draw_growths(grown, arguments.figure, "seconds per round, one thread", sharey=True)
