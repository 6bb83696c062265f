"""Linear max-margin fits of dense features as they come, far from 0 or of very different sizes.

Of every fit: how it ended, its rounds, the relative duality gap, and seconds.  Pixels of USPS and satimage
are whole numbers; made rows are normal, with labels by a linear rule and noise, and moved away from 0 by so
many standard deviations.  Everything is as it is by default but C.
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.frame import command, flag
from benchmarks.problems import DEFAULT_DATA
from labelweave import MaxMarginClassifier

COSTS = (0.1, 1.0, 10.0, 100.0)
OFFSETS = (0.0, 10.0, 100.0, 1e4)


def made_rows(n: int, d: int, n_labels: int, offset: float, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    scores = X @ generator.normal(size=(d, n_labels)) + 3 * generator.normal(size=(n, n_labels))
    return X + offset, (scores > 0).astype(int)


def _problems() -> Iterator[tuple[str, Any, Any, float]]:
    for shape in ((3000, 40), (3000, 200), (1200, 1500)):
        for offset in OFFSETS:
            X, Y = made_rows(*shape, 6, offset)
            yield f"made, {shape[0]} x {shape[1]}, offset {offset:g}", X, Y, 1.0
    for name, part in (("satimage", ""), ("usps", "_train")):
        with np.load(DEFAULT_DATA / name / f"{name}.npz") as file:
            X, y = file[f"X{part}"].astype(float), file[f"y{part}"]
        for cost in COSTS:
            yield f"{name}, C = {cost:g}", X, y[:, None] == np.unique(y), cost


@command(only=flag("", "a part of the problems' names"))
def main(given: Any) -> None:
    for name, X, Y, cost in _problems():
        if given.only not in name:
            continue
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = MaxMarginClassifier(C=cost).fit(X, Y.astype(int))
        seconds = time.perf_counter() - begin
        ending = f"{model.status_}, {model.n_iter_} rounds, gap {model.duality_gap_:.1e}, {seconds:.2f} s"
        print(f"{name:34} {ending}", flush=True)
