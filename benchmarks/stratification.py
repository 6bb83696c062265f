"""Stratified folds beside the package iterative-stratification and random folds: time and deviations.

The measures are those of Sechidis, Tsoumakas and Vlahavas (2011), section 4, over the folds of several seeds:

LD   mean difference between the positives per negative of a label in a fold and in all rows
ED   mean difference between the size of a fold and the size wanted
FZ   folds that lack all positives of some label
FLZ  pairs of a fold and a label without positives there

FD is the mean difference between a label's frequency in a fold and in all rows, and LDP is LD over the
pairs of labels that some row has both of.  Times are processor seconds for one set of folds after
compilation, with one thread; both read the same dense table of labels, and ``sparse`` is the time with
a sparse one.

Example: ``python -m benchmarks.stratification --seeds 5``.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from benchmarks.frame import RESULTS, flag, read_json, read_options, several, write_json
from benchmarks.machine import describe_machine
from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA, read_parts

Array = npt.NDArray[Any]
Folds = tuple[Array, list[float]]  # of every seed and row; seconds of every seed

_ROOT = Path(__file__).resolve().parents[1]
_PEERS_PYTHON = _ROOT / ".venv-peers" / "bin" / "python"
_SETS = ("bibtex", "debtags", "yeast", "tmc2007", "synthetic")


@needs_data
def main() -> None:
    arguments = read_options(
        __doc__,
        sets=several(_SETS),
        folds=[5, 10],
        seeds=5,
        data=flag(DEFAULT_DATA, "the folder that has mulan/"),
        out=RESULTS / "stratification.json",
    )
    results: dict[str, Any] = read_json(arguments.out)
    results |= {"threads": 1, "sets": results.get("sets", {})}
    peer = _peer_version()
    for name in arguments.sets:
        Y = _read(name, arguments.data)
        results["sets"][name] = {
            str(folds): _measure(Y, folds, arguments.seeds) for folds in arguments.folds
        } | {"rows": Y.shape[0], "labels": Y.shape[1], "labels_a_row": Y.nnz / Y.shape[0]}
        results["sets"][name] |= {"peer": peer, "measured": describe_machine()}
        for folds in arguments.folds:
            print(_table(name, folds, results["sets"][name]), flush=True)
    write_json(arguments.out, results)


def _read(name: str, data: Path) -> sp.csr_array:
    """Read the labels of all rows, training and test rows stacked."""
    from labelweave.datasets import load_debtags, make_text_like

    if name == "synthetic":
        return make_text_like(100_000, 200, 100, random_state=0).Y.positives
    if name == "debtags":
        _, Y, _, Y_test = load_debtags(return_X_y=True)
        return sp.csr_array(sp.vstack([Y, Y_test]))
    return sp.csr_array(sp.vstack([part.Y.positives for part in read_parts(name, data)]))


def _measure(Y: sp.csr_array, n_folds: int, seeds: int) -> dict[str, Any]:
    pairs = _pairs(Y)
    found = {}
    for title, (folds, seconds) in _runs(Y, n_folds, seeds):
        measures = [_deviations(Y, pairs, one, n_folds) for one in folds]
        means = {name: float(np.mean([one[name] for one in measures])) for name in measures[0]}
        found[title] = means | {"seconds": median(seconds), "all": seconds}
    Y_dense = Y.toarray()
    for order in (1, 2):
        found[f"labelweave, order {order}"]["seconds_sparse"] = found[f"labelweave, order {order}"]["seconds"]
        found[f"labelweave, order {order}"]["seconds"] = median(_own(Y_dense, n_folds, seeds, order)[1])
    return found


def _runs(Y: sp.csr_array, n_folds: int, seeds: int) -> Iterable[tuple[str, Folds]]:
    for order in (1, 2):
        yield f"labelweave, order {order}", _own(Y, n_folds, seeds, order)
    yield "iterative-stratification", _peer(Y, n_folds, seeds)
    yield "random folds", _random(Y.shape[0], n_folds, seeds)


def _own(Y: Any, n_folds: int, seeds: int, order: int) -> Folds:
    from labelweave.splits import IterativeStratifiedKFold

    splitters = [
        IterativeStratifiedKFold(n_folds, shuffle=True, random_state=seed, order=order)
        for seed in range(seeds)
    ]
    list(splitters[0].split(np.zeros((20, 1)), np.eye(20, dtype=np.int8)))  # compiles
    return _timed(splitters, Y)


def _random(n_rows: int, n_folds: int, seeds: int) -> Folds:
    from sklearn.model_selection import KFold

    splitters = [KFold(n_folds, shuffle=True, random_state=seed) for seed in range(seeds)]
    return _timed(splitters, np.zeros((n_rows, 1)))


def _timed(splitters: list[Any], Y: Any) -> Folds:
    folds, seconds = np.empty((len(splitters), Y.shape[0]), np.int16), []
    X = np.zeros((Y.shape[0], 1))
    for own, splitter in zip(folds, splitters, strict=True):
        start = time.process_time()
        for fold, (_, test) in enumerate(splitter.split(X, Y)):
            own[test] = fold
        seconds.append(time.process_time() - start)
    return folds, seconds


def _peer(Y: sp.csr_array, n_folds: int, seeds: int) -> Folds:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    with tempfile.TemporaryDirectory() as folder:
        labels, answer = Path(folder) / "labels.npz", Path(folder) / "answer.npz"
        sp.save_npz(labels, sp.csr_matrix(Y))
        command = [_PEERS_PYTHON, "-m", "benchmarks.peers.stratified_folds", labels, answer]
        command += ["--folds", str(n_folds), "--seeds", str(seeds)]
        subprocess.run(command, check=True, cwd=_ROOT, env={**os.environ, **dict.fromkeys(names, "1")})
        with np.load(answer) as stored:
            return stored["folds"], stored["seconds"].tolist()


def _peer_version() -> str:
    if not _PEERS_PYTHON.exists():
        raise FileNotFoundError(
            "The package iterative-stratification needs the environment .venv-peers, which is absent; "
            "make it with `python benchmarks/peers/make_environment.py`."
        )
    code = "import importlib.metadata as m; print(m.version('iterative-stratification'))"
    asked = subprocess.run([_PEERS_PYTHON, "-c", code], check=True, capture_output=True, text=True)
    return asked.stdout.strip()


def _pairs(Y: sp.csr_array) -> sp.csr_array:
    """Mark the pairs of labels of every row."""
    rows, pairs = [], []
    for row in range(Y.shape[0]):
        own = Y.indices[Y.indptr[row] : Y.indptr[row + 1]].astype(np.int64)
        first, second = np.triu_indices(len(own), 1)
        pairs.append(own[first] * Y.shape[1] + own[second])
        rows.append(np.full(len(first), row))
    _, columns = np.unique(np.concatenate(pairs), return_inverse=True)
    shape = (Y.shape[0], int(columns.max()) + 1)
    return sp.csr_array((np.ones(len(columns)), (np.concatenate(rows), columns)), shape=shape)


def _deviations(Y: sp.csr_array, pairs: sp.csr_array, folds: Array, n_folds: int) -> dict[str, float]:
    marks = sp.csr_array((np.ones(len(folds)), (folds, np.arange(len(folds)))), shape=(n_folds, len(folds)))
    sizes = np.bincount(folds, minlength=n_folds)
    positives = (marks @ Y.astype(float)).toarray()
    frequencies = positives / sizes[:, None] - positives.sum(axis=0) / len(folds)
    lacks = positives == 0
    return {
        "LD": _distribution(positives, sizes),
        "LDP": _distribution((marks @ pairs).toarray(), sizes),
        "FD": float(np.abs(frequencies).mean()),
        "ED": float(np.abs(sizes - len(folds) / n_folds).mean()),
        "FZ": int(lacks.any(axis=1).sum()),
        "FLZ": int(lacks.sum()),
    }


def _distribution(positives: Array, sizes: Array) -> float:
    """Average the deviation of positives per negative, over labels of which every fold has a negative."""
    total = positives.sum(axis=0)
    usable = (positives < sizes[:, None]).all(axis=0)
    ratios = positives[:, usable] / (sizes[:, None] - positives[:, usable])
    return float(np.abs(ratios - total[usable] / (sizes.sum() - total[usable])).mean())


def _table(name: str, folds: int, found: dict[str, Any]) -> str:
    sizes = "{rows} rows, {labels} labels, {labels_a_row:.1f} a row".format(**found)
    lines = [
        f"\n{name}, {folds} folds: {sizes}\n",
        "| folds by | seconds | sparse | LD, 1e-3 | LDP, 1e-3 | FD, 1e-3 | ED | FZ | FLZ |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for title, one in found[str(folds)].items():
        sparse = f"{one['seconds_sparse']:.3f}" if "seconds_sparse" in one else ""
        values = " | ".join(f"{1e3 * one[measure]:.3f}" for measure in ("LD", "LDP", "FD"))
        counts = " | ".join(f"{one[measure]:.1f}" for measure in ("ED", "FZ", "FLZ"))
        lines.append(f"| {title} | {one['seconds']:.3f} | {sparse} | {values} | {counts} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
