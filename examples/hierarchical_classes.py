"""Classes in a taxonomy
=====================

Classify into a taxonomy with a handful of training rows per class.

Twenty-seven classes are the third level of a tree, and the rows are synthetic: classes that are close in the
tree have similar features.  A flat model does not use the tree.  A tree model has one function per node, and
the score of a class is the sum of the functions on its path, so siblings share what they learn.  Both learn
kernel widths and scales by cross-validation on the training rows.  Finally the tree model predicts the class
of least expected taxonomic loss and abstains on uncertain rows: the error against the fraction of rejected
rows is plotted to FILE (needs matplotlib).  Run ``python examples/hierarchical_classes.py [FILE.png]``; it
takes a few seconds.
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/hierarchical_classes.png'
from __future__ import annotations

import sys
from typing import Any

from labelweave import KernelLogisticClassifier, datasets, metrics, postprocessing
from labelweave.datasets import LabeledData

ROWS_A_CLASS, TEST_ROWS, FEATURES = 4, 1_500, 12
CLASSES = 27
SHOWN = {
    "accuracy": "right class",
    "parent_accuracy": "right parent",
    "taxonomic_loss": "taxonomic loss",
    "log_loss": "log loss",
}


def main() -> None:
    """Fit both models, compare them on test rows, and save the plot."""
    data = datasets.make_taxonomy(CLASSES * ROWS_A_CLASS + TEST_ROWS, FEATURES, noise=0.8, random_state=0)
    train, test = slice(0, CLASSES * ROWS_A_CLASS), slice(CLASSES * ROWS_A_CLASS, None)
    models = {
        "flat": KernelLogisticClassifier(tol=1e-3),
        "tree": KernelLogisticClassifier(taxonomy=data.taxonomy, tol=1e-3),
    }
    print(f"{CLASSES} classes, {CLASSES * ROWS_A_CLASS} rows to learn from, {TEST_ROWS} to test on")
    print(" " * 31 + "".join(f"{title:>16s}" for title in SHOWN.values()))
    for name, model in models.items():
        model.fit(data.X[train], data.classes[train])
        compare(name, model, data, test)
    print(f"learned by the tree model: {learned(models['tree'])}")
    print(draw(models, data, test))


def compare(name: str, model: KernelLogisticClassifier, data: LabeledData, test: slice) -> None:
    """Print the metrics of the most probable class, and of the one of least expected loss.

    Parameters
    ----------
    name : str
        What the model is called.
    model : KernelLogisticClassifier
        Fitted.
    data : LabeledData
        All rows.
    test : slice
        Those to test on.
    """
    probabilities = model.predict_proba(data.X[test])
    distances = data.taxonomy.distances(model.label_names_)
    for way, chosen in {
        "most probable": postprocessing.most_probable(probabilities),
        "least expected loss": postprocessing.least_expected_loss(probabilities, distances),
    }.items():
        found = metrics.class_summary(
            data.classes[test],
            probabilities,
            model.classes_,
            taxonomy=data.taxonomy,
            y_pred=model.classes_[chosen],
        )
        print(f"{name + ', ' + way:31s}" + "".join(f"{found[key]:16.3f}" for key in SHOWN))


def learned(model: KernelLogisticClassifier) -> str:
    """Write the hyperparameters of a model in one line."""
    return ", ".join(f"{name} {value:.3g}" for name, value in model.hyperparameters_.items())


def draw(models: dict[str, Any], data: LabeledData, test: slice) -> str:
    """Draw how the error falls as unsure rows are left out; say where the picture is.

    Parameters
    ----------
    models : dict of str to KernelLogisticClassifier
        Fitted models.
    data : LabeledData
        All rows.
    test : slice
        Those to test on.

    Returns
    -------
    str
        One line.
    """
    try:
        import matplotlib
    except ImportError:
        return "no picture: it needs matplotlib, install labelweave[app]"
    matplotlib.use("Agg")
    from labelweave.display import ErrorRejectDisplay

    axes = None
    for name, model in models.items():
        X, y = data.X[test], data.classes[test]
        display = ErrorRejectDisplay.from_estimator(model, X, y, name=name, ax=axes)
        axes = display.ax_
    if len(sys.argv) < 2:
        return "error against rejected rows: drawn into a file that is named after the command"
    display.figure_.savefig(sys.argv[1], dpi=150)
    return f"error against rejected rows: {sys.argv[1]}"


if __name__ == "__main__":
    main()
