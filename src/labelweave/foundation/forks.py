"""Locks that a thread holds at a fork and that stay locked in the child.

Until Python 3.11 ``functools.cached_property`` has one lock for all instances, which users cannot replace.
A child that starts while another thread computes such a property would wait forever.
"""

from __future__ import annotations

import sys
import threading
from functools import cached_property
from typing import Any


def renew_locks() -> None:
    """Replace the lock of every cached property of this package by a free one."""
    if sys.version_info >= (3, 12):
        return
    for name, module in list(sys.modules.items()):
        if not name.startswith("labelweave."):
            continue
        for kind in [value for value in vars(module).values() if isinstance(value, type)]:
            for part in vars(kind).values():
                if isinstance(part, cached_property):
                    lazy: Any = part
                    lazy.lock = threading.RLock()
