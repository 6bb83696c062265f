"""The memory that a fit takes beyond what the process holds before it, on Linux."""

import ctypes
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


class MemoryClimb:
    """The largest resident memory since now, beyond what is resident now.

    Memory that was freed but kept by the allocator is given back to the system first, so
    that what is used again counts.
    """

    def __init__(self) -> None:
        if not _RESET.exists():
            raise OSError("The peak of a fit is read from /proc, which this system does not have; use Linux.")
        ctypes.CDLL(None).malloc_trim(0)
        _RESET.write_text("5")  # forgets the largest resident size so far
        self.before = _megabytes("VmRSS")

    def peak(self) -> float:
        return _megabytes("VmHWM") - self.before


def _megabytes(name: str) -> float:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024 / 1e6
