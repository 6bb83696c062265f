"""What a round of travelling label blocks costs on Dask: a model, fitted on small runs, checked, and drawn.

    python -m benchmarks.dask_cost --runs costs.json
    python -m benchmarks.dask_cost --read costs.json --plot docs/images/dask_cost.png

Two workers that are processes of this machine, partitions apart.  Fits of 2 and of 5 rounds differ by three:
seconds of the processor of the busiest worker, and of the process that is scheduler and client, which other
programs on the machine disturb less than those of the clock.  Least squares of relative errors, with costs
from 0 on, give the worker's costs of an entry, a row, a weight that is moved, and a visit, each times the
blocks of 16 labels; and the scheduler's cost of a visit.  Two sizes are not fitted: the model is to tell them
within 25 %.  The picture is what it says of 10^8 rows x 10^6 features x 10^4 labels.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from distributed import Client
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from benchmarks.clusters import on_cluster, timed, workers
from benchmarks.frame import begin_picture, flag, read_options, write_json, write_picture
from benchmarks.machine import describe_machine
from benchmarks.recorded_runs import mark
from labelweave.dask import MaxMarginClassifier
from labelweave.dask.data import ReadData
from labelweave.foundation.loops import WIDTH

_FEW, _MANY = 2, 5  # rounds: of those between, one of three visits all rows, as later
_FEATURES_A_ROW = 60
_ROUNDS = 30  # to a gap of 1e-3, see the benchmarks' page
_BANDWIDTH = 1.25e9  # bytes a second of a network of 10 Gbit/s
_OPEN = 3  # blocks under way a worker


class Size(NamedTuple):
    """A fit: places are partitions, each visited so often a round."""

    rows: int
    features: int
    labels: int
    places: int
    visits: int
    workers: int = 2
    by_row: int = _FEATURES_A_ROW


_FITTED = [
    Size(60_000, 2_000, 64, 4, 16),
    Size(60_000, 2_000, 64, 4, 32),
    Size(240_000, 2_000, 64, 4, 16),
    Size(20_000, 80_000, 64, 4, 16),
    Size(160_000, 2_000, 32, 4, 16, by_row=15),
]
_CHECKED = [Size(120_000, 10_000, 96, 4, 24), Size(90_000, 20_000, 64, 8, 16)]


def made(size: Size) -> tuple[sp.csr_array, sp.csr_array]:
    """Draw rows of so many features each, and labels of a tenth of the rows that some of these tell of."""
    random = np.random.default_rng(0)
    n, d, k = size.rows, size.features, size.by_row
    indices = np.minimum((d * random.random((n, k)) ** 3).astype(np.int32), d - 1)
    values = random.random((n, k)) / math.sqrt(k)
    X = sp.csr_array((values.ravel(), indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, d))
    X.sum_duplicates()
    scores = X @ random.normal(size=(d, size.labels)) + 0.3 * random.normal(size=(n, size.labels))
    return X, sp.csr_array((scores > np.quantile(scores[:5000], 0.9, axis=0)).astype(np.int8))


def measure(client: Client, size: Size, repeats: int) -> dict[str, Any]:
    """Measure a round of all blocks: seconds of the busiest worker, of the scheduler, and by the clock."""
    X, Y = made(size)
    rows, labels = (on_cluster(client, table, size.places) for table in (X, Y))
    found: dict[str, list[float]] = {"worker": [], "scheduler": [], "clock": []}
    per_place = [size.visits // size.places] * size.places
    with (
        patch.object(ReadData, "groups", lambda *_, **__: [[place] for place in range(size.places)]),
        patch.object(ReadData, "places", lambda _, groups, __: [[group] for group in groups]),
        patch.object(ReadData, "visits", lambda *_: per_place),
    ):
        for _ in range(repeats):
            each = []
            for rounds in (_FEW, _MANY):
                model = MaxMarginClassifier(client, tol=1e-12, max_iter=rounds, precision="float32")
                own = time.process_time()
                taken, busiest, _ = timed(client, lambda model=model: model.fit(rows, labels))
                each.append((busiest, time.process_time() - own, taken))
            for kind, few, many in zip(found, *each, strict=True):
                found[kind].append((many - few) / (_MANY - _FEW))
    entries = int(X.nnz)
    return {"size": size._asdict(), "entries": entries, **{kind: median(v) for kind, v in found.items()}}


def terms(size: Size, entries: float) -> np.ndarray:
    """Say what a round has of each cost of the busiest worker."""
    blocks = math.ceil(size.labels / WIDTH)
    # a worker has a whole number of places
    share = blocks * math.ceil(size.places / size.workers) / size.places
    moved = size.visits * size.features * WIDTH
    return share * np.array([entries, size.rows, moved, size.visits])


def of_scheduler(size: Size) -> np.ndarray:
    """Say what a round has of each cost of the scheduler: visits of blocks, and blocks."""
    blocks = math.ceil(size.labels / WIDTH)
    return np.array([blocks * size.visits, blocks])


class CostModel(NamedTuple):
    """Seconds of a worker, see :func:`terms`, and of the scheduler, see :func:`of_scheduler`."""

    worker: np.ndarray
    scheduler: np.ndarray

    @classmethod
    def fitted(cls, runs: list[dict[str, Any]]) -> CostModel:
        """Fit the costs to runs."""
        sizes = [Size(**run["size"]) for run in runs]

        def least(table: list[np.ndarray], seconds: list[float]) -> np.ndarray:
            relative = np.array(table) / np.array(seconds)[:, None]
            scale = relative.max(axis=0)
            return np.asarray(nnls(relative / scale, np.ones(len(seconds)))[0] / scale)

        by_worker = [terms(size, run["entries"]) for size, run in zip(sizes, runs, strict=True)]
        by_scheduler = list(map(of_scheduler, sizes))
        return cls(
            least(by_worker, [run["worker"] for run in runs]),
            least(by_scheduler, [run["scheduler"] for run in runs]),
        )

    def parts(self, size: Size, entries: float) -> dict[str, float]:
        """Say what takes how many seconds a round."""
        blocks = math.ceil(size.labels / WIDTH)
        size = size._replace(workers=min(size.workers, size.places))
        sweeps, rows, copies, visits = self.worker * terms(size, entries)
        sent = 4 * size.visits * size.features * WIDTH * (1 - 1 / size.workers) / _BANDWIDTH
        chain = (sweeps + rows + copies + visits) * size.workers / blocks + sent
        return {
            "sweeps": sweeps + rows,
            "weights moved": copies + visits + sent * blocks / size.workers,
            "scheduler": float(self.scheduler @ of_scheduler(size)),
            "one block after another": chain * blocks / min(blocks, _OPEN * size.workers),
        }


def told(model: CostModel, runs: list[dict[str, Any]], checked: list[dict[str, Any]]) -> list[str]:
    """Write the costs, and what they say of every run."""
    names = ["entry", "row", "weight moved", "visit"]
    each = ", ".join(f"{name} {1e9 * cost:.3g}" for name, cost in zip(names, model.worker, strict=True))
    lines = [f"nanoseconds of a worker, times blocks of labels: {each}"]
    each = ", ".join(f"{1e3 * cost:.3g}" for cost in model.scheduler)
    lines.append(f"milliseconds of the scheduler, a visit of a block, and a block: {each}")
    for kind, some in (("fitted", runs), ("checked", checked)):
        for run in some:
            size = Size(**run["size"])
            worker = float(model.worker @ terms(size, run["entries"]))
            scheduler = float(model.scheduler @ of_scheduler(size))
            lines.append(
                f"{kind} {tuple(size)}: "
                f"worker {run['worker']:.3f} s, said {worker / run['worker'] - 1:+.0%}; "
                f"scheduler {run['scheduler']:.3f} s, said {scheduler / run['scheduler'] - 1:+.0%}; "
                f"by the clock {run['clock']:.3f} s"
            )
    return lines


def drawn(model: CostModel, path: Path) -> list[str]:
    """Draw hours of a fit of 10^8 rows x 10^6 features x 10^4 labels against the workers; write some."""
    workers = np.unique(np.round(2 ** np.arange(0, 10.01, 0.25)).astype(int))
    rows, by_row = 10**8, 100
    places = math.ceil(rows * by_row * 24 / 1e9)  # of half the default memory budget
    found = [
        model.parts(Size(rows, 10**6, 10**4, places, places, int(count), by_row), rows * by_row)
        for count in workers
    ]
    figure, axes = begin_picture(figsize=(7, 4.2))
    for name in ("sweeps", "weights moved", "scheduler", "one block after another"):
        axes.plot(workers, [_ROUNDS * part[name] / 3600 for part in found], label=name)
    total = [
        max(part["sweeps"] + part["weights moved"], part["scheduler"], part["one block after another"])
        for part in found
    ]
    axes.plot(workers, _ROUNDS * np.array(total) / 3600, "k", lw=2.5, zorder=0, alpha=0.35, label="the fit")
    axes.axvline(64, color="0.7", lw=0.8)
    axes.set(xscale="log", yscale="log", xlabel="workers of one thread", ylabel=f"hours of {_ROUNDS} rounds")
    axes.set_xticks(2 ** np.arange(0, 11), [str(2**power) for power in range(11)])
    axes.legend(frameon=False)
    axes.set_title(f"$10^8$ rows, {by_row} of $10^6$ features in each, $10^4$ labels, {places} places")
    write_picture(figure, path, dpi=120)
    lines = []
    for count, part, whole in zip(workers, found, total, strict=True):
        if count & (count - 1) == 0:
            each = ", ".join(f"{name} {_ROUNDS * seconds / 3600:.2f}" for name, seconds in part.items())
            lines.append(f"{count} workers: {_ROUNDS * whole / 3600:.2f} hours ({each})")
    return lines


def main() -> None:
    given = read_options(
        __doc__,
        repeats=1,
        runs=flag(help="where the runs are written", type=Path),
        read=flag(help="runs that were written", type=Path),
        plot=flag(type=Path),
    )
    warnings.simplefilter("ignore", ConvergenceWarning)  # rounds are few
    if given.read is not None:
        record = json.loads(given.read.read_text())
        runs = record["runs"]
    else:
        record, runs = None, []
        with workers() as client:
            measure(client, Size(2_000, 500, 32, 4, 16), 1)  # loops are compiled
            for size in (*_FITTED, *_CHECKED):
                runs.append(measure(client, size, given.repeats))
                print(runs[-1], flush=True)
    if given.runs is not None:
        write_json(given.runs, record or describe_machine() | {"runs": runs})
    checked = [run for run in runs if Size(**run["size"]) in _CHECKED]
    fitted = [run for run in runs if run not in checked]
    model = CostModel.fitted(fitted)
    lines = told(model, fitted, checked)
    if given.plot is not None:
        lines += drawn(model, given.plot)
    ending = "" if record is None else mark(record, [{"measured": record}])
    print("\n".join(line + ending for line in lines))


if __name__ == "__main__":
    main()
