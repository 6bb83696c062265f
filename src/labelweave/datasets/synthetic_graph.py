"""The synthetic problem of the clique generating machine.

Source: Tan, Shi, van den Hengel, Zhang, Gao, Hu, Zhang, "Learning graph
structure for multi-label image classification via clique generation", CVPR
2015, section 5.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave.datasets.labeled_data import LabeledData
from labelweave.labels import LabelMatrix

__all__ = ["make_clique_toy"]

_N_LABELS, _N_FEATURES = 10, 10
_EDGES = ((0, 1), (0, 2), (0, 3), (0, 4))


def make_clique_toy(
    n_rows: int = 3000, random_state: int | None = 0
) -> tuple[LabeledData, tuple[tuple[int, int], ...]]:
    r"""Make ten labels of which four pairs depend on each other given the features.

    The labels maximise :math:`\sum_i y_i u_i^\top x + \sum_{(0,j)} v_{j, y_0 y_j}^\top x`
    exactly, which the star shape of the graph allows.

    Parameters
    ----------
    n_rows : int, default=3000
        Rows; the paper trains on 2000 and tests on 1000.
    random_state : int or None, default=0
        The seed of parameters and rows; more rows continue the same problem.

    Returns
    -------
    data : LabeledData
        Features of shape (n, 10) and 10 labels.
    edges : tuple of (int, int)
        The true edges, the label 0 with the labels 1 to 4.

    Notes
    -----
    As in section 5.2: features from N(0, 1); a Gaussian weight vector for each label and for each of the four
    states of each edge.  The paper gives features of 10 and weights of 5 dimensions, which do not go
    together; all have 10 here.  Where it is silent: weights are from N(0, 1), a label's own weight counts
    where the label is 1, and no noise is added.
    """
    if n_rows < 1:
        raise ValueError(f"n_rows is {n_rows}; it is at least 1.")
    rng = np.random.default_rng(random_state)
    node_weights = rng.normal(size=(_N_LABELS, _N_FEATURES))
    edge_weights = rng.normal(size=(len(_EDGES), 2, 2, _N_FEATURES))
    X = rng.normal(size=(n_rows, _N_FEATURES))
    Y = _best_labels(X @ node_weights.T, np.einsum("nd,ehbd->nehb", X, edge_weights))
    return LabeledData(X, LabelMatrix.from_any(Y)), _EDGES


def _best_labels(
    node_scores: npt.NDArray[np.float64], edge_scores: npt.NDArray[np.float64]
) -> npt.NDArray[np.int8]:
    """Maximise over the labels: fix the hub to 0 and to 1, choose each leaf alone, compare."""
    labels = (node_scores > 0).astype(np.int8)
    leaves = [leaf for _, leaf in _EDGES]
    # scores of the leaves' states for both values of the hub: (rows, leaves, hub, leaf)
    states = edge_scores.copy()
    states[..., 1] += node_scores[:, leaves, None]
    totals = states.max(axis=3).sum(axis=1)
    hub = (totals[:, 1] + node_scores[:, 0] > totals[:, 0]).astype(np.int8)
    labels[:, 0] = hub
    labels[:, leaves] = states.argmax(axis=3)[np.arange(len(hub)), :, hub]
    return labels
