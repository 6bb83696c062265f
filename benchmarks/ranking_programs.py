"""Programs that rank labels, each run in a process of its own on a problem file."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parents[1]
_PEERS_PYTHON = _ROOT / ".venv-peers" / "bin" / "python"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class RankingProgram:
    """What is run: its title, module and variant, the package whose version is told, and its interpreter."""

    title: str
    module: str
    variant: str
    package: str
    python: Path = _PEERS_PYTHON


def own_program(title: str, module: str, variant: str) -> RankingProgram:
    """Make a program of labelweave's."""
    return RankingProgram(title, module, variant, "labelweave", Path(sys.executable))


def run_ranking(program: RankingProgram, problem: Path, answer: Path, threads: int = 1) -> dict[str, Any]:
    """Run a program.

    problem, answer: the files between driver and program, see ``benchmarks.peers.top_labels``.
    threads: what every library that counts threads is told.
    Returns: ``top`` (test rows, 5); ``seconds`` and ``clock``, of the processor and of the wall, of training
    and of predicting; ``bytes`` of the model; ``peak``, the largest resident memory until trained.
    Raises FileNotFoundError: If the peers' environment is absent.
    Raises RuntimeError: If the program fails.
    """
    if not program.python.exists():
        raise FileNotFoundError(
            f"{program.title} needs the environment .venv-peers, which is absent; "
            "make it with `python benchmarks/peers/make_environment.py`."
        )
    command = [program.python, "-m", program.module, problem, answer, "--variant", program.variant]
    environment = {**os.environ, **dict.fromkeys(_THREADS, str(threads))}
    ended = subprocess.run(command, check=False, cwd=_ROOT, env=environment, capture_output=True)
    if ended.returncode:
        raise RuntimeError(f"{program.title} failed: {ended.stderr.decode()[-500:]}")
    with np.load(answer) as stored:
        return {name: stored[name].tolist() if name != "top" else stored[name] for name in stored}


def package_version(program: RankingProgram) -> str:
    """Ask the program's environment for the version of its package."""
    code = f"import importlib.metadata as m; print(m.version({program.package!r}))"
    answer = subprocess.run([program.python, "-c", code], check=True, capture_output=True, text=True)
    return answer.stdout.strip()
