"""Fit small models with an earlier commit and with this work tree, and list those with other scores.

    python scripts/same_fits.py COMMIT

The models are ``EVERY`` of ``attacks/small_fits.py``, fitted to dense and to sparse rows; the library of the
earlier commit is read from a worktree, where its loops are compiled again, which takes two minutes.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def digests() -> dict[str, str]:
    """Digest the scores of every kind."""
    import scipy.sparse as sp
    from attacks.small_fits import EVERY, data_of, fitted, scores_of
    from sklearn.base import clone

    found = {}
    for name, model in EVERY.items():
        X, Y = data_of(name)
        for form, rows in {"dense": X, "sparse": sp.csr_array(X)}.items():
            try:
                told = scores_of(fitted(clone(model), rows, Y), rows).tobytes()
            except (TypeError, ValueError) as error:  # a result too
                told = type(error).__name__.encode()
            found[f"{name}, {form}"] = hashlib.sha256(told).hexdigest()[:16]
    return found


def _with(source: Path) -> dict[str, str]:
    variables = {"PYTHONPATH": f"{source / 'src'}{os.pathsep}{ROOT}", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "--digests"],
        env=os.environ | variables, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def main() -> int:
    """Compare, and return 1 where a score differs."""
    if sys.argv[1:] == ["--digests"]:
        print(json.dumps(digests()))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", folder, sys.argv[1]], check=True)
        try:
            earlier = _with(Path(folder))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], check=True)
    now = _with(ROOT)
    other = [name for name in now if now[name] != earlier.get(name)]
    print(f"{len(now) - len(other)} of {len(now)} fits have the same scores", *other, sep="\n  ")
    return int(bool(other))


if __name__ == "__main__":
    sys.exit(main())
