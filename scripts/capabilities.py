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

# why a hole is one; a hole without a reason, or a reason without a hole, fails the test
IMPUTED = 'scikit-learn\'s `SimpleImputer` before it, or `missing_numeric="mean"` in a table'
NO_PRIOR = "it takes labels one by one, and nothing that is known of them a priori"
REFITTED = "it is fitted anew, within its time budget"
NOT_CONVEX = "factors are learned, not a covariance around them"
REASONS = {
    **{("missing features (NaN)", kind.__name__): IMPUTED for kind in ESTIMATORS[1:]},
    **{
        (what, "AutoLabelClassifier"): NO_PRIOR
        for what in (
            "a row known to an inner node",
            "label covariance",
            "taxonomy",
            "a learned label covariance",
            "kernels with a covariance each, summed",
        )
    },
    ("features scaled (`scaling=`)", "AutoLabelClassifier"): "it chooses the scaling itself",
    ("costs of mistakes by kind", "KernelLogisticClassifier"): "`class_weight` weighs them",
    ("costs of mistakes by kind", "LowRankClassifier"): "`class_weight` weighs them",
    ("features scaled (`scaling=`)", "LabelTreeClassifier"): "scikit-learn's `Normalizer` before it",
    ("kernels", "AutoLabelClassifier"): "it chooses kernels and their widths itself",
    ("costs of mistakes by kind", "AutoLabelClassifier"): "`metric=` says what label sets are to be best for",
    ("weights of classes (`class_weight=`)", "AutoLabelClassifier"): (
        "of one class a row; of many labels `metric=` says what is to be best"
    ),
    ("weights of entries", "AutoLabelClassifier"): "rows have weights, entries are observed or not",
    ("warm start", "AutoLabelClassifier"): REFITTED,
    ("checkpoint", "AutoLabelClassifier"): "after Ctrl-C it combines the members that are done",
    ("new rows and labels (`partial_fit`)", "AutoLabelClassifier"): REFITTED,
    ("kernels with a covariance each, summed", "LowRankClassifier"): NOT_CONVEX,
    ("kernels with a covariance each, summed", "KernelLogisticClassifier"): (
        "its kernels are one a class, a level or a subtree (`tie`), not a list"
    ),
    ("kernels with a covariance each, summed", "LabelGraphClassifier"): (
        "labels go together by the graph; a kernel object may be a sum"
    ),
    ("label covariance", "LabelGraphClassifier"): "labels go together by the graph",
    ("taxonomy", "LabelGraphClassifier"): "labels go together by the graph",
    ("a row known to an inner node", "LabelGraphClassifier"): "it takes no taxonomy",
    ("new rows and labels (`partial_fit`)", "KernelLogisticClassifier"): (
        "a kernel model keeps its rows; `warm_start=True` serves"
    ),
    ("new rows and labels (`partial_fit`)", "LabelGraphClassifier"): (
        "the dual point of a row is bound to the graph; `warm_start=True` serves"
    ),
    (
        "probabilities",
        "MaxMarginClassifier",
    ): "margins are no probabilities; `CalibratedLabelClassifier` makes them",
    (
        "probabilities",
        "LowRankClassifier",
    ): "scores are no probabilities; `CalibratedLabelClassifier` makes them",
    (
        "probabilities",
        "LabelGraphClassifier",
    ): "scores are no probabilities; `CalibratedLabelClassifier` makes them",
    ("a learned label covariance", "LowRankClassifier"): "the learned factors are one: Z = W Hᵀ",
    ("a learned label covariance", "LabelGraphClassifier"): "the learned graph takes its place",
    ("hyper-parameters learned", "LabelGraphClassifier"): (
        "kernel width and ridge of left-out scores are; the graph's penalty is a scale"
    ),
}

IN_TREES = "labels go together by the tree, which `tree=` may give"
LINEAR = "it is linear, as texts and other wide rows want"
REASONS |= {
    (
        "a row known to an inner node",
        "LabelTreeClassifier",
    ): "inner nodes would be classes of their own; leave such rows out, or give their class as None",
    ("label covariance", "LabelTreeClassifier"): IN_TREES,
    ("taxonomy", "LabelTreeClassifier"): "`tree=` takes one, to search labels by; labels do not covary by it",
    ("a learned label covariance", "LabelTreeClassifier"): IN_TREES,
    ("kernels", "LabelTreeClassifier"): LINEAR,
    ("kernels with a covariance each, summed", "LabelTreeClassifier"): LINEAR,
    ("hyper-parameters learned", "LabelTreeClassifier"): "scikit-learn's searches choose `C`",
    (
        "thresholds (`threshold=`, `metric=`)",
        "LabelTreeClassifier",
    ): "`TunedThresholdClassifier` chooses them",
    ("costs of mistakes by kind", "LabelTreeClassifier"): "a node has one cost for all labels below it",
    ("weights of classes (`class_weight=`)", "LabelTreeClassifier"): (
        "of one class a row; of many labels `entry_weight` does it"
    ),
    ("warm start", "LabelTreeClassifier"): "no dual variables are kept; a checkpoint goes on",
    ("new rows and labels (`partial_fit`)", "LabelTreeClassifier"): "no dual variables are kept; fit anew",
    (
        "probabilities",
        "LabelTreeClassifier",
    ): "margins are no probabilities; `CalibratedLabelClassifier` makes them",
}


def _parameter(*names: str) -> Callable[[type], bool]:
    return lambda kind: any(name in inspect.signature(kind).parameters for name in names)


def _method(name: str) -> Callable[[type], bool]:
    return lambda kind: hasattr(kind, name)


def _fit_takes(name: str) -> Callable[[type], bool]:
    return lambda kind: name in inspect.signature(kind.fit).parameters


def _fits(y: Any, classes: int | None = None, **parameters: Any) -> Callable[[type], bool]:
    """Try a fit of sixteen rows, which has so many classes."""

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
_INNER = np.array(["cat", "dog", "tree", "oak", "elm", "cat", "dog", "animal"] * 2, object)
_COUPLED = LabelCovariance.dense(0.5 * np.eye(3) + 0.5)


def _inner_node(kind: type) -> bool:
    names = inspect.signature(kind).parameters
    tree = "taxonomy" if "taxonomy" in names else "label_covariance"
    return tree in names and _fits(_INNER, **{tree: TREE}, classes=4)(kind)


def _tree_over_labels(kind: type) -> bool:
    return _parameter("taxonomy")(kind) or _fits(_CLASSES, label_covariance=TREE)(kind)


CAPABILITIES: dict[str, Callable[[type], bool]] = {
    "missing features (NaN)": lambda kind: kind().__sklearn_tags__().input_tags.allow_nan,
    "features scaled (`scaling=`)": _parameter("scaling"),
    "many labels, some unobserved": _fits(_LABELS),
    "labels as probabilities (`LabelMatrix.from_probabilities`)": _fits(_PROBABLE),
    "known flip rates, labels only forgotten (`flip_rates=`)": _fits(_LABELS, flip_rates=(0.2, 0.05)),
    "one class a row": _fits(_CLASSES),
    "one class a row, by probabilities (`ClassProbabilities`)": _fits(_PROBABLE_CLASSES),
    "a class that is not known (None)": _fits(_UNKNOWN),
    "a row known to an inner node": _inner_node,
    "label covariance": _fits(_LABELS, label_covariance=_COUPLED),
    "taxonomy": _tree_over_labels,
    "a learned label covariance": _fits(_LABELS, label_covariance="learn", hyperparameters="learn"),
    "kernels": _parameter("kernel"),
    "kernels with a covariance each, summed": _fits(
        _LABELS,
        kernel=[kernels.RBFKernel(1.0), kernels.LinearKernel()],
        label_covariance=[_COUPLED, _COUPLED],
    ),
    "hyper-parameters learned": _parameter("hyperparameters", "time_budget"),
    "thresholds (`threshold=`, `metric=`)": _parameter("threshold", "metric"),
    "costs of mistakes by kind": _parameter("false_positive_cost"),
    "weights of classes (`class_weight=`)": _both(
        _fits(_LABELS, class_weight="balanced"), _fits(_CLASSES, class_weight={"cat": 2.0})
    ),
    "weights of rows": _fit_takes("sample_weight"),
    "weights of entries": _fit_takes("entry_weight"),
    "progress on stderr (`verbose=`)": _parameter("verbose"),
    "warm start": _parameter("warm_start"),
    "checkpoint": _parameter("checkpoint"),
    "new rows and labels (`partial_fit`)": _method("partial_fit"),
    "probabilities": _method("predict_proba"),
}


@cache
def table() -> dict[str, dict[str, bool]]:
    """Find out what each estimator can do."""
    return {name: {kind.__name__: can(kind) for kind in ESTIMATORS} for name, can in CAPABILITIES.items()}


def page() -> str:
    """Write the page."""
    names = [kind.__name__ for kind in ESTIMATORS]
    lines = [
        "# What each estimator can do",
        "",
        "Made by `python scripts/capabilities.py --write` from the code; a test holds it.",
        "",
        "Around these stand [wrappers that decide](recipes.md#from-scores-to-label-sets), "
        "{py:class}`~labelweave.HierarchicalClassifier`, {py:class}`~labelweave.LabelTextClassifier` and "
        "{py:class}`~labelweave.TableModel`. {py:class}`~labelweave.ZeroShotClassifier` fits one of them "
        "inside.",
        "",
        "| | " + " | ".join(f"`{name}`" for name in names) + " |",
        "|---|" + "---|" * len(names),
    ]
    notes: list[str] = []
    for what, found in table().items():
        cells = []
        for name in names:
            if not found[name]:
                reason = REASONS[what, name]
                notes += [] if reason in notes else [reason]
            cells.append("yes" if found[name] else f"no ({notes.index(reason) + 1})")
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    lines += ["", *(f"{number}. {note}" for number, note in enumerate(notes, 1)), ""]
    return "\n".join(lines)


def main() -> int:
    """Print the page, or write it."""
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
