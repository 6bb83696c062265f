"""The flat model F2 of Seeger 2008, Table 1: a scale for the classes of each subtree of the root.

Everything else is as in ``benchmarks.papers.hierarchies``, whose F2 had a scale for each class before.

Example: ``python -m benchmarks.papers.hierarchies_f2 --rows 1000 --splits 0 1 2 3 4 --methods F2``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.papers import hierarchies
from labelweave import KernelLogisticClassifier

__all__ = ["main", "table"]

table = hierarchies.table
_METHODS: dict[str, dict[str, Any]] = {"F2": {"tie": ("subtree", "shared"), "tree": True}}
hierarchies._METHODS.clear()
hierarchies._METHODS |= _METHODS
hierarchies.KernelLogisticClassifier = partial(KernelLogisticClassifier, tree_prior=False)
main = hierarchies.main

if __name__ == "__main__":
    main()
