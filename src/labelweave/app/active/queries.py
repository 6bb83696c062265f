"""``suggest_queries``: which labels of which rows to annotate next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import logit

from labelweave.app.active.expected_error import Choice, ExpectedError, micro_f1_cut
from labelweave.app.active.pool import Pool, label_correlations, read_pool
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import numbers_of
from labelweave.foundation.frames import column_labels
from labelweave.labels.label_names import columns_by_name, rows_by_name

Strategy = Literal["expected_error", "uncertainty", "random"]
_LEAST = 1e-12


@dataclass(frozen=True)
class Queries:
    """Entries to annotate, by decreasing gain.

    Parameters
    ----------
    rows, labels : ndarray of int, shape (m,)
        Indices of rows of the pool and of labels.
    probabilities : ndarray of shape (m,)
        The model's probabilities of the entries.
    gains : ndarray of shape (m,)
        Expected gain per cost, in units that are only comparable within one call; 0 where entries are drawn
        at random.
    informs : ndarray of int, shape (m,)
        The number of other rows that the answer informs: it reduces the variance of their scores for the
        label by a tenth or more.
    cut : float
        The probability above which labels are predicted, for the best expected micro-F1.
    label_names : ndarray of str, shape (L,), or None
        The names of all labels, if they have names.
    """

    rows: Array
    labels: Array
    probabilities: Array
    gains: Array
    informs: Array
    cut: float
    label_names: Array | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Iterate over pairs of a row's number and a label's name, or number where it has none."""
        names = self.labels if self.label_names is None else self.label_names[self.labels]
        return iter(zip(self.rows.tolist(), names.tolist(), strict=True))

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per query.

        Returns
        -------
        DataFrame
            Columns row, label, probability, gain and informs.
        """
        import pandas as pd

        found = pd.DataFrame(list(self), columns=["row", "label"])
        return found.assign(probability=self.probabilities, gain=self.gains, informs=self.informs)


@checked
def suggest_queries(
    model: Any, X_pool: Any, n: int, known: Any = None, *, strategy: Strategy = "expected_error",
    cost: Any = None, random_state: int = 0,
) -> Queries:  # fmt: skip
    """Choose the entries of (row, label) whose answers would improve a model most.

    Parameters
    ----------
    model : classifier, Pipeline, TableModel or None
        Fitted to many labels per row, of this library or with scikit-learn's ``predict_proba`` or
        ``decision_function``; scores s without probabilities count as ``1 / (1 + exp(-2 s))``.  None before
        the first fit.
    X_pool : {array-like, sparse matrix, DataFrame, list of str} of n rows
        The candidate rows, as the model takes them.  Of more than 4,000,000 / L rows a random sample of
        this size is used.
    n : int
        Number of entries to choose; fewer if fewer are unknown.
    known : array-like of shape (n, L), DataFrame, sparse matrix, lists of tags or LabelMatrix, default=None
        The known labels of the rows, NaN where unknown; known entries are never chosen.  Names are matched
        with the model's.
    strategy : {"expected_error", "uncertainty", "random"}, default="expected_error"
        "expected_error": the expected error reduction over all other entries, including those of correlated
        labels if the model has any; batches avoid redundant queries.  "uncertainty": probabilities nearest to
        the decision threshold, in log-odds.  "random": a baseline.
    cost : array-like of shape (L,) or (n, L), default=None
        Cost of an answer, above 0, which divides gains.  None for 1.  Labels in the index of a Series or
        the columns of a DataFrame are matched with the model's.
    random_state : int, default=0
        Seed of random choices.

    Returns
    -------
    Queries
        The entries, by decreasing gain.

    Raises
    ------
    ValueError
        If n is below 1, a cost is not above 0, known does not match, or the model has one class per row.

    Notes
    -----
    Expected errors are computed in closed form, without refitting the model, for Gaussian scores around the
    model's with a prior covariance from the features (an RBF kernel of standardized ones, or the cosine if
    most are 0): see :mod:`labelweave.app.active.expected_error`.  Correlations of labels are those of
    ``label_covariance_``, of a kernel logistic prior, or of ``label_factors_``.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import KernelLogisticClassifier, suggest_queries
    >>> X = np.array([[0.0], [0.1], [1.0], [0.5]])
    >>> Y = np.array([[0, 1], [0, np.nan], [1, 0], [np.nan, np.nan]])
    >>> model = KernelLogisticClassifier(hyperparameters="fixed").fit(X, Y)
    >>> list(suggest_queries(model, X, 2, known=Y))
    [(3, '1'), (3, '0')]
    """
    if n < 1:
        raise ValueError(f"n is {n}; it must be at least 1.")
    if strategy not in get_args(Strategy):
        raise ValueError(f"strategy is {strategy!r}; it must be one of {', '.join(get_args(Strategy))}.")
    if not 0 <= random_state < 2**32:
        raise ValueError(f"random_state is {random_state}; it must be between 0 and {2**32 - 1}.")
    pool = read_pool(model, X_pool, known, random_state)
    costs = _read_costs(cost, pool)
    cut = micro_f1_cut(pool.probabilities)
    if strategy != "expected_error":
        chosen = _ranked(pool, _values(strategy, pool, cut) / costs, n, random_state)
    elif pool.known.all():
        chosen = []
    else:
        related = label_correlations(model, pool.known.shape[1])
        factor = pool.factor(random_state)
        chosen = ExpectedError(factor, pool.probabilities, pool.known, cut, related).choose(n, costs)
    places, labels = (np.array([one[part] for one in chosen], np.intp) for part in (0, 1))
    gains, informs = (
        np.array([one[part] for one in chosen], kind) for part, kind in ((2, float), (3, np.intp))
    )
    shares = pool.probabilities[places, labels]
    return Queries(pool.rows[places], labels, shares, gains, informs, cut, pool.names)


def _read_costs(cost: Any, pool: Pool) -> RowsByLabels:
    shape = pool.known.shape
    if cost is None:
        return np.ones(shape)
    names = [str(name) for name in (range(shape[1]) if pool.names is None else pool.names)]
    by_name = rows_by_name if column_labels(cost) is None else columns_by_name
    in_order = by_name(cost, names, "cost")
    costs = numbers_of(in_order, "cost").astype(np.float64)
    if costs.shape not in ((pool.n_rows, shape[1]), shape[1:]):
        wanted = f"({shape[1]},) or ({pool.n_rows}, {shape[1]})"
        raise ValueError(f"cost has shape {costs.shape}; it must be {wanted}.")
    if not (np.isfinite(costs).all() and (costs > 0).all()):
        raise ValueError("A cost is not a number above 0; every answer needs one.")
    return np.broadcast_to(costs[pool.rows] if costs.ndim == 2 else costs, shape)


def _values(strategy: str, pool: Pool, cut: float) -> RowsByLabels:
    """Return values of entries: closeness of probabilities to the cut, from 1 to 0; zeros at random."""
    if strategy == "random":
        return np.zeros(pool.known.shape)
    odds = logit(np.clip(pool.probabilities, _LEAST, 1.0 - _LEAST))
    nearness: Array = 1.0 / (1.0 + np.abs(odds - logit(np.clip(cut, _LEAST, 1.0 - _LEAST))))
    return nearness


def _ranked(pool: Pool, values: RowsByLabels, n: int, seed: int) -> list[Choice]:
    free = np.flatnonzero(~pool.known.ravel())
    free = np.random.default_rng(seed).permutation(free)
    best = free[np.argsort(-values.ravel()[free], kind="stable")[:n]]
    rows, labels = np.divmod(best, pool.known.shape[1])
    return [
        Choice(row, label, float(values[row, label]), 0)
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True)
    ]
