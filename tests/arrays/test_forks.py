"""Locks of cached properties that a thread holds at a fork: the child gets others."""

import sys
import threading
from functools import cached_property
from types import SimpleNamespace

import pytest

from labelweave.app.facts import FactorGeometry
from labelweave.foundation import forks


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="cached properties have no locks since Python 3.12")
def test_a_lock_that_another_thread_holds_is_replaced():
    lazy = next(part for part in vars(FactorGeometry).values() if isinstance(part, cached_property))
    before = lazy.lock
    holder = threading.Thread(target=before.acquire)
    holder.start()
    holder.join()
    assert not before.acquire(blocking=False)
    forks.renew_locks()
    assert lazy.lock is not before
    assert lazy.lock.acquire(blocking=False)
    lazy.lock.release()


def test_where_there_are_no_locks_nothing_is_done(monkeypatch):
    later = SimpleNamespace(version_info=(3, 12), modules=None)  # None would be read otherwise
    monkeypatch.setattr(forks, "sys", later)
    forks.renew_locks()
