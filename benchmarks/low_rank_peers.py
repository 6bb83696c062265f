"""Low-rank models compared with XR-Linear, Parabel and one-vs-rest machines: training time, precision, size.

bibtex and delicious in Mulan's splits and the bundled debtags, in rows of unit length.  The low-rank models
are linear with the squared loss, float32, lambda = 1 (ridge) or 3 (trace norm); the peers have their
defaults.  Nothing was chosen by cross-validation.

Every run is a separate process with one thread.  The rounds are interleaved, and the median of the CPU
seconds counts, which other work on the machine changes little.  Sizes are those of the stored models.  Sets
that are not requested keep their results.
"""

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, command, markdown, read_json, several, write_json
from benchmarks.machine import describe_machine
from benchmarks.peers.exchange import RankingProblem, write_ranking
from benchmarks.problems import read_tables
from benchmarks.programs import Program, ranking, run_ranking, version_of

_SETS = ("bibtex", "delicious", "debtags")
_PLACES = (1, 3, 5)


def _own(penalty: str, share: float, strength: float) -> Program:
    kind, rank = penalty.replace("_", " "), "L" if share == 1 else f"{share:g} L"
    title = f"LowRankClassifier, {kind}, rank {rank}, lambda {strength:g}"
    variant = f"low-rank,rank={share:g},alpha={strength:g},penalty={penalty}"
    return ranking(title, "benchmarks.labelweave_ranking", variant)


_PROGRAMS = [
    _own("ridge", 0.4, 1.0),
    _own("ridge", 1.0, 1.0),
    _own("trace_norm", 0.4, 3.0),
    _own("trace_norm", 1.0, 3.0),
    ranking("PECOS XR-Linear", "benchmarks.peers.pecos_xr_linear", "tree", "libpecos"),
    ranking("Omikuji, Parabel", "benchmarks.peers.omikuji_trees", "parabel", "omikuji"),
    ranking("LIBLINEAR -s 1", "benchmarks.peers.liblinear_one_vs_rest", "1", "liblinear-official"),
    ranking("LIBLINEAR -s 0", "benchmarks.peers.liblinear_one_vs_rest", "0", "liblinear-official"),
]


def _measure(name: str, repeats: int) -> dict[str, Any]:
    X, Y, X_test, Y_test = read_tables(name, rows="unit")
    runs: dict[str, list[dict[str, Any]]] = {program.title: [] for program in _PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "problem.npz"
        write_ranking(problem, RankingProblem(X, Y, X_test))
        for _ in range(repeats):
            for program in _PROGRAMS:
                runs[program.title].append(_run(program, problem, Path(folder) / "answer.npz", Y_test))
    programs = {
        title: {
            **own[0],
            "seconds": median(run["seconds"] for run in own),
            "all": [run["seconds"] for run in own],
        }
        for title, own in runs.items()
    }
    sizes = {"rows": X.shape[0], "features": X.shape[1], "labels": Y.shape[1], "test_rows": X_test.shape[0]}
    return sizes | {"repeats": repeats, "programs": programs}


def _run(program: Program, problem: Path, answer: Path, Y_test: Any) -> dict[str, Any]:
    found = run_ranking(program, problem, answer)
    top, (seconds, predicting) = found["top"], found["seconds"]
    hits = Y_test.toarray()[np.arange(len(top))[:, None], top].astype(bool) & (top >= 0)
    precision = {f"P@{place}": float(hits[:, :place].mean()) for place in _PLACES}
    return {"seconds": seconds, "seconds_to_predict": predicting, "bytes": found["bytes"], **precision}


def _table(name: str, found: dict[str, Any]) -> str:
    sizes = "{rows} rows, {features} features, {labels} labels, {test_rows} test rows".format(**found)
    rows = []
    for title, one in found["programs"].items():
        places = (f"{100 * one[f'P@{place}']:.2f}" for place in _PLACES)
        rows.append([title, f"{one['seconds']:.2f}", *places, f"{one['bytes'] / 1e6:.2f}"])
    table = markdown(["program", "training, s", "P@1", "P@3", "P@5", "MB"], rows)
    return "\n".join([f"\n{name}: {sizes}\n", *table])


@command(sets=several(_SETS), repeats=3, out=RESULTS / "low_rank_peers.json")
def main(arguments: Any) -> None:
    results: dict[str, Any] = read_json(arguments.out)
    results |= {"threads": 1, "sets": results.get("sets", {})}
    versions = {program.package: version_of(program) for program in _PROGRAMS}
    for name in arguments.sets:
        found = _measure(name, arguments.repeats)
        results["sets"][name] = found | {"versions": versions, "measured": describe_machine()}
        print(_table(name, found), flush=True)
    write_json(arguments.out, results)
