"""The low-rank classifier on Dask's collections."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar, Literal

from distributed import Client

from labelweave.dask.classifier import PartitionedClassifier, refuse_kernel_matrix
from labelweave.dask.data import ReadData, gathered_entries, gathered_labels
from labelweave.estimators import LowRankClassifier as LocalLowRankClassifier
from labelweave.estimators.parameters import (
    ClassWeight,
    Costs,
    CovarianceLike,
    FlipRatesLike,
    KernelLike,
    MeanLike,
    RandomState,
    keep_parameters,
)
from labelweave.estimators.progress import FitArguments, fit_method
from labelweave.estimators.seen_rows import SeenRows
from labelweave.problems.losses.entry_losses import EntryLoss


class LowRankClassifier(PartitionedClassifier):
    """:class:`labelweave.LowRankClassifier` on Dask's collections, with the same certificate.

    Features and scores of rows stay in their partitions; the ordinary solver runs on the client, and has the
    loss and its derivatives computed there, and what is summed over rows added in pairs, in the order of the
    partitions.  Where the solution has a closed form, normal equations are summed.  The client holds the
    labels, and tables of features times rank.  The bits depend on the partitions and the seed alone, not on
    the number of workers, nor on which of them died meanwhile.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The cluster; None is the client made last.
    rank : int or float, default=100
        The rank, or a share of the number of labels.
    loss : {"squared", "logistic", "squared_hinge"} or EntryLoss, default="squared"
        The loss of an entry.
    regularization : float, default=1.0
        lambda.
    penalty : {"trace_norm", "ridge"}, default="trace_norm"
        What is penalised.
    kernel : {"linear", "rbf", "polynomial", "laplacian", "cosine"} or Kernel, default="linear"
        The kernel between rows.  One without explicit features is replaced by an incomplete Cholesky factor,
        whose pivots are chosen over all partitions and whose rows stay there.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the RBF, polynomial and Laplacian kernels, of the moments of all partitions.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    scaling : {"none"}, default="none"
        Features are taken as they are; other values are for data in memory, as those of the parameters
        without a word here.
    fit_intercept : bool, default=True
        Whether to add a constant feature.
    intercept_scaling : float, default=1.0
        The constant feature.
    negative_weight : float, default=1.0
        Weight of the loss of entries that are not positive.
    label_covariance : LabelCovariance, Taxonomy, array-like of shape (L, L) or None, default=None
        A prior covariance between labels.
    label_mean : LabelMean, array-like of shape (L, d), DataFrame by label or None, default=None
        Scores that are known before the fit.
    false_positive_cost : float, array-like of shape (L,) or Series by label, default=1.0
        What the losses of negative entries are multiplied with.
    false_negative_cost : float, array-like of shape (L,) or Series by label, default=1.0
        What the losses of positive entries are multiplied with.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, counted over all partitions.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly; "propensity" counts over all partitions.
    hyperparameters : {"fixed"}, default="fixed"
        Not learned here.
    cv : int, splitter, iterable or None, default=5
        For learning; not read.
    learning_rows : None, default=None
        For learning; not read.
    max_learning_iter : int, default=100
        For learning; not read.
    start : {"svd", "random"}, default="svd"
        The labels' factor to start from.
    threshold : {"auto", "f1", "micro_f1", "macro_f1", "example_f1", "hamming_loss"} or float, default="auto"
        Scores above it are predicted; a name is a measure, for which thresholds are chosen on rows that are
        held out.
    validation_fraction : "auto" or float, default="auto"
        Share of those rows, whose scores of all labels are brought to the client.
    warm_start : False, default=False
        Fits begin at ``start``, or at their checkpoint.
    checkpoint : path-like or None, default=None
        A file on the client, written at most every 30 seconds during a fit, and removed after it.  The same
        call goes on from it with the same bits after its client was killed.
    tol : float, default=1e-4
        The fit ends after a round that lowers the objective by less than this share.
    max_iter : int, default=100
        The largest number of rounds.
    precision : {"float64", "float32"}, default="float64"
        Arithmetic of the factors.
    kernel_rank : int or None, default=None
        The columns of a factor; None for 2,000.  The model keeps so many rows.
    memory_budget : float, default=8000.0
        Megabytes on the client for the normal equations of a closed form.
    n_jobs : int or None, default=None
        Threads of the client; those of workers are theirs.
    random_state : int, RandomState instance or None, default=0
        Fixes random starts.
    verbose : bool or int, default=0
        Whether to write to stderr how far a fit is.

    Attributes
    ----------
    feature_factors_ : ndarray of shape (d, k)
        Weights of features.  This and all other fitted attributes are those of the ordinary estimator.
    label_factors_ : ndarray of shape (L, k)
        The labels' factor.
    objective_ : float
        The objective over all partitions.
    duality_gap_ : float
        The share of the objective by which factors of any rank could lower it at most, over all partitions.
    n_iter_ : int
        The rounds.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from labelweave.dask import LowRankClassifier
    >>> X = da.from_array(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.4], [0.0, 0.9]]), chunks=(2, 2))
    >>> Y = da.from_array(np.array([[0, 1], [1, 0], [1, np.nan], [0, 1]]), chunks=(2, 2))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = LowRankClassifier(client, rank=2, regularization=0.01).fit(X, Y)
    ...     predicted = model.predict(X).compute()
    >>> predicted
    array([[0, 1],
           [1, 0],
           [1, 0],
           [0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LocalLowRankClassifier._parameter_constraints,
        "client": [Client, None],
    }
    _ordinary = LocalLowRankClassifier
    _one_machine: ClassVar[dict[str, tuple[Any, ...]]] = {
        "scaling": ("none",),
        "hyperparameters": ("fixed",),
        "learning_rows": (None,),
        "warm_start": (False,),
    }

    def __init__(
        self, client: Client | None = None, rank: float = 100, loss: str | EntryLoss = "squared",
        regularization: float = 1.0, *, penalty: Literal["trace_norm", "ridge"] = "trace_norm",
        kernel: KernelLike = "linear", gamma: str | float = "scale", degree: int = 3, coef0: float = 1.0,
        scaling: str = "none", fit_intercept: bool = True, intercept_scaling: float = 1.0,
        negative_weight: float = 1.0, label_covariance: CovarianceLike = None, label_mean: MeanLike = None,
        false_positive_cost: Costs = 1.0, false_negative_cost: Costs = 1.0, class_weight: ClassWeight = None,
        flip_rates: FlipRatesLike = None,
        hyperparameters: Literal["fixed", "learn"] = "fixed", cv: Any = 5, learning_rows: int | None = None,
        max_learning_iter: int = 100, start: Literal["svd", "random"] = "svd",
        threshold: str | float = "auto", validation_fraction: float | str = "auto", warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None, tol: float = 1e-4, max_iter: int = 100,
        precision: str = "float64", kernel_rank: int | None = None, memory_budget: float = 8000.0,
        n_jobs: int | None = None, random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _reader(self) -> Any:
        refuse_kernel_matrix(self.kernel)
        return super()._reader()

    def _fit_local(
        self, local: LocalLowRankClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any
    ) -> None:
        labels, weights = gathered_labels(client, data)
        self._refuse_many_held(local, labels.n_labels, weights)
        rows = SeenRows(self._features(client, data), labels, weights, data.form)
        _fit_rows(local, rows, gathered_entries(client, data), None if start is None else start._end)


@fit_method
def _fit_rows(
    local: LocalLowRankClassifier, rows: SeenRows, entries: Any, before: Any
) -> LocalLowRankClassifier:
    """Fit the ordinary estimator to rows elsewhere."""
    local._fit(rows, entries, before, FitArguments(None, None, None))
    return local
