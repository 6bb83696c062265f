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
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from benchmarks.frame import command, flag

from attacks.contract_table import CONTRACTS, Contract, ContractWorld
from attacks.small_fits import digest_of
from attacks.trials import Ended, trials
from labelweave import datasets
from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel

Random = np.random.Generator
_FAR = (0, 1, 5, 10**6, 2**31 - 1)  # beyond the last index
_PARTS = {
    "csr": ("indptr", "indices", "data"),
    "csc": ("indptr", "indices", "data"),
    "coo": ("coords", "data"),
}


def _converted(random: Random, table: sp.csr_array) -> Any:
    name = str(random.choice(["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]))
    made = table.tobsr((1, 1)) if name == "bsr" else table.asformat(name)
    if random.random() < 0.5:
        return made
    return getattr(sp, f"{name}_matrix")(made)


def _with_parts(random: Random, table: sp.csr_array, change: Callable[[np.ndarray], np.ndarray]) -> Any:
    made = table.asformat(str(random.choice(list(_PARTS)))).copy()
    for name in _PARTS[made.format]:
        part = getattr(made, name)
        changed = tuple(change(one) for one in part) if isinstance(part, tuple) else change(part)
        setattr(made, name, changed)
    return made


def _misaligned(part: np.ndarray) -> np.ndarray:
    raw = np.zeros(part.nbytes + 1, np.uint8)
    moved = raw[1:].view(part.dtype)
    moved[:] = part
    return moved


def _read_only(part: np.ndarray) -> np.ndarray:
    part = part.copy()
    part.flags.writeable = False
    return part


def _unsorted(random: Random, table: sp.csr_array) -> Any:
    """Reverse the entries of every row; maybe mark them as sorted."""
    made = table.copy()
    for first, end in zip(made.indptr[:-1], made.indptr[1:], strict=True):
        made.indices[first:end] = made.indices[first:end][::-1].copy()
        made.data[first:end] = made.data[first:end][::-1].copy()
    if random.random() < 0.5:
        made.has_sorted_indices = made.has_canonical_format = True
    return made


_MOVED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "misaligned": _misaligned,
    "strided": lambda part: np.repeat(part, 2)[::2],
    "read-only": _read_only,
    "64-bit indices": lambda part: part.astype(np.int64) if part.dtype.kind == "i" else part,
    "byte-swapped": lambda part: part.astype(part.dtype.newbyteorder()),
}
SOUND: dict[str, Callable[[Random, sp.csr_array], Any]] = {
    "another format": _converted,
    **{name: partial(_with_parts, change=change) for name, change in _MOVED.items()},
    "unsorted": _unsorted,
}


def _change_index(random: Random, made: Any, values: Sequence[int]) -> None:
    """Replace an index by one of some values; 0 and more are added to the number of rows or columns."""
    value = int(random.choice(values))
    if made.format == "coo":
        axis = int(random.integers(2))
        coords = [part.astype(np.int64) for part in made.coords]
        coords[axis][random.integers(made.nnz)] = value if value < 0 else value + made.shape[axis]
        made.coords = tuple(coords)
        return
    indices, size = made.indices.astype(np.int64), made.shape[made.format == "csr"]
    indices[random.integers(made.nnz)] = value if value < 0 else value + size
    fits = np.abs(indices).max() < 2**31
    made.indices = indices.astype(np.int32) if fits and random.random() < 0.7 else indices


def _cut(random: Random, made: Any) -> None:
    name = str(random.choice(_PARTS[made.format]))
    part = getattr(made, name)
    setattr(made, name, (part[0], part[1][:-1]) if isinstance(part, tuple) else part[:-1])


def _retype(random: Random, made: Any) -> None:
    kinds: list[Callable[[Any], Any]] = [
        lambda part: part.astype(complex), lambda part: part.astype(object), lambda part: part.astype("S4"),
        lambda part: part.astype("M8[s]"), lambda part: part.astype(bool)[None], lambda part: part[None],
    ]  # fmt: skip
    name, kind = str(random.choice(_PARTS[made.format])), kinds[random.integers(len(kinds))]
    part = getattr(made, name)
    setattr(made, name, tuple(map(kind, part)) if isinstance(part, tuple) else kind(part))


def _change_start(random: Random, made: Any) -> None:
    starts = made.indptr.astype(np.int64 if random.random() < 0.3 else np.int32)
    place, end = int(random.integers(1, len(starts) - 1)), int(starts[-1])
    kind = int(random.integers(4))
    if kind == 0:
        starts[place] = end + int(random.choice(_FAR[1:4]))
    elif kind == 1:
        starts[place] = -int(random.choice(_FAR[1:]))
    elif kind == 2:
        starts[0] = int(random.choice(_FAR[1:4]))
    else:
        starts[-1] = end + int(random.choice(_FAR[1:4]))
    made.indptr = starts


def _damaged(change: Callable[..., None], formats: Iterable[str] = _PARTS, **more: Any) -> Any:
    def make(random: Random, table: sp.csr_array) -> Any:
        name = str(random.choice(list(formats)))
        kind = getattr(sp, f"{name}_{random.choice(['array', 'matrix'])}")
        made = kind(table.asformat(name)).copy()
        change(random, made, **more)
        return made

    return make


DAMAGED: dict[str, Callable[[Random, sp.csr_array], Any]] = {
    "index too large": _damaged(_change_index, values=_FAR),
    "index negative": _damaged(_change_index, values=[-1 - far for far in _FAR]),
    "index of 40 bits": _damaged(_change_index, values=[2**40]),
    "row starts": _damaged(_change_start, ("csr", "csc")),
    "part too short": _damaged(_cut),
    "part of another type": _damaged(_retype),
}


def _other_shape(random: Random, made: Any) -> None:
    made._shape = tuple(max(0, size + int(random.choice([-2, -1, 1, 1000]))) for size in made.shape)


LYING: dict[str, Callable[[Random, sp.csr_array], Any]] = {"another shape": _damaged(_other_shape)}
"""Whether these make sense depends on where their entries are; nothing may break."""


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


TARGETS: dict[str, Target] = {
    **dict(_targets()),
    "FeatureMatrix": Target(lambda world: world.X, lambda world, X: FeatureMatrix(X).data),
    "LinearKernel.block": _block(LinearKernel()),
    "RBFKernel.block": _block(RBFKernel(0.5)),
    "write_svmlight": _written(datasets.write_svmlight),
    "write_xmc": _written(datasets.write_xmc),
    "write_mulan": _written(datasets.write_mulan, 2),
}


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
        if kind == "sound" and digest_of(answer) != digest_of(due):
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
