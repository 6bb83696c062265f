"""Locks that a fork leaves held by a thread that is not in the child.

``functools.cached_property`` has one lock for all instances until Python 3.11, and its users cannot choose
another one.  A child that begins while another thread computes such a property would wait for ever.
"""

from __future__ import annotations

import sys
import threading
from functools import cached_property
from typing import Any


def renew_locks() -> None:
    """Give every cached property of this package a lock that nobody holds, where it has one."""
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
