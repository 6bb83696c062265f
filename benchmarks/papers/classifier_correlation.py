"""Test loss against the correlation between two classifiers (M3L paper, Figure 5).

Two attributes of Animals with Attributes, "black" and "weak", 200 random training
images, ``R = [1 r; r 1]`` with r from -1 to 1.  The attributes go together among the training
images and are opposed among the test classes: forcing the classifiers to be opposed,
r = -1, helps, and forcing them to agree, r = 1, hurts.  In between r changes little at
these C, and nothing where the chosen C is so small that all images get the same.
C and the width of the RBF kernel are chosen for independent classifiers, r = 0, on the
training classes alone (each quarter of them left out in turn, three splits), so that
no other r has the advantage.
"""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import IMAGES, RESULTS, begin_picture, command, flag, write_picture
from benchmarks.papers.animals import Animals, held_out_classes, read_animals, sample_training_rows
from benchmarks.problems import median_distance
from benchmarks.recorded_runs import RecordedRuns
from labelweave import MaxMarginClassifier

_ATTRIBUTES = ("black", "weak")
# closer together at both ends: only there does the smaller eigenvalue, 1 - |r|, get small
_CORRELATIONS = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 25))
_PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)
_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)


def _measure(animals: Animals, seed: int) -> dict[str, Any]:
    """Compute the curve of a draw, in per cent, and the correlation of the two attributes in both parts."""
    columns = [list(animals.attribute_names).index(name) for name in _ATTRIBUTES]
    rows = sample_training_rows(animals, seed)
    X, classes = animals.X[rows], animals.classes[rows]
    C, gamma = _choose_pair(animals, X, classes, columns, seed)
    Y, truth = (animals.signatures[c][:, columns] for c in (classes, animals.classes_test))
    return {
        "C": C,
        "gamma": gamma,
        "r": _CORRELATIONS.tolist(),
        "hamming": [_loss(C, gamma, r, (X, Y), (animals.X_test, truth)) for r in _CORRELATIONS],
        "correlation": {
            "training": _correlation(animals, animals.classes, columns),
            "test": _correlation(animals, animals.classes_test, columns),
        },
    }


def table(runs: list[dict[str, Any]]) -> str:
    curves = np.array([run["hamming"] for run in runs])
    return "\n".join(
        f"r = {r:5.2f}: test Hamming loss {draws.mean():6.2f} %  (sd {draws.std():.2f})"
        for r, draws in zip(runs[0]["r"], curves.T, strict=True)
    )


def _loss(C: float, gamma: float, r: float, training: Any, test: Any) -> float:
    model = MaxMarginClassifier(C=C, kernel="rbf", gamma=gamma, label_covariance=[[1.0, r], [r, 1.0]])
    scores = model.fit(*training).decision_function(test[0])
    return 100.0 * float(((scores > 0) != (test[1] > 0)).mean())


def _choose_pair(
    animals: Animals, X: Any, classes: Any, columns: list[int], seed: int
) -> tuple[float, float]:
    Y = animals.signatures[classes][:, columns]
    pairs = [(C, width / median_distance(X)) for width in _WIDTHS for C in _PENALTIES]
    losses = np.zeros(len(pairs))
    for held in held_out_classes(animals, classes, seed):
        training, validation = (X[~held.rows], Y[~held.rows]), (X[held.rows], Y[held.rows])
        losses += [_loss(*pair, 0.0, training, validation) * held.rows.sum() for pair in pairs]
    return pairs[int(np.argmin(losses))]


def _correlation(animals: Animals, classes: Any, columns: list[int]) -> float:
    return float(np.corrcoef(animals.signatures[classes][:, columns].T)[0, 1])


def _draw_picture(runs: list[dict[str, Any]], path: Path) -> None:
    curves, r = np.array([run["hamming"] for run in runs]), runs[0]["r"]
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
    wanted = [seed for seed in range(arguments.seeds) if record.wants({"seed": seed})]
    animals = read_animals() if wanted else None
    for seed in wanted:
        run = record.add({"seed": seed}, _measure(animals, seed))
        print(f"seed {seed}: C {run['C']:g}, gamma {run['gamma']:.3g}", flush=True)
    record.show(table(record.runs))
    _draw_picture(record.runs, arguments.picture)
