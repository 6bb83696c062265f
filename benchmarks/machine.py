"""The machine, date and commit of a measurement, for results files, and memory measurements."""

import ctypes
import datetime
import importlib.metadata
import multiprocessing
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MEASURING = ("src", "benchmarks", ":!benchmarks/results")  # what a figure can depend on


def describe_machine() -> dict[str, Any]:
    """Name processor, cores, versions, day and commit.

    Returns: ``processor``, ``cores``, ``python``, ``labelweave``, ``date`` and ``commit``, the latter with
    "-dirty" where code has changed since; empty outside of a checkout.
    """
    changed = "-dirty" if git("status", "--porcelain", "--", *MEASURING) else ""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "labelweave": importlib.metadata.version("labelweave"),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": git("rev-parse", "--short=8", "HEAD") + changed,
    }


def git(*words: str) -> str:
    """Run git in this checkout.

    Returns: its output; empty if it fails.
    """
    root = Path(__file__).resolve().parents[1]
    said = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return said.stdout.strip() if said.returncode == 0 else ""


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text().splitlines() if listing.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def peak_memory_bytes() -> int:
    """Return the largest resident memory of this process so far."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def in_own_process(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function in a separate process, whose memory does not count as ours."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, given)


class MemoryClimb:
    """The bytes of the largest resident memory since now, beyond the current one, on Linux.

    Memory that was freed but kept by the allocator is returned to the system first, so that memory that is
    used again counts.
    """

    def __init__(self) -> None:
        if not _RESET.exists():
            raise OSError("The peak of a fit is read from /proc, which this system does not have; use Linux.")
        ctypes.CDLL(None).malloc_trim(0)
        _RESET.write_text("5")  # forgets the largest resident size so far
        self.before = _status_bytes("VmRSS")

    def peak(self) -> int:
        return _status_bytes("VmHWM") - self.before


def _status_bytes(name: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024
