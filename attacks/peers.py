"""The same hostile inputs and broken model files for this library and its peers.

    python benchmarks/peers/make_environment.py
    python -m attacks.peers --model-files 200 --out attacks/results/peers.json

Every trial is a separate process with 8 GiB of memory and 20 seconds.  Outcomes: a refusal that names the
fault, another error, a wrong answer (to an input that has none, or scores that differ from those of the saved
model), a crash, no end, or too much memory.  Omikuji reads rows only from files; PECOS reads no text files
here; the files of scikit-learn and LIBLINEAR have no header.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.frame import command, flag, write_json
from benchmarks.peers.make_environment import ENVIRONMENT

_SCRIPT = Path(__file__).with_name("peer_trials.py")
LIBRARIES = ("labelweave", "scikit-learn", "LIBLINEAR", "PECOS", "omikuji", "napkinXC")
_OURS = ("labelweave", "scikit-learn")
OUTCOMES = ("refused", "unclear", "answers", "crash", "hang", "memory", "unharmed")
# one thread; and no module of this folder in the place of a library, such as coverage
_APART = dict.fromkeys(
    ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONSAFEPATH"), "1"
)


def trials_of(library: str, model_files: int) -> list[dict[str, Any]]:
    python = sys.executable if library in _OURS else str(ENVIRONMENT / "bin" / "python")
    command = [python, str(_SCRIPT), library, str(model_files)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | _APART, check=False)
    if done.returncode:
        print(f"{library}: not tried, {done.stderr.strip().splitlines()[-1]}")
    said = re.sub(re.escape(tempfile.gettempdir()) + r"/[^/\s\"]+/", "", done.stdout)  # folders of this run
    return [json.loads(line) for line in said.splitlines()]


@command(
    model_files=flag(200, "broken model files for each library"),
    libraries=flag(LIBRARIES, nargs="*"),
    out=flag(type=Path),
)
def main(given: Any) -> None:
    found = {}
    for library in given.libraries:
        trials = trials_of(library, given.model_files)
        if not trials:
            continue
        found[library] = trials
        for what in ("inputs", "model files"):
            own = [trial for trial in trials if (trial["case"] == "model file") == (what == "model files")]
            counts = Counter(trial["outcome"] for trial in own)
            words = ", ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES if counts[outcome])
            print(f"{library:13} {len(own):4} {what:12} {words}", flush=True)
    if given.out is not None:
        write_json(given.out, {"trials": found})
