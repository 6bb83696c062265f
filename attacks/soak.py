"""Fit, save, load and predict thousands of times in one process, whose memory must not keep growing.

    python -m attacks.soak --fits 10000    # memory may grow by 5 %

Models of all kinds are fitted to a few rows, in turn, written to a file, and read with and without checking
the checksum; loaded models must compute scores with the same bits.  The memory of the process after a tenth
of the fits is compared with that at the end.  Open files and threads are counted too.
"""

import gc
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.frame import command, flag
from sklearn.base import clone

import labelweave
from attacks.small_fits import KINDS, data_of, fitted, scores_of

_QUICK = [
    "margins, coordinates", "margins, coupled", "margins, rbf", "margins, rbf blocks", "margins, rbf pairs",
    "logistic, fixed", "low rank", "ridge of labels", "LIBLINEAR of labels", "conformal",
]  # fmt: skip
_SLOW = [name for name in KINDS if name not in _QUICK]
_RARELY = 5  # times the fast ones run between two slow ones
_MOST_GROWTH = 1.05


class Held(NamedTuple):
    """The resources of a process: bytes of memory, open files, threads."""

    memory: int
    files: int
    threads: int


def held() -> Held:
    """Count the resources of this process, as Linux reports them."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Held(
        pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd")), threading.active_count()
    )


def _names(n_fits: int) -> Iterator[str]:
    for number in range(n_fits):
        turn, place = divmod(number, len(_QUICK))
        is_slow = place == 0 and turn % _RARELY == 0
        yield _SLOW[turn // _RARELY % len(_SLOW)] if is_slow else _QUICK[place]


def _fit_and_load(name: str, folder: Path) -> None:
    X, Y = data_of(name, n=50)
    model = fitted(clone(KINDS[name]), X, Y)
    path = folder / "model.lw"
    model.save(path)
    for verify in (False, True):
        loaded = labelweave.load(path, verify=verify)
        np.testing.assert_array_equal(scores_of(loaded, X), scores_of(model, X), err_msg=name)


def run(n_fits: int) -> tuple[Held, Held]:
    """Fit and load; return the resources after a tenth of the fits, and at the end.

    Every kind runs once before, since compiled code stays in memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name in KINDS:
            _fit_and_load(name, Path(folder))
        for number, name in enumerate(_names(n_fits)):
            _fit_and_load(name, Path(folder))
            if number == n_fits // 10:
                before = held()
        return before, held()


def grown(before: Held, after: Held) -> list[str]:
    found = []
    for name, old, new in zip(("open files", "threads"), before[1:], after[1:], strict=True):
        if new > old:
            found.append(f"{name} grew from {old} to {new}")
    if after.memory > _MOST_GROWTH * before.memory:
        found.append(f"memory grew by {after.memory / before.memory - 1:.1%}")
    return found


@command(fits=flag(10_000, "each with two loads"))
def main(chosen: Any) -> None:
    before, after = run(chosen.fits)
    wrong = grown(before, after)
    print(
        f"{chosen.fits} fits and {2 * chosen.fits} loads: {before.memory / 1e6:.1f} MB after a tenth, "
        f"{after.memory / 1e6:.1f} MB at the end ({after.memory / before.memory - 1:+.1%}), "
        f"{after.files} open files, {after.threads} threads",
        *wrong, sep="\n  ",
    )  # fmt: skip
    raise SystemExit(bool(wrong))
