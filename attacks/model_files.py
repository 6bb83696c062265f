"""Edited model files: each is refused in one sentence, or predicts finite scores of the right shape.

The model files of every class (those kept for tests, and the same models saved again), pipelines of
scikit-learn's steps, and, one in fifty, checkpoints of fits are edited in their structure: values, types,
shapes, names, keys added and dropped, parts of other files, classes, nesting.  The checksum is recomputed.
Each file is loaded, or a fit resumes from it, and it predicts a few rows, in a monitored process.  Violations
are:

crash   the process died; hang    it took more than 10 seconds of CPU time, or 120 in all; memory  it grew by
more than MULTIPLE times the file's size beyond FREE; bare    loading raised an error other than
ModelFileError; late    a file was accepted, and predicting raised an error; nan     scores are not finite;
shape   the shape of scores or predictions does not fit rows and labels.

    python -m attacks.model_files --files 1000000 --progress counts.json    # resumes where it was stopped
    python -m attacks.model_files --seed 4711 --files 1 --keep file.lw      # repeats one of them
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from benchmarks.frame import command, flag
from benchmarks.machine import MemoryClimb
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

import labelweave
from attacks.edits import (
    checkpoint_files,
    edited,
    fit_from,
    is_checkpoint,
    one_of,
    pipeline_files,
    rows_for_pipeline,
)
from attacks.public_names import is_of_library
from attacks.trials import Ended, allow_memory, trials
from labelweave.estimators import TableModel
from labelweave.model_files import ModelFileError
from labelweave.model_files.schema import MULTIPLE

FREE = 64 * 2**20  # of Python and the libraries, in turn
_SECONDS, _WAIT = 10.0, 120.0  # of CPU time, and in all, since others may use the processor
_ROOM = 2**31  # address space that a worker may still request, bytes
_N_ROWS = 3
_SHARD = 500  # files
_CHECKPOINTS = 0.02  # their share; each takes a fit
_WIDEST = 10_000
_FILES = Path(__file__).parents[1] / "tests" / "model_files" / "kept"
_METHODS = (
    *("decision_function", "predict", "predict_proba", "predict_log_proba", "predict_top", "predict_map"),
    "expected_attributes",
)


@cache
def base_files() -> dict[str, bytes]:
    """Return the files to edit: the kept ones, the same models saved again, pipelines."""
    found = {path.stem: path.read_bytes() for path in sorted(_FILES.glob("*.lw"))}
    with tempfile.TemporaryDirectory() as folder:
        for name in list(found):
            path = Path(folder) / "again.lw"
            path.write_bytes(found[name])
            labelweave.save(labelweave.load(path), path)
            found[f"{name}, again"] = path.read_bytes()
    return found | pipeline_files()


def opened(name: str, path: Path) -> Any:
    """Load a model, or fit it from a checkpoint; ``name`` is the file's kind before it was edited."""
    return fit_from(name, path) if is_checkpoint(name) else labelweave.load(path)


def rows_for(model: Any) -> Any:
    around = getattr(getattr(model, "scorer_", None), "estimator_", model)
    if isinstance(around, Pipeline):
        found = rows_for_pipeline(around)
        if found is not None:
            return found
        first, last = around.steps[0][1], around.steps[-1][1]
        return rows_for_table(first) if hasattr(first, "text_vectorizers_") else rows_for(last)
    if isinstance(model, TableModel):
        return rows_for_table(model.vectorizer_)
    inner = model if hasattr(model, "n_features_in_") else around
    width = inner.n_features_in_
    if width > _WIDEST:
        return sp.csr_array((_N_ROWS, width))
    rows = (np.arange(_N_ROWS * width).reshape(_N_ROWS, width) * 7 % 5 - 2).astype(float)
    names = getattr(inner, "feature_names_in_", None)
    return rows if names is None else pd.DataFrame(rows, columns=names)


def rows_for_table(vectorizer: Any) -> pd.DataFrame:
    columns: dict[str, Any] = {
        name: ["red rose", "blue sea", ""] for name in (*vectorizer.text, *vectorizer.categorical)
    }
    columns |= {block.name: [*np.ones((3, len(block)))] for block in vectorizer.vector_blocks_}
    numbers = vectorizer.means_ + np.outer([-1.0, 0.0, 3.0], vectorizer.scales_)
    return pd.DataFrame(columns | dict(zip(vectorizer.numeric, numbers.T, strict=True)))


def violations(model: Any) -> Iterator[str]:
    if not hasattr(model, "predict"):
        rows = rows_for(model) if isinstance(model, Pipeline) and hasattr(model, "transform") else None
        if rows is not None and model.transform(rows).shape[0] != _N_ROWS:
            yield "shape: transform"
        return
    rows = rows_for(model)
    n_labels = len(model.classes_)
    for method in (name for name in _METHODS if hasattr(model, name)):
        found = getattr(model, method)(rows, *([1] if method == "predict_top" else []))
        if method in ("predict", "predict_map"):
            found = found if method == "predict" else found.labels
            if found.shape[0] != _N_ROWS:
                yield f"shape: {method} gives {found.shape}"
            continue
        scores = np.asarray(found[1] if method == "predict_top" else found)
        width = 1 if method == "predict_top" else n_labels
        allowed = [(_N_ROWS, width), *([(_N_ROWS,)] if n_labels == 2 else [])]
        if scores.shape not in allowed and method != "expected_attributes":
            yield f"shape: {method} gives {scores.shape} for {n_labels} labels"
        is_log = method == "predict_log_proba"
        if not (np.isfinite(scores) | (is_log & np.isneginf(scores))).all():
            yield f"nan: {method} gives {scores.ravel()[~np.isfinite(scores).ravel()][0]}"


@dataclass
class Outcome:
    """The outcomes of some files."""

    counts: Counter[str] = field(default_factory=Counter)
    found: list[tuple[int, str]] = field(default_factory=list)  # seeds and violations

    def add(self, other: Outcome) -> None:
        self.counts += other.counts
        self.found += other.found


def make_file(seed: int) -> tuple[str, bytes]:
    """Make the edited file of a seed; return also the name of what was edited."""
    random = np.random.default_rng(seed)
    files = checkpoint_files() if random.random() < _CHECKPOINTS else base_files()
    name = one_of(random, list(files))
    return name, edited(random, files[name], files[one_of(random, list(files))])


def attack_one(seed: int, path: Path, outcome: Outcome) -> None:
    name, data = make_file(seed)
    path.write_bytes(data)
    memory = MemoryClimb()
    outcome.counts["files"] += 1
    stage = "bare"
    try:
        model = opened(name, path)
        stage = "late"
        problems = list(violations(model))
        outcome.counts["accepted"] += 1
    except ModelFileError as error:
        problems = [f"memory: {error}"] if "MemoryError" in str(error) else []
        if stage == "late":
            problems = [f"late: {error}"]
        outcome.counts["refused"] += 1
    except Exception as error:
        where = _where(error)
        problems = [f"{stage}: {type(error).__name__} in {where}: {' '.join(str(error).split())[:100]}"]
    grown, most = memory.peak(), MULTIPLE * len(data) + FREE
    if grown > most:
        grown = min(grown, _grown_again(name, path))
    if grown > most:
        problems.append(f"memory: {grown:,} bytes for a file of {len(data):,}")
    outcome.found += [(seed, f"{name}: {problem}") for problem in problems]
    for kind in {problem.partition(":")[0] for problem in problems}:
        outcome.counts[kind] += 1


def _grown_again(name: str, path: Path) -> int:
    """Measure memory again: pages of libraries loaded the first time are now present."""
    memory = MemoryClimb()
    with contextlib.suppress(Exception):
        list(violations(opened(name, path)))
    return memory.peak()


def _where(error: BaseException) -> str:
    places = (one for one in reversed(extract_tb(error.__traceback__)) if is_of_library(one.filename))
    return next((f"{Path(one.filename).name}:{one.name}" for one in places), "")


@contextlib.contextmanager
def _attacker(path: Path) -> Iterator[Callable[[int], Outcome]]:
    """Attack in this process, whose memory is limited; a signal ends it after too much CPU time."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    allow_memory(_ROOM)
    faulthandler.register(signal.SIGPROF, chain=True)  # reports where on stderr
    threadpool_limits(1)  # OpenMP's threads do not survive a fork

    def trial(seed: int) -> Outcome:
        outcome = Outcome()
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        attack_one(seed, path, outcome)
        signal.setitimer(signal.ITIMER_PROF, 0)
        return outcome

    yield trial


def attack(seeds: range, tell: Callable[[int, Outcome], None] = lambda done, outcome: None) -> Outcome:
    """Attack with the seeds in a process; another one goes on after a crash or a hang."""
    _warm()
    total = Outcome()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as place:
        begin = partial(_attacker, Path(place) / "edited.lw")
        for seed, answer in trials(begin, seeds, _WAIT, "fork"):
            outcome = answer
            if isinstance(answer, Ended):
                is_hang = answer.endswith(("no answer", f"code {-signal.SIGPROF}"))
                verdict = "hang" if is_hang else "crash"
                found = [(seed, f"{make_file(seed)[0]}: {verdict}: {answer}")]
                outcome = Outcome(Counter({"files": 1, verdict: 1}), found)
            total.add(outcome)
            tell(seed, total)
    return total


@cache
def _warm() -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in (base_files() | checkpoint_files()).items():
            path = Path(folder) / "base.lw"
            path.write_bytes(data)
            wrong = list(violations(opened(name, path)))
            if wrong:
                raise AssertionError(f"{name} as it is: {wrong}")


def attack_on(seeds: range, kept: Path, tell: Callable[[int, Outcome], None]) -> Outcome:
    """Attack in shards, each appended to a file when complete; shards in the file are not run again."""
    total, seconds = Outcome(), 0.0
    if kept.exists():
        known = json.loads(kept.read_text())
        seconds = known["seconds"]
        if known["first"] != seeds.start:
            raise SystemExit(f"{kept} is of files from {known['first']} on; name another file, or --seed.")
        total = Outcome(Counter(known["counts"]), [tuple(pair) for pair in known["found"]])
    for first in range(seeds.start + total.counts["files"], seeds.stop, _SHARD):
        begun = time.monotonic()
        total.add(attack(range(first, min(first + _SHARD, seeds.stop))))
        seconds += time.monotonic() - begun
        counts = {"first": seeds.start, "seconds": round(seconds), "counts": total.counts}
        kept.write_text(json.dumps(counts | {"found": total.found}, indent=1) + "\n")
        tell(first, total)
    print(f"{seconds:.0f} s, all shards together")
    return total


@command(
    files=10_000,
    seed=flag(0, "of the first file"),
    keep=flag(help="write the first file here", metavar="PATH"),
    progress=flag(help="counts of a run that goes on from there", type=Path, metavar="PATH"),
)
def main(chosen: Any) -> None:
    if chosen.keep:
        Path(chosen.keep).write_bytes(make_file(chosen.seed)[1])
    started, told = time.monotonic(), 0

    def tell(done: int, outcome: Outcome) -> None:
        nonlocal told
        for seed, what in outcome.found[told:]:
            print(f"seed {seed}: {what}", flush=True)
        told = len(outcome.found)
        if outcome.counts["files"] % (40 * _SHARD) == 0:
            print(f"{time.monotonic() - started:.0f} s: {dict(outcome.counts)}", flush=True)

    seeds = range(chosen.seed, chosen.seed + chosen.files)
    outcome = attack(seeds, tell) if chosen.progress is None else attack_on(seeds, chosen.progress, tell)
    tell(chosen.files, outcome)
    print(f"{dict(outcome.counts)}, {len(outcome.found)} violations")
    raise SystemExit(bool(outcome.found))
