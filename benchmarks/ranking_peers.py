"""Models that rank labels compared with PECOS, Omikuji, napkinXC and LIBLINEAR: time, precision, size.

The case ``wordnet`` is that of ``benchmarks.label_tree``, 10,974 labels, with two threads: trees over labels
and one-vs-rest; peers have the settings of their own papers and tables, see ``benchmarks/peers``; the best on
a held-out tenth of the training rows are run.  One-vs-rest takes long: ``--sampled`` labels are trained,
spread evenly over the order of frequency, and the seconds are multiplied; ``--whole`` trains all of them, for
precision.

bibtex and delicious in Mulan's splits and the bundled debtags, in rows of unit length, with one thread, are
for low-rank models: linear with the squared loss, float32, lambda = 1 (ridge) or 3 (trace norm); the peers
have their defaults.  Nothing was chosen by cross-validation.

Every run is a separate process, and a round runs every program of a case once.  A call shows its
measurements, which replace the records of the same programs; the plot shows all records of wordnet.  CPU
seconds are compared, which do not depend on other work on the machine; wall-clock seconds are stored too.
"""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import frame
from benchmarks.label_tree import load_case, quality, spread_labels
from benchmarks.machine import describe_machine
from benchmarks.peers.exchange import TOP, RankingProblem, pack
from benchmarks.problems import read_tables
from benchmarks.programs import Program, ask, version_of
from labelweave import LabelMatrix
from labelweave.datasets import LabeledData

Programs = dict[str, dict[str, Any]]  # by title: versions, runs, and precision of the labels found

_OWN, _PECOS = "benchmarks.labelweave_ranking", "benchmarks.peers.pecos_xr_linear"
_OMIKUJI, _NAPKIN = "benchmarks.peers.omikuji_trees", "benchmarks.peers.napkinxc_models"
_LIBLINEAR = "benchmarks.peers.liblinear_one_vs_rest"
_TREES = [
    Program("labelweave, default", _OWN, "labelweave", "tree"),
    Program("labelweave, one tree, certified", _OWN, "labelweave", "tree,n_trees=1,prune=certified,tol=0.01"),
    Program(
        "labelweave, three trees, certified", _OWN, "labelweave", "tree,n_trees=3,prune=certified,tol=0.01"
    ),
    Program("labelweave, hinge losses", _OWN, "labelweave", "tree,loss=hinge"),
    Program("Omikuji, Parabel, three trees", _OMIKUJI, "omikuji", "parabel"),
    Program("Omikuji, Parabel, one tree", _OMIKUJI, "omikuji", "parabel,n_trees=1"),
    Program("Omikuji, Bonsai, three trees", _OMIKUJI, "omikuji", "bonsai"),
    Program("Omikuji, balanced, levels collapsed, three trees", _OMIKUJI, "omikuji", "collapsed"),
    Program("PECOS XR-Linear", _PECOS, "libpecos", "tree"),
    Program("PECOS XR-Linear, 64 branches", _PECOS, "libpecos", "tree,nr_splits=64"),
    Program("PECOS XR-Linear, hard negatives", _PECOS, "libpecos", "hard"),
    Program("napkinXC, PLT, squared hinge", _NAPKIN, "napkinxc", "tree,loss=l2,liblinear_c=1"),
    Program(
        "napkinXC, three PLTs, squared hinge", _NAPKIN, "napkinxc", "tree,loss=l2,liblinear_c=1,ensemble=3"
    ),
]
_ONE_VS_REST = [
    Program(
        "labelweave, one-vs-rest, certified",
        _OWN,
        "labelweave",
        "tree,negatives=all,prune=certified,tol=0.01",
    ),
    Program("labelweave, one-vs-rest, default", _OWN, "labelweave", "tree,negatives=all"),
    Program("labelweave, one-vs-rest, certified, hinge", _OWN, "labelweave", "one-vs-rest"),
    Program("PECOS, one-vs-rest, squared hinge", _PECOS, "libpecos", "one-vs-rest"),
    Program("napkinXC, one-vs-rest", _NAPKIN, "napkinxc", "one-vs-rest"),
    Program("LIBLINEAR with DiSMEC's pruning", _LIBLINEAR, "liblinear-official", "1,drop=0.01"),
]


def _low_rank(penalty: str, share: float, strength: float) -> Program:
    kind, rank = penalty.replace("_", " "), "L" if share == 1 else f"{share:g} L"
    title = f"LowRankClassifier, {kind}, rank {rank}, lambda {strength:g}"
    return Program(title, _OWN, "labelweave", f"low-rank,rank={share:g},alpha={strength:g},penalty={penalty}")


_LOW_RANK = [
    _low_rank("ridge", 0.4, 1.0),
    _low_rank("ridge", 1.0, 1.0),
    _low_rank("trace_norm", 0.4, 3.0),
    _low_rank("trace_norm", 1.0, 3.0),
    Program("PECOS XR-Linear", _PECOS, "libpecos", "tree"),
    Program("Omikuji, Parabel", _OMIKUJI, "omikuji", "parabel"),
    Program("LIBLINEAR -s 1", _LIBLINEAR, "liblinear-official", "1"),
    Program("LIBLINEAR -s 0", _LIBLINEAR, "liblinear-official", "0"),
]
_CASES = {"wordnet": [*_TREES, *_ONE_VS_REST]} | dict.fromkeys(("bibtex", "delicious", "debtags"), _LOW_RANK)


def _read(case: str, options: Any) -> tuple[LabeledData, LabeledData]:
    if case == "wordnet":
        return load_case(case, options)
    X, Y, X_test, Y_test = read_tables(case, rows="unit")
    return LabeledData(X, LabelMatrix(Y)), LabeledData(X_test, LabelMatrix(Y_test))


def _measure(case: str, options: Any, results: dict[str, Any]) -> Programs:
    """Run all programs in every round, and write after each run; return the results of each."""
    chosen = [one for one in _CASES[case] if not options.programs or one.title in options.programs]
    versions = {program.title: version_of(program) for program in chosen}
    train, test = _read(case, options)
    threads = 2 if case == "wordnet" else 1
    own = results.setdefault(case, {"programs": {}})
    own |= {"threads": threads, "sampled_labels": options.sampled}
    measured: Programs = {}
    sampled = spread_labels(train, options.sampled).positives
    whole = RankingProblem(train.X, train.Y.positives, test.X, threads)
    some = RankingProblem(train.X, sampled, test.X[:100], threads)
    for program in chosen * options.rounds:
        is_some = program in _ONE_VS_REST and not options.whole
        found = ask(program, **pack(some if is_some else whole))
        share = train.Y.n_labels / sampled.shape[1] if is_some else 1.0
        run, now = _run(found, len(test.Y), share), {"measured": describe_machine()}
        entry = measured.setdefault(program.title, {"version": versions[program.title]})
        entry.setdefault("sampled" if is_some else "runs", []).append(run | now)
        if not is_some:
            entry["quality"] = _quality(found["top"], train, test) | now
        print(program.title, run, entry.get("quality"), flush=True)
        own["programs"][program.title] = own["programs"].get(program.title, {}) | entry
        frame.write_json(options.out, results)
    return measured


def _run(found: dict[str, Any], n_test: int, share: float) -> dict[str, Any]:
    return {
        "fit_cpu_seconds": share * float(found["seconds"][0]),
        "fit_seconds": share * float(found["clock"][0]),
        "rows_a_cpu_second": n_test / float(found["seconds"][1]),
        "rows_a_second": n_test / float(found["clock"][1]),
        "file_bytes": share * int(found["bytes"]),
        "peak_gigabytes": int(found["peak"]) / 1e9,
    }


def _quality(top: Any, train: LabeledData, test: LabeledData) -> dict[str, float]:
    """Compute precisions of best labels, best first; -1 means none."""
    places = np.array(top)
    for row in np.flatnonzero((places < 0).any(axis=1)):
        others = np.setdiff1d(np.arange(TOP * 2), places[row])
        places[row, places[row] < 0] = others[: (places[row] < 0).sum()]
    scores = np.tile(np.arange(TOP, 0, -1.0), (len(places), 1))
    return quality(places, scores, train.Y, test.Y)


def _table(part: str, programs: Programs, record: dict[str, Any] | None) -> str:
    """Write one row per program; lines of a record state their origin."""
    runs = {title: one.get("runs") or one["sampled"] for title, one in programs.items()}
    head = frame.markdown([part, *_PRECISION.values(), *_COSTS, "file", "rows per second"])
    lines = [(line, [run for own in runs.values() for run in own]) for line in head]
    for title, one in programs.items():
        middle = {name: np.median([run.get(name, np.nan) for run in runs[title]]) for name in _RUN}
        found, is_whole = one.get("quality", {}), "runs" in one
        cells = [", ".join(f"{found[f'{kind}_{k}']:.2f}" for k in (1, 3, 5) if f"{kind}_{k}" in found)
                 for kind in _PRECISION]  # fmt: skip
        cells += [f"{middle['fit_cpu_seconds']:,.2f}" + ("" if is_whole else ", of a sample")]
        cells += [
            f"{middle['peak_gigabytes']:.2f} GB".replace("nan GB", ""),
            f"{middle['file_bytes'] / 1e6:.2f} MB" * is_whole,
        ]
        cells += [f"{middle['rows_a_cpu_second']:,.0f}" * is_whole]
        lines.append((f"| {title} | {' | '.join(cells)} |", runs[title]))
    return "\n".join(line + ("" if record is None else frame.mark(record, own)) for line, own in lines)


_PRECISION = {"precision_at": "P@1, 3, 5", "propensity_scored_at": "propensity-scored"}
_COSTS = ("processor's seconds", "memory")
_RUN = ("fit_cpu_seconds", "peak_gigabytes", "file_bytes", "rows_a_cpu_second")  # that tables show


def _draw(programs: dict[str, Any], path: Path) -> None:
    """Draw precision against seconds of each program's last run, and the Pareto front."""
    shown = {name: one for name, one in programs.items() if "quality" in one}
    figure, axes = frame.begin_picture(1, 2, figsize=(12, 6))
    colors = ["tab:red" if title.startswith("labelweave") else "tab:blue" for title in shown]
    for panel, kind in zip(axes, ("precision_at_1", "propensity_scored_at_5"), strict=True):
        points = [(one["runs"][-1]["fit_cpu_seconds"], one["quality"][kind]) for one in shown.values()]
        front, best = [], -np.inf
        for seconds, value in sorted(points):
            if value > best:
                front.append((seconds, value))
                best = value
        panel.step(*zip(*front, strict=True), where="post", color="0.7", zorder=1)
        panel.scatter(*zip(*points, strict=True), c=colors, s=220, edgecolors="white", zorder=2)
        for number, place in enumerate(points, 1):
            panel.annotate(str(number), place, ha="center", va="center", fontsize=9, color="white", zorder=3)
        panel.set(xscale="log", xlabel="seconds of the processor to train", ylabel=_AXES[kind])
        panel.set_xticks([3, 5, 10, 20, 50, 250, 1000], ["3", "5", "10", "20", "50", "250", "1,000"])
        panel.minorticks_off()
        panel.margins(x=0.1, y=0.1)
    names = [
        panel.scatter([], [], c=color, label=f"{number}  {title}")
        for number, (title, color) in enumerate(zip(shown, colors, strict=True), 1)
    ]
    figure.legend(handles=names, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    figure.suptitle("labelweave in red, peers in blue", fontsize=10)
    frame.write_picture(figure, path, dpi=110)


_AXES = {
    "precision_at_1": "precision at 1, %",
    "propensity_scored_at_5": "propensity-scored precision at 5, %",
}


@frame.command(
    cases=frame.several(_CASES),
    programs=frame.flag(help="by title; by default all", nargs="*"),
    rounds=frame.flag(1, "interleaved; the median counts"),
    sampled=frame.flag(128, "labels of one-vs-rest"),
    whole=frame.flag(False, "one-vs-rest of all labels"),
    show_recorded=False,
    dict=frame.flag(Path("/usr/share/wordnet"), "has data.noun"),
    out=frame.RESULTS / "ranking_peers.json",
    picture=frame.IMAGES / "ranking_peers.png",
)
def main(options: Any) -> None:
    results: dict[str, Any] = frame.read_json(options.out)
    for case in results if options.show_recorded else options.cases:
        record = results[case] if options.show_recorded else None
        programs = record["programs"] if record else _measure(case, options, results)
        print(f"\n{_table(case, programs, record)}", flush=True)
    if "wordnet" in results:
        _draw(results["wordnet"]["programs"], options.picture)
