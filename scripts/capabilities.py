"""What each estimator can do, read from its constructor, its methods and from trials: docs/capabilities.md.

python scripts/capabilities.py          # prints the page
python scripts/capabilities.py --write  # replaces docs/capabilities.md
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from labelweave import (
    AutoLabelClassifier,
    ClassProbabilities,
    KernelLogisticClassifier,
    LabelCovariance,
    LabelGraphClassifier,
    LabelMatrix,
    LabelTreeClassifier,
    LowRankClassifier,
    MaxMarginClassifier,
    Taxonomy,
    kernels,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "capabilities.md"
ESTIMATORS = (
    AutoLabelClassifier,
    MaxMarginClassifier,
    KernelLogisticClassifier,
    LowRankClassifier,
    LabelGraphClassifier,
    LabelTreeClassifier,
)
QUICK: dict[type, dict[str, Any]] = {
    KernelLogisticClassifier: {"hyperparameters": "fixed"},
    AutoLabelClassifier: {"time_budget": 1e-3},
}
TREE = Taxonomy.from_nested({"animal": ["cat", "dog"], "tree": ["elm", "oak"]})

# what to write if an estimator lacks the feature; an unnecessary link fails the test
AUTOMATIC = "[automatic](recipes.md#one-call)"
CALIBRATE = "[calibrate](recipes.md#from-scores-to-label-sets)"
GRAPH = "[graph](recipes.md#label-graphs)"
IMPUTE = "[impute](https://scikit-learn.org/stable/modules/impute.html)"
METRIC = "[`metric=`](recipes.md#one-call)"
TREE_OF_LABELS = "[`tree=`](recipes.md#label-trees-for-ten-thousand-labels-and-more)"
WARM_START = "[`warm_start`](recipes.md#checkpoints-and-warm-starts)"
WEIGHTS = "[`{}`](recipes.md#sample-weights-and-costs)"
INSTEAD: dict[str, dict[type, str]] = {
    "missing features": dict.fromkeys(ESTIMATORS[1:], IMPUTE),
    "feature scaling": {
        AutoLabelClassifier: AUTOMATIC,
        LabelTreeClassifier: "[`Normalizer`](https://scikit-learn.org/stable/modules/preprocessing.html)",
    },
    "taxonomy": {LabelTreeClassifier: TREE_OF_LABELS},
    "learned label covariance": {
        LowRankClassifier: "[factors](recipes.md#many-labels-few-observed-entries)",
        LabelGraphClassifier: GRAPH,
    },
    "label covariance": {LabelGraphClassifier: GRAPH},
    "kernels": {AutoLabelClassifier: AUTOMATIC},
    "learned hyperparameters": {
        LabelTreeClassifier: "[search](recipes.md#texts-a-pipeline-and-gridsearchcv)",
    },
    "thresholds": {LabelTreeClassifier: "[tune](recipes.md#from-scores-to-label-sets)"},
    "costs of false positives and negatives": {
        AutoLabelClassifier: METRIC,
        KernelLogisticClassifier: WEIGHTS.format("class_weight"),
        LowRankClassifier: WEIGHTS.format("class_weight"),
    },
    "class weights": {
        AutoLabelClassifier: METRIC,
        LabelTreeClassifier: WEIGHTS.format("entry_weight"),
    },
    "new rows and labels": {KernelLogisticClassifier: WARM_START, LabelGraphClassifier: WARM_START},
    "probabilities": dict.fromkeys(
        (MaxMarginClassifier, LowRankClassifier, LabelGraphClassifier, LabelTreeClassifier), CALIBRATE
    ),
}


def _parameter(*names: str) -> Callable[[type], bool]:
    return lambda kind: any(name in inspect.signature(kind).parameters for name in names)


def _method(name: str) -> Callable[[type], bool]:
    return lambda kind: hasattr(kind, name)


def _fit_takes(name: str) -> Callable[[type], bool]:
    return lambda kind: name in inspect.signature(kind.fit).parameters


def _fits(y: Any, classes: int | None = None, **parameters: Any) -> Callable[[type], bool]:
    """Try a fit of sixteen rows with this many classes."""

    def trial(kind: type) -> bool:
        random = np.random.default_rng(0)
        X = random.normal(size=(16, 3))
        known = inspect.signature(kind).parameters
        if not parameters.keys() <= known.keys():
            return False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = kind(**{**QUICK.get(kind, {}), **parameters}).fit(X, y)
        except (ValueError, TypeError):
            return False
        return classes is None or len(model.classes_) == classes

    return trial


def _both(*trials: Callable[[type], bool]) -> Callable[[type], bool]:
    return lambda kind: all(can(kind) for can in trials)


_LABELS = np.tile([[1.0, 0, np.nan], [0, 1, 1]], (8, 1))
_PROBABLE = LabelMatrix.from_probabilities(np.abs(_LABELS - 0.1))
_CLASSES = np.array(["cat", "dog", "elm", "oak"] * 4, object)
_UNKNOWN = np.array(["cat", "dog", None, "oak"] * 4, object)
_PROBABLE_CLASSES = ClassProbabilities(np.tile([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], (8, 1)))
_COLUMNS = np.array([["cat", "3"], ["dog", "4"], ["elm", None], ["oak", "5"]] * 4, object)
_INNER = np.array(["cat", "dog", "tree", "oak", "elm", "cat", "dog", "animal"] * 2, object)
_COUPLED = LabelCovariance.dense(0.5 * np.eye(3) + 0.5)


def _inner_node(kind: type) -> bool:
    names = inspect.signature(kind).parameters
    tree = "taxonomy" if "taxonomy" in names else "label_covariance"
    return tree in names and _fits(_INNER, **{tree: TREE}, classes=4)(kind)


def _tree_over_labels(kind: type) -> bool:
    return _parameter("taxonomy")(kind) or _fits(_CLASSES, label_covariance=TREE)(kind)


# the name of the feature, what to write, and whether an estimator has it
CAPABILITIES: tuple[tuple[str, str, Callable[[type], bool]], ...] = (
    ("missing features", "NaN in `X`", lambda kind: kind().__sklearn_tags__().input_tags.allow_nan),
    ("feature scaling", '`scaling="auto"`', _parameter("scaling")),
    ("many labels per row, some missing", "NaN in `y`", _fits(_LABELS)),
    ("label probabilities", "`LabelMatrix.from_probabilities`", _fits(_PROBABLE)),
    ("known flip rates", "`flip_rates=`", _fits(_LABELS, flip_rates=(0.2, 0.05))),
    ("one class per row", "an array of classes", _fits(_CLASSES)),
    ("class probabilities as targets", "`ClassProbabilities`", _fits(_PROBABLE_CLASSES)),
    ("a missing class", "None in `y`", _fits(_UNKNOWN)),
    ("several columns of classes", "a table of them as `y`", _fits(_COLUMNS)),
    ("a class at an inner node", "its name in `y`", _inner_node),
    ("label covariance", "`label_covariance=`", _fits(_LABELS, label_covariance=_COUPLED)),
    ("taxonomy", "`taxonomy=`, or as a covariance", _tree_over_labels),
    (
        "learned label covariance",
        '`"learn"`',
        _fits(_LABELS, label_covariance="learn", hyperparameters="learn"),
    ),
    ("kernels", "`kernel=`", _parameter("kernel")),
    (
        "sums of kernels, one covariance per kernel",
        "lists for both",
        _fits(
            _LABELS,
            kernel=[kernels.RBFKernel(1.0), kernels.LinearKernel()],
            label_covariance=[_COUPLED, _COUPLED],
        ),
    ),
    ("learned hyperparameters", "`hyperparameters=`", _parameter("hyperparameters", "time_budget")),
    ("thresholds", "`threshold=`, `metric=`", _parameter("threshold", "metric")),
    (
        "costs of false positives and negatives",
        "`false_positive_cost=`",
        _parameter("false_positive_cost"),
    ),
    (
        "class weights",
        "`class_weight=`",
        _both(_fits(_LABELS, class_weight="balanced"), _fits(_CLASSES, class_weight={"cat": 2.0})),
    ),
    ("row weights", "`fit(..., sample_weight=)`", _fit_takes("sample_weight")),
    ("entry weights", "`fit(..., entry_weight=)`", _fit_takes("entry_weight")),
    ("progress on stderr", "`verbose=1`", _parameter("verbose")),
    ("warm start", "`warm_start=True`", _parameter("warm_start")),
    ("checkpoint", "`checkpoint=`", _parameter("checkpoint")),
    ("new rows and labels", "`partial_fit`", _method("partial_fit")),
    ("probabilities", "`predict_proba`", _method("predict_proba")),
)
HEAD = """# What each estimator can do

"yes" means that the code in the first column works. A link names what to use instead. An empty cell means
that the feature is not available. `AutoLabel` is {py:class}`~labelweave.AutoLabelClassifier`, and so on.
`python scripts/capabilities.py --write` tries each estimator and writes this page.

[Wrappers for decisions](recipes.md#from-scores-to-label-sets), {py:class}`~labelweave.TableModel`,
{py:class}`~labelweave.HierarchicalClassifier`, {py:class}`~labelweave.LabelTextClassifier` and
{py:class}`~labelweave.ZeroShotClassifier` wrap these estimators.
"""


@cache
def table() -> dict[str, dict[type, bool]]:
    """Find out what each estimator can do."""
    return {name: {kind: can(kind) for kind in ESTIMATORS} for name, _, can in CAPABILITIES}


def page() -> str:
    """Write the page: features of all estimators as a sentence, the rest as a table."""
    names = [f"`{kind.__name__.removesuffix('Classifier')}`" for kind in ESTIMATORS]
    common, rows = [], []
    for name, written, _ in CAPABILITIES:
        has, instead = table()[name], INSTEAD.get(name, {})
        if all(has.values()):
            common.append(f"{name} ({written})")
            continue
        cells = ["yes" if has[kind] else instead.get(kind, "") for kind in ESTIMATORS]
        rows.append(f"| {name}: {written} | {' | '.join(cells)} |")
    head = [f"| feature and how to use it | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    return "\n".join([HEAD, f"Available in all six: {'; '.join(common)}.", "", *head, *rows]) + "\n"


def main() -> int:
    """Print the page, or write it."""
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
