"""The cost of checking sparse features as a share of a prediction, in CPU seconds.

The structure of the arrays (indices in range, ascending row starts) and whether all numbers are finite are
checked once per call, before a compiled loop reads them.
"""

from statistics import median
from typing import Any

from benchmarks.frame import command, timed
from benchmarks.problems import load_problem
from labelweave import MaxMarginClassifier
from labelweave.features import FeatureMatrix
from labelweave.foundation.arrays import checked_csr


@command(problems=["debtags"], rounds=15)
def main(options: Any) -> None:
    for name in options.problems:
        X, Y = load_problem(name)
        model = MaxMarginClassifier().fit(X, Y)
        calls = (lambda: model.predict(X), lambda: checked_csr(X, "X"), lambda: FeatureMatrix(X))  # noqa: B023
        runs = [[timed(call)[1] for call in calls] for _ in range(options.rounds)]
        predict, structure, everything = (median(column) for column in zip(*runs, strict=True))
        print(
            f"{name}, {X.shape[0]} rows, {X.nnz} non-zeros: predict {1e3 * predict:.1f} ms, "
            f"of which structure {structure / predict:.2%}, all checks {everything / predict:.2%}"
        )
