"""The same fits with two versions of the source, interleaved: CPU seconds, medians and ratios.

    git worktree add ../before COMMIT
    python -m benchmarks.before_after --before ../before/src --out benchmarks/results/before_after.json

Every fit runs once to compile, then several times alternating with the other version, one thread, each
version in a process that stays.  It exits with status 1 if a fit takes more than ``--most`` times as long as
before.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import IO, Any

from benchmarks.frame import OUT, command, flag, save, several
from benchmarks.needed_data import missing
from benchmarks.programs import threads

# what a process runs: a line that loads X and Y, then one that makes the model
_MULAN = "d = read_part('{}', 'train'); X, Y = d.X, d.Y"
_DEBTAGS = "d = datasets.load_debtags(); X, Y = d.X, LabelMatrix.from_any(d.Y)"
_RCV1 = "X, Y = load_problem('rcv1-subset1')"
_AWA = "X, Y = load_animals(2000)"
_SATIMAGE = "p = load_class_problem('satimage').first(2000); X, Y = p.X, p.labels"
FITS = {
    "debtags, linear max-margin, 1e-3": (_DEBTAGS, "MaxMarginClassifier()"),
    "RCV1, linear max-margin, 1e-3": (_RCV1, "MaxMarginClassifier()"),
    "RCV1, dense covariance, 1e-2": (
        _RCV1,
        "MaxMarginClassifier(tol=1e-2, label_covariance=0.7 * np.eye(Y.shape[1]) + 0.3)",
    ),
    "AwA 2,000, RBF max-margin, 1e-3": (_AWA, "MaxMarginClassifier(kernel='rbf')"),
    "AwA 2,000, RBF, ADMM": (_AWA, "MaxMarginClassifier(kernel='rbf', solver='alternating_directions')"),
    "AwA 2,000, linear, dense": (_AWA, "MaxMarginClassifier()"),
    "satimage 2,000, logistic, fixed": (_SATIMAGE, "KernelLogisticClassifier(hyperparameters='fixed')"),
    "satimage 2,000, logistic, learned": (
        _SATIMAGE,
        "KernelLogisticClassifier(hyperparameters=HyperparameterSearch(max_learning_iter=8))",
    ),
    "bibtex, low rank, ridge": (_MULAN.format("bibtex"), "LowRankClassifier(0.4, penalty='ridge')"),
    "bibtex, low rank, trace norm": (_MULAN.format("bibtex"), "LowRankClassifier(0.4)"),
    "yeast, low rank, logistic": (_MULAN.format("yeast"), "LowRankClassifier(0.4, loss='log_loss')"),
    "scene, label graph, all pairs": (
        _MULAN.format("scene"),
        "LabelGraphClassifier(graph='full', alpha=0.05)",
    ),
    "emotions, label graph, learned": (
        _MULAN.format("emotions"),
        "LabelGraphClassifier(GraphGrowth(max_rounds=4))",
    ),
}

_PROCESS = """
import sys, time, json, warnings
import numpy as np
from labelweave import *
from labelweave import datasets
from benchmarks.problems import load_animals, load_class_problem, load_problem, read_part
warnings.simplefilter("ignore")
{load}
{model}.fit(X, Y)
print("ready", flush=True)
for line in sys.stdin:
    begin = time.process_time()
    model = {model}.fit(X, Y)
    seconds = time.process_time() - begin
    gap = float(getattr(model, "duality_gap_", float("nan")))
    print(json.dumps([seconds, gap, int(model.n_iter_)]), flush=True)
"""


def _start(source: Path, load: str, model: str, said: IO[str]) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, **threads(1), "PYTHONPATH": f"{source}{os.pathsep}{root}"}
    script = _PROCESS.format(load=load, model=model)
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": said}
    return subprocess.Popen([sys.executable, "-c", script], **pipes, text=True, env=environment, cwd=root)


def _ask(process: subprocess.Popen[str]) -> list[float]:
    assert process.stdin is not None, "the process has a pipe"
    assert process.stdout is not None, "the process has a pipe"
    process.stdin.write("again\n")
    process.stdin.flush()
    answer: list[float] = json.loads(process.stdout.readline())
    return answer


def _why(pair: list[subprocess.Popen[str]], files: tuple[IO[str], IO[str]]) -> str:
    """Explain why processes ended before they were ready: data are missing, or one version lacks the fit."""
    for process, file in zip(pair, files, strict=True):
        process.communicate()
        file.seek(0)
    said = [file.read().strip().splitlines() for file in files]
    last = next((lines[-1] for lines in said if lines), "")
    place = last.partition(": ")[2].removeprefix("[Errno 2] No such file or directory: ").strip("'")
    return missing(FileNotFoundError(place)) or last


def _compared(name: str, options: Any, files: tuple[IO[str], IO[str]]) -> Any:
    """Time a fit alternating between both versions and print it; None if one of them cannot run it."""
    sources = zip((options.before, options.after), files, strict=True)
    pair = [_start(source, *FITS[name], said) for source, said in sources]
    ready = [process.stdout is not None and process.stdout.readline() for process in pair]
    if not all(ready):
        print(f"{name}: not run. {_why(pair, files)}", flush=True)
        return None
    runs = [[_ask(process) for process in pair] for _ in range(options.rounds)]
    for process in pair:
        process.kill()
    before, after = ([one[side] for one in runs] for side in (0, 1))
    seconds = [median(run[0] for run in side) for side in (before, after)]
    ratio = median(b[0] / max(a[0], 1e-9) for a, b in runs)
    ends = ", ".join(f"{side[-1][2]:.0f} rounds, gap {side[-1][1]:.1e}" for side in (before, after))
    print(f"{name}: {seconds[0]:.2f} s, now {seconds[1]:.2f} s, ratio {ratio:.2f}; {ends}", flush=True)
    return {"before": before, "after": after, "ratio": ratio}


@command(
    before=flag(type=Path, required=True),
    after=Path(__file__).resolve().parents[1] / "src",
    fits=several(FITS, metavar="NAME"),
    rounds=5,
    most=flag(1.15, "ratio of seconds that is allowed"),
    out=OUT,
)
def main(options: Any) -> None:
    found: dict[str, Any] = {}
    for name in options.fits:
        with TemporaryFile("w+") as first, TemporaryFile("w+") as second:  # nobody would read pipes
            run = _compared(name, options, (first, second))
        if run is not None:
            found[name] = run
    if not found:
        raise SystemExit(2)  # the reason was printed for each
    save(options.out, found)
    slower = [name for name, run in found.items() if run["ratio"] > options.most]
    if slower:
        raise SystemExit(f"slower than {options.most:g} times: {'; '.join(slower)}")
