"""The kernel logistic classifier on Dask's collections."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from distributed import Client

from labelweave.dask.classifier import PartitionedClassifier, refuse_kernel_matrix
from labelweave.dask.data import ReadData, gathered_entries, gathered_labels
from labelweave.dask.features import PartitionedFeatures
from labelweave.dask.predictions import PartitionedProbabilities
from labelweave.dask.rows import ReadRows, weights_of
from labelweave.dask.waiting import gathered
from labelweave.estimators import KernelLogisticClassifier as LocalKernelLogisticClassifier
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
from labelweave.labels import Taxonomy
from labelweave.problems.losses import EntryLoss

_TABLES = 15  # of rows x labels, which a fit holds


class KernelLogisticClassifier(PartitionedProbabilities, PartitionedClassifier):
    """:class:`labelweave.KernelLogisticClassifier` on Dask's collections, with the same certificate.

    Features stay in their partitions.  A kernel matrix is replaced by an incomplete Cholesky factor, whose
    pivots are chosen over all partitions and whose rows stay there too; explicit features (of the linear and
    the cosine kernel) are used as they are.  The ordinary solver, Newton's method with conjugate gradients,
    runs on the client and has every product with the matrix made where rows are, sums over rows added in
    pairs, in the order of the partitions.  Hyper-parameters are learned from some rows, which are brought to
    the client.  The client holds some fifteen tables of rows times labels.  The bits depend on the
    partitions and the seed alone, not on the number of workers, nor on which of them died meanwhile.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The cluster; None is the client made last.
    kernel : {"rbf", "linear", "polynomial", "laplacian", "cosine"} or Kernel, default="rbf"
        The kernel between rows.
    gamma : None, {"scale", "auto"} or float, default=None
        Width of the RBF, polynomial and Laplacian kernels to start from, of the moments of all partitions.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    scaling : {"none"}, default="none"
        Features are taken as they are.
    scale : float, default=10.0
        The factor v of the kernel.
    intercept_variance : float or "learn", default=1.0
        The prior variance of the intercepts.
    taxonomy : Taxonomy, nested dict, list of pairs or paths, graph or None, default=None
        A tree over classes or labels.
    label_covariance : LabelCovariance, Taxonomy, array-like of shape (L, L) or None, default=None
        A given prior covariance between labels.
    label_mean : LabelMean, array-like of shape (L, d), DataFrame by label or None, default=None
        Scores that are known before the fit.
    coupling : None, "full" or int, default=None
        A covariance between labels that is learned.
    tie : {"shared", "scale", "class", "level", "subtree"} or pair of these, default="shared"
        What shares a scale and a kernel shape.
    tree_prior : bool, default=True
        Whether classes share the functions of the taxonomy's nodes.
    feature_widths : False, default=False
        Widths of single features are for data in memory.
    false_negative_cost : float, array-like of shape (L,) or Series by label, default=1.0
        What the losses of positive entries are multiplied with.
    false_positive_cost : float, array-like of shape (L,) or Series by label, default=1.0
        What the losses of negative entries are multiplied with.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, counted over all partitions.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly; "propensity" counts over all partitions.
    hyperparameters : {"learn", "fixed"}, default="learn"
        Whether scales and kernel parameters are learned or kept.
    cv : int, splitter, iterable or None, default=5
        The folds on which they are learned.
    learning_rows : int or None, default=3000
        Learn on so many rows, drawn at random from all partitions and brought to the client; None for all.
    learning_blocks : int, default=1
        Learn on so many disjoint blocks of ``learning_rows`` rows.
    max_learning_iter : int, default=100
        The largest number of evaluations of the cross-validated loss.
    loss : {"logistic"} or EntryLoss, default="logistic"
        The loss of a label: logistic, or one of your own (:mod:`labelweave.extending`).
    decision : {"most_probable", "least_expected_loss", "best_parent"}, default="most_probable"
        How ``predict`` chooses one class a row.
    threshold : {"auto", "f1", "micro_f1", "macro_f1", "example_f1", "hamming_loss"} or float, default="auto"
        Labels of a higher probability are predicted; a name is a measure, for which thresholds are chosen on
        rows that are held out.
    validation_fraction : "auto" or float, default="auto"
        Share of those rows, whose scores of all labels are brought to the client.
    kernel_rank : int or None, default=None
        The columns of factors; None for 2,000, or none for kernels with explicit features.  The model keeps
        so many rows.
    warm_start : False, default=False
        Fits begin anew, or at their checkpoint.
    checkpoint : path-like or None, default=None
        A file on the client, written at most every 30 seconds during a fit, and removed after it.
    tol : float, default=1e-4
        The relative duality gap to reach.
    max_iter : int, default=100
        The largest number of Newton steps.
    solver : {"auto", "function_gradients", "symmetrized_gradients"}, default="auto"
        What solves Newton's systems; exact solutions are for data in memory.
    memory_budget : float, default=8000.0
        Megabytes on the client: for tables of rows times labels, and for learning.
    n_jobs : int or None, default=None
        Threads of the client; those of workers are theirs.
    random_state : int, RandomState instance or None, default=0
        Fixes the folds, the rows learned on and pivots.
    verbose : bool or int, default=0
        Whether to write to stderr how far a fit is.

    Attributes
    ----------
    hyperparameters_ : dict of str to float
        Scales and kernel parameters by name.  This and all other fitted attributes are those of the ordinary
        estimator.
    coef_ : ndarray of shape (L, d)
        Weights of explicit features, where the kernel has such; the ordinary estimator has rows instead.
    duality_gap_ : float
        The relative duality gap over all partitions.
    n_iter_ : int
        Newton steps done.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from labelweave.dask import KernelLogisticClassifier
    >>> X = da.from_array(np.array([[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]]), chunks=(3, 1))
    >>> y = da.from_array(np.array(["apple", "apple", "pear", "pear", "oak", "oak"]), chunks=3)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = KernelLogisticClassifier(client, gamma=5.0, hyperparameters="fixed").fit(X, y)
    ...     predicted = model.predict(X).compute()
    >>> predicted
    array(['apple', 'apple', 'pear', 'pear', 'oak', 'oak'], dtype='<U5')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LocalKernelLogisticClassifier._parameter_constraints,
        "client": [Client, None],
    }
    _ordinary = LocalKernelLogisticClassifier
    _one_machine: ClassVar[dict[str, tuple[Any, ...]]] = {
        "scaling": ("none",),
        "feature_widths": (False,),
        "warm_start": (False,),
        "solver": ("auto", "function_gradients", "symmetrized_gradients"),
    }

    def __init__(
        self, client: Client | None = None, kernel: KernelLike | Sequence[Any] = "rbf", *,
        gamma: str | float | None = None, degree: int = 3, coef0: float = 1.0, scaling: str = "none",
        scale: float = 10.0, intercept_variance: float = 1.0, taxonomy: Taxonomy | None = None,
        label_covariance: CovarianceLike = None, label_mean: MeanLike = None,
        coupling: Literal["full"] | int | None = None, tie: str = "shared", tree_prior: bool = True,
        feature_widths: bool = False, false_negative_cost: Costs = 1.0, false_positive_cost: Costs = 1.0,
        class_weight: ClassWeight = None, flip_rates: FlipRatesLike = None,
        hyperparameters: Literal["fixed", "learn"] = "learn", cv: Any = 5, learning_rows: int | None = 3000,
        learning_blocks: int = 1, max_learning_iter: int = 100, loss: str | EntryLoss = "logistic",
        decision: str = "most_probable", threshold: str | float = "auto",
        validation_fraction: float | str = "auto", kernel_rank: int | None = None, warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None, tol: float = 1e-4, max_iter: int = 100,
        solver: str = "auto", memory_budget: float = 8000.0, n_jobs: int | None = None,
        random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _reader(self) -> Any:
        refuse_kernel_matrix(self.kernel)
        return super()._reader()

    def _fit_local(
        self,
        local: LocalKernelLogisticClassifier,
        client: Client,
        data: ReadData,
        *,
        is_part: bool,
        start: Any,
    ) -> None:
        self._refuse_large_tables(
            data.n_rows, len(data.form.classes), 8 * _TABLES,
            "give fewer rows, or use labelweave.dask.MaxMarginClassifier, which leaves them on the workers",
        )  # fmt: skip
        y, weights = _gathered_targets(client, data)
        self._refuse_many_held(local, len(data.form.classes), weights)
        _fit_rows(local, self._features(client, data), y, weights, gathered_entries(client, data))
        if data.form.kind == "labels":
            local._form = data.form


def _gathered_targets(client: Client, data: ReadData) -> tuple[Any, Any]:
    """Bring labels, or the class of each row, and weights to the client."""
    if data.form.kind == "labels":
        return gathered_labels(client, data)
    classes = gathered(client, client.map(_targets_of, data.rows, pure=False))
    weights = gathered(client, client.map(weights_of, data.rows, pure=False))
    return np.concatenate(classes), np.concatenate(weights)


def _targets_of(rows: ReadRows) -> Any:
    return rows.targets


@fit_method
def _fit_rows(
    local: LocalKernelLogisticClassifier, features: PartitionedFeatures, y: Any, weights: Any, entries: Any
) -> LocalKernelLogisticClassifier:
    """Fit the ordinary estimator to rows elsewhere."""
    local._fit_features(features, y, weights, entries, FitArguments(None, None, None))
    return local
