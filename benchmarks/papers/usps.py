"""Handwritten digits, a kernel for each (Seeger 2008, section 6.3).

USPS, 7291 training and 2007 test images of 16 x 16 gray values, no preprocessing.  Values are
between -1 and 1 here; the paper's 15, 31, ..., 495 are these but for an affine map and
rounding.  An RBF kernel does not see the shift, and the width from which the search starts,
by the sum of the values' variances, makes up for the factor.  Every digit has its own
scale and width, which are learned on 2000 training images, drawn at random for each seed, with
5 folds; the start is v = 10, the intercepts' variance 4.  The final fit is to all 7291.  Test
images are looked at once, at the end.

Runs that the results file has are not repeated.

Example: ``python -m benchmarks.papers.usps --seeds 5``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.papers.likelihood_runs import (
    DATA,
    Method,
    Split,
    draw_curves,
    learned_table,
    one_model,
    run_missing,
    table,
)

__all__ = ["main", "read_usps"]

_ROOT = Path(__file__).resolve().parents[2]
_PAPER = {"class": 4.77}
_METHODS: dict[str, Method] = {
    "class": lambda split, seed: one_model(
        split, seed, tie="class", scale=10.0, gamma=None, intercept_variance=4.0, cv=5, learning_rows=2000
    )
}


def main() -> None:
    """Measure, print the tables, write the figures and the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="draws of images to learn on")
    out = _ROOT / "benchmarks" / "results" / "papers" / "usps.json"
    parser.add_argument("--out", type=Path, default=out)
    picture = _ROOT / "docs" / "images" / "usps_error_reject.png"
    parser.add_argument("--picture", type=Path, default=picture)
    arguments = parser.parse_args()
    methods = run_missing(_METHODS, read_usps(), arguments.seeds, arguments.out, _PAPER)
    print(table(methods, _PAPER))
    print(learned_table(methods))
    draw_curves(methods, arguments.picture)


def read_usps(folder: Path = DATA) -> Split:
    """Read the data.

    Parameters
    ----------
    folder : Path
        The folder of shared data.

    Returns
    -------
    Split
        7291 training and 2007 test images.
    """
    with np.load(folder / "usps" / "usps.npz") as file:
        X, X_test = (file[name] / 1000.0 - 1.0 for name in ("X_train", "X_test"))
        return Split(X, file["y_train"], X_test, file["y_test"])


if __name__ == "__main__":
    main()
