"""The programs of the speed benchmarks, each run in a separate process."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.exchange import Solution, read_solutions

_ROOT = Path(__file__).resolve().parents[1]
PEERS_PYTHON = _ROOT / ".venv-peers" / "bin" / "python"
_PEER_SERIES = (1.0, 0.5, 0.3, 0.25, 0.2, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01, 0.008, 0.006, 0.003, 0.001)
_SNAP_SERIES = (0.1, 0.05, 0.03, 0.02, 0.01, 5e-3, 3e-3, 2e-3, 1e-3, 5e-4, 3e-4, 1e-4)
_MACHINE_SERIES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5)
_THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS",
)  # fmt: skip
_OF_THIS_PYTHON = ("labelweave", "scikit-learn")


@dataclass(frozen=True)
class Program:
    """A program: its title in tables, module, package, and tolerances from loose to tight or a variant."""

    title: str
    module: str
    package: str
    tolerances: tuple[float, ...] = ()
    variant: str = ""

    @property
    def is_own(self) -> bool:
        return self.package == "labelweave"

    @property
    def python(self) -> Path:
        return Path(sys.executable) if self.package in _OF_THIS_PYTHON else PEERS_PYTHON


_OWN = Program("labelweave", "benchmarks.labelweave_margins", "labelweave", (1e-2, 1e-3, 1e-4))
PROGRAMS = {
    "labelweave": _OWN,
    "liblinear": Program("LIBLINEAR -s 3", "benchmarks.peers.liblinear", "liblinear-official", _PEER_SERIES),
    "pecos": Program("PECOS", "benchmarks.peers.pecos", "libpecos", _PEER_SERIES),
    "snapml": Program("Snap ML", "benchmarks.peers.snapml_svm", "snapml", _SNAP_SERIES),
    "sklearn": Program(
        "scikit-learn LinearSVC", "benchmarks.peers.sklearn_linear_svc", "scikit-learn", _PEER_SERIES
    ),
}
KERNEL_PROGRAMS = {
    "labelweave": _OWN,
    "precomputed": Program(
        "scikit-learn SVC, kernel precomputed",
        "benchmarks.peers.sklearn_svc_precomputed",
        "scikit-learn",
        _MACHINE_SERIES,
    ),
    "sklearn": Program("scikit-learn SVC", "benchmarks.peers.sklearn_svc", "scikit-learn", _MACHINE_SERIES),
    "libsvm": Program("LIBSVM", "benchmarks.peers.libsvm_rbf", "libsvm-official", _MACHINE_SERIES),
}


def ranking(title: str, module: str, variant: str, package: str = "labelweave") -> Program:
    """Describe a program that ranks labels, a variant of it."""
    return Program(title, module, package, variant=variant)


def run_program(program: Program, threads: int, *words: Any) -> None:
    """Run a program; its error messages end ours.

    Raises FileNotFoundError if the peers' environment is absent, and RuntimeError if the program fails.
    """
    if not program.python.exists():
        raise FileNotFoundError(
            f"{program.title} needs the environment .venv-peers, which is absent; "
            "make it with `python benchmarks/peers/make_environment.py`."
        )
    command = [program.python, "-m", program.module, *map(str, words)]
    environment = {**os.environ, **dict.fromkeys(_THREADS, str(threads))}
    ended = subprocess.run(command, check=False, cwd=_ROOT, env=environment, capture_output=True)
    if ended.returncode:
        raise RuntimeError(f"{program.title} failed: {ended.stderr.decode()[-500:]}")


def run_ranking(program: Program, problem: Path, answer: Path, threads: int = 1) -> dict[str, Any]:
    """Run a program that ranks labels; the files are those of ``benchmarks.peers.exchange``.

    Returns: ``top`` (test rows, 5); ``seconds`` and ``clock``, CPU and wall-clock seconds, of training and of
    prediction; ``bytes`` of the model; ``peak``, the largest resident memory until trained.
    """
    run_program(program, threads, problem, answer, "--variant", program.variant)
    with np.load(answer) as stored:
        return {name: stored[name].tolist() if name != "top" else stored[name] for name in stored}


class Session:
    """Runs programs on one problem file with a fixed number of threads."""

    def __init__(self, problem: Path, threads: int) -> None:
        self.problem = problem
        self.threads = threads

    def run(
        self, program: Program, tolerances: Sequence[float], answer: Path | None = None
    ) -> list[Solution]:
        """Train once at each tolerance; without a folder for the answer no weights are kept."""
        with tempfile.TemporaryDirectory() as scratch:
            folder, more = answer or Path(scratch), [] if answer else ["--no-weights"]
            words = [*more, "--tolerances", *map(repr, tolerances)]
            run_program(program, self.threads, self.problem, folder, *words)
            return read_solutions(folder)


def version_of(program: Program) -> str:
    code = f"import importlib.metadata as m; print(m.version({program.package!r}))"
    answer = subprocess.run([program.python, "-c", code], check=True, capture_output=True, text=True)
    return answer.stdout.strip()
