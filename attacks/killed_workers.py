"""Kill workers of Dask at random moments of fits, and hold the results against a fit that was let be.

    python -m attacks.killed_workers --runs 20

Four worker processes on this machine, talking over TCP, fit 20 labels of 240 rows in four partitions that
are kept apart.  In every other run half of the workers get SIGKILL at one moment, in the others a random
one at each of five moments, all drawn over the time that such a fit takes.  Every fit must end, with the
bits of the fit that was let be; and with an objective, computed here from its definition, within the
tolerance of the lower bound that the ordinary estimator gives in memory to a gap of 1e-6.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, LocalCluster

import labelweave.dask.data
from dask import array as da
from labelweave import MaxMarginClassifier as LocalMaxMarginClassifier
from labelweave.dask import MaxMarginClassifier

_C, _TOL = 0.02, 5e-2
_N_WORKERS = 4


class Outcome(NamedTuple):
    """What came of a fit: workers killed meanwhile, seconds, and what was wrong."""

    kills: int
    seconds: float
    wrong: str | None


def make_table(n: int = 240, d: int = 500, n_labels: int = 20) -> tuple[Any, Any]:
    """Make sparse rows and labels.

    Returns
    -------
    tuple of ndarray
        X of shape (n, d) and Y of shape (n, n_labels).
    """
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.05)
    return X, (X @ random.normal(size=(d, n_labels)) > 5).astype(float)


def _killing(
    cluster: LocalCluster, moments: Any, count: int, random: Any, done: threading.Event
) -> list[int]:
    """Kill workers at moments from now on, as long as the fit goes on; give their numbers."""
    killed: list[int] = []
    begun = time.monotonic()
    for moment in np.sort(moments):
        if done.wait(max(0.0, moment - (time.monotonic() - begun))):
            break
        alive = [int(worker.pid) for worker in cluster.workers.values() if worker.pid]
        for pid in random.permutation(alive)[:count].tolist():
            try:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            except ProcessLookupError:  # it died before
                continue
    return killed


def attack(cluster: LocalCluster, data: Any, expected: Any, number: int, random: Any) -> Outcome:
    """Fit while workers are killed, and compare."""
    (X, Y), (whole, seconds, bound) = data, expected
    count, times = (_N_WORKERS // 2, 1) if number % 2 == 0 else (1, 5)
    done, killed = threading.Event(), []
    moments = random.uniform(0, seconds * (1 if times == 1 else 2), times)

    def kill() -> None:
        killed.extend(_killing(cluster, moments, count, random, done))

    thread, begun = threading.Thread(target=kill), time.monotonic()
    thread.start()
    try:
        with Client(cluster, set_as_default=False) as client:
            model = fit(client, X, Y)
    except Exception as error:
        return Outcome(len(killed), time.monotonic() - begun, f"{type(error).__name__}: {error}")
    finally:
        done.set()
        thread.join()
    return Outcome(len(killed), time.monotonic() - begun, compare(model, whole, X, Y, bound))


def fit(client: Client, X: Any, Y: Any) -> MaxMarginClassifier:
    """Fit on the cluster, in four partitions."""
    rows = len(X) // 4
    parts = (da.from_array(part, chunks=(rows, part.shape[1])) for part in (X, Y))
    return MaxMarginClassifier(client, C=_C, tol=_TOL).fit(*parts)


def compare(model: Any, whole: Any, X: Any, Y: Any, bound: float) -> str | None:
    """Say what is wrong with a model, if anything."""
    if not (np.array_equal(model.coef_, whole.coef_) and np.array_equal(model.intercept_, whole.intercept_)):
        return "gave other bits"
    coefficients, intercepts = model.coef_, model.intercept_
    losses = np.maximum(0, 1 - (2 * Y - 1) * (X @ coefficients.T + intercepts))
    objective = ((coefficients**2).sum() + (intercepts**2).sum()) / 2 + 2 * _C * losses.sum()
    gap = (objective - bound) / objective
    return None if gap <= _TOL else f"is at a gap of {gap:.1e}"


def run(n_runs: int, seed: int = 0) -> list[Outcome]:
    """Attack so many fits; give what came of each."""
    labelweave.dask.data._BYTES_A_ROW = 1e12  # partitions of this size are brought together otherwise
    labelweave.dask.data._FEWEST_VISITS = 8  # a task takes longer to be sent than to be done
    random, data = np.random.default_rng(seed), make_table()
    local = LocalMaxMarginClassifier(C=_C, tol=1e-6).fit(*data)
    parts = {"n_workers": _N_WORKERS, "threads_per_worker": 1, "dashboard_address": ":0"}
    outcomes = []
    with LocalCluster(silence_logs=logging.CRITICAL, **parts) as cluster:
        with Client(cluster, set_as_default=False) as client:
            begun = time.monotonic()
            whole = fit(client, *data)
            expected = whole, time.monotonic() - begun, local.trace_[-1].dual
        for number in range(n_runs):
            outcomes.append(attack(cluster, data, expected, number, random))
            said = outcomes[-1].wrong or "the same bits"
            print(
                f"run {number}: {outcomes[-1].kills} killed, {outcomes[-1].seconds:.0f} s, {said}", flush=True
            )
    return outcomes


def main() -> int:
    """Attack, and say what came of it."""
    logging.disable(logging.CRITICAL)  # Dask tells of every worker that dies
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    outcomes = run(given.runs, given.seed)
    wrong = [outcome.wrong for outcome in outcomes if outcome.wrong is not None]
    kills = sum(outcome.kills for outcome in outcomes)
    slowest = max((outcome.seconds for outcome in outcomes), default=0.0)
    print(f"{len(outcomes)} fits, {kills} workers killed, {len(wrong)} wrong, the slowest {slowest:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
