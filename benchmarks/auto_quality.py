"""Quality of AutoLabelClassifier compared with the best and the median of 28 methods on small public sets.

The methods' numbers are those of Bogatinovski, Todorovski, Dzeroski and Kocev, "Comprehensive comparative
study of multi-label classification methods", 2022; their thresholds were set by the evaluated fold's own
number of labels per row, which favors them.  One configuration serves all sets; scores are of one model, and
label sets are optimized for the metric nearest to the measure, on out-of-fold training rows.

    python -m benchmarks.auto_quality                    # the given test rows
    python -m benchmarks.auto_quality --splits 5 --sets flags emotions birds
"""

import csv
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import metrics as sk

from benchmarks.frame import OUT, command, cost_of, flag, save, several
from benchmarks.problems import DEFAULT_DATA, read_parts, stacked
from labelweave import AutoLabelClassifier
from labelweave.decisions.automatic.label_sets import value_of_sets
from labelweave.splits import IterativeStratifiedShuffleSplit

_SETS = ("flags", "emotions", "birds", "enron", "scene", "yeast", "bibtex")
_ERRORS = {"HAMMING_LOSS_example_based", "LABEL_RANKING_LOSS", "ONE_ERROR"}
_NAMED = ("RFPCT", "RFDTBR", "BR", "ECCJ48", "EBRJ48", "Ada")
_DECIDED = {
    "HAMMING_LOSS_example_based": "hamming_loss",
    "MICRO_F1": "micro_f1",
    "MACRO_F1": "macro_f1",
    "F1_example_based": "example_f1",
    "ACCURACY_example_based": "jaccard",
    "SUBSET_ACCURACY": "subset_accuracy",
}
_ROUNDING = -5e-4  # the study prints three digits
FOLDER = DEFAULT_DATA / "mulan"


def set_measures(truth: Any, predicted: Any) -> dict[str, float]:
    """Measure label sets by the conventions of the study: a correct empty set has an F1 of 0."""
    both, either = (truth * predicted).sum(axis=1), np.maximum(truth, predicted).sum(axis=1)
    sizes = truth.sum(axis=1) + predicted.sum(axis=1)
    return {
        "HAMMING_LOSS_example_based": float((truth != predicted).mean()),
        "MICRO_F1": float(sk.f1_score(truth, predicted, average="micro", zero_division=0)),
        "MACRO_F1": float(sk.f1_score(truth, predicted, average="macro", zero_division=0)),
        "F1_example_based": float((2 * both / np.maximum(sizes, 1)).mean()),
        "ACCURACY_example_based": float(np.where(either > 0, both / np.maximum(either, 1), 1.0).mean()),
        "SUBSET_ACCURACY": float((truth == predicted).all(axis=1).mean()),
    }


def rank_measures(truth: Any, scores: Any) -> dict[str, float]:
    """Measure scores; a row without labels has no right first label."""
    first = truth[np.arange(len(truth)), scores.argmax(axis=1)]
    return {
        "LABEL_RANKING_LOSS": float(sk.label_ranking_loss(truth, scores)),
        "LABEL_RANKING_AVERAGE_PRECISION": float(sk.label_ranking_average_precision_score(truth, scores)),
        "AUCROC_MICRO": float(sk.roc_auc_score(truth.ravel(), scores.ravel())),
        "AUPRC_MICRO": float(sk.average_precision_score(truth.ravel(), scores.ravel())),
        "ONE_ERROR": float(1.0 - first.mean()),
    }


def all_measures(model: AutoLabelClassifier, X: Any, truth: Any) -> dict[str, float]:
    """Measure a fitted model, with label sets optimized for each measure."""
    found = rank_measures(truth, model.predict_proba(X))
    for measure, metric in _DECIDED.items():
        predicted = np.asarray(dense(model.optimize_for(metric).predict(X)))
        found[measure] = set_measures(truth, predicted)[measure]
    return found


def dense(table: Any) -> Any:
    return table.toarray() if sp.issparse(table) else table


def load(name: str) -> tuple[Any, Any, Any, Any]:
    train, test = read_parts(name)
    return train.X, train.Y, test.X, test.Y


def splits(name: str, count: int) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Return the split of a set, or stratified 60/40 splits of all its rows."""
    if not count:
        yield load(name)
        return
    rows, labels = stacked(read_parts(name))
    splitter = IterativeStratifiedShuffleSplit(count, test_size=0.4, random_state=0)
    for train, test in splitter.split(rows, labels):
        yield rows[train], labels[train], rows[test], labels[test]


def envelope() -> dict[tuple[str, str], tuple[float, float]]:
    """Read the best and the median method; for one-error, where the best is the largest, the least of six."""
    with (FOLDER / "study_envelope.csv").open() as file:
        lines = list(csv.DictReader(file))
    found = {}
    for line in lines:
        best = float(line["best"])
        if line["metric"] == "ONE_ERROR":
            best = min(float(line[name]) for name in _NAMED if line[name])
        found[line["metric"], line["set"]] = best, float(line["median"])
    return found


def measure_set(name: str, count: int) -> dict[str, Any]:
    runs, costs, models = [], [], []
    for X, Y, X_test, Y_test in splits(name, count):
        model, *spent = cost_of(AutoLabelClassifier(n_jobs=2).fit, X, Y)
        costs.append(spent)
        truth = Y_test.positives.toarray().astype(int)
        runs.append(all_measures(model, X_test, truth))
        value, error = value_of_sets(Y_test, np.asarray(dense(model.predict(X_test))), "micro_f1")
        models.append({"members": model.members_, "out_of_fold_micro_f1": model.oof_score_,
                       "error": model.oof_standard_error_, "loss": model.oof_loss_,
                       "test_micro_f1": value, "test_error": error})  # fmt: skip
    means = {measure: float(np.mean([run[measure] for run in runs])) for measure in runs[0]}
    spent = dict(zip(("seconds", "processor_seconds"), np.mean(costs, axis=0).tolist(), strict=True))
    return {"measures": means, **spent, "runs": runs, "models": models}


def _trust(models: list[dict[str, Any]]) -> None:
    """Print the expected score of models and the one on test rows, with standard errors."""
    for model in models:
        away = model["test_micro_f1"] - model["out_of_fold_micro_f1"]
        ratio = away / np.hypot(model["error"], model["test_error"])
        print(
            "   expected micro-F1 {out_of_fold_micro_f1:.4f} +- {error:.4f}, on test rows "
            "{test_micro_f1:.4f} +- {test_error:.4f}".format(**model) + f", {ratio:+.2f} standard errors",
            flush=True,
        )  # fmt: skip


def _summary(results: dict[str, Any], study: dict[tuple[str, str], tuple[float, float]]) -> None:
    gains: dict[str, list[float]] = {}
    for name, found in results.items():
        for measure, value in found["measures"].items():
            gains.setdefault(measure, []).append(_sign(measure) * (value - study[measure, name][0]))
    cells = np.concatenate(list(gains.values()))
    print(f"at or above the best method: {np.mean(cells >= _ROUNDING):.0%} of {len(cells)} cells")
    for measure, values in gains.items():
        share = np.mean(np.array(values) >= _ROUNDING)
        print(f"   {measure:33s} mean distance {np.mean(values):+.4f}, at or above in {share:.0%}")


def _sign(measure: str) -> int:
    return -1 if measure in _ERRORS else 1


@command(sets=several(_SETS), splits=flag(0, "stratified 60/40 splits of all rows; 0: as given"), out=OUT)
def main(options: Any) -> None:
    study, results = envelope(), {}
    for name in options.sets:
        found = measure_set(name, options.splits)
        results[name] = found
        print(
            f"{name}: {found['seconds']:.0f} s, {found['processor_seconds']:.0f} of a processor", flush=True
        )
        for member in found["models"][0]["members"]:
            words = "   {name:12s} weight {weight:.2f}  left-out loss {oof_loss:.4f}  {seconds:.1f} s"
            print(words.format(**member))
        _trust(found["models"])
        for measure, value in found["measures"].items():
            best, median = study[measure, name]
            gain = _sign(measure) * (value - best)
            line = f"{measure:33s} {value:.4f}  best {best:.3f}  median {median:.3f}  {gain:+.4f}"
            print(f"   {line} {'+' if gain >= _ROUNDING else ''}", flush=True)
    _summary(results, study)
    save(options.out, results)
