"""Satellite images: one kernel, one per class, one-vs-rest (Seeger 2008, section 6.2).

The first 4435 rows of satimage are for training, the last 2000 for testing; the 36 attributes are not scaled.
RBF kernels start from the paper's values, v = 10 and the width from the sum of the attributes' variances; the
intercepts' variance is 16.  Hyperparameters are learned only on the training rows, on 5 random folds, which
each seed draws again and all methods share.  Test rows are used once, at the end.

- class: every class has its own scale and width, the paper's mc-sep;
- scale: its own scale, one width for all, mc-semi;
- shared: one scale and one width, mc-tied;
- one against rest: a binary model for each class, 1rest.
"""

from functools import partial
from typing import Any

from benchmarks.frame import IMAGES, RESULTS, command, flag, several
from benchmarks.papers import likelihood_runs
from benchmarks.problems import read_images

_PAPER = {"class": 7.95, "scale": 8.10, "shared": 8.35, "one against rest": 8.00}
_START: dict[str, Any] = {"scale": 10.0, "gamma": None, "intercept_variance": 16.0, "cv": 5}
_METHODS: dict[str, likelihood_runs.Method] = {
    "class": lambda split, seed: likelihood_runs.one_model(split, seed, tie="class", **_START),
    "shared": lambda split, seed: likelihood_runs.one_model(split, seed, tie="shared", **_START),
    "scale": lambda split, seed: likelihood_runs.one_model(split, seed, tie="scale", **_START),
    "one against rest": lambda split, seed: likelihood_runs.one_against_rest(split, seed, **_START),
}
table = partial(likelihood_runs.error_table, paper=_PAPER)


@command(
    partitions=flag(10, "draws of folds"),
    methods=several(_METHODS),
    picture=IMAGES / "satimage_error_reject.png",
    records=RESULTS / "papers" / "satimage.json",
)
def main(arguments: Any) -> None:
    chosen = {name: _METHODS[name] for name in arguments.methods}
    read: Any = lambda: likelihood_runs.Split(*read_images("satimage"))  # noqa: E731
    likelihood_runs.measure_and_show(chosen, read, arguments.partitions, arguments, _PAPER)
