"""The programs that benchmarks compare with, each run in a separate process."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parents[1]
PEERS_PYTHON = _ROOT / ".venv-peers" / "bin" / "python"
_PEER_SERIES = (1.0, 0.5, 0.3, 0.25, 0.2, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01, 0.008, 0.006, 0.003, 0.001)
_SNAP_SERIES = (0.1, 0.05, 0.03, 0.02, 0.01, 5e-3, 3e-3, 2e-3, 1e-3, 5e-4, 3e-4, 1e-4)
_MACHINE_SERIES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5)
_OF_THIS_PYTHON = ("labelweave", "scikit-learn")


@dataclass(frozen=True)
class Program:
    """A program: its title in tables, module, package, variant, and tolerances from loose to tight."""

    title: str
    module: str
    package: str
    variant: str = ""
    tolerances: tuple[float, ...] = ()

    @property
    def is_own(self) -> bool:
        return self.package == "labelweave"

    @property
    def python(self) -> Path:
        """Return the Python of the package: this one, that of the variable PACKAGE_PYTHON, or the peers'."""
        if self.package in _OF_THIS_PYTHON:
            return Path(sys.executable)
        return Path(os.environ.get(f"{self.package.upper()}_PYTHON", PEERS_PYTHON))


def _sklearn(title: str, variant: str, series: tuple[float, ...]) -> Program:
    return Program(
        f"scikit-learn {title}", "benchmarks.peers.sklearn_machines", "scikit-learn", variant, series
    )


OWN = Program("labelweave", "benchmarks.labelweave_margins", "labelweave")
PROGRAMS = {
    "liblinear": Program(
        "LIBLINEAR -s 3", "benchmarks.peers.liblinear", "liblinear-official", tolerances=_PEER_SERIES
    ),
    "pecos": Program("PECOS", "benchmarks.peers.pecos", "libpecos", tolerances=_PEER_SERIES),
    "snapml": Program("Snap ML", "benchmarks.peers.snapml_svm", "snapml", tolerances=_SNAP_SERIES),
    "sklearn": _sklearn("LinearSVC", "linear", _PEER_SERIES),
}
KERNEL_PROGRAMS = {
    "precomputed": _sklearn("SVC, kernel precomputed", "precomputed", _MACHINE_SERIES),
    "sklearn": _sklearn("SVC", "rbf", _MACHINE_SERIES),
    "libsvm": Program("LIBSVM", "benchmarks.peers.libsvm_rbf", "libsvm-official", tolerances=_MACHINE_SERIES),
}


def threads(count: int) -> dict[str, str]:
    """Return the environment variables that give compiled code so many threads."""
    return {f"{name}_NUM_THREADS": str(count) for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")}


def ask(program: Program, **given: Any) -> dict[str, Any]:
    """Run a program on arrays, and return those of its answer; its error messages end ours.

    given: by name; ``threads`` is what it may use, by default 1.
    Raises FileNotFoundError if the peers' environment is absent, and RuntimeError if the program fails.
    """
    if not program.python.exists():
        raise FileNotFoundError(
            f"{program.title} needs the environment .venv-peers, which is absent; "
            "make it with `python benchmarks/peers/make_environment.py`."
        )
    environment = os.environ | threads(given.get("threads", 1))
    with tempfile.TemporaryDirectory() as folder:
        problem, answer = Path(folder) / "problem.npz", Path(folder) / "answer.npz"
        np.savez(problem, **given)
        command = [program.python, "-m", program.module, problem, answer, "--variant", program.variant]
        ended = subprocess.run(command, check=False, cwd=_ROOT, env=environment, capture_output=True)
        if ended.returncode:
            raise RuntimeError(f"{program.title} failed: {ended.stderr.decode()[-500:]}")
        with np.load(answer) as stored:
            return dict(stored)


def version_of(program: Program) -> str:
    code = f"import importlib.metadata as m; print(m.version({program.package!r}))"
    answer = subprocess.run([program.python, "-c", code], check=True, capture_output=True, text=True)
    return answer.stdout.strip()
