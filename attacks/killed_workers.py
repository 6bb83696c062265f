"""Kill Dask workers at random moments of fits, and compare the results with an undisturbed fit.

    python -m attacks.killed_workers --runs 20 --others 2

Four worker processes on this machine, connected by TCP, fit 20 labels of 240 rows in four separate
partitions.  In every other run half of the workers get SIGKILL at once, in the others a random worker at each
of five moments, all within the usual time of such a fit.  Every fit must end with the bits of the undisturbed
fit, which ``tests/dask`` compares with the fit in memory; those of ``--model label-tree`` and ``auto`` are
the bits of the fit in memory.

Dead workers are restarted, as cluster managers do: ``LocalCluster`` gives up on a worker that is killed while
it starts, and stops watching all workers when one is killed that it has not registered yet.

``--model`` selects other fits than max-margin ones: factors, kernels with a factor of 40 columns, a tree over
labels or a graph of them, a covariance, texts, whose words are counted first, and three fits that end in
calibrated probabilities.  ``--others`` needs max-margin.

The other attacks: a worker hangs for ten seconds (SIGSTOP); the client is killed, and another one resumes
from the checkpoint; workers have less memory than the rows take, so that a fit ends or reports in a sentence
what to do.
"""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dask.dataframe as dd
import numpy as np
import pandas as pd
from benchmarks.frame import command, flag
from distributed import Client, LocalCluster

import dask
import labelweave as lw
import labelweave.dask.data
from attacks import small_fits
from dask import array as da

_RANK = {"rank": 4, "tol": 1e-5, "max_iter": 20, "random_state": 0}
_C, _TOL = 0.02, 5e-2
_KERNEL = {"gamma": 0.01, "kernel_rank": 40, "hyperparameters": "fixed"}
_GRAPH = {"graph": "chow-liu", "alpha": 0.5, "tol": _TOL}
_TREE = {"leaf_size": 4, "branching": 2}
_MEMBERS = {"members": ["linear", "forest"]}
_KERNEL_MARGINS = {"kernel": "rbf", "gamma": 0.01, "kernel_rank": 40}
_N_WORKERS = 4
_WORKERS_WITHIN = 120  # seconds until the cluster is complete again after an attack


class Outcome(NamedTuple):
    """The outcome of a fit: workers killed meanwhile, seconds, and what was wrong."""

    kills: int
    seconds: float
    wrong: str | None


class Expected(NamedTuple):
    """A fit, the bits and seconds of an undisturbed one, and scores that must equal those in memory."""

    fit: Any
    bits: str
    seconds: float
    in_memory: Any


def make_table(n: int = 240, d: int = 500, n_labels: int = 20) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.05)
    return X, (X @ random.normal(size=(d, n_labels)) > 5).astype(float)


class Machines:
    """Worker processes around a scheduler, which are restarted when they die."""

    def __init__(self, address: str, count: int) -> None:
        self.address, self.is_open = address, True
        self.processes = [self._start() for _ in range(count)]
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--no-nanny"]
        command += ["--nthreads=1", "--no-dashboard", "--death-timeout=60"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _watch(self) -> None:
        while self.is_open:
            for place, process in enumerate(self.processes):
                if process.poll() is not None:
                    self.processes[place] = self._start()
            time.sleep(0.2)

    def some(self, count: int, random: Any) -> list[int]:
        alive = [process.pid for process in self.processes if process.poll() is None]
        return [int(pid) for pid in random.permutation(alive)[:count]]

    def close(self) -> None:
        self.is_open = False
        self.thread.join()
        for process in self.processes:
            process.kill()
            process.wait()


def _killing(machines: Machines, moments: Any, count: int, random: Any, done: threading.Event) -> list[int]:
    """Kill workers at given moments while the fit runs; return their numbers."""
    killed: list[int] = []
    begun = time.monotonic()
    for moment in np.sort(moments):
        if done.wait(max(0.0, moment - (time.monotonic() - begun))):
            break
        for pid in machines.some(count, random):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
    return killed


def _standing_still(machines: Machines, moment: float, random: Any) -> None:
    time.sleep(moment)
    (pid,) = machines.some(1, random)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(10)
    os.kill(pid, signal.SIGCONT)


def attack(machines: Machines, data: Any, expected: Expected, *, kind: str, random: Any) -> Outcome:
    (X, Y), seconds = data, expected.seconds
    count, times = (_N_WORKERS // 2, 1) if kind == "half" else (1, 5)
    done, killed = threading.Event(), []
    moments = random.uniform(0, seconds * (0.7 if times == 1 else 2), times)

    def kill() -> None:
        if kind == "still":
            _standing_still(machines, moments[0] / 2, random)
        else:
            killed.extend(_killing(machines, moments, count, random, done))

    thread, begun = threading.Thread(target=kill), time.monotonic()
    thread.start()
    try:
        with Client(machines.address) as client:
            model = expected.fit(client, X, Y)
            taken = time.monotonic() - begun
    except Exception as error:
        return Outcome(len(killed), time.monotonic() - begun, f"{type(error).__name__}: {error}")
    finally:
        done.set()
        thread.join()
    return Outcome(len(killed), taken, compare(model, expected, X))


def quarters(table: Any) -> Any:
    return da.from_array(table, chunks=(len(table) // 4, table.shape[1]))


def fit(client: Client, X: Any, Y: Any, make: Any = lw.MaxMarginClassifier, **parameters: Any) -> Any:
    """Fit on the cluster, in four partitions; max-margin models by default."""
    own = {"C": _C, "tol": _TOL} if make is lw.MaxMarginClassifier else {}
    return make(**own, **parameters).fit(quarters(X), quarters(Y))


def fit_calibrated(client: Client, X: Any, Y: Any) -> lw.CalibratedLabelClassifier:
    """Fit two halves of the rows and all of them, in four partitions, and calibrate."""
    inner = lw.MaxMarginClassifier(C=_C, tol=_TOL)
    return lw.CalibratedLabelClassifier(inner, "sigmoid", cv=2).fit(quarters(X), quarters(Y))


def texts(X: Any) -> pd.DataFrame:
    return pd.DataFrame({"text": [" ".join(f"w{word}" for word in np.flatnonzero(row)) for row in X]})


def fit_texts(client: Client, X: Any, Y: Any) -> lw.TableModel:
    model = lw.TableModel(lw.MaxMarginClassifier(C=_C, tol=_TOL), text="text")
    return model.fit(dd.from_pandas(texts(X), npartitions=4), quarters(Y))


_FITS: dict[str, Any] = {
    "max-margin": fit,
    "coupled": partial(fit, label_covariance=0.2 + 0.8 * np.eye(20)),
    "kernel-margins": partial(fit, **_KERNEL_MARGINS),
    "low-rank": partial(fit, make=lw.LowRankClassifier, **_RANK),
    "kernel-logistic": partial(fit, make=lw.KernelLogisticClassifier, **_KERNEL),
    "label-graph": partial(fit, make=lw.LabelGraphClassifier, **_GRAPH),
    "calibrated": fit_calibrated,
    "texts": fit_texts,
    "label-tree": partial(fit, make=lw.LabelTreeClassifier, **_TREE),
    "auto": partial(fit, make=lw.AutoLabelClassifier, **_MEMBERS),
}


_AS_IN_MEMORY: dict[str, Any] = {
    "label-tree": lw.LabelTreeClassifier(**_TREE),
    "auto": lw.AutoLabelClassifier(**_MEMBERS),
}


def attack_client(machines: Machines, data: Any, expected: Expected, *, random: Any) -> Outcome:
    """Kill a client, and resume from its checkpoint."""
    (X, Y), seconds = data, expected.seconds
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "fit"
        command = [sys.executable, "-m", __spec__.name, "--client", machines.address, str(place)]
        process = subprocess.Popen(command)
        while process.poll() is None and not place.exists():  # until there is a checkpoint to resume from
            time.sleep(0.1)
        time.sleep(random.uniform(0, seconds))
        process.kill()
        process.wait()
        n_kept = len(list(place.glob("*"))) if place.exists() else 0
        try:
            with Client(machines.address) as client:
                model = fit(client, X, Y, checkpoint=place)
        except Exception as error:
            return Outcome(1, time.monotonic() - begun, f"{type(error).__name__}: {error}")
    print(f"  {n_kept} blocks of labels were in the checkpoint", flush=True)
    return Outcome(1, time.monotonic() - begun, compare(model, expected, X))


def attack_memory() -> Outcome:
    """Fit rows that exceed the workers' memory: the fit ends, or reports in a sentence what to do."""
    begun, n_rows, wide = time.monotonic(), 4000, 6000  # 192 MB per partition, dense

    def made(seed: int) -> Any:
        return np.random.default_rng(seed).normal(size=(n_rows, wide))

    rows = [dask.delayed(made)(seed) for seed in range(4)]
    labels = [dask.delayed(lambda x: (x[:, :2] > 0).astype(int))(part) for part in rows]
    parts: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    said, wrong = "it ended", None
    with (
        LocalCluster(silence_logs=logging.CRITICAL, memory_limit="600MB", **parts) as cluster,
        Client(cluster),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("error", "No task of the fit has ended")  # printed while it waits for workers
        try:
            lw.MaxMarginClassifier(C=1e-3, tol=0.5, max_iter=5).fit(rows, labels)
        except (RuntimeError, UserWarning) as error:
            said = str(error)
            is_sentence = said.count(". ") == 0 and ("memory" in said or "worker" in said)
            wrong = None if is_sentence else f"said {said!r}"
        except Exception as error:
            wrong = said = f"{type(error).__name__}: {error}"
    print(f"  with too little memory: {said}", flush=True)
    return Outcome(0, time.monotonic() - begun, wrong)


def compare(model: Any, expected: Expected, X: Any) -> str | None:
    """Return what is wrong with a model, if anything."""
    if _bits(model, X) != expected.bits:
        return "gave other bits"
    if expected.in_memory is None or np.array_equal(model.decision_function(X), expected.in_memory):
        return None
    return "gave other bits than in memory"


def _bits(model: Any, X: Any) -> str:
    return small_fits.mark(model, texts(X) if isinstance(model, lw.TableModel) else X)


def run(n_runs: int, n_others: int, seed: int = 0, model: str = "max-margin") -> list[Outcome]:
    random, data = np.random.default_rng(seed), make_table()
    of_model, in_memory = _FITS[model], None
    if model in _AS_IN_MEMORY:
        in_memory = _AS_IN_MEMORY[model].fit(*data).decision_function(data[0])
    kinds = [("half", "five")[number % 2] for number in range(n_runs)]
    outcomes = []
    with LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=logging.CRITICAL) as cluster:
        machines = Machines(cluster.scheduler_address, _N_WORKERS)
        try:
            with _whole(machines) as client:
                of_model(client, *data)  # loops are compiled, or read from the cache
                begun = time.monotonic()
                bits = _bits(of_model(client, *data), data[0])
            seconds = time.monotonic() - begun
            for kind in kinds + ["still", "client"] * n_others:
                _whole(machines).close()
                expected = Expected(of_model, bits, seconds, in_memory)
                of_kind = attack_client if kind == "client" else partial(attack, kind=kind)
                outcomes.append(told(kind, of_kind(machines, data, expected, random=random)))
                seconds = min(seconds, outcomes[-1].seconds)  # other programs slowed the first one down
        finally:
            machines.close()
    return outcomes + [told("memory", attack_memory()) for _ in range(n_others)]


def _whole(machines: Machines) -> Client:
    client = Client(machines.address)
    client.wait_for_workers(_N_WORKERS, timeout=_WORKERS_WITHIN)
    return client


def told(kind: str, outcome: Outcome) -> Outcome:
    verdict = outcome.wrong or "as it must be"
    print(f"{kind}: {outcome.kills} killed, {outcome.seconds:.0f} s, {verdict}", flush=True)
    return outcome


@command(
    runs=20,
    seed=0,
    others=0,
    model=flag("max-margin", choices=list(_FITS)),
    client=flag(nargs=2, metavar=("ADDRESS", "CHECKPOINT")),
)
def main(given: Any) -> int:
    logging.disable(logging.CRITICAL)  # Dask reports every worker that dies
    if given.model != "label-tree":  # which gathers all rows anyway
        labelweave.dask.data._BYTES_A_ROW = 1e12  # partitions of this size are joined otherwise
    labelweave.dask.data._FEWEST_VISITS = 8  # sending a task takes longer than running it
    if given.client:
        address, place = given.client
        with Client(address) as client:
            fit(client, *make_table(), checkpoint=place)
        return 0
    outcomes = run(given.runs, given.others, given.seed, given.model)
    wrong = [outcome.wrong for outcome in outcomes if outcome.wrong is not None]
    kills = sum(outcome.kills for outcome in outcomes)
    slowest = max((outcome.seconds for outcome in outcomes), default=0.0)
    print(f"{len(outcomes)} fits, {kills} workers killed, {len(wrong)} wrong, the slowest {slowest:.0f} s")
    return 1 if wrong else 0
