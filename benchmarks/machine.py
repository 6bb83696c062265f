"""The machine that a measurement was made on, for results files."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

__all__ = ["describe_machine", "peak_memory_bytes"]


def describe_machine() -> dict[str, Any]:
    """Name processor, cores and versions.

    Returns
    -------
    dict
        ``processor``, ``cores``, ``python`` and ``labelweave``.
    """
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "labelweave": importlib.metadata.version("labelweave"),
    }


def _processor() -> str:
    """Name the processor's model where the system tells it."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text().splitlines() if listing.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def peak_memory_bytes() -> int:
    """Ask the system for the largest resident memory that this process has had.

    Returns
    -------
    int
        Bytes.
    """
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
