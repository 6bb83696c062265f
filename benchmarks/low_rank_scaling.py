"""How the cost of a step of conjugate gradients grows with observed entries, non-zeros of X and rank.

The features' half step of ``benchmarks.low_rank_step`` on synthetic patterns.  Each of the three sizes
grows by a factor of 32 while the others stay:

- observed entries, with the logistic loss over them; the rows grow;
- non-zeros of X, with the squared loss and all labels observed; the rows grow;
- the rank, with the logistic loss over observed entries.

Work of every kind is in a step, so beside the whole step stands the part that reads what grows.  The
slope of the logarithms is 1 where time is in proportion to size.

Example: ``python -m benchmarks.low_rank_scaling --repeats 5``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import IMAGES, RESULTS, begin_picture, flag, read_options, save, write_picture
from benchmarks.low_rank_step import Shape, StepProblem, step_seconds

_GROWTH = (1, 2, 4, 8, 16, 32)
_PANELS = {
    "observed entries": [Shape(1_000 * g, 500, 2, 2_000, 2, 64, "sampled", 200) for g in _GROWTH],
    "non-zeros of X": [Shape(1_000 * g, 2_000, 147, 500, 2, 32, "quadratic") for g in _GROWTH],
    "rank": [Shape(10_000, 2_000, 50, 2_000, 2, 16 * g, "sampled", 50) for g in _GROWTH],
}
_PARTS = {
    "observed entries": ("scores", "curvature"),
    "non-zeros of X": ("X S", "X^T B"),
    "rank": ("X S", "X^T B", "scores", "curvature"),
}
_PART_TITLES = {"observed entries": "scores, sums", "non-zeros of X": "X S, X^T B", "rank": "all products"}
_CAPTIONS = {
    "observed entries": "200 a row, rank 64, logistic loss",
    "non-zeros of X": "147 a row, rank 32, squared loss",
    "rank": "500,000 observed, 510,000 in X, logistic",
}


def main() -> None:
    arguments = read_options(
        __doc__,
        repeats=flag(5, "of each size; the median counts"),
        out=RESULTS / "low_rank_scaling.json",
        figure=IMAGES / "low_rank_scaling.png",
    )
    panels = {name: _measure(name, arguments.repeats) for name in _PANELS}
    save(arguments.out, {"repeats": arguments.repeats, "panels": panels})
    _draw(panels, arguments.figure)
    for name, panel in panels.items():
        print(f"seconds per step ~ ({name}) ^ {panel['slope']:.2f}; of the part: ^ {panel['part_slope']:.2f}")


def _measure(name: str, repeats: int) -> dict[str, Any]:
    from labelweave.foundation.arrays import Workers

    sizes, seconds, parts = [], [], []
    with Workers(1).running() as workers:
        for shape in _PANELS[name]:
            problem = StepProblem(shape, np.dtype(np.float32), workers)
            found = step_seconds(problem, repeats)
            sizes.append(_size(name, problem))
            seconds.append(found["step"])
            parts.append(sum(found[part] for part in _PARTS[name]))
            print(f"{name} {sizes[-1]:,}: {1e3 * seconds[-1]:.2f}, {1e3 * parts[-1]:.2f} ms", flush=True)
    slopes = {"slope": _slope(sizes, seconds), "part_slope": _slope(sizes, parts)}
    return {"sizes": sizes, "seconds": seconds, "part_seconds": parts, **slopes}


def _slope(sizes: list[int], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _size(name: str, problem: StepProblem) -> int:
    if name == "rank":
        return problem.shape.rank
    products = problem.products if name == "non-zeros of X" else problem.entries.signs
    return int(products.nnz)


def _draw(panels: dict[str, Any], path: Path) -> None:
    from matplotlib.ticker import NullFormatter

    figure, axes = begin_picture(1, 3, figsize=(11, 3.6))
    for axis, (name, panel) in zip(axes, panels.items(), strict=True):
        sizes, step = np.array(panel["sizes"]), 1e3 * np.array(panel["seconds"])
        part, title = 1e3 * np.array(panel["part_seconds"]), _PART_TITLES[name]
        axis.loglog(sizes, step, "o-", color="#1f5a92", label=f"step, slope {panel['slope']:.2f}")
        axis.loglog(sizes, part, "s-", color="#c8641e", label=f"{title}, slope {panel['part_slope']:.2f}")
        axis.loglog(sizes, part[-1] * sizes / sizes[-1], "--", color="0.55", label="slope 1", zorder=0)
        axis.set(xlabel=name)
        axis.set_title(_CAPTIONS[name], fontsize=9)
        axis.legend(frameon=False, fontsize=8)
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xticks(sizes[::2], [f"{size:,}" for size in sizes[::2]])
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.grid(True, which="major", alpha=0.3)
    axes[0].set_ylabel("milliseconds per step, one thread")
    write_picture(figure, path)


if __name__ == "__main__":
    main()
