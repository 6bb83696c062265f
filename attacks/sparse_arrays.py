"""Pass hostile sparse arrays to the public functions.

    python -m attacks.sparse_arrays --trials 100000

A trial draws a public name, a small matrix for one of the arguments that take tables, and a form of the
matrix.  Equivalent forms, such as read-only, misaligned or byte-swapped arrays, must return the same result
bit for bit; inconsistent arrays must be refused by a ValueError or TypeError.  Trials run in separate
processes, so that a crash is counted and the next trial continues.
"""

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from benchmarks.frame import command, flag

from attacks import small_fits
from attacks.contract_table import CONTRACTS, Contract, ContractWorld
from attacks.hostile_arrays import DAMAGED, LYING, SOUND, Random
from attacks.trials import Ended, trials
from labelweave import datasets
from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel

_MATRICES, _FEWEST = 3, 2
_PATIENCE = 600.0  # seconds per trial, including compilation
_OUTCOMES = ("same answer", "refused", "no matter", "failed")


# functions that take long or draw at random, and arguments that nothing reads
_LEFT_OUT = ("display.", "report.", "compare", "AutoLabelClassifier", "suggest_queries")
_NOT_READ = {
    ("splits.stratified_train_test_split", "X"),
    ("splits.IterativeStratifiedKFold.split", "X"),
    ("splits.IterativeStratifiedShuffleSplit.split", "X"),
    ("datasets.LabeledData", "X"),  # which keeps the given array
}


class Target(NamedTuple):
    """A function that gets a hostile matrix: the valid matrix, and the call."""

    matrix: Callable[[ContractWorld], Any]
    call: Callable[[ContractWorld, Any], Any]


def _targets() -> Iterator[tuple[str, Target]]:
    """Every public name with each of its arguments that takes a table of numbers."""
    with tempfile.TemporaryDirectory() as folder:
        world = ContractWorld(0, Path(folder))
        for name, contract in CONTRACTS.items():
            if name.startswith(_LEFT_OUT):
                continue
            for argument, values in contract.arguments.items():
                first = values(world)[0]
                is_table = isinstance(first, np.ndarray) and first.ndim == 2 and first.dtype.kind in "fiub"
                is_table = (is_table or sp.issparse(first)) and first.shape[0] > _FEWEST
                if is_table and (name, argument) not in _NOT_READ:
                    yield f"{name}: {argument}", _target(contract, argument)


def _target(contract: Contract, argument: str) -> Target:
    def call(world: ContractWorld, matrix: Any) -> Any:
        given = {name: values(world)[0] for name, values in contract.arguments.items() if name != argument}
        return contract.call(world, **given, **{argument: matrix})

    return Target(lambda world: contract.arguments[argument](world)[0], call)


def _written(writer: Any, n_paths: int = 1) -> Target:
    def call(world: ContractWorld, matrix: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, f"data{number}") for number in range(n_paths)]
            writer(datasets.LabeledData(matrix, world.labels), *paths)
            return paths[0].read_text()

    return Target(lambda world: world.X, call)


def _block(kernel: Any) -> Target:
    plain = lambda world: FeatureMatrix(sp.csr_array(world.X))  # noqa: E731
    return Target(lambda world: world.X, lambda world, X: kernel.block(FeatureMatrix(X), plain(world)))


def _all_targets() -> dict[str, Target]:
    return {
        **dict(_targets()),
        "FeatureMatrix": Target(lambda world: world.X, lambda world, X: FeatureMatrix(X).data),
        "LinearKernel.block": _block(LinearKernel()),
        "RBFKernel.block": _block(RBFKernel(0.5)),
        "write_svmlight": _written(datasets.write_svmlight),
        "write_xmc": _written(datasets.write_xmc),
        "write_mulan": _written(datasets.write_mulan, 2),
    }


TARGETS: dict[str, Target] = _all_targets()


def is_same(one: Any, other: Any) -> bool:
    """Return whether two results are the same to the last bit."""
    return small_fits.digest_of(one) == small_fits.digest_of(other)


def drawn(seed: int) -> tuple[str, str, str, Random]:
    """Draw a target and a kind of fault."""
    random = np.random.default_rng(seed)
    name = str(random.choice(list(TARGETS)))
    kind = str(random.choice(["sound", "damaged", "lying"], p=[0.3, 0.65, 0.05]))
    forms = {"sound": SOUND, "damaged": DAMAGED, "lying": LYING}[kind]
    return name, kind, str(random.choice(list(forms))), random


class Attacker:
    """Run trials, each drawn by its seed, with worlds whose files are in a folder."""

    def __init__(self, folder: str) -> None:
        self.worlds = [ContractWorld(number, Path(folder)) for number in range(_MATRICES)]
        self._answers: dict[tuple[str, int], Any] = {}

    def answer(self, name: str, number: int) -> Any:
        """Return the result for the valid matrix."""
        if (name, number) not in self._answers:
            world, target = self.worlds[number], TARGETS[name]
            self._answers[name, number] = target.call(world, sp.csr_array(target.matrix(world)))
        return self._answers[name, number]

    def trial(self, seed: int) -> tuple[str, str]:
        name, kind, form, random = drawn(seed)
        number = int(random.integers(_MATRICES))
        world, target = self.worlds[number], TARGETS[name]
        due = None
        try:
            due = self.answer(name, number)
        except ValueError:  # such as only dense arguments
            kind = "lying"
        matrix = (SOUND | DAMAGED | LYING)[form](random, sp.csr_array(target.matrix(world)))
        try:
            answer = target.call(world, matrix)
        except (ValueError, TypeError) as error:
            if kind == "sound":
                return "failed", f"refused, {type(error).__name__}: {error}"
            return ("no matter" if kind == "lying" else "refused"), ""
        except Exception as error:
            return "failed", f"{type(error).__name__}: {error}"
        if kind == "damaged":
            return "failed", "accepted"
        if kind == "sound" and not is_same(answer, due):
            return "failed", "another answer"
        return ("no matter" if kind == "lying" else "same answer"), ""


@contextmanager
def _attacker() -> Iterator[Callable[[int], tuple[str, str]]]:
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        yield Attacker(folder).trial


def attack(seeds: range) -> list[str]:
    """Run trials in this process; list what failed."""
    with _attacker() as trial:
        return [_line(seed, what) for seed, (_, what) in zip(seeds, map(trial, seeds), strict=True) if what]


def _line(seed: int, what: str) -> str:
    name, _, form, _ = drawn(seed)
    return f"seed {seed}: {name}, {form}: {what}"


def _run(seeds: range) -> tuple[Counter[str], list[str]]:
    """Count the outcomes of trials, and list what failed."""
    counts: Counter[str] = Counter()
    wrong = []
    for seed, said in trials(_attacker, seeds, _PATIENCE):
        outcome, what = ("crashes or hangs", said) if isinstance(said, Ended) else said
        counts[outcome] += 1
        wrong += [_line(seed, what)] if what else []
    return counts, wrong


@command(trials=100_000, workers=2, seed=flag(0, "of the first trial"))
def main(chosen: Any) -> None:
    everything, size = range(chosen.seed, chosen.seed + chosen.trials), -(-chosen.trials // chosen.workers)
    with ThreadPoolExecutor(chosen.workers) as pool:
        found = list(pool.map(_run, (everything[at : at + size] for at in range(0, chosen.trials, size))))
    counts = sum((own for own, _ in found), Counter())
    wrong = [what for _, own in found for what in own]
    crashes = counts.pop("crashes or hangs", 0)
    shown = {name: counts[name] for name in _OUTCOMES}
    print(f"{chosen.trials} trials of {len(TARGETS)} functions: {crashes} crashes or hangs, {shown}")
    print(*wrong[:200], sep="\n  ")
    raise SystemExit(bool(wrong))
