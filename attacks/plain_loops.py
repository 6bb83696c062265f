"""Run every loop as plain Python on short problems, so that coverage.py measures its lines.

    NUMBA_DISABLE_JIT=1 coverage run -m attacks.plain_loops
    NUMBA_CACHE_DIR=.numba-coverage coverage run -m attacks.plain_loops    # compiled, in an empty cache

``make coverage`` does both.  Steps written in LLVM code have equivalents in NumPy here; loops with such steps
are compiled too, so that the lines that write the code are measured.
"""

import importlib
import pkgutil
import sys
import time
import warnings
from typing import Any

import numba
import numpy as np
from numba.core.extending import _Intrinsic

import labelweave
from attacks.bounds import PROBLEMS, WRITTEN, best_labelings, label_graphs
from attacks.world import World
from labelweave.foundation.loops.vector_code import WIDTH


def add_rows(table, indices, values, start, stop, total):
    total += values[start:stop] @ table[indices[start:stop], :WIDTH]


def add_to_rows(table, indices, values, start, stop, change):
    for position in range(start, stop):
        table[indices[position]] += values[position] * change


def prefetch(array, position):
    pass


def sum_columns(table, indices, values, start, stop, sums, column, count, vectors, far, adds):
    stop_column = column + vectors * WIDTH - (WIDTH - count if count else 0)
    found = values[start:stop] @ table[indices[start:stop], column:stop_column]
    sums[column:stop_column] = found + (sums[column:stop_column] if adds else 0)


def entry_dots(left, table, indices, start, stop, dots, far):
    dots[start:stop] = table[indices[start:stop], : len(left)] @ left


def box_step(scores, signs, margins, beta, upper, inverse_norms, change, free, squared):
    gradient = _targets(signs, margins) - scores
    hinge, most = np.maximum(signs * gradient, 0), np.full(WIDTH, np.inf) if squared else upper
    ridge = 0.5 / np.maximum(upper, 1e-12) if squared else 0.0
    step, slope = inverse_norms / (1 + ridge * inverse_norms), gradient - ridge * beta
    lowest, highest = np.where(signs < 0, -most, 0), np.where(signs > 0, most, 0)
    new = np.clip(beta + slope * step, lowest, highest)
    change[:] = new - beta
    free += np.where((new > lowest) & (new < highest), step, 0)
    loss = upper * hinge**2 + ridge / 2 * beta**2 if squared else upper * hinge
    return (change * slope).sum(), (loss - beta * gradient).sum()


def add_entry_sums(scores, signs, margins, beta, upper, sums, squared):
    target = _targets(signs, margins)
    hinge = np.maximum(signs * (target - scores), 0)
    conjugate = beta**2 / (4 * np.maximum(upper, 1e-12)) if squared else 0.0
    loss = upper * (hinge**2 if squared else hinge)
    sums += np.array([loss, beta * target - conjugate, beta * scores])


def _targets(signs, margins):
    return np.where(signs > 0, margins[0], np.where(signs < 0, -margins[1], 0))


_TWINS: dict[str, Any] = {
    "add_rows": add_rows, "add_to_rows": add_to_rows, "prefetch": prefetch, "sum_columns": sum_columns,
    "entry_dots": entry_dots, "box_step": box_step, "add_entry_sums": add_entry_sums, "_larger": max,
}  # fmt: skip


def _name_fields() -> None:
    """Make fields of structured arrays readable as attributes, as in compiled code."""
    for module in pkgutil.walk_packages(labelweave.__path__, "labelweave."):
        importlib.import_module(module.name)
    for name in [name for name in sys.modules if name.startswith("labelweave")]:
        for key, value in list(vars(sys.modules[name]).items()):
            if isinstance(value, np.dtype) and value.names:
                setattr(sys.modules[name], key, np.dtype((np.record, value)))


_SMALLER: dict[Any, dict[str, int]] = {label_graphs: {"n_labels": 5}, best_labelings: {"n_rows": 1}}


def main() -> None:
    warnings.simplefilter("ignore")
    is_plain = bool(numba.config.DISABLE_JIT)
    if is_plain:
        _Intrinsic.__call__ = lambda self, *arguments: _TWINS[self._name](*arguments)
        _name_fields()
    elif not numba.config.CACHE_DIR:
        raise SystemExit(
            "Set NUMBA_DISABLE_JIT=1, or NUMBA_CACHE_DIR to an empty folder, as make coverage does."
        )
    for problem in PROBLEMS if is_plain else WRITTEN:
        begin = time.perf_counter()
        problem(World(0), **_SMALLER.get(problem, {}))
        print(f"{problem.__name__}: {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
