"""Killed workers and clients cost only their work."""

import asyncio
import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import CancelledError, Client, KilledWorker, LocalCluster, wait
from distributed.comm import CommClosedError

import dask
import labelweave as lw
import partitioned
from drawn import draw_labels
from labelweave import LowRankClassifier, MaxMarginClassifier, config_context
from labelweave.dask import fit as fit_module
from labelweave.dask.fit import spread
from labelweave.dask.graphs import Place
from labelweave.dask.parts import Parts
from labelweave.dask.rows import Facts, read_rows
from labelweave.dask.waiting import gathered, try_again

SETTINGS = {"C": 0.1, "tol": 0.05}


table = partial(draw_labels, n=90, d=100, n_labels=20, kept=0.4, noise=0, above=0.7, missing=0.0)


chunks = partial(partitioned.chunks, sizes=30)


def stop_after(monkeypatch, n_rounds):
    """Interrupt the client after some rounds."""

    def note(lines, progress):
        if progress.rounds >= n_rounds:
            raise KeyboardInterrupt

    monkeypatch.setattr("labelweave.dask.max_margin._Lines.__call__", note)


@pytest.fixture
def kept_often(monkeypatch):
    monkeypatch.setattr(fit_module, "_SHORTEST", 0.0)
    monkeypatch.setattr(fit_module, "_COST_SHARE", 1e9)


@pytest.mark.parametrize("place", ["folder", "memory"])
def test_a_killed_client_goes_on_with_the_same_bits(client, apart, kept_often, monkeypatch, tmp_path, place):
    X, Y = map(chunks, table())
    whole = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    checkpoint = tmp_path / "fit" if place == "folder" else f"memory://{tmp_path.name}"
    again = MaxMarginClassifier(checkpoint=checkpoint, **SETTINGS)
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        with pytest.raises(KeyboardInterrupt):
            again.fit(X, Y)
    counted = []
    monkeypatch.setattr(
        "labelweave.dask.max_margin._Lines.__call__", lambda _, progress: counted.append(progress)
    )
    for changed, budget in (({"C": 0.2}, "auto"), ({}, 500.0)):  # by which rows are brought together
        other = MaxMarginClassifier(checkpoint=checkpoint, **SETTINGS | changed)
        refused = pytest.raises(
            ValueError, match=r"another fit: the parameters differ\); delete that folder, or pass"
        )
        with config_context(memory_budget=budget), refused:
            other.fit(X, Y)
    with pytest.raises(ValueError, match="the partitions differ"):
        again.fit(X, chunks(1 - table()[1]))
    again.fit(X, Y)
    assert np.array_equal(again.coef_, whole.coef_)
    assert again.n_iter_ == whole.n_iter_
    assert counted[-1].rounds < 2 * whole.n_iter_  # of two blocks, less what was done before
    if place == "folder":
        assert not checkpoint.exists()


def test_a_block_begins_again_at_its_snapshot(client, apart, kept_often, monkeypatch):
    X, Y = map(chunks, table())
    whole = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    lost, real = [], fit_module.TravelingFit._round

    def lose(fit, block, *given, **more):
        done = real(fit, block, *given, **more)
        if block.rounds in (3, 6) and (block.number, block.rounds) not in lost:
            lost.append((block.number, block.rounds))
            raise OSError("gone")
        return done

    monkeypatch.setattr(fit_module.TravelingFit, "_round", lose)
    again = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    assert len(lost) >= 2
    assert np.array_equal(again.coef_, whole.coef_)


def test_a_block_that_is_always_lost_ends_the_fit(client, apart, monkeypatch):
    X, Y = map(chunks, table())
    monkeypatch.setattr(fit_module, "_MOST_LOSSES", 2)

    def lose(*_, **__):
        raise CommClosedError("gone")

    monkeypatch.setattr(fit_module.TravelingFit, "_round", lose)
    with pytest.raises(RuntimeError, match=r"Workers died each time .*more memory, or use"):
        MaxMarginClassifier(**SETTINGS).fit(X, Y)


def test_results_that_a_dead_worker_would_make_are_not_waited_for(client, monkeypatch):
    place = Place(client.submit(abs, 1), 1, is_filed=True)
    plan = fit_module.FitPlan([], [place], client.submit(abs, 2), 0, 0.1, 1, is_coupled=False)
    fit = fit_module.TravelingFit(client, plan, None, print)
    here, gone = (
        fit_module.BlockFit(0, np.arange(3), 0, asked={name}) for name in (*client.nthreads(), "gone")
    )
    future = client.submit(time.sleep, 20, pure=False)
    with pytest.raises(CommClosedError):
        fit._fetched([future], gone)
    assert future.status == "pending"
    done = client.map(abs, [-1, -2])
    assert fit._fetched(done, here) == [1, 2]
    fit.is_over = True
    with pytest.raises(fit_module.InterruptedFitError):
        fit._fetched([future], here)


@pytest.mark.filterwarnings("ignore:The iteration limit")
def test_silence_is_explained(client, apart, monkeypatch):
    X, Y = map(chunks, table())
    monkeypatch.setattr("labelweave.dask.waiting.SILENCE", 0.5)

    def slowly(shared):
        time.sleep(2.5)
        return shared.met_gap

    monkeypatch.setattr("labelweave.dask.tasks.met_gap", slowly)
    with pytest.warns(UserWarning, match=r"No task of the fit has ended for .* busy"):
        MaxMarginClassifier(C=0.1, tol=0.5, max_iter=1).fit(X, Y)


@pytest.mark.parametrize("model", [MaxMarginClassifier, LowRankClassifier])
def test_a_cluster_without_workers_is_told_of(monkeypatch, model):
    monkeypatch.setattr("labelweave.dask.waiting.SILENCE", 0.2)
    X, Y = map(chunks, table())
    parts = {"processes": False, "n_workers": 0, "dashboard_address": ":0", "set_as_default": False}
    said = r"no worker is connected to inproc.*; start some"
    with Client(**parts) as alone, alone.as_current(), pytest.raises(UserWarning, match=said):
        model().fit(X, Y)  # warnings are errors here; else it waits


class Lost:
    """A future whose worker died, so often."""

    def __init__(self, error):
        self.error, self.status, self.retried = error, "error", 0

    def done(self):
        return True

    def retry(self):
        self.retried += 1


@pytest.mark.parametrize(
    ("error", "said", "retried"),
    [
        (KilledWorker("task", None, 4), "Workers died each time that a task ran", 1),
        (CancelledError("part"), "cannot be recomputed", 0),
    ],
)
def test_work_that_workers_lose_again_and_again(client, monkeypatch, error, said, retried):
    def raising(futures):
        raise error

    future = Lost(error)
    monkeypatch.setattr("labelweave.dask.waiting.wait", lambda futures, timeout: None)
    monkeypatch.setattr(client, "gather", raising)
    monkeypatch.setattr("labelweave.dask.waiting.try_again", Lost.retry)
    with pytest.raises(RuntimeError, match=said):
        gathered(client, [future])
    assert future.retried == retried


def test_how_many_partitions_are_read_is_told(client, monkeypatch, capsys):
    monkeypatch.setattr("labelweave.dask.waiting.SAY_EVERY", 0.05)
    assert gathered(client, client.map(time.sleep, [0.3, 0.3], pure=False), "partitions read") == [None, None]
    assert "labelweave: 0 of 2 partitions read\n" in capsys.readouterr().err


def test_partitions_are_spread_evenly():
    assert spread([["a"], ["a"], ["a"], ["a"]], ["a", "b"]) == [["a"], ["a"], ["b"], ["b"]]
    assert spread([["b"], ["a"]], ["a", "b"]) == [["b"], ["a"]]
    assert spread([["a"]], ["a", "b", "c"]) == [["a", "b", "c"]]
    assert spread([["gone"], []], ["a"]) == [["a"], ["a"]]
    assert spread([["a"]], []) == [[]]


def kill(cluster, count, random):
    pids = [worker.pid for worker in cluster.workers.values() if worker.pid]
    for pid in random.permutation(pids)[:count]:
        os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize(
    "numbers", [pytest.param((1, 3), marks=pytest.mark.slow), pytest.param((2, 4), marks=pytest.mark.search)]
)
def test_processes_of_any_number_and_killed_ones_give_the_same_bits(client, apart, numbers):
    X, Y = map(chunks, table())
    whole = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    of_low_rank = LowRankClassifier(rank=3).fit(X, Y)
    rich = {"label_covariance": 0.3 + 0.7 * np.eye(20), "flip_rates": (0.1, 0.0), "class_weight": "balanced"}
    rich |= {"C": 0.01, "tol": 0.05}
    of_coupled = MaxMarginClassifier(**rich).fit(X, Y, entry_weight=1 + Y)
    random = np.random.default_rng(1)
    for n_workers in numbers:
        parts = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
        with LocalCluster(**parts) as cluster, Client(cluster) as other, other.as_current():
            for n_killed in (0, n_workers // 2):
                timer = threading.Timer(random.uniform(0.5, 3), kill, (cluster, n_killed, random))
                timer.start()
                model = MaxMarginClassifier(**SETTINGS).fit(X, Y)
                timer.join()
                assert np.array_equal(model.coef_, whole.coef_), (n_workers, n_killed)
            model = LowRankClassifier(rank=3).fit(X, Y)
            assert np.array_equal(model.feature_factors_, of_low_rank.feature_factors_), n_workers
            model = MaxMarginClassifier(**rich).fit(X, Y, entry_weight=1 + Y)
            assert np.array_equal(model.coef_, of_coupled.coef_), n_workers


@pytest.mark.slow
def test_a_killed_worker_with_rows_in_files_costs_its_work_and_nothing_else(client, apart, monkeypatch):
    X, Y = map(chunks, table())
    whole = MaxMarginClassifier(**SETTINGS).fit(X, Y)
    monkeypatch.setattr("labelweave.dask.data._HELD_SHARE", 0.0)
    random = np.random.default_rng(1)
    parts = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**parts) as cluster, Client(cluster) as other, other.as_current():
        for after in (None, 0.5, 1.5):
            timer = threading.Timer(after or 0, kill, (cluster, after is not None, random))
            timer.start()
            model = MaxMarginClassifier(**SETTINGS).fit(X, Y)
            timer.join()
            assert np.array_equal(model.coef_, whole.coef_), after


def test_what_failed_for_what_it_came_from_is_done_again(client):
    tries = []

    def fails_once():
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not there")
        return 2.0

    of_it = dask.delayed(abs)(dask.delayed(fails_once, pure=False)())
    future = client.compute(of_it, optimize_graph=False)
    with pytest.raises(OSError, match="not there"):
        future.result()
    try_again(future)
    assert future.result(timeout=10) == 2.0


class LateAnswers:
    """A scheduler whose responses arrive after the client is informed of its tasks."""

    def __init__(self, scheduler):
        self.scheduler = scheduler

    def __getattr__(self, name):
        return getattr(self.scheduler, name)

    async def retry(self, **asked):
        answer = await self.scheduler.retry(**asked)
        await asyncio.sleep(0.5)
        return answer


def test_an_error_that_is_known_before_the_answer_ends_the_wait(client, monkeypatch):
    def fails():
        raise OSError("not there")

    future = client.submit(fails, pure=False)
    with pytest.raises(OSError, match="not there"):
        future.result(timeout=10)
    monkeypatch.setattr(client, "scheduler", LateAnswers(client.scheduler))
    try_again(future)
    with pytest.raises(OSError, match="not there"):
        future.result(timeout=10)


def test_what_came_with_another_task_is_not_made_again(client, tmp_path):
    """A repeated task is repeated for all tasks that failed with it."""

    def fails_once():
        if not (tmp_path / "tried").exists():
            (tmp_path / "tried").touch()
            raise OSError("not there")

    def counted(_, name):
        with (tmp_path / name).open("a") as file:
            file.write("x")

    cause = client.submit(fails_once, pure=False)
    futures = [client.submit(counted, cause, name) for name in "ab"]
    with client.as_current():
        wait(futures)
    assert [future.status for future in futures] == ["error", "error"]
    for future in futures:
        try_again(future)
        assert [one.result(timeout=10) for one in futures] == [None, None]
    time.sleep(0.5)
    assert [(tmp_path / name).read_text() for name in "ab"] == ["x", "x"]


def test_a_checkpoint_is_a_folder(client, tmp_path):
    place = tmp_path / "fit"
    place.write_text("notes")
    with pytest.raises(ValueError, match=r"fit' is a file, but .* needs a folder; pass a folder"):
        MaxMarginClassifier(checkpoint=place).fit(*map(chunks, table()))


def test_marks_tell_kinds_of_weights_and_names_apart():
    X, Y = table()
    weights = np.where(Y > 0, 2.0, 0.0)  # where they are sparse, what is not stored is 1
    frame = pd.DataFrame(X).add_prefix("x")
    given = [
        (X, Y, None),
        (X, Y, weights),
        (X, Y, sp.csr_array(weights)),
        (frame, Y, None),
        (frame.add_prefix("y"), Y, None),
        (X, pd.DataFrame(Y).add_prefix("y"), None),
    ]
    reader = lw.MaxMarginClassifier()
    marks = {Facts.of(read_rows(reader, rows, y, None, entries)).mark for rows, y, entries in given}
    assert len(marks) == len(given)


@pytest.mark.parametrize("kind", ["fit", "score"])
def test_data_that_cannot_be_read_end_a_call(client, tmp_path, kind):
    X, Y = table()
    missing = tmp_path / "nothing.npy"
    rows, targets = [dask.delayed(X), dask.delayed(np.load)(missing)], list(map(dask.delayed, (Y, Y)))
    model = MaxMarginClassifier(**SETTINGS)
    if kind == "score":
        model.fit(rows[:1], targets[:1])
    with pytest.raises(FileNotFoundError, match=missing.name):
        getattr(model, kind)(rows, targets)


def test_a_product_whose_data_cannot_be_read_ends(client):
    with pytest.raises(ConnectionRefusedError):
        Parts(client, [client.submit(int, pure=False)], [1]).gathered(refused)


def refused(_):
    raise ConnectionRefusedError("the store of files does not answer")
