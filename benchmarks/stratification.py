"""Stratified folds compared with the package iterative-stratification and random folds: time and deviations.

FD is the mean difference between a label's frequency in a fold and in all rows, in thousandths; FLZ are pairs
of a fold and a label without positives there (Sechidis, Tsoumakas and Vlahavas 2011), over the folds of
several seeds.  Times are CPU seconds for one set of folds after compilation, with one thread, of a dense
table of labels.
"""

import time
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold

from benchmarks.frame import RESULTS, command, markdown, read_json, several, write_json
from benchmarks.machine import describe_machine
from benchmarks.problems import read_parts, stacked
from benchmarks.programs import Program, ask, version_of
from labelweave.datasets import make_text_like
from labelweave.splits import IterativeStratifiedKFold

_SETS = ("bibtex", "debtags", "yeast", "tmc2007", "synthetic")
_PEER = Program("iterative-stratification", "benchmarks.peers.stratified_folds", "iterative-stratification")

Folds = tuple[Any, list[float]]  # of every seed and row; seconds of every seed


def _read(name: str) -> sp.csr_array:
    if name == "synthetic":
        return make_text_like(100_000, 200, 100, random_state=0).Y.positives
    return stacked(read_parts(name))[1].positives


def _measure(Y: sp.csr_array, n_folds: int, seeds: int) -> dict[str, Any]:
    ways: dict[str, Folds] = {}
    for order in (1, 2):
        own = [
            IterativeStratifiedKFold(n_folds, shuffle=True, random_state=seed, order=order)
            for seed in range(seeds)
        ]
        list(own[0].split(np.zeros((20, 1)), np.eye(20, dtype=np.int8)))  # compiles
        ways[f"labelweave, order {order}"] = _timed(own, Y.toarray())
    ways["iterative-stratification"] = _of_peer(Y, n_folds, seeds)
    plain = [KFold(n_folds, shuffle=True, random_state=seed) for seed in range(seeds)]
    ways["random folds"] = _timed(plain, np.zeros((Y.shape[0], 1)))
    found = {}
    for title, (folds, seconds) in ways.items():
        deviations = [_deviations(Y, one, n_folds) for one in folds]
        means = {name: float(np.mean([one[name] for one in deviations])) for name in deviations[0]}
        found[title] = means | {"seconds": median(seconds), "all": seconds}
    return found


def _timed(splitters: list[Any], Y: Any) -> Folds:
    folds, seconds = np.empty((len(splitters), len(Y)), np.int16), []
    for own, splitter in zip(folds, splitters, strict=True):
        start = time.process_time()
        for fold, (_, test) in enumerate(splitter.split(np.zeros((len(Y), 1)), Y)):
            own[test] = fold
        seconds.append(time.process_time() - start)
    return folds, seconds


def _of_peer(Y: sp.csr_array, n_folds: int, seeds: int) -> Folds:
    found = ask(_PEER, labels=Y.toarray(), folds=n_folds, seeds=seeds)
    return found["folds"], found["seconds"].tolist()


def _deviations(Y: sp.csr_array, folds: Any, n_folds: int) -> dict[str, float]:
    marks = sp.csr_array((np.ones(len(folds)), (folds, np.arange(len(folds)))), shape=(n_folds, len(folds)))
    positives = (marks @ Y.astype(float)).toarray()
    sizes = np.bincount(folds, minlength=n_folds)
    away = positives / sizes[:, None] - positives.sum(axis=0) / len(folds)
    return {"FD": float(np.abs(away).mean()), "FLZ": int((positives == 0).sum())}


@command(sets=several(_SETS), folds=[5, 10], seeds=5, out=RESULTS / "stratification.json")
def main(arguments: Any) -> None:
    results: dict[str, Any] = read_json(arguments.out)
    results |= {"threads": 1, "sets": results.get("sets", {})}
    for name in arguments.sets:
        Y = _read(name)
        found = {str(folds): _measure(Y, folds, arguments.seeds) for folds in arguments.folds}
        sizes = {"rows": Y.shape[0], "labels": Y.shape[1], "peer": version_of(_PEER)}
        results["sets"][name] = found | sizes | {"measured": describe_machine()}
        for folds, ways in found.items():
            rows = [
                [title, f"{one['seconds']:.3f}", f"{1e3 * one['FD']:.3f}", f"{one['FLZ']:.1f}"]
                for title, one in ways.items()
            ]
            print(f"\n{name}, {folds} folds, {Y.shape[0]} rows, {Y.shape[1]} labels\n")
            print(*markdown(["folds by", "seconds", "FD, 1e-3", "FLZ"], rows), sep="\n", flush=True)
    write_json(arguments.out, results)
