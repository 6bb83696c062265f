"""What classifiers on Dask's collections share: the cluster, the ordinary estimator, lazy predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from distributed import Client, get_client
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from labelweave.array_types import Array
from labelweave.dask.data import ReadData, read
from labelweave.dask.measures import right_classes, summed, table_sums
from labelweave.dask.partitions import is_lazy, is_listed, lazily, row_partitions
from labelweave.estimators.base import CheckedParameters
from labelweave.estimators.held_out import Share, held_out_count


class PartitionedClassifier(CheckedParameters):
    """Base of classifiers on Dask's collections; parameters are ``client`` and those of an ordinary one.

    _ordinary: the class of the ordinary estimator.
    _one_machine: what parameters may be here; their other values are for data in memory.
    """

    client: Client | None
    memory_budget: float
    verbose: int | bool
    validation_fraction: Share
    _ordinary: ClassVar[Any]
    _one_machine: ClassVar[Mapping[str, tuple[Any, ...]]]
    _local: Any = None
    _n_rows = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, entry_weight: Any = None) -> Self:
        """Fit the model on the cluster.

        Parameters
        ----------
        X : dask array or DataFrame of shape (n, d), or list of delayed values or futures
            The training rows, in blocks that are dense or CSR, of sizes that may be unknown; or a list with
            the rows of each partition.
        y : dask array or DataFrame of shape (n, L) or (n,), list as X, or None, default=None
            Labels 0/1 or -1/1 with NaN where unobserved, dense or CSR, or LabelMatrix partitions, those of
            probabilities too; or one class a row.  In the same partitions as X.  None for a list of pairs
            (X, y).
        sample_weight : dask array or Series of shape (n,), or list as X, default=None
            Non-negative weights of the rows' losses.
        entry_weight : dask array of shape (n, L), or list as X, default=None
            Non-negative weights of single entries' losses, dense or CSR, where an entry that is not stored
            has the weight 1.

        Returns
        -------
        MaxMarginClassifier or LowRankClassifier
            The fitted model itself.

        Raises
        ------
        ValueError
            If data or parameters make no sense, or are for one machine; the partition is named.
        RuntimeError
            If workers die again and again, or lost what cannot be made again.

        Warns
        -----
        UserWarning
            If no task has ended for a minute; it says why, as far as the scheduler knows.
        """
        self._validate_params()
        local, client = self._reader(), self._connected()
        parts = row_partitions(X, y, sample_weight, entry_weight)
        data = read(client, local, parts, is_verbose=bool(self.verbose))
        n_rows = data.n_rows
        local.scaling_, local.n_features_in_ = None, data.n_features
        names = data.facts[0].names
        if names is not None:
            local.feature_names_in_ = names.astype(object)
        self._fit_local(local, client, data)
        self._local, self._n_rows = local, n_rows
        return self

    def _fit_local(self, local: Any, client: Client, data: ReadData) -> None:
        """Fit the ordinary estimator to partitions that were read."""
        raise NotImplementedError

    def to_local(self) -> Any:
        """Give the model as the ordinary estimator, for data in memory and model files.

        Returns
        -------
        labelweave.MaxMarginClassifier or labelweave.LowRankClassifier
            The same weights.

        Raises
        ------
        NotFittedError
            If there are none yet.
        """
        if self._local is None:
            raise NotFittedError(
                f"This {type(self).__name__} of labelweave.dask is not fitted yet; call fit first."
            )
        return self._local

    def predict(self, X: Any) -> Any:
        """Predict the labels of every row, in the form that the training labels had, when it is asked for.

        Parameters
        ----------
        X : dask array or DataFrame, list of delayed values or futures, or rows in memory
            The rows.

        Returns
        -------
        dask array or DataFrame, list of delayed values, or what the ordinary estimator gives
            The labels, partition by partition; at once for rows in memory.
        """
        form = self.to_local()._form
        if form.kind != "labels":
            return self._lazily("predict", X, form.classes[:0], None)
        width = len(form.classes)
        empty = np.empty((0, width), np.int64)
        meta = form.join([sp.csr_array(empty) if form.container == "sparse" else empty], None)
        return self._lazily("predict", X, meta, width)

    def decision_function(self, X: Any) -> Any:
        """Score every label as the ordinary estimator does, when it is asked for.

        Parameters
        ----------
        X : as in :meth:`predict`
            The rows.

        Returns
        -------
        as in :meth:`predict`
            The scores, shape (n, L), or (n,) for two classes.
        """
        width = None if self.to_local()._form.kind == "binary" else len(self.to_local().classes_)
        return self._lazily("decision_function", X, np.empty((0, width) if width else 0), width)

    def predict_top(self, X: Any, k: int = 5) -> tuple[Any, Any]:
        """Find the k labels with the highest scores, when it is asked for.

        Parameters
        ----------
        X : dask array or DataFrame, list of delayed values or futures, or rows in memory
            The rows.
        k : int, default=5
            How many labels, at most the number there are.

        Returns
        -------
        labels : dask array of int, shape (n, k), list of delayed values, or ndarray
            Label numbers, best first.
        scores : dask array of shape (n, k), list of delayed values, or ndarray
            Their scores.

        Raises
        ------
        ValueError
            If k is not between 1 and the number of labels.
        """
        local = self.to_local()
        if not (is_lazy(X) or is_listed(X)):
            found: tuple[Any, Any] = local.predict_top(X, k)
            return found
        local.predict_top(sp.csr_array((1, local.n_features_in_)), k)  # says if there are not so many
        labels = self._lazily("predict_top", X, np.empty((0, k), np.intp), k, k=k, part=0)
        return labels, self._lazily("predict_top", X, np.empty((0, k)), k, k=k, part=1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the share of rows whose observed labels, or whose class, are all right.

        Parameters
        ----------
        X, y, sample_weight : as in :meth:`fit`
            Rows, what is true of them, and their weights.

        Returns
        -------
        float
            The share, as the ordinary estimator computes it; NaN where nothing is observed.

        Raises
        ------
        ValueError
            If data make no sense; the partition is named.
        """
        if self.to_local()._form.kind != "labels":
            right, weight = summed(self._connected(), self._local, right_classes, X, y, sample_weight)
            return float(right / weight)
        sums = summed(self._connected(), self._local, table_sums, X, y, sample_weight, None)
        return float(sums.table()["subset_accuracy"])

    def score_table(
        self, X: Any, y: Any = None, sample_weight: Any = None, k: Sequence[int] = (1, 3, 5)
    ) -> dict[str, float]:
        """Collect the usual metrics, one partition at a time: what comes to the client are sums over rows.

        Parameters
        ----------
        X, y, sample_weight : as in :meth:`fit`
            Rows, their labels, and the weights of the rows.
        k : sequence of int, default=(1, 3, 5)
            For precision and discounted gain at k; those above the number of labels are left out.

        Returns
        -------
        dict of str to float
            What :func:`labelweave.metrics.score_table` gives, but for "auc_label", which needs all scores of
            a label in one place.  NaN where nothing defines a metric.

        Raises
        ------
        ValueError
            If data make no sense; the partition is named.  If the model is of classes.
        """
        if self.to_local()._form.kind != "labels":
            raise ValueError("score_table is of labels, and this model has one class a row; see score.")
        sums = summed(self._connected(), self._local, table_sums, X, y, sample_weight, tuple(k))
        return dict(sums.table())

    def _lazily(self, method: str, X: Any, meta: Any, width: int | None, **more: Any) -> Any:
        local = self.to_local()
        if not (is_lazy(X) or is_listed(X)):
            return getattr(local, method)(X)
        return lazily(X, partial(_of_rows, method=method, empty=meta, **more), local, meta, width)

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_") and self._local is not None:
            return getattr(self._local, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_clone__(self) -> Self:
        given = self._given()
        return type(self)(self.client, **{name: clone(value, safe=False) for name, value in given.items()})

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}  # a connection is of its process

    def __sklearn_is_fitted__(self) -> bool:
        return self._local is not None

    def _reader(self) -> Any:
        """Make the ordinary estimator; refuse what it has and this one has not."""
        for name, allowed in self._one_machine.items():
            value = getattr(self, name)
            if not any(value is one or (isinstance(value, type(one)) and value == one) for one in allowed):
                raise ValueError(
                    f"{name}={value!r} is for data in memory; labelweave.dask.{type(self).__name__} takes "
                    f"{' or '.join(map(repr, allowed))}."
                )
        return self._ordinary(**self._given())

    def _refuse_many_held(self, local: Any, n_labels: int, weights: Array) -> None:
        """Refuse to bring more scores of rows that are held out to the client than it takes."""
        n_rows = int(np.count_nonzero(weights))
        n_held = n_rows if local._n_parts(weights) > 1 else held_out_count(self.validation_fraction, n_rows)
        megabytes = 8e-6 * n_held * n_labels
        if local._holds_out and megabytes > self.memory_budget:
            raise ValueError(
                f"threshold={local.threshold!r} holds {n_held} rows out, whose scores of {n_labels} labels "
                f"take {megabytes:.0f} MB on the client, but memory_budget is {self.memory_budget:g}; "
                "give a smaller validation_fraction."
            )

    def _given(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name != "client"}

    def _connected(self) -> Client:
        client = self.client
        if client is None:
            try:
                client = get_client()
            except ValueError:
                raise ValueError(
                    "There is no Dask client; make one first, such as distributed.Client() for this machine, "
                    "or give client=."
                ) from None
        if client.asynchronous:
            raise ValueError("client is asynchronous; give one that was made with asynchronous=False.")
        return client


def refuse_kernel_matrix(kernel: Any) -> None:
    """Refuse kernels that are matrices."""
    kernels = kernel if isinstance(kernel, list | tuple) else [kernel]
    if any(isinstance(one, str) and one == "precomputed" for one in kernels):
        raise ValueError(
            "kernel='precomputed' is for data in memory; give the features and a kernel between rows."
        )


def _of_rows(
    rows: Any, model: Any, method: str, empty: Any, k: int | None = None, part: int | None = None
) -> Any:
    """Call a method of the model for the rows of a partition, which may be none."""
    if rows.shape[0] == 0:
        return empty
    found = getattr(model, method)(rows, *(() if k is None else (k,)))
    return found if part is None else found[part]
