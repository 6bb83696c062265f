"""A learned label graph
=====================

Learn which labels to score jointly.

The ten labels are made as in section 5.2 of the paper on clique generation: a hub is related to four other
labels, in a way that depends on the features; five labels are independent.  The model learns this structure
from rows.  It is compared with independent labels, with the tree of largest mutual information and with the
graph of all pairs.  Finally the hub is given at prediction time.  Run ``python examples/label_graph.py
[graph.png [rounds.png]]``; it takes a few seconds.
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/label_graph.png'
from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

from labelweave import GraphGrowth, LabelGraphClassifier, datasets, metrics

NAMES = ["hub", "spoke 1", "spoke 2", "spoke 3", "spoke 4", "lone 1", "lone 2", "lone 3", "lone 4", "lone 5"]
TRAINING_ROWS, TEST_ROWS = 500, 400
WORDS = {1: "together", -1: "apart", 0: "depends on the row"}


def main(pictures: list[str]) -> None:
    """Fit four graphs, compare them on test rows, show what the learned one knows.

    Parameters
    ----------
    pictures : list of str
        Files for the graph and for its rounds; may be empty.
    """
    (X, Y), (X_test, Y_test) = rows()
    print(f"{len(X)} rows to learn from, {len(X_test)} to test on, {len(NAMES)} labels, 45 pairs")
    print(f"{'graph':10s}{'pairs':>6s}{'Hamming loss':>14s}{'all right':>11s}{'proven optimal':>16s}")
    for graph in ("none", "chow-liu", "full", "learn"):
        how = GraphGrowth(max_rounds=8) if graph == "learn" else graph
        model = LabelGraphClassifier(how, alpha=3e-3, tol=0.02).fit(X, Y)
        found = model.predict_map(X_test)
        loss = metrics.hamming_loss(Y_test, found.labels)
        right = metrics.subset_accuracy(Y_test, found.labels)
        pairs = model.label_graph_.n_cliques
        print(f"{graph:10s}{pairs:6d}{loss:14.3f}{right:11.3f}{found.proven.mean():16.1%}")
    show_graph(model)
    show_known(model, X_test, Y_test)
    draw(model, pictures)


def rows() -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Make training and test rows, with names.

    Returns
    -------
    tuple of (X, Y), twice
        Features and a frame of labels.
    """
    data, _ = datasets.make_clique_toy(TRAINING_ROWS + TEST_ROWS)
    Y = pd.DataFrame(data.Y.to_dense(), columns=NAMES)
    parts = slice(0, TRAINING_ROWS), slice(TRAINING_ROWS, None)
    train, test = ((data.X[part], Y.iloc[part]) for part in parts)
    return train, test


def show_graph(model: LabelGraphClassifier) -> None:
    """Print the pairs in the order in which they were chosen."""
    graph = model.label_graph_
    print(f"\nlearned, {model.graph_reason_}; in the order chosen:")
    for clique, weight, sign in zip(graph.cliques, graph.weights, graph.signs, strict=True):
        names = " - ".join(graph.label_names[list(clique)])
        print(f"{weight:7.2f}  {names:20s}{WORDS[sign]}")


def show_known(model: LabelGraphClassifier, X_test: Any, Y_test: Any) -> None:
    """Print how knowing the hub changes the predictions of its neighbors."""
    known = Y_test[["hub"]].set_axis(range(len(Y_test)))
    spokes = slice(1, 5)
    for words, found in (
        ("nothing known", model.predict_map(X_test)),
        ("the hub known", model.predict_map(X_test, known)),
    ):
        loss = np.mean(found.labels[:, spokes] != Y_test.to_numpy()[:, spokes])
        print(f"{words}: Hamming loss of the spokes {loss:.3f}")


def draw(model: LabelGraphClassifier, pictures: list[str]) -> None:
    """Draw the graph and its rounds into files."""
    from labelweave.display import LabelGraphDisplay, LabelGraphPathDisplay

    for path, display in zip(pictures, (LabelGraphDisplay, LabelGraphPathDisplay), strict=False):
        display.from_estimator(model).figure_.savefig(path, dpi=150)
        print(f"picture: {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
