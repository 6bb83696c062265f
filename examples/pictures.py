"""Every plot of the library for 6, 100 and 983 labels, as PNG files.

    python examples/pictures.py FOLDER    # a few minutes

The data are synthetic: rows of words with labels of very different frequency, and classes in a tree.  Every
plot is written in its default size and, with ``small`` in its name, in a figure 4 inches wide.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelweave import (
    CalibratedLabelClassifier,
    GraphGrowth,
    LabelCovariance,
    LabelGraphClassifier,
    LabelMatrix,
    LowRankClassifier,
    MaxMarginClassifier,
    Taxonomy,
    TunedThresholdClassifier,
    datasets,
)
from labelweave.display import (
    CalibrationCurveDisplay,
    DualProgressDisplay,
    ErrorRejectDisplay,
    LabelCovarianceDisplay,
    LabelGraphDisplay,
    LabelGraphPathDisplay,
    LabelQualityDisplay,
    TaxonomyDisplay,
    ThresholdCurveDisplay,
)

SIZES = (6, 100, 983)
SMALL = (4.0, 3.4)  # inches
TRAINING_ROWS, TEST_ROWS, WORDS = 3_000, 1_500, 3_000
SYLLABLES = ("ra", "mon", "te", "lu", "sil", "va", "kor", "ni", "bel", "do", "shi", "gran")
OBSERVED = 0.9  # share of the test entries
GRAPH_ROWS = 300  # from which label graphs are learned


@dataclass
class Problem:
    """Training and test rows, and models fitted to the former."""

    X: Any
    Y: LabelMatrix
    X_test: Any
    Y_test: LabelMatrix
    models: dict[str, Any]
    tuned: Any
    calibrated: Any
    graph: Any


def main() -> None:
    """Draw everything into the folder."""
    parser = argparse.ArgumentParser(description="Write every picture as PNG files.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--labels", type=int, nargs="+", default=list(SIZES))
    arguments = parser.parse_args()
    import matplotlib

    matplotlib.use("Agg")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for n_labels in arguments.labels:
        for name, draw in pictures(n_labels).items():
            write(draw, arguments.folder / f"{name}_{n_labels}.png")


def write(draw: Callable[..., Any], path: Path) -> None:
    """Draw once in the default size and once small."""
    import matplotlib.pyplot as plt

    draw().figure_.savefig(path, dpi=100)
    plt.close("all")
    _, ax = plt.subplots(figsize=SMALL, layout="constrained")
    if path.stem.startswith(("progress", "quality")):
        draw(ax, one_panel=True).figure_.savefig(path.with_stem(f"{path.stem}_small"), dpi=100)
    else:
        draw(ax).figure_.savefig(path.with_stem(f"{path.stem}_small"), dpi=100)
    plt.close("all")
    print(path)


def pictures(n_labels: int) -> dict[str, Callable[..., Any]]:
    """Return the functions that draw, by name; each takes axes or makes a figure."""
    case = make_problem(n_labels)
    X, Y = case.X_test, case.Y_test
    few = [str(Y.names[k]) for k in np.argsort(-Y.positive_counts(), kind="stable")[:4:2]]
    tree, truths, predictions, probabilities = make_classes(n_labels)

    def progress(ax: Any = None, one_panel: bool = False) -> Any:
        panels = ["gap"] if one_panel else ["objective", "gap"]
        return DualProgressDisplay.from_estimator(case.models, ax=ax, panels=panels)

    def single_progress(ax: Any = None, one_panel: bool = False) -> Any:
        panels = ["objective"] if one_panel else ["objective", "gap"]
        return DualProgressDisplay.from_estimator(
            case.models["C = 1"], ax=ax, panels=panels, against="rounds"
        )

    def quality(ax: Any = None, one_panel: bool = False) -> Any:
        measures = ["f1"] if one_panel else ["precision", "recall", "f1"]
        return LabelQualityDisplay.from_estimator(case.tuned, X, Y, ax=ax, measures=measures)

    covariance = LabelCovariance.dense(label_correlations(case.Y), case.Y.names)
    prior = LabelCovariance.from_labels(case.Y)
    return {
        "progress": progress,
        "progress_of_one": single_progress,
        "quality": quality,
        "thresholds": lambda ax=None: ThresholdCurveDisplay.from_estimator(case.tuned, X, Y, ax=ax),
        "thresholds_of_labels": lambda ax=None: ThresholdCurveDisplay.from_estimator(
            case.tuned, X, Y, labels=few, ax=ax
        ),
        "calibration": lambda ax=None: CalibrationCurveDisplay.from_estimator(case.calibrated, X, Y, ax=ax),
        "calibration_of_labels": lambda ax=None: CalibrationCurveDisplay.from_estimator(
            case.calibrated, X, Y, labels=few, ax=ax
        ),
        "taxonomy": lambda ax=None: TaxonomyDisplay.from_predictions(tree, truths, predictions, ax=ax),
        "taxonomy_by_rows": lambda ax=None: TaxonomyDisplay.from_predictions(
            tree, truths, predictions, leaf_height="rows", ax=ax
        ),
        "covariance": lambda ax=None: LabelCovarianceDisplay.from_covariance(covariance, ax=ax),
        "prior": lambda ax=None: LabelCovarianceDisplay.from_covariance(prior, ax=ax),
        "graph": lambda ax=None: LabelGraphDisplay.from_estimator(case.graph, ax=ax),
        "graph_path": lambda ax=None: LabelGraphPathDisplay.from_estimator(case.graph, ax=ax),
        "error_reject": lambda ax=None: ErrorRejectDisplay.from_predictions(
            truths, probabilities, classes=tree.leaves, name="classes", ax=ax
        ),
    }


def make_problem(n_labels: int) -> Problem:
    """Make rows of words, hide some test labels, fit the models."""
    data = datasets.make_text_like(
        TRAINING_ROWS + TEST_ROWS, WORDS, n_labels, labels_per_row=min(3.0, 0.3 * n_labels), random_state=0
    )
    labels = LabelMatrix(data.Y.positives, names=[made_up_name(k) for k in range(n_labels)])
    X, Y = data.X[:TRAINING_ROWS], labels[:TRAINING_ROWS]
    seen = np.random.default_rng(0).random((TEST_ROWS, n_labels)) < OBSERVED
    base = MaxMarginClassifier(C=1.0)
    MaxMarginClassifier().fit(X[:50], Y[:50])  # compiles the loops, which must not count in the times
    models = {
        "C = 1": MaxMarginClassifier(C=1.0, tol=1e-4).fit(X, Y),
        "C = 10": MaxMarginClassifier(C=10.0).fit(X, Y),
        "low rank": LowRankClassifier(rank=min(20, n_labels)).fit(X, Y),
    }
    return Problem(
        X,
        Y,
        data.X[TRAINING_ROWS:],
        labels[TRAINING_ROWS:].masked(seen),
        models,
        TunedThresholdClassifier(base).fit(X, Y),
        CalibratedLabelClassifier(base).fit(X, Y),
        learned_graph(X[:GRAPH_ROWS], Y[:GRAPH_ROWS]),
    )


def learned_graph(X: Any, Y: LabelMatrix) -> LabelGraphClassifier:
    """Learn a graph, for many labels several cliques at a time."""
    growth = GraphGrowth(
        cliques_per_round=max(1, Y.n_labels // 40), max_rounds=8, graph_tol=0.0, validation_fraction=0.2
    )
    return LabelGraphClassifier(growth, alpha=0.01, tol=0.2).fit(X, Y)


def label_correlations(Y: LabelMatrix) -> Any:
    """Correlate the labels over the rows; one without positive rows is alone."""
    table = Y.to_dense() - Y.to_dense().mean(axis=0)
    scales = np.sqrt((table**2).sum(axis=0))
    table /= np.where(scales > 0, scales, 1.0)
    correlations = table.T @ table
    np.fill_diagonal(correlations, 1.0)
    return correlations


def made_up_name(number: int) -> str:
    """Concatenate syllables, a different name for each number."""
    base, parts = len(SYLLABLES), [SYLLABLES[number % 7]]
    while number:
        number, digit = divmod(number, base)
        parts.append(SYLLABLES[digit])
    return "".join(parts)


def make_classes(n_nodes: int) -> tuple[Taxonomy, Any, Any, Any]:
    """Grow a random tree of uneven depth, and draw true and predicted leaves with near misses."""
    generator = np.random.default_rng(n_nodes)
    parents = [int(generator.integers(max(0, k // 8 - 2), k // 4 + 1)) for k in range(1, n_nodes + 1)]
    names = ["all", *(made_up_name(k) for k in range(n_nodes))]
    tree = Taxonomy([(names[above], names[k]) for k, above in enumerate(parents, start=1)])
    leaves = np.asarray(tree.leaves)
    popular = generator.pareto(1.0, len(leaves)) + 0.2
    truths = generator.choice(len(leaves), 5_000, p=popular / popular.sum())
    hardness = generator.beta(0.8, 1.6, len(leaves))
    nearness = -tree.distances(tree.leaves)[truths] + generator.gumbel(size=(5_000, len(leaves))) * 0.8
    nearness[np.arange(5_000), truths] += 6.0 * (1.0 - hardness[truths])
    probabilities = np.exp(nearness - nearness.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return tree, leaves[truths], leaves[nearness.argmax(axis=1)], probabilities


if __name__ == "__main__":
    main()
