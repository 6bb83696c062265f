"""Labels of bibtex and delicious: kernel ridge regression of full and of reduced rank, with a learned kernel.

Mulan's splits, rows of unit length, RBF kernel.  Nothing is tuned on test rows.  "squared loss": gamma and
lambda are learned from their starting values (gamma="scale", lambda=1) on 2,000 training rows, by the
gradient of the 5-fold cross-validated squared loss; the model of full rank is then fitted to all rows, and
those of a share of the labels' number at the same gamma and lambda.  "P@1": of 1, 1/2 and 1/4 of that gamma,
and 4, 2, 1 and 1/2 times that lambda, the pair with the best P@1 in 5 folds of all training rows.  "Listed
best" are the highest figures of the Extreme Classification Repository for these sets: SLEEC on bibtex,
FastXML on delicious.
"""

import time
from typing import Any

from benchmarks.frame import RESULTS, RecordedRuns, command, several, timed
from benchmarks.problems import read_tables
from labelweave import HyperparameterSearch, LowRankClassifier, RankSearch
from labelweave.features import RBFKernel
from labelweave.metrics import precision_at_k

_GOALS = {"bibtex": (0.655, 0.403, 0.294), "delicious": (0.683, 0.628, 0.580)}
_PUBLISHED = {"bibtex": (0.651, 0.396, 0.289), "delicious": (0.696, 0.641, 0.593)}
_SHARES = {"squared loss": (1.0, 0.8, 0.6, 0.4, 0.2), "P@1": (1.0,)}
_GAMMAS, _LAMBDAS = (1.0, 0.5, 0.25), (4.0, 2.0, 1.0, 0.5)
_LEARNING_ROWS = 2000
_FIGURES = ("P@1", "P@3", "P@5")


def _learned(runs: list[dict[str, Any]], name: str) -> dict[str, float] | None:
    for run in runs:
        if (run["data"], run["chosen by"]) == (name, "squared loss"):
            values: dict[str, float] = run["hyperparameters"]
            return values
    return None


def measure(
    parts: tuple[Any, Any, Any, Any], share: float, criterion: str, learned: dict[str, float] | None
) -> dict[str, Any]:
    X, Y, X_test, Y_test = parts
    if criterion == "P@1":
        if learned is None:
            raise ValueError("P@1 chooses near what the squared loss learned; measure that first.")
        model, seconds = timed(_best_in_folds, X, Y, learned, clock=time.perf_counter)
    else:
        model, seconds = timed(_fitted, X, Y, share, learned, clock=time.perf_counter)
    learning = float(model.learning_trace_[-1].time) if model.learning_trace_ else 0.0
    scores = model.decision_function(X_test)
    return {
        **{f"P@{k}": float(precision_at_k(Y_test, scores, k)) for k in (1, 3, 5)},
        "rank": model.rank_,
        "hyperparameters": model.hyperparameters_,
        "cv loss": float(model.cross_validation_loss_),
        "learning status": model.learning_status_,
        "evaluations": len(model.learning_trace_),
        "learning seconds": learning,
        "fit seconds": seconds - learning,
        "objective": float(model.objective_),
    }


def _fitted(X: Any, Y: Any, share: float, learned: dict[str, float] | None) -> LowRankClassifier:
    search = HyperparameterSearch(learning_rows=_LEARNING_ROWS)
    choice: dict[str, Any] = {"hyperparameters": search, "kernel": "rbf"}
    if learned is not None:
        choice = {"kernel": RBFKernel(learned["gamma"]), "alpha": learned["alpha"]}
    return LowRankClassifier(round(share * Y.shape[1]), penalty="ridge", n_jobs=1, **choice).fit(X, Y)


def _best_in_folds(X: Any, Y: Any, learned: dict[str, float]) -> LowRankClassifier:
    penalties = [factor * learned["alpha"] for factor in _LAMBDAS]
    models = []
    for factor in _GAMMAS:
        kernel = RBFKernel(factor * learned["gamma"])
        model = LowRankClassifier(
            RankSearch([1.0], penalties, scoring="precision_at_1"), penalty="ridge", kernel=kernel, n_jobs=1
        )
        models.append(model.fit(X, Y))
    return max(models, key=lambda model: model.best_score_)


def table(runs: list[dict[str, Any]]) -> str:
    lines = [f"{'':10s}{'rank':>6s}" + "".join(f"{title:>8s}" for title in _FIGURES) + "   learn s   fit s"]
    for name in _GOALS:
        lines += [_line(run) for run in runs if run["data"] == name]
        lines.append(f"{'  listed best':16s}{_shown(_PUBLISHED[name])}")
    return "\n".join(lines)


def _line(run: dict[str, Any]) -> str:
    figures = _shown([run[title] for title in _FIGURES])
    learned = ", ".join(f"{name} {value:.3g}" for name, value in run["hyperparameters"].items())
    times = f"{run['learning seconds']:10.1f}{run['fit seconds']:8.1f}"
    return f"{run['data']:10s}{run['rank']:6d}{figures}{times}   {run['chosen by']}: {learned}"


def _shown(values: Any) -> str:
    return "".join(f"{100 * value:8.2f}" for value in values)


@command(
    data=several(_GOALS), criteria=several(_SHARES), records=RESULTS / "papers" / "low_rank_kernels.json"
)
def main(arguments: Any) -> None:
    record = RecordedRuns(arguments, goals=_GOALS, published=_PUBLISHED)
    for name in arguments.data if record.measures else ():
        parts = read_tables(name, rows="unit")
        for criterion in arguments.criteria:
            choices = {"data": [name], "chosen by": [criterion], "share": _SHARES[criterion]}
            for case in record.missing(**choices):
                learned = _learned(record.runs, name)
                found = measure(parts, case["share"], criterion, learned)
                print(_line(record.add(case, found)), flush=True)
    record.show(table(record.runs))
