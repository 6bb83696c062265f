"""USPS with gray values as coarse as the paper's, and with a search that ends early (Seeger 2008, section 6.3).

The methods are those of ``benchmarks.papers.usps``, under two changes:

- class, 31 levels: gray values rounded to the 31 that the paper's images have;
- class, 10 steps: the search for the kernels ended after ten evaluations.

Example: ``python -m benchmarks.papers.usps_suspects --seeds 5 --methods "class, 31 levels"``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.papers import usps

__all__ = ["main", "table"]

table = usps.table


def _coarse(split: usps.Split) -> usps.Split:
    """Round gray values to the 31 that the paper's images have."""
    X, X_test = (np.round(15.0 * values) / 15.0 for values in (split.X, split.X_test))
    return replace(split, X=X, X_test=X_test)


_SETTINGS = {"tie": "class", "learning_rows": 2000, **usps._START}
usps._METHODS |= {
    "class, 31 levels": lambda split, seed: usps.one_model(_coarse(split), seed, **_SETTINGS),
    "class, 10 steps": lambda split, seed: usps.one_model(split, seed, max_learning_iter=10, **_SETTINGS),
}
usps._PAPER |= dict.fromkeys(usps._METHODS, 4.77)
main = usps.main

if __name__ == "__main__":
    main()
