"""``next_queries``: which labels of which rows to ask for next."""

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
    """Entries to ask about, the one that is worth most first.

    Parameters
    ----------
    rows, labels : ndarray of int, shape (m,)
        Numbers of rows of the pool and of labels.
    probabilities : ndarray of shape (m,)
        What the model thinks of them.
    gains : ndarray of shape (m,)
        What an answer is worth for its cost, in units that only compare within one call; 0 where entries
        are drawn at random.
    informs : ndarray of int, shape (m,)
        Of how many other rows the answer says much: it takes a tenth or more off the variance of their scores
        for the label.
    cut : float
        The probability from which on labels are predicted for the best micro-F1 that is expected.
    label_names : ndarray of str, shape (L,), or None
        The names of all labels, where they have some.
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
        """Return pairs of a row's number and a label's name, or number where it has none."""
        names = self.labels if self.label_names is None else self.label_names[self.labels]
        return iter(zip(self.rows.tolist(), names.tolist(), strict=True))

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of a line a query.

        Returns
        -------
        DataFrame
            Columns row, label, probability, gain and informs.
        """
        import pandas as pd

        found = pd.DataFrame(list(self), columns=["row", "label"])
        return found.assign(probability=self.probabilities, gain=self.gains, informs=self.informs)


@checked
def next_queries(
    model: Any, X_pool: Any, n: int, known: Any = None, *, strategy: Strategy = "expected_error",
    cost: Any = None, random_state: int = 0,
) -> Queries:  # fmt: skip
    """Choose the entries of (row, label) whose answers would improve a model most.

    Parameters
    ----------
    model : classifier, Pipeline, TableModel or None
        Fitted to many labels a row, of this library or with scikit-learn's ``predict_proba`` or
        ``decision_function``; of scores s without probabilities ``1 / (1 + exp(-2 s))`` is taken.  None
        where nothing is fitted yet.
    X_pool : {array-like, sparse matrix, DataFrame, list of str} of n rows
        The rows that may be asked about, as the model takes them.  Of more than 4,000,000 / L rows so many
        are looked at, drawn at random.
    n : int
        How many entries to choose; fewer if fewer are unknown.
    known : array-like of shape (n, L), DataFrame, sparse matrix, lists of tags or LabelMatrix, default=None
        What is known of the rows, NaN where it is not; known entries are never asked for.  Names are
        matched with the model's.
    strategy : {"expected_error", "uncertainty", "random"}, default="expected_error"
        "expected_error": by how much an answer is expected to lower the errors of all other entries, of
        correlated labels too where the model couples its labels; batches do not ask twice for the same thing.
        "uncertainty": probabilities nearest to where the decision turns, in log-odds.  "random": for
        comparison.
    cost : array-like of shape (L,) or (n, L), default=None
        What an answer costs, above 0; gains are divided by it.  None for 1.  Labels that name a Series or
        the columns of a frame are matched with the model's.
    random_state : int, default=0
        Draws what is left to chance.

    Returns
    -------
    Queries
        The entries, the most useful first.

    Raises
    ------
    ValueError
        If n is below 1, a cost is not above 0, known does not fit, or the model has one class a row.

    Notes
    -----
    Expected errors are computed in closed form, not by fitting the model again, for Gaussian scores around
    the model's whose prior covariance comes from the features (an RBF kernel of standardised ones, or the
    cosine where most are 0): see :mod:`labelweave.app.active.expected_error`.  Correlations of labels are
    those of ``label_covariance_``, of a kernel logistic prior, or of ``label_factors_``.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import KernelLogisticClassifier, next_queries
    >>> X = np.array([[0.0], [0.1], [1.0], [0.5]])
    >>> Y = np.array([[0, 1], [0, np.nan], [1, 0], [np.nan, np.nan]])
    >>> model = KernelLogisticClassifier(hyperparameters="fixed").fit(X, Y)
    >>> list(next_queries(model, X, 2, known=Y))
    [(3, '1'), (3, '0')]
    """
    if n < 1:
        raise ValueError(f"n is {n}; it needs to be at least 1.")
    if strategy not in get_args(Strategy):
        raise ValueError(f"strategy is {strategy!r}; it needs to be one of {', '.join(get_args(Strategy))}.")
    if not 0 <= random_state < 2**32:
        raise ValueError(f"random_state is {random_state}; it needs to be from 0 to {2**32 - 1}.")
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
        raise ValueError(f"cost has shape {costs.shape}; it needs to be {wanted}.")
    if not (np.isfinite(costs).all() and (costs > 0).all()):
        raise ValueError("A cost is not a number above 0; give what an answer costs.")
    return np.broadcast_to(costs[pool.rows] if costs.ndim == 2 else costs, shape)


def _values(strategy: str, pool: Pool, cut: float) -> RowsByLabels:
    """Value entries: how near probabilities are to the cut, from 1 down to 0; nothing at random."""
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
