"""Fit Parquet files that exceed the memory limits of all workers together, with the command line.

    python -m benchmarks.dask_memory --limit 800 --times 3

Writes files of numeric columns in double precision and labels, which take a multiple of the limits of two
workers when decoded; fits them with ``labelweave fit --dask``, and prints the wall-clock time, each worker's
CPU time, and each worker's peak memory including mapped files, with a digest of the weights.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import labelweave
from benchmarks.clusters import Watched, workers
from benchmarks.frame import command, flag

_N_WORKERS, _WIDTH, _ROWS, _LABELS = 2, 250, 5000, 32


def write_rows(folder: Path, megabytes: float) -> int:
    """Write files of 5,000 rows in one row group each, of a given size when decoded; return the rows."""
    import pandas as pd

    weights = np.random.default_rng(0).normal(size=(_WIDTH, _LABELS))
    n_files = int(np.ceil(1e6 * megabytes / (8 * _WIDTH * _ROWS)))
    folder.mkdir()
    for number in range(n_files):
        random = np.random.default_rng([1, number])
        table = random.normal(size=(_ROWS, _WIDTH))
        labels = table @ weights + 4 * random.normal(size=(_ROWS, _LABELS)) > 15
        frame = pd.DataFrame(table, columns=[f"x{place}" for place in range(_WIDTH)])
        names = [f"y{place}" for place in range(_LABELS)]
        frame = pd.concat([frame, pd.DataFrame(labels.astype(np.int8), columns=names)], axis=1)
        frame.to_parquet(folder / f"part-{number:04d}.parquet")
    return n_files * _ROWS


@command(limit=flag(800.0, "megabytes of a worker"), times=3.0)
def main(given: Any) -> int:
    megabytes = given.times * given.limit * _N_WORKERS
    with tempfile.TemporaryDirectory() as own, workers(_N_WORKERS, given.limit) as client:
        folder = Path(own) / "rows"
        n_rows = write_rows(folder, megabytes)
        print(f"{n_rows} rows, {megabytes:.0f} MB; limits of {_N_WORKERS} workers {given.limit:.0f} MB each")
        pids = list(client.run(os.getpid).values())
        begun, model = time.monotonic(), Path(own) / "model.lw"
        command = [sys.executable, "-m", "labelweave", "fit", str(folder), "--label-column", "y*"]
        command += ["--dask", client.cluster.scheduler_address, "--tol", "0.01"]
        command += ["--memory-budget", "250", "--C", "0.001", "--out", str(model)]
        with Watched(pids) as watched:
            code = subprocess.run(command, check=False).returncode
        if code == 0:
            weights = labelweave.load(model).classifier_.coef_
            print(f"weights {hashlib.sha256(np.ascontiguousarray(weights)).hexdigest()[:16]}")
        restarted = [pid for pid in pids if not psutil.pid_exists(pid)]
    most = [
        f"{1e-6 * watched.most[pid]:.0f} MB and {watched.seconds[pid]:.0f} s of the processor" for pid in pids
    ]
    print(f"exit code {code} after {time.monotonic() - begun:.0f} s; {len(restarted)} workers died")
    print(f"workers took at most {', '.join(most)}")
    return code
