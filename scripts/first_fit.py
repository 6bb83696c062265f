"""Measure the waiting time of a new user: importing an estimator, and its first fit without compiled loops.

    python scripts/first_fit.py [ESTIMATOR or FIT ...]    # all of them by default

CPU seconds, each estimator in a separate process: imported without and with bytecode of this library (the
minimum of three; the libraries it needs have theirs), fitted with an empty cache of loops and again in the
same process, and the number of loops compiled.  A busy machine takes longer, since memory and caches are
shared.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src" / "labelweave"
_IMPORTS = {name: f"from labelweave import {name}" for name in (
    "MaxMarginClassifier", "KernelLogisticClassifier", "LowRankClassifier", "RankSearch",
    "LabelGraphClassifier", "ZeroShotClassifier", "TunedThresholdClassifier", "CalibratedLabelClassifier",
    "ConformalLabelClassifier", "LabelTreeClassifier", "BinaryRelevance",
)}  # fmt: skip
FITS = {
    "max-margin": ("MaxMarginClassifier()", "labels"),
    "max-margin, sparse rows": ("MaxMarginClassifier()", "sparse"),
    "max-margin, sparse, coupled": (
        "MaxMarginClassifier(label_covariance=np.eye(4) + 1, solver='coordinate_ascent')",
        "sparse",
    ),
    "max-margin, RBF": ("MaxMarginClassifier(kernel='rbf')", "labels"),
    "max-margin, RBF, block ascent": ("MaxMarginClassifier(kernel='rbf', solver='block_ascent')", "labels"),
    "max-margin, RBF, working sets": ("MaxMarginClassifier(kernel='rbf', solver='working_set')", "labels"),
    "kernel logistic, learned": ("KernelLogisticClassifier()", "classes"),
    "kernel logistic, labels": ("KernelLogisticClassifier()", "labels"),
    "low rank": ("LowRankClassifier(2)", "labels"),
    "low rank, missing labels": ("LowRankClassifier(2)", "missing"),
    "low rank, logistic, sparse rows": ("LowRankClassifier(2, 'log_loss')", "sparse"),
    "low rank, chosen": ("LowRankClassifier(RankSearch())", "labels"),
    "label graph, learned": ("LabelGraphClassifier()", "labels"),
    "label graph, all pairs, wide": (
        "LabelGraphClassifier('full', exact_width=1)",
        "labels",
    ),
    "label graph, proximal": ("LabelGraphClassifier('chow-liu', solver='proximal')", "labels"),
    "label tree": ("LabelTreeClassifier(leaf_size=2, branching=2)", "labels"),
    "zero-shot": ("ZeroShotClassifier(signatures=np.eye(4), temperature=1.0)", "labels"),
    "tuned thresholds": ("TunedThresholdClassifier(MaxMarginClassifier(), cv=2)", "labels"),
    "calibrated": ("CalibratedLabelClassifier(MaxMarginClassifier(), cv=2)", "labels"),
    "conformal": ("ConformalLabelClassifier(MaxMarginClassifier(), level=0.5)", "labels"),
    "binary relevance": ("BinaryRelevance()", "labels"),
}
_FIT = """
import json, time, warnings
import numpy as np, scipy.sparse as sp
from labelweave import *

random = np.random.default_rng(0)
X = random.normal(size=(80, 6))
Y = (X @ random.normal(size=(6, 4)) + random.normal(size=(80, 4)) > 0).astype(int)
y = {{
    "labels": Y,
    "sparse": Y,
    "missing": np.where(random.random(Y.shape) < 0.2, np.nan, Y),
    "classes": np.array(list("abcd"))[X[:, :4].argmax(1)],
}}["{data}"]
X = sp.csr_array(X * (X > 0)) if "{data}" == "sparse" else X
warnings.simplefilter("ignore")
times = [time.process_time()]
for _ in range(2):
    {model}.fit(X, y)
    times.append(time.process_time())
print(json.dumps(np.diff(times).tolist()))
"""


def _run(program: str, source: Path, **variables: str) -> Any:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONPATH": str(source)} | variables
    command = [sys.executable, "-c", program]
    return json.loads(
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    )


def import_seconds(name: str) -> tuple[float, float]:
    """Return CPU seconds of a process that imports an estimator, without and with bytecode."""
    program = f"{_IMPORTS[name]}\nimport time\nprint(time.process_time())"
    first, again = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(SOURCE, Path(folder, "labelweave"), ignore=shutil.ignore_patterns("__pycache__"))
            first.append(_run(program, Path(folder)))
            again.append(_run(program, Path(folder)))
    return min(first), min(again)


def fit_seconds(name: str) -> tuple[float, float, int]:
    """Return CPU seconds of a fit with an empty cache and of another, and the number of compiled loops."""
    model, data = FITS[name]
    with tempfile.TemporaryDirectory() as folder:
        first, again = _run(_FIT.format(model=model, data=data), SOURCE.parent, NUMBA_CACHE_DIR=folder)
        return first, again, len(list(Path(folder).rglob("*.nbc")))


def main() -> int:
    """Print both tables."""
    chosen = sys.argv[1:]
    print(f"{'import':34}{'first':>9}{'again':>9}")
    for name in _IMPORTS:
        if not chosen or name in chosen:
            print(f"{name:34}{{:9.2f}}{{:9.2f}}".format(*import_seconds(name)), flush=True)
    print(f"{'fit':34}{'first':>9}{'second':>9}{'loops':>7}")
    for name in FITS:
        if not chosen or name in chosen:
            print(f"{name:34}{{:9.2f}}{{:9.2f}}{{:7}}".format(*fit_seconds(name)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
