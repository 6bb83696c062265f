"""Trees over labels and one-vs-rest compared with PECOS, Omikuji, napkinXC and LIBLINEAR, on WordNet's nouns.

The case is ``wordnet`` of ``benchmarks.label_tree``: 10,974 labels.  Every run is a separate process with two
threads, and a round runs every program once.  Peers have the settings of their own papers and tables, see
``benchmarks/peers``; the best on a held-out tenth of the training rows are run.  A call shows its
measurements, which replace the records of the same programs; the plot shows all records.  CPU seconds are
compared, which do not depend on other work on the machine; wall-clock seconds are stored too.

One-vs-rest peers take long: in every round they train ``--sampled`` labels, spread evenly over the order of
frequency, and the seconds are multiplied; ``--whole`` trains all of them, for precision.
"""

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import frame
from benchmarks.label_tree import load_case, quality, spread_labels
from benchmarks.machine import describe_machine
from benchmarks.peers.exchange import TOP, RankingProblem, write_ranking
from benchmarks.programs import Program, ranking, run_ranking, version_of
from labelweave.datasets import LabeledData

Programs = dict[str, dict[str, Any]]  # by title: versions, runs, and precision of the labels found

_OWN, _PECOS = "benchmarks.labelweave_ranking", "benchmarks.peers.pecos_xr_linear"
_OMIKUJI, _NAPKIN = "benchmarks.peers.omikuji_trees", "benchmarks.peers.napkinxc_models"
_LIBLINEAR = "benchmarks.peers.liblinear_one_vs_rest"
_TREES = [
    ranking("labelweave, default", _OWN, "tree"),
    ranking("labelweave, tree", _OWN, "tree,n_trees=1,prune=certified,tol=0.01"),
    ranking("labelweave, three trees", _OWN, "tree,n_trees=3,prune=certified,tol=0.01"),
    ranking("labelweave, three trees, hinge", _OWN, "tree,loss=hinge"),
    ranking("Omikuji, Parabel", _OMIKUJI, "parabel", "omikuji"),
    ranking("Omikuji, Parabel, one tree", _OMIKUJI, "parabel,n_trees=1", "omikuji"),
    ranking("Omikuji, Bonsai", _OMIKUJI, "bonsai", "omikuji"),
    ranking("Omikuji, collapsed levels", _OMIKUJI, "collapsed", "omikuji"),
    ranking("PECOS XR-Linear", _PECOS, "tree", "libpecos"),
    ranking("PECOS XR-Linear, 64 branches", _PECOS, "tree,nr_splits=64", "libpecos"),
    ranking("PECOS XR-Linear, hard negatives", _PECOS, "hard", "libpecos"),
    ranking("napkinXC, PLT", _NAPKIN, "tree,loss=l2,liblinear_c=1", "napkinxc"),
    ranking("napkinXC, three PLTs", _NAPKIN, "tree,loss=l2,liblinear_c=1,ensemble=3", "napkinxc"),
]
_ONE_VS_REST = [
    ranking("labelweave, one-vs-rest", _OWN, "tree,negatives=all,prune=certified,tol=0.01"),
    ranking("labelweave, one-vs-rest, loose", _OWN, "tree,negatives=all"),
    ranking("labelweave, one-vs-rest, hinge", _OWN, "one-vs-rest"),
    ranking("PECOS, one-vs-rest", _PECOS, "one-vs-rest", "libpecos"),
    ranking("napkinXC, one-vs-rest", _NAPKIN, "one-vs-rest", "napkinxc"),
    ranking("LIBLINEAR with DiSMEC's pruning", _LIBLINEAR, "1,drop=0.01", "liblinear-official"),
]


def _measure(options: Any, train: LabeledData, test: LabeledData, results: dict[str, Any]) -> Programs:
    """Run all programs in every round, and write after each run; return the results of each."""
    own = results.setdefault("test", {"programs": {}})
    own |= {"threads": _JOBS, "sampled_labels": options.sampled}
    measured: Programs = {}
    sampled = spread_labels(train, options.sampled).positives
    with tempfile.TemporaryDirectory() as folder:
        whole, some, answer = (Path(folder) / f"{name}.npz" for name in ("whole", "some", "answer"))
        write_ranking(whole, RankingProblem(train.X, train.Y.positives, test.X, _JOBS))
        write_ranking(some, RankingProblem(train.X, sampled, test.X[:100], _JOBS))
        for _ in range(options.rounds):
            for program in _chosen(options):
                is_some = program in _ONE_VS_REST and not options.whole
                found = run_ranking(program, some if is_some else whole, answer, _JOBS)
                share = train.Y.n_labels / sampled.shape[1] if is_some else 1.0
                run, now = _run(found, len(test.Y), share), {"measured": describe_machine()}
                entry = measured.setdefault(program.title, {"version": version_of(program)})
                entry.setdefault("sampled" if is_some else "runs", []).append(run | now)
                if not is_some:
                    entry["quality"] = _quality(found["top"], train, test) | now
                print(program.title, run, entry.get("quality"), flush=True)
                own["programs"][program.title] = own["programs"].get(program.title, {}) | entry
                frame.write_json(options.out, results)
    return measured


def _chosen(options: Any) -> list[Program]:
    usual = [*_TREES, *_ONE_VS_REST]
    return [program for program in usual if not options.programs or program.title in options.programs]


def _run(found: dict[str, Any], n_test: int, share: float) -> dict[str, Any]:
    return {
        "fit_cpu_seconds": share * found["seconds"][0],
        "fit_seconds": share * found["clock"][0],
        "rows_a_cpu_second": n_test / found["seconds"][1],
        "rows_a_second": n_test / found["clock"][1],
        "file_bytes": share * found["bytes"],
        "peak_gigabytes": found["peak"] / 1e9,
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
    every = [run for own in runs.values() for run in own]
    lines = [
        (f"{part} rows", every),
        ("| | P@1, 3, 5 | propensity-scored | processor's seconds | memory | file | rows a second |", every),
        ("|---|---|---|---|---|---|---|", every),
    ]
    for title, one in programs.items():
        middle = {name: median(run[name] for run in runs[title]) for name in _RUN}
        kinds = ("precision_at", "propensity_scored_at")
        found = one.get("quality")
        cells = [
            ", ".join(f"{found[f'{kind}_{k}']:.2f}" for k in (1, 3, 5)) if found else "" for kind in kinds
        ]
        seconds = f"{middle['fit_cpu_seconds']:,.0f}" + ("" if "runs" in one else ", of a sample")
        cells += [seconds, f"{middle['peak_gigabytes']:.2f} GB"]
        whole = f"{middle['file_bytes'] / 1e6:.1f} MB | {middle['rows_a_cpu_second']:,.0f}"
        row = f"| {title} | {' | '.join(cells)} | {whole if 'runs' in one else ' | '} |"
        lines.append((row, runs[title]))
    return "\n".join(line + ("" if record is None else frame.mark(record, own)) for line, own in lines)


_JOBS = 2
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
        panel.scatter([], [], c=color, label=f"{number}  {_NAMES.get(title, title)}")
        for number, (title, color) in enumerate(zip(shown, colors, strict=True), 1)
    ]
    figure.legend(handles=names, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    figure.suptitle("labelweave in red, peers in blue", fontsize=10)
    frame.write_picture(figure, path, dpi=110)


_NAMES = {  # as the tables of the documentation have them
    "labelweave, default": "labelweave, default",
    "labelweave, tree": "labelweave, one tree, certified",
    "labelweave, three trees": "labelweave, three trees, certified",
    "labelweave, three trees, hinge": "labelweave, hinge losses",
    "labelweave, one-vs-rest": "labelweave, one-vs-rest, certified",
    "labelweave, one-vs-rest, loose": "labelweave, one-vs-rest, default",
    "labelweave, one-vs-rest, hinge": "labelweave, one-vs-rest, certified, hinge",
    "Omikuji, Parabel": "Omikuji, Parabel, three trees",
    "Omikuji, Bonsai": "Omikuji, Bonsai, three trees",
    "Omikuji, collapsed levels": "Omikuji, balanced, levels collapsed, three trees",
    "PECOS, one-vs-rest": "PECOS, one-vs-rest, squared hinge",
    "napkinXC, PLT": "napkinXC, PLT, squared hinge",
    "napkinXC, three PLTs": "napkinXC, three PLTs, squared hinge",
}
_AXES = {
    "precision_at_1": "precision at 1, %",
    "propensity_scored_at_5": "propensity-scored precision at 5, %",
}


@frame.command(
    programs=frame.flag(help="by title; by default all", nargs="*"),
    rounds=1,
    sampled=frame.flag(128, "labels of one-vs-rest"),
    whole=frame.flag(False, "one-vs-rest of all labels"),
    show_recorded=False,
    dict=frame.flag(Path("/usr/share/wordnet"), "has data.noun"),
    out=frame.RESULTS / "tree_peers.json",
    picture=frame.IMAGES / "tree_peers.png",
)
def main(options: Any) -> None:
    results: dict[str, Any] = frame.read_json(options.out)
    shown: dict[str, Programs] = {}
    if options.show_recorded:
        shown = {part: found["programs"] for part, found in results.items()}
    else:
        shown["test"] = _measure(options, *load_case("wordnet", options), results)
    for part, programs in shown.items():
        print(f"\n{_table(part, programs, results[part] if options.show_recorded else None)}")
    if "test" in results:
        _draw(results["test"]["programs"], options.picture)
