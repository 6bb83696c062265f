"""A classifier of the rows of Dask's data frames: words are counted, and features made, where rows are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, ClassVar, Literal, Self

import scipy.sparse as sp
from distributed import Client
from sklearn.base import clone

import dask
from labelweave.dask.decisions import innermost
from labelweave.dask.partitions import NO_ROWS, row_partitions
from labelweave.dask.predictions import PartitionedPredictions, PartitionedProbabilities
from labelweave.dask.waiting import gathered
from labelweave.datasets import TableColumns, TableVectorizer
from labelweave.datasets.table_columns import kinds_of_frames, with_kinds
from labelweave.datasets.table_counts import TableCounts
from labelweave.estimators import TableModel as LocalTableModel
from labelweave.estimators.parameters import keep_parameters
from labelweave.estimators.table_model import frame_of

_ENOUGH = 1000  # rows to guess the kinds of columns from


class TableModel(PartitionedProbabilities):
    """:class:`labelweave.TableModel` on Dask's data frames, with the features of all rows in one place.

    A first pass over the partitions counts words, categories and numbers, of which sums come to the client;
    then features are made where rows are, for the classifier and for predictions.

    Parameters
    ----------
    classifier : classifier of labelweave.dask
        A model, or what decides on the scores of one; a clone is fitted.
    text : str, sequence of str or None, default=None
        Columns that become tf-idf weights of their words.
    categorical : str, sequence of str or None, default=None
        Columns that become one 0/1 feature a value.
    numeric : str, sequence of str or None, default=None
        Columns of numbers, brought to mean 0 and variance 1.  If text, categorical and numeric are all None,
        every column gets its kind from the cells of the first partitions that have 1,000 rows.
    drop : str, sequence of str or None, default=None
        Columns to leave out then.
    min_df : int or float, default=1
        In how many rows (int) or what share of them (float) a word must occur, of all partitions.
    ngram_range : (int, int), default=(1, 1)
        The shortest and the longest run of words that makes a feature.
    sublinear_tf : bool, default=False
        Whether to weigh counts of words by ``1 + log(count)``.
    missing_numeric : {"error", "mean"}, default="error"
        What to do with a missing number: refuse it, or put the training mean.

    Attributes
    ----------
    classifier_ : classifier
        The ordinary one that was fitted.  This and all other fitted attributes are those of the ordinary
        model.
    vectorizer_ : TableVectorizer
        What makes features of a frame.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from distributed import Client
    >>> from labelweave.dask import MaxMarginClassifier, TableModel
    >>> rows = pd.DataFrame({"text": ["a red rose", "a blue sea"], "sea": [0, 1], "rose": [1, 0]})
    >>> frame = dd.from_pandas(rows, npartitions=2)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = TableModel(MaxMarginClassifier(client, C=10), text="text")
    ...     predicted = model.fit(frame, frame[["sea", "rose"]]).predict(frame).compute()
    >>> predicted.to_numpy().tolist()
    [[0, 1], [1, 0]]
    """

    classifier: Any
    _ordinary = LocalTableModel
    _parameter_constraints: ClassVar[dict[str, Any]] = _ordinary._parameter_constraints

    def __init__(
        self, classifier: Any, *, text: str | Sequence[str] | None = None,
        categorical: str | Sequence[str] | None = None, numeric: str | Sequence[str] | None = None,
        drop: str | Sequence[str] | None = None, min_df: int | float = 1,
        ngram_range: tuple[int, int] = (1, 1), sublinear_tf: bool = False,
        missing_numeric: Literal["error", "mean"] = "error",
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn features from all partitions, and fit the classifier to them on the cluster.

        Parameters
        ----------
        X : dask DataFrame of n rows, or list of delayed values or futures
            The rows; or a list with the data frame of each partition, of pandas, polars or pyarrow.
        y : dask array, DataFrame or Series, list as X, or None, default=None
            Labels or classes, as the classifier takes them.  In the same partitions as X.  None for a list of
            pairs (X, y).
        sample_weight : dask array or Series of shape (n,), or list as X, default=None
            Weights of the rows, for the classifier.

        Returns
        -------
        TableModel
            The fitted model itself.

        Raises
        ------
        ValueError
            If a column is absent or cannot be what it is said to be, or data or parameters make no sense; the
            partition is named.
        RuntimeError
            If workers die again and again, or lost what cannot be made again.
        """
        self._validate_params()
        client, classifier = self._connected(), clone(self.classifier)
        is_verbose = bool(innermost(classifier._reader()).verbose)
        local = self._ordinary(**self.get_params(deep=False))
        parts = row_partitions(X, y, sample_weight)
        frames, columns = [part[0] for part in parts], local._columns()
        if not columns.are_resolved:
            columns = _guessed(client, frames, columns)
        vectorizer = _fitted(client, frames, local._vectorizer(columns), is_verbose=is_verbose)
        featured, kept = dask.delayed(_featured, pure=False), dask.delayed(vectorizer)
        weights = {} if sample_weight is None else {"sample_weight": [part[2] for part in parts]}
        classifier.fit([featured(kept, *part[:2]) for part in parts], **weights)
        self._local = self._ordinary.of_fitted(vectorizer, classifier.to_local(), columns)
        self._n_rows = classifier._n_rows
        return self

    def _classifier(self) -> Any:
        return self.to_local().classifier_

    def _has(self, name: str) -> bool:
        return hasattr(self._local or self.classifier, name)

    def _connected(self) -> Client:
        if not isinstance(self.classifier, PartitionedPredictions):
            raise ValueError(
                f"classifier is a {type(self.classifier).__name__} for data in memory; give one of "
                "labelweave.dask."
            )
        return self.classifier._connected()

    def _reader(self) -> Any:
        raise ValueError(
            "TableModel of labelweave.dask learns words from all rows that it is fitted to, and stands "
            "outermost: give it CalibratedLabelClassifier and its like as classifier, and compare models on "
            "features that a TableVectorizer has made."
        )


def _guessed(client: Client, frames: Sequence[Any], columns: TableColumns) -> TableColumns:
    """Guess the kinds of columns from the first partitions that have rows enough."""
    first: list[Any] = []
    n_rows = 0
    for frame in frames:
        first.append(frame)
        n_rows += gathered(client, client.compute([dask.delayed(len)(frame)]))[0]
        if n_rows >= _ENOUGH:
            break
    kinds = gathered(client, client.compute([dask.delayed(_kinds)(first, columns)]))[0]
    return with_kinds(columns, _without_error(kinds), "X")


def _kinds(frames: Sequence[Any], columns: TableColumns) -> dict[str, str] | ValueError:
    try:
        tables = [table for table in map(frame_of, frames) if len(table)]
        return kinds_of_frames(tables, columns) if tables else ValueError(NO_ROWS)
    except (TypeError, ValueError) as error:
        return ValueError(str(error))


def _fitted(
    client: Client, frames: Sequence[Any], vectorizer: TableVectorizer, *, is_verbose: bool
) -> TableVectorizer:
    """Fit a vectorizer to all partitions."""
    count, kept = dask.delayed(_counted, pure=False), dask.delayed(vectorizer)
    futures = client.compute([count(kept, frame, number) for number, frame in enumerate(frames)])
    found = [_without_error(one) for one in gathered(client, futures, "partitions counted" * is_verbose)]
    counts = [one for one in found if one is not None]
    if not counts:
        raise ValueError(NO_ROWS)
    total: TableCounts = reduce(add, counts)
    return total.fitted(vectorizer)


def _counted(vectorizer: TableVectorizer, rows: Any, number: int) -> TableCounts | ValueError | None:
    try:
        frame = frame_of(rows)
        return TableCounts.of(vectorizer, frame) if len(frame) else None
    except (TypeError, ValueError) as error:  # an error that a task raises is written to the worker's log
        return ValueError(f"Partition {number}: {error}")


def _without_error(found: Any) -> Any:
    if isinstance(found, ValueError):
        raise found
    return found


def _featured(vectorizer: TableVectorizer, rows: Any, y: Any) -> tuple[sp.csr_array, Any]:
    """Make the features of a partition; who reads it says what is wrong, with the partition."""
    frame = frame_of(rows)
    try:
        if len(frame):
            return vectorizer.transform(frame), y
    except ValueError as error:
        y = error
    return sp.csr_array((len(frame), len(vectorizer.get_feature_names_out()))), y
