"""Attributes of unseen animals from 200 training images (M3L paper, section 7.2.1).

Five random draws of 200 images of the 40 training classes; the ten test classes are known by their 85
attributes and their shares. C and the width of the RBF kernel, a multiple of 1 / median squared distance, are
chosen for every method and draw on these images alone: three times the training classes are split into four
parts, each of which is left out as if it were unseen (its own signatures and shares give R, mean and
posterior), and the pair with the least mean Hamming loss is used; for the posterior that with the highest
likelihood of held-out classes. Test images are used once, at the end.

- majority sign: the sign of the prior's mean of each attribute; sees no image;
- independent: R = I; M3L: R = sum_c p(c) y_c y_c^T, the paper's method;
- mean moved: the scores, less their mean over the training images, plus the known mean of the attributes;
- all images (``--all-images``, minutes): R = I, fitted to all images of the training classes, the pair chosen
  on 2,000 of them;
- posterior: ``ZeroShotClassifier``, expected attributes under the posterior over the ten signatures, with the
  scores of each of three kinds of attribute classifiers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from benchmarks.frame import RESULTS, RecordedRuns, command, flag, groups
from benchmarks.problems import Animals, Held, median_distance, read_animals
from labelweave import LabelCovariance, MaxMarginClassifier, ZeroShotClassifier

_PENALTIES = (0.03, 0.1, 0.3, 1.0)
_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
_PAPER = {"independent": 29.38, "M3L": 26.35, "independent, all images": 28.64}
_ALL_IMAGES = "independent, all images"
_TO_CHOOSE = 2_000

Pair = tuple[float, float]


def _measure_all_images(animals: Animals) -> dict[str, float]:
    X, classes = animals.draw(0, _TO_CHOOSE)
    pairs = kernel_pairs(X)
    pair = _choose_pairs(animals, X, classes, "independent", pairs, 0)["independent"]
    model = _max_margin(pair).fit(animals.X, animals.signatures[animals.classes])
    truth = animals.signatures[animals.classes_test]
    loss = _hamming(model.decision_function(animals.X_test), truth)
    return {"hamming": loss, "C": pair[0], "gamma": pair[1]}


def kernel_pairs(X: Any) -> list[Pair]:
    """List the pairs of C and the width of the RBF kernel to choose from."""
    return [(C, width / median_distance(X)) for width in _WIDTHS for C in _PENALTIES]


def _measure_draw(animals: Animals, seed: int) -> dict[str, dict[str, float]]:
    X, classes = animals.draw(seed)
    pairs = kernel_pairs(X)
    held = animals.unseen(animals.classes_test, animals.classes_test)
    truth = animals.signatures[animals.classes_test]
    figures = {"majority sign": {"hamming": _hamming(held.prior @ held.signatures, truth)}}
    for kind in ("independent", "M3L"):
        chosen = _choose_pairs(animals, X, classes, kind, pairs, seed)
        for name, pair in chosen.items():
            scores = _decisions(kind, pair, held, X, animals.signatures[classes], animals.X_test)[name]
            figures[name] = {"hamming": _hamming(scores, truth), "C": pair[0], "gamma": pair[1]}
    codes = np.unique(animals.classes_test, return_inverse=True)[1]
    for name, make in _POSTERIORS.items():
        models = [make(pair, held, seed).fit(X, animals.signatures[classes], classes) for pair in pairs]
        best = int(np.argmin([model.held_out_log_loss_ for model in models]))
        expected = models[best].expected_attributes(animals.X_test)
        figures[name] = {
            "hamming": _hamming(expected, truth),
            "class accuracy": 100.0 * float(models[best].score(animals.X_test, codes)),
            "C": pairs[best][0],
            "gamma": pairs[best][1],
            "temperature": models[best].temperature_,
        }
    return figures


def _choose_pairs(
    animals: Animals, X: Any, classes: Any, kind: str, pairs: list[Pair], seed: int
) -> dict[str, Pair]:
    """Find the pair with the least Hamming loss on held-out training classes, for each decision."""
    losses: dict[str, Any] = {}
    for held in animals.held_out(classes, seed):
        Y = animals.signatures[classes]
        for column, pair in enumerate(pairs):
            decisions = _decisions(kind, pair, held, X[~held.rows], Y[~held.rows], X[held.rows])
            for name, scores in decisions.items():
                wrong = losses.setdefault(name, np.zeros(len(pairs)))
                wrong[column] += _hamming(scores, Y[held.rows]) * held.rows.sum()
    return {name: pairs[int(np.argmin(wrong))] for name, wrong in losses.items()}


def _decisions(kind: str, pair: Pair, held: Held, X: Any, Y: Any, X_new: Any) -> dict[str, Any]:
    """Fit once; decide with the original scores and with their mean moved."""
    model = _max_margin(pair)
    if kind == "M3L":
        model.set_params(label_covariance=LabelCovariance.from_signatures(held.signatures, held.prior))
    model.fit(X, Y)
    scores = model.decision_function(X_new)
    known = held.prior @ held.signatures
    return {kind: scores, f"{kind}, mean moved": scores - model.decision_function(X).mean(axis=0) + known}


def _max_margin(pair: Pair) -> MaxMarginClassifier:
    return MaxMarginClassifier(C=pair[0], kernel="rbf", gamma=pair[1])


def _posterior(estimator: Any, held: Held, seed: int, couple: bool = False) -> ZeroShotClassifier:
    return ZeroShotClassifier(
        estimator, held.signatures, class_prior=held.prior, couple_attributes=couple, random_state=seed
    )


_POSTERIORS: dict[str, Callable[[Pair, Held, int], ZeroShotClassifier]] = {
    "posterior, independent": lambda pair, held, seed: _posterior(_max_margin(pair), held, seed),
    "posterior, M3L": lambda pair, held, seed: _posterior(_max_margin(pair), held, seed, couple=True),
    "posterior, kernel ridge": lambda pair, held, seed: _posterior(
        KernelRidge(alpha=0.5 / pair[0], kernel="rbf", gamma=pair[1]), held, seed
    ),
}


def _hamming(scores: Any, truth: Any) -> float:
    return 100.0 * float(((scores > 0) != (truth > 0)).mean())


def table(runs: list[dict[str, Any]]) -> str:
    """Write mean and deviation of every method over the draws next to the paper's loss."""
    lines = [f"{'method':28s}{'draws':>6s}{'Hamming %':>11s}{'sd':>6s}{'paper':>8s}{'class accuracy %':>18s}"]
    for (name,), draws in groups(runs, "method").items():
        losses = np.array([draw["hamming"] for draw in draws])
        paper = f"{_PAPER[name]:8.2f}" if name in _PAPER else " " * 8
        accuracies = [draw["class accuracy"] for draw in draws if "class accuracy" in draw]
        accuracy = f"{np.mean(accuracies):18.1f}" if accuracies else ""
        figures = f"{len(draws):6d}{losses.mean():11.2f}{losses.std():6.2f}"
        lines.append(f"{name:28s}{figures}{paper}{accuracy}".rstrip())
    return "\n".join(lines)


@command(
    seeds=flag(5, "draws of training images"),
    all_images=flag(False, "nothing but the fit to all images"),
    records=RESULTS / "papers" / "zero_shot_awa.json",
)
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments, paper=_PAPER)
    seeds = range(0 if arguments.all_images else arguments.seeds)
    wanted = [seed for seed in seeds if record.wants({"method": "M3L", "seed": seed})]
    wants_all = arguments.all_images and record.wants({"method": _ALL_IMAGES})
    animals = read_animals() if wanted or wants_all else None
    for seed in wanted:
        for method, found in _measure_draw(animals, seed).items():
            record.add({"method": method, "seed": seed}, found)
        print(f"seed {seed} is measured", flush=True)
    if wants_all:
        record.add({"method": _ALL_IMAGES, "seed": 0}, _measure_all_images(animals))
    record.show(table(record.runs))
