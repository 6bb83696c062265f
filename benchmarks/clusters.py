"""Workers of a Dask cluster on this machine, with rows in their memory."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import psutil
import scipy.sparse as sp
from distributed import Client, LocalCluster, wait

import dask


@contextlib.contextmanager
def workers(count: int = 2, megabytes: float | None = None) -> Iterator[Client]:
    """Start workers as processes with one thread and a memory limit each, without messages."""
    limit = {} if megabytes is None else {"memory_limit": f"{megabytes}MB"}
    silence = logging.ERROR if megabytes is None else logging.CRITICAL
    parts: dict[str, Any] = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(silence_logs=silence, **parts, **limit) as cluster, Client(cluster) as client:
        yield client


def on_cluster(client: Client, table: Any, n_partitions: int) -> Any:
    stretches = np.array_split(np.arange(table.shape[0]), n_partitions)
    futures = client.scatter([table[rows] for rows in stretches])
    wait(futures)
    blocks = [
        da.from_delayed(dask.delayed(future), (len(rows), table.shape[1]), meta=table[:0])
        for future, rows in zip(futures, stretches, strict=True)
    ]
    return da.concatenate(blocks, axis=0)


def write_table(path: Path, table: Any) -> None:
    """Write a table to a file, whose ending tells whether it is sparse."""
    if sp.issparse(table):
        sp.save_npz(path.with_suffix(".npz"), sp.csr_array(table), compressed=False)
    else:
        np.save(path.with_suffix(".npy"), table)


def read_table(path: Path) -> Any:
    sparse = path.with_suffix(".npz")
    return sp.csr_array(sp.load_npz(sparse)) if sparse.exists() else np.load(path.with_suffix(".npy"))


class Watched:
    """The peak memory of processes while something runs, including mapped files, and their seconds.

    before: bytes at the start.
    most, seconds: peak bytes, and CPU seconds since a process began.
    """

    def __init__(self, pids: list[int]) -> None:
        self.before = {pid: psutil.Process(pid).memory_info().rss for pid in pids}
        self.most, self.seconds = dict(self.before), dict.fromkeys(pids, 0.0)
        self._done, self._thread = threading.Event(), threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            for pid in self.most:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process = psutil.Process(pid)
                    self.most[pid] = max(self.most[pid], process.memory_info().rss)
                    self.seconds[pid] = sum(process.cpu_times()[:2])

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
