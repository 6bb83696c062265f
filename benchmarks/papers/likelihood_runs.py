"""Runs of ``KernelLogisticClassifier`` on training and test rows (Seeger 2008, sections 6.2 and 6.3)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from benchmarks.frame import RecordedRuns, Run, begin_picture, groups, timed, write_picture
from labelweave import HyperparameterSearch, KernelLogisticClassifier
from labelweave.display import ErrorRejectDisplay
from labelweave.metrics import error_reject_curve

REJECTED = np.linspace(0.0, 0.5, 101)

Method = Callable[["Split", int], Run]


@dataclass(frozen=True)
class Split:
    """Training and test rows with their classes."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def measure_and_show(
    methods: dict[str, Method], read: Callable[[], Split], seeds: int, arguments: Any, paper: dict[str, float]
) -> None:
    """Run every requested method with every seed, print the tables and draw the plot."""
    record = RecordedRuns(arguments, threads=1, paper=paper)
    if record.measures:
        _run_all(methods, read(), seeds, record)
    record.show(error_table(record.runs, paper))
    record.show(learned_table(_by_method(record.runs)))
    draw_curves(_by_method(record.known), arguments.picture)


def _run_all(methods: dict[str, Method], split: Split, seeds: int, record: RecordedRuns) -> None:
    for case in record.missing(seed=range(seeds), method=methods):
        name, seed = case["method"], case["seed"]
        found, seconds = timed(methods[name], split, seed, clock=time.perf_counter)
        run = record.add(case, {**found, "seconds": seconds})
        print(f"{name}, seed {seed}: {run['error']:.2f} %, {seconds:.0f} s", flush=True)


def _by_method(runs: list[Run]) -> dict[str, list[Run]]:
    """Sort runs by their methods, in the order in which these come first, and by seed."""
    found = groups(sorted(runs, key=lambda run: int(run["seed"])), "method")
    return {name: own for (name,), own in found.items()}


_SEARCH = ("cv", "learning_rows", "learning_blocks", "max_learning_iter", "tie")


def made(seed: int, **parameters: Any) -> KernelLogisticClassifier:
    """Make a model from its parameters and those of its search."""
    search = HyperparameterSearch(**{name: parameters.pop(name) for name in _SEARCH if name in parameters})
    return KernelLogisticClassifier(random_state=seed, n_jobs=1, hyperparameters=search, **parameters)


def one_model(split: Split, seed: int, **parameters: Any) -> Run:
    model = made(seed, **parameters).fit(split.X, split.y)
    probabilities = model.predict_proba(split.X_test)
    return {**_test(split, probabilities, probabilities, model.classes_), **_learned(model)}


def one_against_rest(split: Split, seed: int, **parameters: Any) -> Run:
    """Learn and test a model for each class against all others.

    The class with the largest probability in its own model is predicted, and rows are rejected by that
    probability; for the log loss the probabilities are divided by their sum.
    """
    classes, columns, learned = np.unique(split.y), [], []
    for name in classes:
        model = made(seed, **parameters)
        columns.append(model.fit(split.X, split.y == name).predict_proba(split.X_test)[:, 1])
        learned.append(_learned(model))
    P = np.transpose(columns)
    together: Run = {
        "hyperparameters": {
            f"{key}[{name}]": value
            for name, part in zip(classes.tolist(), learned, strict=True)
            for key, value in part["hyperparameters"].items()
        },
        "cross_validation_loss": [part["cross_validation_loss"] for part in learned],
        "evaluations": sum(part["evaluations"] for part in learned),
        "search": [part["search"] for part in learned],
        "status": [part["status"] for part in learned],
    }
    return {**_test(split, _with_largest(P), P / P.sum(axis=1, keepdims=True), classes), **together}


def _with_largest(P: Any) -> Any:
    """Make distributions whose largest entries are in the order of those of P, at the same places."""
    n_classes = P.shape[1]
    largest = (1.0 + (n_classes - 1) * P.max(axis=1)) / n_classes
    rows = np.tile(((1.0 - largest) / (n_classes - 1))[:, None], n_classes)
    rows[np.arange(len(P)), P.argmax(axis=1)] = largest
    return rows


def _test(split: Split, ranked: Any, probabilities: Any, classes: Any) -> Run:
    fractions, errors = error_reject_curve(split.y_test, ranked, classes)
    return {
        "error": 100.0 * float(errors[0]),
        "log_loss": float(log_loss(split.y_test, probabilities, labels=classes)),
        "curve": np.interp(REJECTED, fractions, errors).round(6).tolist(),
    }


def _learned(model: KernelLogisticClassifier) -> Run:
    return {
        "hyperparameters": model.hyperparameters_,
        "cross_validation_loss": model.cross_validation_loss_,
        "evaluations": len(model.learning_trace_),
        "search": model.learning_status_,
        "status": model.status_,
    }


def error_table(runs: list[Run], paper: dict[str, float]) -> str:
    """Write mean and standard deviation of every method next to the paper's mean."""
    title = f"{'method':22s}{'runs':>5s}{'error %':>9s}{'sd':>6s}{'paper':>7s}"
    lines = [f"{title}{'log loss':>10s}{'CV loss':>9s}{'5 % out':>9s}{'20 % out':>9s}{'seconds':>9s}"]
    for name, own in _by_method(runs).items():
        errors = np.array([run["error"] for run in own])
        losses = np.mean([run["log_loss"] for run in own])
        held_out = np.mean([np.sum(run["cross_validation_loss"]) for run in own])
        curve = 100.0 * np.mean([run["curve"] for run in own], axis=0)
        some, many = (np.interp(fraction, REJECTED, curve) for fraction in (0.05, 0.2))
        seconds = np.mean([run["seconds"] for run in own if "seconds" in run])
        figures = f"{len(own):5d}{errors.mean():9.2f}{errors.std():6.2f}{paper[name]:7.2f}"
        lines.append(f"{name:22s}{figures}{losses:10.4f}{held_out:9.4f}{some:9.2f}{many:9.2f}{seconds:9.0f}")
    return "\n".join(lines)


def learned_table(methods: dict[str, list[Run]]) -> str:
    """Write the geometric mean and range of every learned hyperparameter."""
    lines = []
    for name, runs in methods.items():
        for key in runs[0]["hyperparameters"]:
            values = np.array([run["hyperparameters"][key] for run in runs])
            mean = float(np.exp(np.log(values).mean()))
            lines.append(f"{name:22s}{key:34s}{mean:12.4g}  ({values.min():.4g} to {values.max():.4g})")
    return "\n".join(lines)


def draw_curves(methods: dict[str, list[Run]], path: Path) -> None:
    """Draw the mean error-reject curve of every method in one plot."""
    figure, axis = begin_picture()
    for name, runs in methods.items():
        mean = np.mean([run["curve"] for run in runs], axis=0)
        ErrorRejectDisplay(REJECTED, mean, name).plot(axis, max_rejected=float(REJECTED[-1]))
    if methods:
        write_picture(figure, path)
