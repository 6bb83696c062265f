"""Low rank and binary relevance by penalty and by the length of rows (Yu et al.  2014, Table 4).

bibtex, 20 % of the training entries observed, the same ones as in ``benchmarks.papers.low_rank_tables``,
squared loss, rank 40 % of the labels.  Every penalty is fitted to all training rows and tested, to show the
whole path: no figure here was chosen.  "unit" has rows of length 1, as the tables do; "as given" has the
unscaled words, 0 and 1.
"""

from itertools import product
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, RecordedRuns, Run, command, quiet
from benchmarks.problems import read_dense
from labelweave import BinaryRelevance, LowRankClassifier
from labelweave.metrics import average_auc, precision_at_k

_PENALTIES = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_ROWS = ("unit", "as given")
_METHODS = ("trace norm", "ridge", "binary relevance")
_PAPER = {"trace norm": "28.50", "ridge": "", "binary relevance": "25.78"}


def _model(method: str, penalty: float) -> Any:
    if method == "binary relevance":
        return BinaryRelevance("squared_error", alpha=penalty)
    kind = "trace_norm" if method == "trace norm" else "ridge"
    return LowRankClassifier(0.4, "squared_error", penalty, penalty=kind, dtype="float32", tol=3e-4)


def table(runs: list[Run]) -> str:
    """Write top-3 accuracy by penalty, a line for each method and length of rows."""
    title = f"{'top-3 accuracy %, rows':32s}" + "".join(f"{penalty:>8g}" for penalty in _PENALTIES)
    lines = [f"{title}   paper"]
    for rows, method in product(_ROWS, _METHODS):
        own = {run["penalty"]: run["P@3"] for run in runs if (run["rows"], run["method"]) == (rows, method)}
        if own:
            cells = "".join(f"{100 * own[one]:8.2f}" if one in own else " " * 8 for one in _PENALTIES)
            lines.append(f"{f'{method}, {rows}':32s}{cells}   {_PAPER[method]}".rstrip())
    return "\n".join(lines)


@command(records=RESULTS / "papers" / "penalty_path.json")
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments, paper=_PAPER)
    for rows, method in product(_ROWS, _METHODS) if record.measures else ():
        X, Y, X_test, Y_test = read_dense("bibtex", rows)
        Y = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, Y, np.nan)
        for case in record.missing(rows=[rows], method=[method], penalty=_PENALTIES):
            with quiet():
                scores = _model(method, case["penalty"]).fit(X, Y).decision_function(X_test)
            area = average_auc(Y_test, scores, average="example")
            record.add(case, {"P@3": float(precision_at_k(Y_test, scores, 3)), "AUC": float(area)})
        print(f"{method}, rows {rows}: measured", flush=True)
    record.show(table(record.runs))
