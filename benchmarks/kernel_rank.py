"""Max-margin models with a low-rank factor of the kernel matrix: seconds and accuracy by the number of
columns.

    python -m benchmarks.kernel_rank --problems satimage usps

RBF kernels of scaled rows, one class per row.  Times are CPU seconds, on one thread, medians of interleaved
rounds.  The data are those of a folder of public sets.
"""

from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.frame import OUT, command, flag, in_turns, write_json
from benchmarks.machine import describe_machine
from benchmarks.problems import read_images
from labelweave import MaxMarginClassifier


def load(name: str) -> tuple[Any, Any, Any, Any]:
    X, y, X_test, y_test = read_images(name)
    if name == "satimage":
        order = np.random.default_rng(0).permutation(len(X))  # so that each part is a fair sample
        X, y = X[order], y[order]
    return X, y, X_test, y_test


def in_memory(rows: tuple[Any, ...], ranks: list[int | None], repeats: int) -> list[dict[str, Any]]:
    X, y, X_test, y_test = rows
    models = {rank: MaxMarginClassifier(kernel="rbf", kernel_rank=rank, n_jobs=1) for rank in ranks}
    seconds = in_turns({rank: partial(model.fit, X, y) for rank, model in models.items()}, repeats)
    return [
        {
            "rank": rank,
            "seconds": median(seconds[rank]),
            "rounds": model.n_iter_,
            "gap": model.duality_gap_,
            "objective": model.trace_[-1].primal,
            "accuracy": float(np.mean(model.predict(X_test) == y_test)),
        }
        for rank, model in models.items()
    ]


@command(
    problems=flag(["satimage"], choices=["satimage", "usps"]), ranks=[50, 200, 500, 1000], repeats=3, out=OUT
)
def main(given: Any) -> None:
    found: dict[str, Any] = {"machine": describe_machine(), "problems": {}}
    for name in given.problems:
        rows = load(name)
        found["problems"][name] = {"memory": in_memory(rows, [*given.ranks, None], given.repeats)}
        for line in found["problems"][name]["memory"]:
            print(name, line, flush=True)
    if given.out is not None:
        write_json(given.out, found)
