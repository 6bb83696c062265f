"""The programs of the speed benchmarks, each run in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.exchange import Solution, read_solutions

_ROOT = Path(__file__).resolve().parents[1]
PEERS_PYTHON = _ROOT / ".venv-peers" / "bin" / "python"
_OWN_PYTHON = Path(sys.executable)
_PEER_SERIES = (1.0, 0.5, 0.3, 0.25, 0.2, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01, 0.008, 0.006, 0.003, 0.001)
_SNAP_SERIES = (0.1, 0.05, 0.03, 0.02, 0.01, 5e-3, 3e-3, 2e-3, 1e-3, 5e-4, 3e-4, 1e-4)
_MACHINE_SERIES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5)


@dataclass(frozen=True)
class Program:
    """A program: its title in tables, module, interpreter, package, and tolerances from loose to tight."""

    title: str
    module: str
    python: Path
    package: str
    tolerances: tuple[float, ...]
    is_own: bool = False


PROGRAMS = {
    "labelweave": Program(
        "labelweave", "benchmarks.labelweave_margins", _OWN_PYTHON, "labelweave", (1e-2, 1e-3, 1e-4), True
    ),
    "liblinear": Program(
        "LIBLINEAR -s 3", "benchmarks.peers.liblinear", PEERS_PYTHON, "liblinear-official", _PEER_SERIES
    ),
    "pecos": Program("PECOS", "benchmarks.peers.pecos", PEERS_PYTHON, "libpecos", _PEER_SERIES),
    "snapml": Program("Snap ML", "benchmarks.peers.snapml_svm", PEERS_PYTHON, "snapml", _SNAP_SERIES),
    "sklearn": Program(
        "scikit-learn LinearSVC",
        "benchmarks.peers.sklearn_linear_svc",
        _OWN_PYTHON,
        "scikit-learn",
        _PEER_SERIES,
    ),
}

KERNEL_PROGRAMS = {
    "labelweave": Program(
        "labelweave", "benchmarks.labelweave_margins", _OWN_PYTHON, "labelweave", (1e-2, 1e-3, 1e-4), True
    ),
    "precomputed": Program(
        "scikit-learn SVC, kernel precomputed",
        "benchmarks.peers.sklearn_svc_precomputed",
        _OWN_PYTHON,
        "scikit-learn",
        _MACHINE_SERIES,
    ),
    "sklearn": Program(
        "scikit-learn SVC", "benchmarks.peers.sklearn_svc", _OWN_PYTHON, "scikit-learn", _MACHINE_SERIES
    ),
    "libsvm": Program(
        "LIBSVM", "benchmarks.peers.libsvm_rbf", PEERS_PYTHON, "libsvm-official", _MACHINE_SERIES
    ),
}


class Session:
    """Runs programs on one problem file with a fixed number of threads."""

    def __init__(self, problem: Path, threads: int) -> None:
        self.problem = problem
        self.threads = threads

    def run(
        self, program: Program, tolerances: Sequence[float], answer: Path | None = None
    ) -> list[Solution]:
        """Train once at each tolerance; without a folder for the answer no weights are kept."""
        if answer is not None:
            return self._run_into(program, tolerances, answer, [])
        with tempfile.TemporaryDirectory() as scratch:
            return self._run_into(program, tolerances, Path(scratch), ["--no-weights"])

    def _run_into(
        self, program: Program, tolerances: Sequence[float], answer: Path, options: list[str]
    ) -> list[Solution]:
        _require_interpreter(program)
        command = [str(program.python), "-m", program.module, str(self.problem), str(answer), *options]
        command += ["--tolerances", *map(repr, tolerances)]
        subprocess.run(command, check=True, cwd=_ROOT, env=_environment(self.threads))
        return read_solutions(answer)


def _environment(threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, str(threads))}


def _require_interpreter(program: Program) -> None:
    if not program.python.exists():
        raise FileNotFoundError(
            f"{program.title} needs the environment .venv-peers, which is absent; "
            "make it with `python benchmarks/peers/make_environment.py`."
        )


def version_of(program: Program) -> str:
    """Ask the program's environment for the version of its package."""
    _require_interpreter(program)
    code = f"import importlib.metadata as m; print(m.version({program.package!r}))"
    answer = subprocess.run([program.python, "-c", code], check=True, capture_output=True, text=True)
    return answer.stdout.strip()
