"""Test loss against the correlation between two classifiers (M3L paper, Figure 5).

Two attributes of Animals with Attributes, "black" and "weak", 200 random training images, ``R = [1 r; r 1]``
with r from -1 to 1.  The attributes are positively correlated among the training images and negatively among
the test classes: forcing the classifiers to be opposed, r = -1, helps, and forcing them to agree, r = 1,
hurts.  C is the same for all r and draws; held-out training classes cannot choose it, as their attributes are
not opposed.  The RBF kernel has the width 1 / median squared distance of the training images.
"""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import IMAGES, RESULTS, RecordedRuns, begin_picture, command, flag, write_picture
from benchmarks.problems import Animals, median_distance, read_animals
from labelweave import MaxMarginClassifier

_ATTRIBUTES = ("black", "weak")
# denser at both ends: only there does the smaller eigenvalue, 1 - |r|, become small
_CORRELATIONS = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 25))
_PENALTIES = (0.1, 0.3, 3.0)
_KERNELS = ("rbf", "linear")
_DRAWN = {"kernel": "rbf", "C": 0.3}


def _measure(animals: Animals, kernel: str, C: float, seed: int) -> dict[str, Any]:
    """Compute the curve of a draw, in percent, and the correlation of the two attributes in both parts."""
    columns = [list(animals.attribute_names).index(name) for name in _ATTRIBUTES]
    X, classes = animals.draw(seed)
    model = MaxMarginClassifier(C=C, kernel=kernel, gamma=1.0 / median_distance(X))
    Y, truth = (animals.signatures[c][:, columns] for c in (classes, animals.classes_test))
    return {
        "r": _CORRELATIONS.tolist(),
        "hamming": [_loss(model, r, (X, Y), (animals.X_test, truth)) for r in _CORRELATIONS],
        "correlation": {
            "training": _correlation(animals, animals.classes, columns),
            "test": _correlation(animals, animals.classes_test, columns),
        },
    }


def table(runs: list[dict[str, Any]]) -> str:
    """Write means over the draws, and the number of steps from one r to the next that do not rise."""
    cases = list(product(_KERNELS, _PENALTIES))
    means = np.transpose([_curves(runs, kernel=kernel, C=C).mean(axis=0) for kernel, C in cases])
    titles = "".join(f"{f'{kernel}, C {C:g}':>15s}" for kernel, C in cases)
    lines = [f"{'wrong %':12s}{titles}"]
    lines += [
        f"r = {r:5.2f}   " + "".join(f"{value:15.2f}" for value in row)
        for r, row in list(zip(runs[0]["r"], means, strict=True))[::3]
    ]
    return "\n".join(
        [*lines, f"{'falls':12s}" + "".join(f"{n:15d}" for n in (np.diff(means.T) < 0).sum(axis=1))]
    )


def _curves(runs: list[dict[str, Any]], **case: Any) -> Any:
    return np.array([run["hamming"] for run in runs if case.items() <= run.items()])


def _loss(model: MaxMarginClassifier, r: float, training: Any, test: Any) -> float:
    model.set_params(label_covariance=[[1.0, r], [r, 1.0]])
    scores = model.fit(*training).decision_function(test[0])
    return 100.0 * float(((scores > 0) != (test[1] > 0)).mean())


def _correlation(animals: Animals, classes: Any, columns: list[int]) -> float:
    return float(np.corrcoef(animals.signatures[classes][:, columns].T)[0, 1])


def _draw_picture(runs: list[dict[str, Any]], path: Path) -> None:
    curves, r = _curves(runs, **_DRAWN), runs[0]["r"]
    middle = len(r) // 2
    figure, axis = begin_picture(figsize=(6, 4))
    for curve in curves:
        axis.plot(r, curve, color="0.75", linewidth=0.8)
    axis.plot(r, curves.mean(axis=0), "o-", color="#1f5a92", label=f"mean of {len(curves)} draws")
    independent = curves.mean(axis=0)[middle]
    axis.axhline(independent, color="#b04a2f", linestyle="--", linewidth=1, label="independent, r = 0")
    axis.set_xlabel("correlation r between the classifiers of “black” and “weak”")
    axis.set_ylabel("test Hamming loss, %")
    axis.legend(frameon=False)
    axis.grid(True, alpha=0.3)
    write_picture(figure, path)


@command(
    seeds=flag(5, "draws of training images"),
    picture=IMAGES / "classifier_correlation.png",
    records=RESULTS / "papers" / "classifier_correlation.json",
)
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments)
    wanted = list(record.missing(kernel=_KERNELS, C=_PENALTIES, seed=range(arguments.seeds)))
    animals = read_animals() if wanted else None
    for case in wanted:
        record.add(case, _measure(animals, **case))
    record.show(table(record.runs))
    _draw_picture(record.runs, arguments.picture)
