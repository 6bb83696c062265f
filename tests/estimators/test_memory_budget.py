"""Memory of a fit with a kernel, measured in a separate process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="the peak is read where Linux tells it")

ROWS, LABELS = 4000, 5
KERNEL_MATRIX = 4.0 * ROWS**2 / 1e6  # MB in single precision: 64
BESIDE = 25.0  # MB: a dozen arrays of rows x labels (4 MB in float64), the features, fragmentation

SCRIPT = """
import json
import numpy as np
from labelweave import MaxMarginClassifier, set_config

random = np.random.default_rng(0)
X = random.normal(size=({rows}, 10))
Y = (np.sin(X @ random.normal(size=(10, {labels}))) > 0.2).astype(int)
options = dict(kernel="rbf", tol=1e-3, dtype="float32", n_jobs=2)
MaxMarginClassifier(**options).fit(X[:100], Y[:100])  # everything is loaded
rest = {{}}
if {budget}:
    set_config(memory_budget={budget})
    model = MaxMarginClassifier(**options).fit(X, Y)
    rest = dict(primal=model.trace_[-1].primal, dual=model.trace_[-1].dual, converged=model.converged_)
# not getrusage, which counts the process that started this one
(line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
peak = float(line.split()[1]) / 1e3
print(json.dumps(dict(peak=peak, **rest)))
"""


def _run(budget):
    script = SCRIPT.format(rows=ROWS, labels=LABELS, budget=budget)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_fit_keeps_within_its_budget_and_finds_the_same_solution():
    without, tight, wide = _run(0), _run(KERNEL_MATRIX / 10), _run(1000)
    assert tight["peak"] - without["peak"] <= KERNEL_MATRIX / 10 + BESIDE
    assert wide["peak"] - without["peak"] > KERNEL_MATRIX  # the measurement includes the matrix
    assert tight["converged"]
    assert wide["converged"]
    for one, other in ((tight, wide), (wide, tight)):
        assert one["dual"] <= other["primal"] * (1 + 1e-9)
    assert tight["primal"] == pytest.approx(wide["primal"], rel=1e-3)
