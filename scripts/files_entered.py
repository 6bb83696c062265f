"""Count the files of labelweave that a fit enters, and how deep its calls go.

    python scripts/files_entered.py --files    # names them too
    python scripts/files_entered.py --stack    # prints the deepest calls

A file is entered when a function of it, compiled or not, is called while ``fit`` runs, in any thread.
Imports do not count, nor do compiled functions that compiled ones call.  The depth is the largest number
of calls inside labelweave on one thread's stack, ``fit`` the first.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from labelweave import GraphGrowth, HyperparameterSearch


def entered(call: Callable[[], Any]) -> tuple[list[str], list[str]]:
    """Call a function twice, first to import and compile; return files and deepest stack of the second."""
    import labelweave

    call()
    root = str(Path(labelweave.__file__).parent) + "/"
    files: set[str] = set()
    deepest: list[str] = []

    def watch(frame: FrameType | None, event: str, _: Any) -> None:
        nonlocal deepest
        if event != "call" or frame is None or not frame.f_code.co_filename.startswith(root):
            return
        if frame.f_code.co_name == "<module>":
            return
        files.add(frame.f_code.co_filename.removeprefix(root))
        codes = []
        while frame is not None:
            # comprehensions have frames of their own before Python 3.12
            if frame.f_code.co_filename.startswith(root) and frame.f_code.co_name[0] != "<":
                codes.append(frame.f_code)
            frame = frame.f_back
        if len(codes) > len(deepest):
            calls = (f"{code.co_filename.removeprefix(root)} {code.co_qualname}" for code in codes)
            deepest = [*calls][::-1]

    before = sys.getprofile()
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return sorted(files), deepest


def fits() -> dict[str, Callable[[], Any]]:
    """Return the fits to measure, by name."""
    from labelweave import (
        KernelLogisticClassifier,
        LabelGraphClassifier,
        LowRankClassifier,
        MaxMarginClassifier,
    )

    random = np.random.default_rng(0)
    X = random.normal(size=(40, 6))
    Y = (X @ random.normal(size=(6, 4)) + random.normal(size=(40, 4)) > 0).astype(int)
    classes = np.array(list("abcd"))[X[:, :4].argmax(1)]
    tree = {"left": ["a", "b"], "right": ["c", "d"]}
    models = {
        "max-margin, RBF": (MaxMarginClassifier(kernel="rbf"), Y),
        "kernel logistic, learned": (
            KernelLogisticClassifier(hyperparameters=HyperparameterSearch(max_learning_iter=8)),
            classes,
        ),
        "kernel logistic, learned, tree": (
            KernelLogisticClassifier(
                taxonomy=tree, hyperparameters=HyperparameterSearch(max_learning_iter=8)
            ),
            classes,
        ),
        "low rank": (LowRankClassifier(2), Y),
        "label graph, learned": (LabelGraphClassifier(GraphGrowth(max_rounds=3), tol=0.1), Y),
    }
    return {name: lambda model=model, y=y: model.fit(X, y) for name, (model, y) in models.items()}


def main() -> int:
    """Print a line for every fit."""
    print(f"{'fit':32}{'files':>6}{'depth':>7}")
    for name, fit in fits().items():
        files, stack = entered(fit)
        print(f"{name:32}{len(files):6}{len(stack):7}")
        for option, lines in (("--files", files), ("--stack", stack)):
            if option in sys.argv[1:]:
                print("\n".join(f"    {line}" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
