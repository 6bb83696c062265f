"""Unseen animals from 2,000 training images, known by the vectors of their names (real-valued signatures).

Draws of 2,000 images of the 40 training classes; the ten test classes are known by their shares and by one of

- attributes: 85 in -1/1, as in section 7.2.1 of the M3L paper;
- projections: 20 random combinations of these, real-valued;
- names: token vectors of the package wordllama for the classes' names, length 1;
- both: attributes and names, each of unit variance.

Methods: ``attributes`` is the posterior of 0/1 signatures (kernel ridge regression), ``nearest`` the vector
of least Euclidean distance to the prediction of kernel ridge regression, ``cosine`` that of the least angle,
``vectors`` is ``ZeroShotClassifier`` with its classifier of the squared loss, ``vectors, coupled`` that with
``couple_attributes``.  The penalty is chosen by the log loss of training classes left out (``nearest`` and
``cosine`` take that of ``vectors``), the RBF kernel has the width 1 / median squared distance.  Test images
are used once.
"""

from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from benchmarks.frame import RESULTS, RecordedRuns, command, flag, groups
from benchmarks.problems import Animals, median_distance, read_animals
from labelweave import LowRankClassifier, ZeroShotClassifier

_GRID = (0.01, 0.1, 1.0, 10.0, 100.0)


def _tables(animals: Animals) -> dict[str, Any]:
    from labelweave.labels.text.static_embeddings import static_embeddings

    names = static_embeddings([str(name).replace("+", " ") for name in animals.class_names])
    names /= np.linalg.norm(names, axis=1, keepdims=True)
    mixing = np.random.default_rng(9).normal(size=(animals.signatures.shape[1], 20))
    parts = [table / np.sqrt(table.var(axis=0).sum()) for table in (animals.signatures, names)]
    return {
        "attributes": animals.signatures,
        "projections": animals.signatures @ mixing / 10,
        "names": names,
        "both": np.hstack(parts),
    }


def _measure_draw(animals: Animals, table: Any, seed: int) -> dict[str, dict[str, float]]:
    X, classes = animals.draw(seed, 2000)
    gamma, truth = 1 / median_distance(X), animals.classes_test
    prior = np.bincount(truth, minlength=len(table)) / len(truth)

    def chosen(regression: bool, couple: bool) -> tuple[Any, float]:
        models = [
            _model(table, prior, gamma, penalty, regression, couple).fit(X, classes) for penalty in _GRID
        ]
        best = int(np.argmin([model.held_out_log_loss_ for model in models]))
        return models[best], _GRID[best]

    figures = {}
    is_binary = bool(np.isin(table, (-1.0, 1.0)).all())
    kinds = (
        {"attributes": (True, False)}
        if is_binary
        else {"vectors": (False, False), "vectors, coupled": (False, True)}
    )
    for name, kind in kinds.items():
        model, penalty = chosen(*kind)
        log_posterior = model.predict_log_proba(animals.X_test)
        figures[name] = {
            "accuracy": 100.0 * float((log_posterior.argmax(axis=1) == truth).mean()),
            "log loss": -float(log_posterior[np.arange(len(truth)), truth].mean()),
            "penalty": penalty,
        }
    if not is_binary:
        regression = KernelRidge(alpha=figures["vectors"]["penalty"], kernel="rbf", gamma=gamma)
        center = table[classes].mean(axis=0)
        found = regression.fit(X, table[classes] - center).predict(animals.X_test)
        unseen = np.flatnonzero(prior)
        for name, predicted in _nearest(found, table[unseen] - center).items():
            figures[name] = {"accuracy": 100.0 * float((unseen[predicted] == truth).mean())}
    return figures


def _nearest(found: Any, vectors: Any) -> dict[str, Any]:
    products, squares = found @ vectors.T, np.square(vectors).sum(axis=1)
    return {
        "nearest": (products - squares / 2).argmax(axis=1),
        "cosine": (products / np.sqrt(squares)).argmax(axis=1),
    }


def _model(table: Any, prior: Any, gamma: float, penalty: float, regression: bool, couple: bool) -> Any:
    kernel: dict[str, Any] = {"kernel": "rbf", "gamma": gamma}
    squared = LowRankClassifier(1.0, alpha=penalty, penalty="ridge", **kernel)
    estimator = KernelRidge(alpha=penalty, **kernel) if regression else squared
    return ZeroShotClassifier(estimator, table, class_prior=prior, couple_attributes=couple, seen_penalty=0.0)


def table(runs: list[dict[str, Any]]) -> str:
    """Write means and deviations over draws, by the signatures of the classes."""
    lines = [
        f"{'signatures':14s}{'method':20s}{'draws':>6s}{'right classes %':>17s}{'sd':>6s}{'log loss':>10s}"
    ]
    for (known, name), draws in groups(runs, "known", "method").items():
        right = np.array([draw["accuracy"] for draw in draws])
        losses = [draw["log loss"] for draw in draws if "log loss" in draw]
        loss = f"{np.mean(losses):10.3f}" if losses else ""
        lines.append(f"{known:14s}{name:20s}{len(draws):6d}{right.mean():17.1f}{right.std():6.1f}{loss}")
    return "\n".join(lines)


@command(seeds=flag(5, "draws of training images"), records=RESULTS / "papers" / "zero_shot_vectors.json")
def main(arguments: Any) -> None:
    record, animals = RecordedRuns(arguments), read_animals()
    for known, signatures in _tables(animals).items():
        for case in record.missing(known=[known], seed=range(arguments.seeds), images=[2000]):
            for method, found in _measure_draw(animals, signatures, case["seed"]).items():
                record.add(case | {"method": method}, found)
    record.show(table(record.runs))
