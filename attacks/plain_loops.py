"""Run every loop as plain Python on short problems, so that coverage.py sees its lines.

    NUMBA_DISABLE_JIT=1 coverage run -m attacks.plain_loops
    NUMBA_CACHE_DIR=.numba-coverage coverage run -m attacks.plain_loops    # compiled, in an empty cache

``make coverage`` does both.  Steps that are written in LLVM code have twins here, in NumPy; loops with such
steps are compiled too, so that the lines that write the code are seen.
"""

from __future__ import annotations

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
from attacks.sparse_arrays import World
from labelweave._loops.vector_code import WIDTH


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


def box_step(scores, signs, margins, beta, upper, inverse_norms, change, free):
    gradient = _targets(signs, margins) - scores
    lowest, highest = np.minimum(upper * signs, 0), np.maximum(upper * signs, 0)
    new = np.clip(beta + gradient * inverse_norms, lowest, highest)
    change[:] = new - beta
    free += np.where((new > lowest) & (new < highest), inverse_norms, 0)
    gap = (upper * np.maximum(signs * gradient, 0) - beta * gradient).sum()
    return (change * gradient).sum(), gap


def add_entry_sums(scores, signs, margins, beta, upper, sums):
    target = _targets(signs, margins)
    sums += np.array([upper * np.maximum(signs * (target - scores), 0), beta * target, beta * scores])


def _targets(signs, margins):
    return np.where(signs > 0, margins[0], np.where(signs < 0, -margins[1], 0))


_TWINS: dict[str, Any] = {
    "add_rows": add_rows, "add_to_rows": add_to_rows, "prefetch": prefetch, "sum_columns": sum_columns,
    "entry_dots": entry_dots, "box_step": box_step, "add_entry_sums": add_entry_sums, "_larger": max,
}  # fmt: skip


def _name_fields() -> None:
    """Let fields of structured arrays be read as attributes, as compiled code reads them."""
    for module in pkgutil.walk_packages(labelweave.__path__, "labelweave."):
        importlib.import_module(module.name)
    for name in [name for name in sys.modules if name.startswith("labelweave")]:
        for key, value in list(vars(sys.modules[name]).items()):
            if isinstance(value, np.dtype) and value.names:
                setattr(sys.modules[name], key, np.dtype((np.record, value)))


_SMALLER: dict[Any, dict[str, int]] = {label_graphs: {"n_labels": 5}, best_labelings: {"n_rows": 1}}


def main() -> None:
    """Run all."""
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
