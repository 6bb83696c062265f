"""Predicted and actual seconds of AutoLabelClassifier's fits, for data of many shapes.

Rows are drawn: numbers of few directions with noise ("dense"), the same with 30 % of the labels unobserved
("missing"), one class per row ("classes"), and texts ("texts").  Fits run on one thread; CPU seconds are less
affected by other programs than the clock.  A ratio above 1.25 to the prediction, or to the budget if a
cheaper plan would have fitted, breaks the promise of ``time_budget``.

    OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python -m benchmarks.auto_seconds
    OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python -m benchmarks.auto_seconds --budget 10
"""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.frame import OUT, command, cost_of, flag, quiet, save
from labelweave import AutoLabelClassifier
from labelweave.datasets import make_text_like

_PROMISED = 1.25


class Draw(NamedTuple):
    """The data to draw: kind, rows, features and labels."""

    kind: str
    n: int
    d: int
    labels: int


SHAPES = [
    *(Draw("dense", *sizes) for sizes in (
        (100, 20, 3), (391, 72, 6), (500, 1000, 20), (1000, 20, 3), (1200, 50, 6), (1600, 77, 3574),
        (2500, 300, 20), (3000, 64, 300), (4000, 30, 5), (4000, 200, 100), (6000, 100, 10), (12920, 384, 500),
        (20000, 20, 4), (20000, 384, 50), (40000, 128, 10),
    )),
    *(Draw("missing", *sizes) for sizes in ((1000, 50, 20), (3000, 40, 10), (9000, 100, 20))),
    *(Draw("classes", *sizes) for sizes in ((800, 30, 4), (5000, 60, 30))),
    *(Draw("texts", *sizes) for sizes in (
        (300, 300, 8), (1500, 500, 6), (2000, 3000, 20), (3000, 20000, 200), (4000, 5000, 100),
        (8000, 2000, 30), (15000, 8000, 50), (20000, 16000, 366),
    )),
]  # fmt: skip


def draw(what: Draw) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    if what.kind == "texts":
        data = make_text_like(what.n, what.d, what.labels)
        return data.X, data.Y
    inner = min(what.d, 20)
    X = random.standard_normal((what.n, inner)) @ random.standard_normal((inner, what.d))
    X += 0.3 * random.standard_normal(X.shape)
    scores = np.tanh(X / 4.0) @ random.standard_normal((what.d, what.labels))
    scores += scores.std() * random.standard_normal(scores.shape)
    if what.kind == "classes":
        return X, scores.argmax(axis=1)
    Y = (scores > np.quantile(scores, 0.85, axis=0)).astype(float)
    if what.kind == "missing":
        Y[random.random(Y.shape) < 0.3] = np.nan
    return X, Y


def measure(what: Draw, budget: float | None) -> dict[str, Any]:
    X, Y = draw(what)
    model = AutoLabelClassifier(time_budget=budget, n_jobs=1)
    with quiet(Warning):  # of labels that a fold lacks
        _, clock, spent = cost_of(model.fit, X, Y)
    foreseen, members = model.plan_["seconds"], ", ".join(model.plan_["members"])
    return {
        **what._asdict(), "foreseen": foreseen, "cpu_seconds": spent, "clock": clock,
        "ratio": spent / foreseen, "members": members, "plan": model.plan_,
        "spent": {member["name"]: member["seconds"] for member in model.members_},
    }  # fmt: skip


@command(budget=flag(type=float, help="time_budget of the fits; by default none is given"), out=OUT)
def main(options: Any) -> None:
    for kind in ("texts", "dense"):  # compiles the loops
        AutoLabelClassifier().fit(*draw(Draw(kind, 300, 300, 8)))
    found = []
    print("     rows  features  labels    foreseen     taken   ratio  members")
    for what in SHAPES:
        found.append(one := measure(what, options.budget))
        print(
            f"{what.n:9d} {what.d:9d} {what.labels:7d}  {one['foreseen']:9.1f} s {one['cpu_seconds']:7.1f} s"
            f"  {one['ratio']:6.2f}  {what.kind}: {one['members']}", flush=True,
        )  # fmt: skip
        save(options.out, {"fits": found})
    broken = sum(one["ratio"] > _PROMISED for one in found)
    print(f"{broken} of {len(found)} took more than {_PROMISED} times what was foreseen.")
