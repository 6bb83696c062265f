"""Hand hostile sparse arrays to the public functions.

    python -m attacks.sparse_arrays --trials 100000

A trial draws a function, a small matrix for one of its arguments, and a form of it.  What means the same,
such as arrays that are read-only, misaligned or byte-swapped, must give the same answer to the last bit;
what does not fit together must be refused by a ValueError or TypeError.  Trials run in processes of their
own, so that a crash is seen and counted, and the next trial goes on.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from benchmarks.frame import flag, read_options

import labelweave as lw
from attacks.hostile_arrays import DAMAGED, LYING, SOUND, Random
from labelweave import datasets, inference, metrics, splits
from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel

_N, _D, _L = 14, 6, 4
_MATRICES = 3
_PATIENCE = 600.0  # seconds for a trial, with what is compiled in it
_OUTCOMES = ("same answer", "refused", "no matter", "failed")


class World:
    """What functions are given beside the hostile matrix, and models that are fitted already."""

    def __init__(self, number: int) -> None:
        random = np.random.default_rng(number)
        self.X = np.where(random.random((_N, _D)) < 0.5, random.normal(size=(_N, _D)), 0.0)
        self.Y = (random.random((_N, _L)) < 0.4).astype(np.int64)
        self.Y[0], self.Y[1] = 1, 0
        self.S = np.where(random.random((_N, _L)) < 0.8, random.normal(size=(_N, _L)), 0.0)
        self.P = 1.0 / (1.0 + np.exp(-self.S))
        self.W = np.where(random.random((_N, _L)) < 0.5, random.uniform(0.5, 2.0, (_N, _L)), 0.0)
        self.F = np.where(random.random((_L, 3)) < 0.6, random.normal(size=(_L, 3)), 0.0) + np.eye(_L, 3)
        self.G = (random.random((5, _L)) < 0.5).astype(np.int64)
        self.G[0], self.G[1] = 1, 0
        self._answers: dict[str, Any] = {}
        self._fitted: dict[str, Any] = {}

    def estimators(self) -> dict[str, Any]:
        """Make one of every kind, to be fitted."""
        quick: dict[str, Any] = {"max_iter": 5}
        linear = lw.MaxMarginClassifier(tol=0.1)
        return {
            "MaxMargin": linear,
            "MaxMargin rbf": lw.MaxMarginClassifier(kernel="rbf", tol=0.1),
            "KernelLogistic": lw.KernelLogisticClassifier(hyperparameters="fixed", tol=0.1),
            "LowRank": lw.LowRankClassifier(2, **quick),
            "LowRank ridge": lw.LowRankClassifier(2, penalty="ridge", kernel="rbf", **quick),
            "LowRank cv": lw.LowRankClassifierCV(ranks=[2], regularizations=[1.0], cv=2, **quick),
            "LabelGraph": lw.LabelGraphClassifier(max_rounds=1, tol=0.1, **quick),
            "LabelTree": lw.LabelTreeClassifier(leaf_size=2, branching=2, tol=0.1),
            "BinaryRelevance": lw.BinaryRelevance(tol=0.1),
            "TunedThreshold": lw.TunedThresholdClassifier(linear),
            "CalibratedLabel": lw.CalibratedLabelClassifier(linear, cv=2),
            "ConformalLabel": lw.ConformalLabelClassifier(linear, level=0.5, confidence=0.5),
            "ZeroShot": lw.ZeroShotClassifier(linear, self.G, temperature=1.0),
        }

    def fitted(self, name: str) -> Any:
        """Give one that is fitted to the plain rows."""
        if name not in self._fitted:
            self._fitted[name] = self.estimators()[name].fit(self.X, self.Y)
        return self._fitted[name]

    def answer(self, name: str) -> Any:
        """Give a function's answer to the matrix as it should be."""
        if name not in self._answers:
            argument, call = TARGETS[name]
            self._answers[name] = call(self, sp.csr_array(getattr(self, argument)))
        return self._answers[name]


def _scores_after(name: str, model_of: Any) -> Any:
    """Fit, and score the plain rows."""

    def call(world: World, matrix: Any) -> Any:
        model = model_of(world, world.estimators()[name], matrix)
        return model.predict_proba(world.X) if name == "ZeroShot" else model.decision_function(world.X)

    return call


def _written(writer: Any, n_paths: int = 1) -> Any:
    def call(world: World, matrix: Any) -> Any:
        data = datasets.LabeledData(matrix, lw.LabelMatrix.from_any(world.Y, names=list("abcd")))
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, f"data{number}") for number in range(n_paths)]
            writer(data, *paths)
            return paths[0].read_text()

    return call


def _metric_targets() -> Iterator[tuple[str, Any]]:
    of_scores = {
        name: getattr(metrics, name)
        for name in (
            "ranking_loss", "coverage_error", "label_ranking_average_precision", "average_auc",
            "average_precision_score",
            "precision_at_k", "ndcg_at_k", "score_table",
        )
    }  # fmt: skip
    of_scores["propensity_scored_precision_at_k"] = lambda Y, S: metrics.propensity_scored_precision_at_k(
        Y, S, np.full(_L, 0.5), 2
    )
    of_scores["average_auc of rows"] = lambda Y, S: metrics.average_auc(Y, S, "example")
    for name, metric in of_scores.items():
        k = {"k": 2} if name in ("precision_at_k", "ndcg_at_k") else {}
        yield f"{name}: truth", ("Y", lambda world, Y, f=metric, k=k: f(Y, world.S, **k))
        yield f"{name}: scores", ("S", lambda world, S, f=metric, k=k: f(world.Y, S, **k))
    for name in ("hamming_loss", "subset_accuracy", "precision_score", "recall_score", "f1_score"):
        metric = getattr(metrics, name)
        yield f"{name}: truth", ("Y", lambda world, Y, f=metric: f(Y, world.S > 0))
        yield f"{name}: prediction", ("Y", lambda world, Y, f=metric: f(world.Y, Y))
    yield "score_table: prediction", ("Y", lambda world, Y: metrics.score_table(world.Y, None, Y))
    yield "propensities", ("Y", lambda world, Y: metrics.propensities(Y))
    yield "log_loss", ("Y", lambda world, Y: metrics.log_loss(Y, world.P))
    yield "log_loss: probabilities", ("W", lambda world, W: metrics.log_loss(world.Y, W))
    yield "calibration error", ("Y", lambda world, Y: metrics.expected_calibration_error(Y, world.P))
    yield (
        "calibration error: probabilities",
        ("Y", lambda world, Y: metrics.expected_calibration_error(world.Y, Y)),
    )


def _estimator_targets() -> Iterator[tuple[str, Any]]:
    for name in World(0).estimators():
        yield (f"{name}.fit X", ("X", _scores_after(name, lambda world, model, X: model.fit(X, world.Y))))
        yield f"{name}.fit y", ("Y", _scores_after(name, lambda world, model, Y: model.fit(world.X, Y)))
        methods = ["predict"] + (["predict_proba"] if name in ("ZeroShot", "KernelLogistic") else [])
        if name != "ZeroShot":
            methods += ["decision_function"]
            yield f"{name}.predict_top", ("X", lambda world, X, n=name: world.fitted(n).predict_top(X, 2))
        for method in methods:
            yield (
                f"{name}.{method}",
                ("X", lambda world, X, n=name, m=method: getattr(world.fitted(n), m)(X)),
            )
    for name in ("MaxMargin", "MaxMargin rbf", "LowRank", "KernelLogistic", "LabelGraph"):
        yield (
            f"{name}.fit entry_weight",
            ("W", _scores_after(name, lambda world, model, W: model.fit(world.X, world.Y, entry_weight=W))),
        )
    for name in ("MaxMargin", "LowRank"):
        yield (
            f"{name}.partial_fit X",
            ("X", _scores_after(name, lambda world, model, X: model.partial_fit(X, world.Y))),
        )
    yield "ZeroShot signatures", ("G", _zero_shot)
    yield "LabelGraph.predict_map", ("X", lambda world, X: world.fitted("LabelGraph").predict_map(X).labels)
    yield (
        "LabelGraph.predict_map known",
        ("Y", lambda world, Y: world.fitted("LabelGraph").predict_map(world.X, Y).labels),
    )
    yield "MaxMargin.score", ("Y", lambda world, Y: world.fitted("MaxMargin").score(world.X, Y))


def _zero_shot(world: World, signatures: Any) -> Any:
    model = lw.ZeroShotClassifier(lw.MaxMarginClassifier(tol=0.1), signatures, temperature=1.0)
    return model.fit(world.X, world.Y).predict_proba(world.X)


def _structure_targets() -> Iterator[tuple[str, Any]]:
    matrix, covariance = lw.LabelMatrix, lw.LabelCovariance
    yield "LabelMatrix", ("Y", lambda world, Y: matrix(Y))
    yield "LabelMatrix observed", ("Y", lambda world, Y: matrix(sp.csr_array((_N, _L)), Y))
    yield "LabelMatrix.masked", ("Y", lambda world, Y: matrix.from_any(world.Y).masked(Y))
    yield "LabelMatrix.from_any", ("Y", lambda world, Y: matrix.from_any(Y))
    yield "FeatureMatrix", ("X", lambda world, X: FeatureMatrix(X).data)
    for kernel in (LinearKernel(), RBFKernel(0.5)):
        yield (
            f"{type(kernel).__name__}.block",
            ("X", lambda world, X, k=kernel: k.block(FeatureMatrix(X), FeatureMatrix(sp.csr_array(world.X)))),
        )
    yield "from_labels", ("Y", lambda world, Y: covariance.from_labels(Y).to_dense())
    yield "from_signatures", ("G", lambda world, G: covariance.from_signatures(G).to_dense())
    yield "low_rank", ("F", lambda world, F: covariance.low_rank(F, 1.0).to_dense())
    yield ("low_rank in a fit", ("F", lambda world, F: _covariance_fit(world, covariance.low_rank(F, 1.0))))
    yield "choose_thresholds", ("Y", lambda world, Y: inference.choose_thresholds(Y, world.S).thresholds)
    yield "choose_top_k", ("Y", lambda world, Y: inference.choose_top_k(Y, world.S).k)
    yield (
        "calibrate_labels",
        ("Y", lambda world, Y: inference.calibrate_labels(Y, world.S).probabilities(world.S)),
    )
    yield (
        "control_mistakes",
        ("Y", lambda world, Y: inference.control_mistakes(Y, world.S, level=0.6, confidence=0.5).threshold),
    )
    yield (
        "train_test_split",
        (
            "X",
            lambda world, X: [
                FeatureMatrix(part).data if sp.issparse(part) else part
                for part in splits.stratified_train_test_split(X, world.Y, random_state=0)
            ],
        ),
    )
    yield (
        "KFold.split",
        (
            "Y",
            lambda world, Y: [
                part
                for pair in splits.IterativeStratifiedKFold(2, shuffle=True, random_state=0).split(world.X, Y)
                for part in pair
            ],
        ),
    )
    yield "compare", ("X", _compared)
    yield "write_svmlight", ("X", _written(datasets.write_svmlight))
    yield "write_xmc", ("X", _written(datasets.write_xmc))
    yield "write_mulan", ("X", _written(datasets.write_mulan, 2))


def _covariance_fit(world: World, covariance: Any) -> Any:
    model = lw.MaxMarginClassifier(label_covariance=covariance, tol=0.1).fit(world.X, world.Y)
    return model.decision_function(world.X)


def _compared(world: World, X: Any) -> Any:
    found = lw.compare(lw.MaxMarginClassifier(tol=0.1), X, world.Y, cv=2)
    return next(iter(found.values.values()))["hamming_loss"]


TARGETS: dict[str, tuple[str, Any]] = {
    **dict(_metric_targets()), **dict(_estimator_targets()), **dict(_structure_targets())
}  # fmt: skip
"""The argument that is hostile, as an attribute of the world, and the call."""


def _as_table(answer: Any) -> Any:
    if sp.issparse(answer):
        return answer.toarray()
    if isinstance(answer, lw.LabelMatrix):
        return answer.to_dense()
    if isinstance(answer, dict):
        return list(answer.values())
    return answer


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two answers are the same to the last bit."""
    one, other = _as_table(one), _as_table(other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, str):
        return bool(one == other)
    return bool(np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f"))


class Attacker:
    """Runs trials, each drawn by its seed."""

    def __init__(self) -> None:
        self.worlds = [World(number) for number in range(_MATRICES)]

    def drawn(self, seed: int) -> tuple[str, str, str, Random]:
        """Draw a function, what is wrong and in which way."""
        random = np.random.default_rng(seed)
        name = str(random.choice(list(TARGETS)))
        kind = str(random.choice(["sound", "damaged", "lying"], p=[0.3, 0.65, 0.05]))
        forms = {"sound": SOUND, "damaged": DAMAGED, "lying": LYING}[kind]
        return name, kind, str(random.choice(list(forms))), random

    def trial(self, seed: int) -> tuple[str, str]:
        """Run one; give the outcome and, where it failed, what happened."""
        name, kind, form, random = self.drawn(seed)
        world = self.worlds[int(random.integers(_MATRICES))]
        argument, call = TARGETS[name]
        due, said = None, f"seed {seed}: {name}, {form}"
        try:
            due = world.answer(name)
        except ValueError:  # such as dense arguments alone
            kind = "lying"
        matrix = (SOUND | DAMAGED | LYING)[form](random, sp.csr_array(getattr(world, argument)))
        try:
            answer = call(world, matrix)
        except (ValueError, TypeError) as error:
            if kind == "sound":
                return "failed", f"{said}: refused, {type(error).__name__}: {error}"
            return ("no matter" if kind == "lying" else "refused"), ""
        except Exception as error:
            return "failed", f"{said}: {type(error).__name__}: {error}"
        if kind == "damaged":
            return "failed", f"{said}: accepted"
        if kind == "sound" and not is_same(answer, due):
            return "failed", f"{said}: another answer"
        return ("no matter" if kind == "lying" else "same answer"), ""


def attack(seeds: range) -> list[str]:
    """Run trials in this process; give the failures."""
    attacker = Attacker()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [what for outcome, what in map(attacker.trial, seeds) if outcome == "failed"]


def _work(seeds: range, begin: int, progress: Any, connection: Any) -> None:
    """Run trials from one on; ``progress`` holds the number begun and the counts of outcomes."""
    warnings.simplefilter("ignore")
    attacker = Attacker()
    for number in range(begin, len(seeds)):
        progress[0] = number
        outcome, what = attacker.trial(seeds[number])
        progress[1 + _OUTCOMES.index(outcome)] += 1
        if what:
            connection.send(what)
    progress[0] = len(seeds)
    connection.close()


@dataclass
class Worker:
    """Trials in a process of their own, which is begun again after the trial that ended it."""

    seeds: range
    failures: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context = multiprocessing.get_context("spawn")
        self.progress = self.context.RawArray(ctypes.c_int64, 1 + len(_OUTCOMES))
        self._begin(0)

    def _begin(self, number: int) -> None:
        self.progress[0], self.seen, self.since = number, -1, time.monotonic()
        self.receiver, sender = self.context.Pipe(duplex=False)
        self.process = self.context.Process(target=_work, args=(self.seeds, number, self.progress, sender))
        self.process.start()
        sender.close()

    def is_done(self) -> bool:
        """Look after the process; tell whether all trials are over."""
        self._receive()
        number, now = int(self.progress[0]), time.monotonic()
        if number != self.seen:
            self.seen, self.since = number, now
        elif self.process.is_alive() and now - self.since > _PATIENCE:
            self.process.kill()
            self.process.join()
        if self.process.is_alive():
            return False
        self._receive()
        if number >= len(self.seeds):
            return True
        name, _, form, _ = Attacker().drawn(self.seeds[number])
        self.crashes.append(f"seed {self.seeds[number]}: {name}, {form}: ended with {self.process.exitcode}")
        if number + 1 >= len(self.seeds):
            return True
        self._begin(number + 1)
        return False

    def _receive(self) -> None:
        try:
            while self.receiver.poll():
                self.failures.append(self.receiver.recv())
        except EOFError:
            return


def main() -> None:
    """Attack, and say how trials ended."""
    chosen = read_options(__doc__, trials=100_000, workers=2, seed=flag(0, "of the first trial"))
    everything, size = range(chosen.seed, chosen.seed + chosen.trials), -(-chosen.trials // chosen.workers)
    workers = [Worker(everything[first : first + size]) for first in range(0, chosen.trials, size)]
    running = workers
    while running := [worker for worker in running if not worker.is_done()]:
        time.sleep(0.2)
    counts = {
        name: sum(worker.progress[1 + place] for worker in workers) for place, name in enumerate(_OUTCOMES)
    }
    crashes = [what for worker in workers for what in worker.crashes]
    failures = [what for worker in workers for what in worker.failures]
    print(f"{chosen.trials} trials of {len(TARGETS)} functions: {len(crashes)} crashes or hangs, {counts}")
    print(*crashes, *failures[:200], sep="\n  ")
    raise SystemExit(bool(crashes or failures))


if __name__ == "__main__":
    main()
