"""The kernel remark of LEML (Yu et al. 2014, section 3): rows of the kernel matrix as features.

The paper penalises the coefficients Z of ``f(x) = Z^T k(x)``; a kernel of ``LowRankClassifier`` penalises the
functions, ``tr(Z^T K Z)``.  Squared loss, ridge penalty, half the rank, RBF kernels of the width one over the
number of standardised features.  lambda is that of the least squared error of five folds of the training
rows.  Shown are errors in the folds and on the test rows, relative to predicting each label's mean.

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.papers.kernel_rows``.
"""

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from benchmarks.frame import RESULTS, command, flag
from benchmarks.papers.label_losses import read_set
from benchmarks.recorded_runs import RecordedRuns
from labelweave import LowRankClassifier

_GRID = 10.0 ** np.arange(-3, 3.5, 0.5)
_KINDS = ("kernel's space", "rows of K")


def _model(X: Any, rank: int, kind: str, regularization: float) -> Any:
    gamma = 1.0 / X.shape[1]
    model = LowRankClassifier(rank, alpha=regularization, penalty="ridge", threshold=0.0)
    if kind == "kernel's space":
        return model.set_params(kernel="rbf", gamma=gamma)
    return make_pipeline(FunctionTransformer(rbf_kernel, kw_args={"Y": X, "gamma": gamma}), model)


def _error(scores: Any, Y: Any) -> float:
    return float(np.square(scores - Y).sum() / np.square(Y - Y.mean(axis=0)).sum())


def _measure(name: str, kind: str) -> dict[str, float]:
    (X, Y), (X_test, Y_test) = read_set(name)
    rank, errors = max(2, Y.shape[1] // 2), []
    for regularization in _GRID:
        scores = np.zeros(Y.shape)
        for training, other in KFold(5, shuffle=True, random_state=0).split(X):
            model = _model(X[training], rank, kind, float(regularization)).fit(X[training], Y[training])
            scores[other] = model.decision_function(X[other])
        errors.append(_error(scores, Y))
    best = int(np.argmin(errors))
    fitted = _model(X, rank, kind, float(_GRID[best])).fit(X, Y)
    test = _error(fitted.decision_function(X_test), Y_test)
    return {"lambda": float(_GRID[best]), "folds": errors[best], "test": test}


def table(runs: list[dict[str, Any]]) -> str:
    """Write the errors of both penalties."""
    lines = [f"{'set':10s}{'penalty':16s}{'lambda':>10s}{'folds':>9s}{'test':>9s}"]
    lines += [
        f"{run['set']:10s}{run['penalty']:16s}{run['lambda']:10.3g}{run['folds']:9.4f}{run['test']:9.4f}"
        for run in runs
    ]
    return "\n".join(lines)


@command(sets=flag(["emotions", "scene"], "of Mulan's"), records=RESULTS / "papers" / "kernel_rows.json")
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments)
    for case in record.missing(set=arguments.sets, penalty=_KINDS):
        print(record.add(case, _measure(*case.values())), flush=True)
    record.show(table(record.runs))
