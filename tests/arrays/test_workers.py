"""Products in panels: NumPy's result, and the same bits for any number of threads."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from labelweave.app.facts import FactorGeometry
from labelweave.foundation import forks
from labelweave.foundation.arrays import Workers, linear_algebra, panels
from labelweave.foundation.arrays.linear_algebra import _LIBRARY, PANEL

SIZES = [0, 1, 2, PANEL - 1, PANEL, PANEL + 1, 8 * PANEL - 1, 8 * PANEL, 8 * PANEL + 1]
WIDTHS = [0, 1, 3]
TYPES = [np.float32, np.float64]


def _table(rows, columns, dtype, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(dtype)


def _for_threads(compute):
    results = []
    for threads in (1, 2, 3):
        with Workers(threads).running() as workers:
            results.append(compute(workers))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    return results[0]


@given(st.integers(0, 3000), st.integers(1, 700))
def test_panels_cover_a_range_once_in_order(length, size):
    cuts = panels(length, size)
    covered = [k for cut in cuts for k in range(cut.start, cut.stop)]
    assert covered == list(range(length))
    assert all(0 < cut.stop - cut.start <= size for cut in cuts)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", SIZES)
def test_products_are_numpys(rows, width, dtype):
    left, right = _table(rows, 7, dtype), _table(7, width, dtype, 1)
    other = _table(rows, width, dtype, 2)
    close = {"rtol": 1e-4 if dtype == np.float32 else 1e-10, "atol": 1e-3 if dtype == np.float32 else 1e-9}
    product = _for_threads(lambda workers: workers.matmul(left, right))
    assert product.dtype == dtype
    np.testing.assert_allclose(product, left @ right, **close)
    inner = _for_threads(lambda workers: workers.inner(left, other))
    assert inner.dtype == dtype
    np.testing.assert_allclose(inner, left.T @ other, **close)
    turned = _for_threads(lambda workers: workers.turn(left.copy(), right))
    np.testing.assert_allclose(turned, left @ right, **close)


def test_a_product_has_the_type_of_its_right_factor():
    left, right = _table(600, 5, np.float32), _table(5, 2, np.float64)
    with Workers().running() as workers:
        product = workers.matmul(left, right)
    assert product.dtype == np.float64
    np.testing.assert_allclose(product, left.astype(np.float64) @ right, rtol=1e-12, atol=1e-12)


def test_an_inner_product_in_more_precision_than_its_factors():
    left, right = _table(5000, 3, np.float32), _table(5000, 4, np.float32, 1)
    with Workers().running() as workers:
        product = workers.inner(left, right, np.float64)
    exact = left.astype(np.float64).T @ right.astype(np.float64)
    np.testing.assert_allclose(product, exact, rtol=1e-12, atol=1e-12)


def test_a_turn_happens_in_the_place_of_its_left_factor():
    left = _table(700, 6, np.float64)
    with Workers().running() as workers:
        assert np.shares_memory(workers.turn(left, _table(6, 6, np.float64)), left)


def test_inputs_are_not_changed():
    left, right = _table(600, 6, np.float64), _table(6, 2, np.float64)
    before = left.copy(), right.copy()
    with Workers(2).running() as workers:
        workers.matmul(left, right)
        workers.inner(left, left)
    np.testing.assert_array_equal(left, before[0])
    np.testing.assert_array_equal(right, before[1])


@settings(max_examples=25)
@given(st.integers(0, 30), st.integers(1, 3))
def test_every_part_is_worked_on_once(parts, threads):
    seen = []
    with Workers(threads).running() as workers:
        workers.each(seen.append, list(range(parts)))
    assert sorted(seen) == list(range(parts))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_part_is_raised(threads):
    def fail(part):
        raise FloatingPointError(part)

    with pytest.raises(FloatingPointError), Workers(threads).running() as workers:
        workers.each(fail, [0, 1, 2])


def test_workers_can_be_used_again_after_an_error():
    workers = Workers(2)
    with pytest.raises(KeyboardInterrupt), workers.running():
        raise KeyboardInterrupt
    seen = []
    workers.each(seen.append, [0, 1, 2])
    assert seen == [0, 1, 2]


def test_no_thread_is_left_running():
    before = threading.active_count()
    with Workers(3).running() as workers:
        workers.matmul(np.ones((3000, 4)), np.ones((4, 4)))
    assert threading.active_count() == before


def _library_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_the_library_has_one_thread_until_the_last_of_overlapping_users_is_done():
    with threadpool_limits(2, user_api="blas"):
        before = _library_threads()  # other packages' libraries may have one thread only
        first, second = Workers().running(), Workers().running()
        first.__enter__()
        assert Workers.of_library().n_threads == 2
        second.__enter__()
        first.__exit__(None, None, None)  # as another thread would, in no order
        assert set(_library_threads()) == {1}
        second.__exit__(None, None, None)
        assert _library_threads() == before


def test_libraries_are_looked_for_outside_of_the_thread_that_handles_signals(monkeypatch):
    """An exception in a callback of ctypes, as of Ctrl-C, would be printed and lost."""
    find, threads = linear_algebra.ThreadpoolController, []
    monkeypatch.setattr(
        linear_algebra, "ThreadpoolController", lambda: threads.append(threading.current_thread()) or find()
    )
    assert len(linear_algebra._Library()._parts) == len(_LIBRARY._parts)
    assert threads[0] is not threading.main_thread()


def test_the_library_has_one_thread_in_whatever_thread_work_runs():
    def counted():
        with Workers().running():
            return _library_threads()

    with ThreadPoolExecutor(1) as other, threadpool_limits(2, user_api="blas"):
        before = _library_threads()
        assert set(counted()) == {1}  # the first thread to set it
        assert set(other.submit(counted).result()) == {1}
        assert _library_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_in_the_midst_of_a_change_can_go_on():
    with _LIBRARY._lock:  # as another thread may hold it
        child = os.fork()
        if child == 0:
            with Workers().running():
                os._exit(0)
    deadline = time.monotonic() + 20
    done = (0, 0)
    while done[0] == 0 and time.monotonic() < deadline:
        done = os.waitpid(child, os.WNOHANG)
    if done[0] == 0:
        os.kill(child, signal.SIGKILL)
    assert done == (child, 0)


class _Lazy:
    @cached_property
    def value(self):
        return 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_does_not_wait_for_properties_that_another_thread_computed(monkeypatch):
    begun, may_end = threading.Event(), threading.Event()

    monkeypatch.setattr(linear_algebra, "Lazy", _Lazy, raising=False)
    lock = getattr(_Lazy.__dict__["value"], "lock", threading.RLock())

    def hold():
        with lock:
            begun.set()
            may_end.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait(30)
    child = os.fork()
    if child == 0:
        os._exit(_Lazy().value)
    deadline, ended = time.monotonic() + 20, (0, 0)
    while ended == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
        ended = os.waitpid(child, os.WNOHANG)
    may_end.set()
    thread.join()
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(ended[1]) == 1


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
