"""The steps of ``python -m benchmarks.papers``: commands, results files, and which tables they measure."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.frame import RESULTS
from benchmarks.machine import git
from benchmarks.needed_data import SOURCES
from benchmarks.problems import DEFAULT_DATA
from benchmarks.programs import PEERS_PYTHON
from benchmarks.recorded_runs import origin

_ROOT = Path(__file__).resolve().parents[2]
_OF_MACHINES = {"date", "commit", "processor", "cores", "python", "labelweave"}

Run = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A command that measures.

    command: the module and its arguments.
    record: the results file; under "papers/" it is one of ``RecordedRuns``.
    serves: which tables and figures it measures.
    guess: minutes of the processor, where the results file does not say so of all its runs.
    data: the folders of shared data that it reads, between spaces.
    of: the values that runs of the results file have, if they are this step's.
    needs_peers: whether it runs other libraries.
    """

    name: str
    command: str
    record: str
    serves: str
    guess: float
    data: str = ""
    of: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    needs_peers: bool = False

    @property
    def words(self) -> list[str]:
        """The command's words."""
        return shlex.split(self.command)

    def runs(self) -> list[Run]:
        """Give its runs in the results file; of a file without runs, what that says of the machine."""
        file = _read(self.record)
        if not self.record.startswith("papers/"):
            known = {key: file[key] for key in ("date", "commit", "processor", "cores") if key in file}
            return [{"measured": known}] if file else []
        return [
            run
            for run in file.get("runs", [])
            if all(run.get(name) in values for name, values in self.of.items())
        ]

    def table(self) -> str:
        """Write what was measured."""
        file = _read(self.record)
        if self.record.startswith("papers/"):
            return str(import_module(self.words[0]).table(self.runs()))
        return "\n".join(file.get("table") or _lines(file))

    def origin(self) -> str:
        """Say when, where and at which commits it was measured; empty for never."""
        runs = self.runs()
        return origin(_read(self.record), runs) if runs else ""

    def minutes(self) -> float:
        """Give how long it took the processor, and the guess at least: some runs may be missing."""
        seconds = [run.get("measured", {}).get("seconds") for run in self.runs()]
        return max(self.guess, sum(one or 0.0 for one in seconds) / 60.0)

    def is_current(self) -> bool:
        """Say whether all runs were measured with the library and the command as they are now."""
        commits = {run.get("measured", {}).get("commit", "") for run in self.runs()}
        files = ("src", *sorted(_files(self.words[0])))
        return bool(commits) and all(_has_present_code(commit, files) for commit in commits)

    def lacks(self) -> str:
        """Say what is not at hand; empty for nothing."""
        for name in self.data.split():
            if not (DEFAULT_DATA / name).is_dir():
                return f"lacks {DEFAULT_DATA / name}: {SOURCES[name]}"
        return (
            "lacks the other libraries: make peers" if self.needs_peers and not PEERS_PYTHON.exists() else ""
        )


def _read(record: str) -> dict[str, Any]:
    path = RESULTS / f"{record}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _lines(file: dict[str, Any]) -> list[str]:
    """Write the names and values of a results file without a table, a line each."""
    shown = {
        name.replace("_", " "): _shown(value)
        for name, value in file.items()
        if isinstance(value, bool | int | float | str) and name not in _OF_MACHINES
    }
    width = max(map(len, shown), default=0)
    return [f"{name:{width}}  {value:>12}" for name, value in shown.items()]


def _shown(value: bool | float | str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.5g}"


@cache
def _files(module: str) -> frozenset[str]:
    """Give the files of a benchmark's module and of those that it imports."""
    path = Path(*module.split(".")).with_suffix(".py")
    if not (_ROOT / path).exists():
        return frozenset()
    imported = re.findall(
        r"^ *from (benchmarks[\w.]*) import", (_ROOT / path).read_text("utf-8"), re.MULTILINE
    )
    return frozenset({path.as_posix()}).union(*map(_files, imported))


@cache
def _has_present_code(commit: str, files: tuple[str, ...]) -> bool:
    """Say whether files are as they were at a commit."""
    if not commit or commit.endswith("-dirty") or git("status", "--porcelain", "--", *files):
        return False
    last = git("log", "-1", "--format=%h", "--", *files)
    return git("rev-list", "--count", f"{commit}..{last}") == "0"


_LOGISTIC = "'linear, a scale a label' 'linear, coupled labels' 'linear, coupled labels, own scales'"
_SUSPECTS = "'class, 31 levels' 'class, 10 steps'"
_OWN = "'class, 3 blocks' 'shared, 3 blocks' 'unit rows, polynomial' 'smooth, polynomial'"
_NEWTON = ("logistic", "squared_hinge")
_OTHERS = ("squared", "squared, ridge", "wsabie", "cplst", "binary relevance")
_ALL = (
    Step(
        "zero_shot",
        "benchmarks.papers.zero_shot_awa",
        "papers/zero_shot_awa",
        "M3L 2012, section 7.2.1, and M3L 2010, section 6.2: attributes of unseen animals",
        1,
        "awa",
        {
            "seed": tuple(range(5)),
            "method": (
                "majority sign",
                "independent",
                "independent, mean moved",
                "M3L",
                "M3L, mean moved",
                "posterior, independent",
                "posterior, M3L",
                "posterior, kernel ridge",
            ),
        },
    ),
    Step(
        "zero_shot_all",
        "benchmarks.papers.zero_shot_awa --all-images",
        "papers/zero_shot_awa",
        "M3L 2012, section 7.2.1, all images",
        14,
        "awa",
        {"method": ("independent, all images",)},
    ),
    Step(
        "classifier_correlation",
        "benchmarks.papers.classifier_correlation",
        "papers/classifier_correlation",
        "M3L 2012, Figure 5, and M3L 2010, Figure 1",
        0.5,
        "awa",
    ),
    Step(
        "changed_correlations",
        "benchmarks.papers.changed_correlations",
        "papers/changed_correlations",
        "M3L, Table 3",
        4,
        "mulan rcv1",
    ),
    Step(
        "independent_methods",
        "benchmarks.papers.independent_methods",
        "papers/independent_methods",
        "M3L, Table 3 and section 7.2.1, other methods",
        10,
        "awa mulan rcv1",
    ),
    Step(
        "table1_animals",
        "benchmarks.paper_table1",
        "paper_table1",
        "M3L, Table 1a",
        30,
        "awa",
        needs_peers=True,
    ),
    Step(
        "table1_rcv1_linear",
        "benchmarks.linear_speed --problem rcv1 --out benchmarks/results/linear_rcv1.json",
        "linear_rcv1",
        "M3L, Table 1b, linear",
        8,
        "rcv1",
        needs_peers=True,
    ),
    Step(
        "table1_rcv1_rbf",
        "benchmarks.kernel_speed --problem rcv1",
        "kernel_rcv1",
        "M3L, Table 1b, RBF",
        30,
        "rcv1",
        needs_peers=True,
    ),
    Step(
        "table1_siam_linear",
        "benchmarks.linear_speed --problem tmc2007 --programs labelweave liblinear "
        "--out benchmarks/results/linear_tmc2007.json",
        "linear_tmc2007",
        "M3L, Table 1c, linear",
        5,
        "mulan",
        needs_peers=True,
    ),
    Step(
        "table1_siam_rbf",
        "benchmarks.kernel_speed --problem tmc2007 --peers --gaps 1e-3 --megabytes 2500",
        "kernel_tmc2007",
        "M3L, Table 1c, RBF",
        3,
        "mulan",
    ),
    Step(
        "dual_progress",
        "benchmarks.dual_progress",
        "dual_progress",
        "M3L 2012, Figures 2 and 3",
        20,
        "awa",
        needs_peers=True,
    ),
    Step("full_size", "benchmarks.full_size", "full_size", "M3L, Table 2, on synthetic rows of its size", 2),
    Step(
        "satimage",
        "benchmarks.papers.satimage --partitions 10",
        "papers/satimage",
        "Seeger, section 6.2 and Figure 3",
        100,
        "satimage",
    ),
    Step(
        "usps",
        "benchmarks.papers.usps --methods class --seeds 5",
        "papers/usps",
        "Seeger, section 6.3, under the paper's protocol",
        27,
        "usps",
        {"method": ("class",)},
    ),
    Step(
        "usps_suspects",
        f"benchmarks.papers.usps --methods {_SUSPECTS} --seeds 5",
        "papers/usps",
        "Seeger, section 6.3, with coarse gray values, and with a search that ends early",
        30,
        "usps",
        {"method": tuple(shlex.split(_SUSPECTS))},
    ),
    Step(
        "usps_features",
        f"benchmarks.papers.usps --methods {_OWN} --seeds 3",
        "papers/usps",
        "Seeger, section 6.3 and Figure 4, with other kernels and features",
        55,
        "usps",
        {"method": tuple(shlex.split(_OWN))},
    ),
    Step(
        "hierarchies_few_rows",
        "benchmarks.papers.hierarchies --rows 1000 --splits 0 1 2 3 4 --methods F1 F2 H2",
        "papers/hierarchies_imclef07a",
        "Seeger, Table 1, ImCLEF07A, 1,000 rows",
        17,
        "imclef07a",
        {"rows": (1000,), "method": ("F1", "F2", "H2")},
    ),
    Step(
        "hierarchies_debian",
        "benchmarks.papers.hierarchies --problem debtags --rows 1000 --splits 0 1 2 3 4 --methods F1 F2 H2",
        "papers/hierarchies_debtags",
        "Seeger, Table 1, Debian packages, 1,000 rows",
        13,
    ),
    Step(
        "hierarchies_all_rows",
        "benchmarks.papers.hierarchies --splits given",
        "papers/hierarchies_imclef07a",
        "Seeger, Table 1, ImCLEF07A, all rows",
        32,
        "imclef07a",
        {"rows": (10000,)},
    ),
    Step(
        "patents_d",
        "benchmarks.patents_shape",
        "patents_shape",
        "Seeger, Table 2, section D, on synthetic texts of its shape",
        1,
    ),
    Step(
        "patents_b",
        "benchmarks.patents_shape --sections B --out benchmarks/results/patents_shape_B.json",
        "patents_shape_B",
        "Seeger, Table 2, section B, on synthetic texts of its shape",
        17,
    ),
    Step(
        "low_rank_bibtex",
        "benchmarks.papers.low_rank_tables --sets bibtex",
        "papers/low_rank_tables",
        "LEML, Tables 2 and 4, Figures 1a, 2b and 2c, bibtex",
        33,
        "mulan",
        {"set": ("bibtex",)},
    ),
    Step(
        "low_rank_delicious",
        "benchmarks.papers.low_rank_tables --sets delicious --parts table2 "
        "--methods squared 'squared, ridge' wsabie cplst 'binary relevance'",
        "papers/low_rank_tables",
        "LEML, Table 2 and Figure 1c, delicious, squared loss, WSABIE, CPLST",
        15,
        "mulan",
        {"set": ("delicious",), "method": _OTHERS},
    ),
    Step(
        "low_rank_delicious_newton",
        "benchmarks.papers.low_rank_tables --sets delicious --parts table2 --methods logistic squared_hinge",
        "papers/low_rank_tables",
        "LEML, Table 2, delicious, logistic and squared hinge losses",
        150,
        "mulan",
        {"set": ("delicious",), "method": _NEWTON},
    ),
    Step(
        "penalty_path",
        "benchmarks.papers.penalty_path",
        "papers/penalty_path",
        "LEML, Table 4, by penalty and by the length of rows",
        10,
        "mulan",
    ),
    Step(
        "isotropic",
        "benchmarks.papers.isotropic_features",
        "papers/isotropic_features",
        "LEML, section 4, 2,000 rows",
        1,
        of={"rows": (2000,)},
    ),
    Step(
        "isotropic_more_rows",
        "benchmarks.papers.isotropic_features --rows 8000 --seeds 3",
        "papers/isotropic_features",
        "LEML, section 4, 8,000 rows",
        1,
        of={"rows": (8000,)},
    ),
    Step(
        "wikipedia",
        "benchmarks.wikipedia_shape --share 1",
        "wikipedia_shape",
        "LEML, Table 3, on synthetic rows of its shape",
        35,
    ),
    Step("clique_toy", "benchmarks.papers.clique_toy", "papers/clique_toy", "CGM, Table 2 and Figure 2", 3),
    Step(
        "clique_toy_readings",
        "benchmarks.papers.clique_toy_readings",
        "papers/clique_toy_readings",
        "CGM, Table 2, by what section 5.2 leaves open",
        5,
    ),
    Step(
        "label_graphs",
        "benchmarks.papers.label_graphs --sets scene --curve",
        "papers/label_graphs",
        "CGM, Tables 3 and 4 and Figure 3, scene",
        15,
        "mulan",
        {"set": ("scene",)},
    ),
    Step(
        "label_graphs_other_sets",
        "benchmarks.papers.label_graphs --sets yeast emotions",
        "papers/label_graphs",
        "beyond CGM: yeast and emotions",
        20,
        "mulan",
        {"set": ("yeast", "emotions")},
    ),
    Step(
        "bibtex_graph",
        "benchmarks.papers.bibtex_graph",
        "papers/bibtex_graph",
        "beyond CGM: a graph of 159 labels",
        10,
        "mulan",
    ),
    Step(
        "graph_kernels",
        "benchmarks.papers.graph_kernels",
        "papers/graph_kernels",
        "beyond CGM: kernels under a graph, scene",
        1,
        "mulan",
    ),
    Step(
        "partial_paths",
        "benchmarks.papers.partial_paths --rows 1000 --seeds 1",
        "papers/partial_paths",
        "beyond Seeger, section 7.4.1: classes known in part",
        2,
        "imclef07a",
        {"rows": (1000,)},
    ),
    Step(
        "bibtex_logistic",
        f"benchmarks.papers.bibtex_logistic --methods one-vs-rest rbf 'rbf, all rows' {_LOGISTIC}",
        "papers/bibtex_logistic",
        "beyond Seeger: labels in place of classes, bibtex",
        18,
        "mulan",
        {"missing": (0.0,)},
    ),
    Step(
        "bibtex_logistic_missing",
        "benchmarks.papers.bibtex_logistic --methods one-vs-rest rbf --missing 0.8",
        "papers/bibtex_logistic",
        "beyond Seeger: the same with 80 % of the entries missing",
        2,
        "mulan",
        {"missing": (0.8,)},
    ),
    Step(
        "low_rank_kernels",
        "benchmarks.papers.low_rank_kernels",
        "papers/low_rank_kernels",
        "beyond LEML: learned kernels, bibtex and delicious",
        11,
        "mulan",
    ),
    Step(
        "tail_labels",
        "benchmarks.papers.tail_labels",
        "papers/tail_labels",
        "later than LEML: low rank plus sparse for tail labels",
        5,
        "mulan",
    ),
    Step(
        "local_embeddings",
        "benchmarks.papers.local_embeddings",
        "papers/local_embeddings",
        "later than LEML: local embeddings of rows (SLEEC)",
        12,
        "mulan",
    ),
    Step(
        "later_methods",
        "benchmarks.papers.later_methods",
        "papers/later_methods",
        "later than the papers: six methods in short",
        4,
        "awa mulan imclef07a",
    ),
)
STEPS = {step.name: step for step in _ALL}
