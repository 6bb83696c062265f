"""What classifiers on Dask's collections share: the cluster, and the ordinary estimator that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from distributed import Client
from sklearn.base import clone

from labelweave.dask.data import ReadData, read
from labelweave.dask.features import PartitionedFeatures
from labelweave.dask.partitions import row_partitions
from labelweave.dask.predictions import PartitionedPredictions, connected
from labelweave.estimators.held_out import Share, held_out_count
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array


class PartitionedClassifier(PartitionedPredictions):
    """Base of classifiers on Dask's collections; parameters are ``client`` and those of an ordinary one.

    _one_machine: what parameters may be here; their other values are for data in memory.
    _otherwise: values that mean something else here, and what the ordinary one is asked about instead.
    """

    client: Client | None
    memory_budget: float
    verbose: int | bool
    validation_fraction: Share
    _one_machine: ClassVar[Mapping[str, tuple[Any, ...]]]
    _otherwise: ClassVar[dict[str, Any]] = {}

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
        Self
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
        self._local, self._n_rows = self._fitted_to(client, data), data.n_rows
        return self

    def _fitted_to(self, client: Client, data: ReadData, *, is_part: bool = False, start: Any = None) -> Any:
        local = self._reader()
        local.scaling_, local.n_features_in_ = None, data.n_features
        names = data.facts[0].names
        if names is not None:
            local.feature_names_in_ = names.astype(object)
        self._fit_local(local, client, data, is_part=is_part, start=start)
        return local

    def _fit_local(self, local: Any, client: Client, data: ReadData, *, is_part: bool, start: Any) -> None:
        """Fit the ordinary estimator to partitions that were read; see :meth:`_fitted_to`."""
        raise NotImplementedError

    def __sklearn_clone__(self) -> Self:
        given = {name: clone(value, safe=False) for name, value in self._own().items()}
        return type(self)(self.client, **given)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}  # a connection is of its process

    def _refuse_together(self) -> None:
        for name, allowed in self._one_machine.items():
            value = getattr(self, name)
            if not any(value is one or (isinstance(value, type(one)) and value == one) for one in allowed):
                raise ParameterError(
                    f"`{name}={value!r}` is for data in memory; labelweave.dask.{type(self).__name__} takes "
                    f"{' or '.join(map(repr, allowed))}."
                )
        self._ordinary(**self._given() | self._otherwise)._refuse_together()

    def _reader(self) -> Any:
        """Make the ordinary estimator; refuse what it has and this one has not."""
        self._refuse_together()
        return self._ordinary(**self._given())

    def _refuse_many_held(self, local: Any, n_labels: int, weights: Array) -> None:
        """Refuse to bring more scores of rows that are held out to the client than it takes."""
        n_rows = int(np.count_nonzero(weights))
        n_held = n_rows if local._n_parts(weights) > 1 else held_out_count(self.validation_fraction, n_rows)
        megabytes = 8e-6 * n_held * n_labels
        if local._holds_out and megabytes > self.memory_budget:
            raise ParameterError(
                f"`threshold={local.threshold!r}` holds {n_held} rows out, whose scores of {n_labels} labels "
                f"take {megabytes:.0f} MB on the client, but `memory_budget` is {self.memory_budget:g}; "
                "give a smaller `validation_fraction`."
            )

    def _refuse_large_tables(self, n_rows: int, n_labels: int, bytes_an_entry: float, instead: str) -> None:
        """Refuse more rows times labels than the client holds; say what to do instead of a larger budget."""
        megabytes = 1e-6 * bytes_an_entry * n_rows * n_labels
        if megabytes > self.memory_budget:
            raise ParameterError(
                f"Tables of {n_rows} rows x {n_labels} labels take {megabytes:.0f} MB on the client, but "
                f"`memory_budget` is {self.memory_budget:g}; raise it, {instead}."
            )

    def _features(self, client: Client, data: ReadData) -> PartitionedFeatures:
        return PartitionedFeatures(client, data, is_verbose=bool(self.verbose))

    def _own(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name != "client"}

    def _given(self) -> dict[str, Any]:
        """Give the parameters that the ordinary estimator has too."""
        known = self._ordinary._get_param_names()
        return {name: value for name, value in self._own().items() if name in known}

    def _connected(self) -> Client:
        return connected(self.client)


def refuse_kernel_matrix(kernel: Any) -> None:
    """Refuse kernels that are matrices."""
    kernels = kernel if isinstance(kernel, list | tuple) else [kernel]
    if any(isinstance(one, str) and one == "precomputed" for one in kernels):
        raise ValueError(
            "kernel='precomputed' is for data in memory; give the features and a kernel between rows."
        )
