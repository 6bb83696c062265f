"""What models on Dask's collections share once they are fitted: the ordinary model, and lazy predictions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from distributed import Client, get_client
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from labelweave.dask.data import ReadData
from labelweave.dask.measures import right_classes, summed, table_sums
from labelweave.dask.partitions import is_lazy, is_listed, lazily
from labelweave.dask.rows import count_rows
from labelweave.estimators.base import CheckedParameters
from labelweave.foundation.arguments import checked


class PartitionedPredictions(CheckedParameters):
    """Base of what is fitted to Dask's collections.

    _ordinary: the class of the ordinary estimator.
    """

    _ordinary: ClassVar[Any]
    _local: Any = None
    _n_rows = 0

    def _fitted_to(self, client: Client, data: ReadData, *, is_part: bool = False, start: Any = None) -> Any:
        """Give the ordinary estimator, fitted to partitions that were read, which may be given up after it.

        is_part: whether these are some of the rows, so that decisions can be chosen on the others.
        start: one that was fitted to some of the rows, from which a fit may go on.
        """
        raise NotImplementedError

    def _reader(self) -> Any:
        """Make the ordinary estimator, which reads rows as it does in a fit."""
        raise NotImplementedError

    def _connected(self) -> Client:
        """Give the cluster."""
        raise NotImplementedError

    def to_local(self) -> Any:
        """Give the model as the ordinary estimator, for data in memory and model files.

        Returns
        -------
        classifier
            The ordinary one of the same name, with the same weights and decisions.

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

    def _classifier(self) -> Any:
        """Give the ordinary classifier that knows the form of the labels."""
        return self.to_local()

    def _has(self, name: str) -> bool:
        """Tell whether the ordinary estimator has a method."""
        return hasattr(self._local or self._ordinary, name)

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
        form = self._classifier()._form
        if form.kind != "labels":
            return self._lazily("predict", X, form.classes[:0], None)
        if form.container == "tags":
            return self._lazily("predict", X, np.empty(0, object), None)
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
        classifier = self._classifier()
        width = None if classifier._form.kind == "binary" else len(classifier.classes_)
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
        self._classifier()._check_k(k)
        labels = self._lazily("predict_top", X, np.empty((0, k), np.intp), k, k=k, part=0)
        return labels, self._lazily("predict_top", X, np.empty((0, k)), k, k=k, part=1)

    @property
    def _has_classes(self) -> bool:
        """Whether a row has one class, be it that predictions are sets of these."""
        local = self._classifier()
        return local._form.kind != "labels" or getattr(local, "_one_of", None) is not None

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the share of rows whose observed labels, or whose class, are all right.

        Parameters
        ----------
        X, y, sample_weight : as in :meth:`fit`
            Rows, what is true of them, and their weights.

        Returns
        -------
        float
            The share, as the ordinary estimator computes it, of sets of classes how often they have the true
            one; NaN where nothing is observed.

        Raises
        ------
        ValueError
            If data make no sense; the partition is named.
        """
        if self._has_classes:
            right, weight = summed(self._connected(), self._local, right_classes, X, y, sample_weight)
            return float(right / weight) if weight else np.nan
        sums = summed(self._connected(), self._local, table_sums, X, y, sample_weight, None)
        return float(sums.table()["subset_accuracy"])

    @checked
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
        if self._has_classes:
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

    def __sklearn_is_fitted__(self) -> bool:
        return self._local is not None


class PartitionedProbabilities(PartitionedPredictions):
    """Base of those whose ordinary estimator has probabilities."""

    @available_if(lambda self: self._has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Compute probabilities as the ordinary estimator does, when it is asked for.

        Parameters
        ----------
        X : as in :meth:`predict`
            The rows.

        Returns
        -------
        as in :meth:`predict`
            The probabilities of labels or classes, shape (n, L).
        """
        width = len(self.to_local().classes_)
        return self._lazily("predict_proba", X, np.empty((0, width)), width)


def connected(client: Client | None) -> Client:
    """Give a client, or for None the one made last; refuse what does not wait for results."""
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


def _of_rows(
    rows: Any, model: Any, method: str, empty: Any, k: int | None = None, part: int | None = None
) -> Any:
    """Call a method of the model for the rows of a partition, which may be none."""
    if count_rows(rows) == 0:
        return empty
    found = getattr(model, method)(rows, *(() if k is None else (k,)))
    return found if part is None else found[part]
