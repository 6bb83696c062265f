"""The max-margin classifier on Dask's collections."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from distributed import Client
from sklearn.utils import check_random_state

from labelweave.dask.classifier import PartitionedClassifier
from labelweave.dask.data import ReadData, arrange, read
from labelweave.dask.fit import FitPlan, Progress, TravellingFit
from labelweave.dask.partitions import row_partitions
from labelweave.dask.store import Store
from labelweave.dask.tasks import Common, FittedBlock
from labelweave.estimators import MaxMarginClassifier as LocalMaxMarginClassifier
from labelweave.estimators.class_weights import class_factors
from labelweave.estimators.journal import data_fingerprint
from labelweave.estimators.max_margin.fit import choose_precision
from labelweave.estimators.parameters import (
    ClassWeight,
    Costs,
    CovarianceLike,
    MeanLike,
    RandomState,
    keep_parameters,
)
from labelweave.estimators.scorers import LinearScorer
from labelweave.estimators.targets import read_covariance
from labelweave.features import make_kernel
from labelweave.labels import LabelCovariance
from labelweave.solvers import SolverResult, Status, TraceRecord

_LARGEST_SINGLE = 1e15  # squared norms beyond which products leave the range of float32


class MaxMarginClassifier(PartitionedClassifier):
    """:class:`labelweave.MaxMarginClassifier` on Dask's collections, with the same certificate.

    Linear, with labels that do not covary.  Rows stay in their partitions; blocks of 16 labels with their
    weights travel from one to the next, in an order drawn anew each round, which is dual coordinate ascent
    in another order of the rows.  Small partitions are brought together first: where all rows are in one
    place, each block is fitted there by the ordinary algorithm.  The bits depend on the partitions and the
    seed alone, not on the number of workers, nor on which of them died meanwhile.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The cluster; None is the client made last.
    C : float, default=1.0
        Weight of the losses.
    kernel : "linear", default="linear"
        Others are for data in memory, as other values of the parameters without a word here.
    gamma : {"scale"}, default="scale"
        Of other kernels; not read.
    degree : int, default=3
        Of other kernels; not read.
    coef0 : float, default=1.0
        Of other kernels; not read.
    scaling : {"none"}, default="none"
        Features are taken as they are.
    label_covariance : LabelCovariance, array-like of shape (L, L) or None, default=None
        The variances of labels; one that couples labels is refused.
    label_mean : None, default=None
        Weights are drawn to 0.
    coupling : None, default=None
        Not learned here.
    hyperparameters : {"fixed"}, default="fixed"
        Not learned here.
    fit_intercept : bool, default=True
        Whether to add a constant feature 1.
    false_negative_cost : float or array-like of shape (L,), default=1.0
        Cost of missing a label that is there.
    false_positive_cost : float or array-like of shape (L,), default=1.0
        Cost of predicting a label that is not there.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, counted over all partitions.
    threshold : "auto" or float, default="auto"
        Scores above it are predicted; none is chosen on rows that are held out.
    validation_fraction : "auto" or float, default="auto"
        Of rows that are held out; not read.
    warm_start : False, default=False
        Fits begin at 0, or at their checkpoint.
    checkpoint : path-like, URL or None, default=None
        A folder that is written while the model is fitted, here or anywhere that fsspec reaches.
        When the same call is made again after its client was killed, it goes on from there with
        the same bits; other data or parameters are refused.  The files are removed when the fit
        is done.
    tol : float, default=1e-3
        The relative duality gap to reach, by every block of 16 labels.
    max_iter : int, default=1000
        The largest number of rounds of a block.
    solver : {"auto", "coordinate_ascent"}, default="auto"
        The same here.
    factorization : {"auto"}, default="auto"
        There is none.
    memory_budget : float, default=2000.0
        Megabytes of weights that the client takes, and of rows that a worker takes: as long as all rows are
        no more, they are brought together, and workers share the labels.
    precision : {"auto", "float32", "float64"}, default="auto"
        Arithmetic while solving.
    prune : {"off"}, default="off"
        No weights are taken away.
    n_jobs : None, default=None
        Threads are those of the workers.
    random_state : int, RandomState instance or None, default=0
        Fixes the order of rows and of partitions.
    verbose : bool or int, default=0
        Whether to write to stderr how far a fit is.

    Attributes
    ----------
    coef_ : ndarray of shape (L, d)
        The weights.  This and all other fitted attributes are those of the ordinary estimator.
    intercept_ : ndarray of shape (L,)
        The intercepts.
    duality_gap_ : float
        The relative duality gap, computed over all partitions in double precision, for weights made anew from
        the dual variables.
    n_iter_ : int
        The most rounds of a block.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from labelweave.dask import MaxMarginClassifier
    >>> X = da.from_array(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.4], [0.0, 0.9]]), chunks=(2, 2))
    >>> Y = da.from_array(np.array([[0, 1], [1, 0], [1, np.nan], [0, 1]]), chunks=(2, 2))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = MaxMarginClassifier(client, C=10.0, tol=1e-6).fit(X, Y)
    ...     predicted = model.predict(X).compute()
    >>> predicted
    array([[0, 1],
           [1, 0],
           [1, 0],
           [0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LocalMaxMarginClassifier._parameter_constraints,
        "client": [Client, None],
    }
    _ordinary = LocalMaxMarginClassifier
    _one_machine: ClassVar[dict[str, tuple[Any, ...]]] = {
        "kernel": ("linear",),
        "scaling": ("none",),
        "label_mean": (None,),
        "coupling": (None,),
        "hyperparameters": ("fixed",),
        "warm_start": (False,),
        "solver": ("auto", "coordinate_ascent"),
        "factorization": ("auto",),
        "prune": ("off",),
        "n_jobs": (None,),
    }

    def __init__(
        self, client: Client | None = None, *, C: float = 1.0, kernel: str = "linear",
        gamma: str | float = "scale", degree: int = 3, coef0: float = 1.0, scaling: str = "none",
        label_covariance: CovarianceLike = None, label_mean: MeanLike = None,
        coupling: Literal["full"] | int | None = None,
        hyperparameters: Literal["fixed", "learn"] = "fixed", fit_intercept: bool = True,
        false_negative_cost: Costs = 1.0, false_positive_cost: Costs = 1.0,
        class_weight: ClassWeight = None, threshold: str | float = "auto",
        validation_fraction: float | str = "auto", warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None, tol: float = 1e-3, max_iter: int = 1000,
        solver: str = "auto", factorization: str = "auto", memory_budget: float = 2000.0,
        precision: str = "auto", prune: Literal["off", "certified"] | float = "off",
        n_jobs: int | None = None, random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MaxMarginClassifier:
        """Fit the model on the cluster.

        Parameters
        ----------
        X : dask array or DataFrame of shape (n, d), or list of delayed values or futures
            The training rows, in blocks that are dense or CSR, of sizes that may be unknown; or a list with
            the rows of each partition.
        y : dask array or DataFrame of shape (n, L) or (n,), list as X, or None, default=None
            Labels 0/1 or -1/1 with NaN where unobserved, dense or CSR, or LabelMatrix partitions; or one
            class a row.  In the same partitions as X.  None for a list of pairs (X, y).
        sample_weight : dask array or Series of shape (n,), or list as X, default=None
            Non-negative weights of the rows' losses.

        Returns
        -------
        MaxMarginClassifier
            The fitted model itself.

        Raises
        ------
        ValueError
            If data or parameters make no sense, or are for one machine; the partition is named.
        RuntimeError
            If workers die again and again, or lost what cannot be made again.

        Warns
        -----
        RuntimeWarning
            If no task has ended for a minute; it says why, as far as the scheduler knows.
        """
        self._validate_params()
        local: LocalMaxMarginClassifier = self._reader(checkpoint=None, verbose=0)
        client, begun = self._connected(), time.perf_counter()
        data = read(client, local, row_partitions(X, y, sample_weight))
        local._form, local.classes_ = data.form, data.form.classes
        local._check_threshold()
        common = self._common(local, data)
        self._refuse_wide(data)
        places, shared = arrange(client, data, common, self.memory_budget)
        marks = [facts.mark for facts in data.facts]
        del data.rows[:]
        blocks = data.label_blocks
        plan = FitPlan(blocks, places, shared, common.seed, self.tol, self.max_iter)
        store = Store(self.checkpoint, self._marks(local, marks))
        is_done = False
        try:
            ends = TravellingFit(client, plan, store, _Lines(self.verbose)).run()
            is_done = True
        finally:
            store.close(is_done=is_done)
        self._keep(local, data, common, ends, begun)
        self._local, self._n_rows = local, data.n_rows
        return self

    def _common(self, local: LocalMaxMarginClassifier, data: ReadData) -> Common:
        n_labels = len(data.counts.positives)
        form = data.form
        names = [str(name) for name in form.classes]
        covariance: LabelCovariance = LabelCovariance.identity(n_labels)
        if self.label_covariance is not None:
            covariance = read_covariance(self.label_covariance, n_labels, names)
        covariance.check_variances(names)
        variances = covariance.variances()
        if variances is None:
            raise ValueError(
                "label_covariance couples labels, which then cannot travel one block at a time; "
                "labelweave.dask.MaxMarginClassifier takes None or a diagonal."
            )
        local.label_covariance_, local.C_ = covariance, float(self.C)
        roots = None if covariance.is_diagonal else np.sqrt(variances)
        margins = local._margins(n_labels, None)
        factors = (
            None if self.class_weight is None else class_factors(self.class_weight, form, data.counts.weights)
        )
        largest = 2.0 * float(self.C) * max(facts.largest_weight for facts in data.facts)
        for factor in (factors, roots):
            largest *= 1.0 if factor is None else float(np.max(factor))
        norm = max(facts.largest_norm for facts in data.facts)
        single = max(norm, largest) < _LARGEST_SINGLE
        random_state = check_random_state(self.random_state)
        return Common(
            form=form,
            upper=2.0 * float(self.C),
            margins=margins if roots is None else margins / roots,
            intercept=bool(self.fit_intercept),
            dtype=choose_precision(self.precision, self.tol, largest) if single else np.float64,
            seed=int(random_state.randint(2**31 - 1)),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            n_features=data.n_features,
            factors=factors,
            roots=roots,
        )

    def _refuse_wide(self, data: ReadData) -> None:
        megabytes = 8e-6 * data.n_features * len(data.counts.positives)
        if megabytes > self.memory_budget:
            raise ValueError(
                f"The weights of {data.n_features} features and {len(data.counts.positives)} labels take "
                f"{megabytes:.0f} MB on the client, but memory_budget is {self.memory_budget:g}; raise it."
            )

    def _marks(self, local: LocalMaxMarginClassifier, marks: list[str]) -> dict[str, str]:
        left_out = {"client", "checkpoint", "verbose", "memory_budget"}
        parameters = {
            name: value for name, value in local._storable_parameters().items() if name not in left_out
        }
        return {"the parameters": data_fingerprint(parameters), "the partitions": data_fingerprint(marks)}

    def _keep(
        self, local: LocalMaxMarginClassifier, data: ReadData, common: Common, ends: Sequence[FittedBlock],
        begun: float,
    ) -> None:  # fmt: skip
        """Put the model together."""
        n_labels = len(data.counts.positives)
        coefficients, intercepts = np.empty((n_labels, data.n_features)), np.empty(n_labels)
        for labels, end in zip(data.label_blocks, ends, strict=True):
            coefficients[labels], intercepts[labels] = end.weights, end.intercepts
        if common.roots is not None:
            coefficients, intercepts = coefficients * common.roots[:, None], intercepts * common.roots
        local.kernel_ = make_kernel("linear", "scale", 3, 1.0)
        local.scorer_ = LinearScorer(intercepts, coefficients, local.kernel_)
        local.thresholds_ = np.full(local._n_columns, local._level)
        local.n_features_in_, local.scaling_ = data.n_features, None
        names = data.facts[0].names
        if names is not None:
            local.feature_names_in_ = names.astype(object)
        n_rounds = max(end.rounds for end in ends)
        record = TraceRecord.of(sum(end.primal for end in ends), sum(end.dual for end in ends))
        record = record._replace(iteration=n_rounds, time=time.perf_counter() - begun)
        status = Status.CONVERGED if record.gap <= self.tol else Status.ITERATION_LIMIT
        local._keep_result(SolverResult(status, n_rounds, [record]))


class _Lines:
    """Write to stderr how far a fit is, a line every two seconds."""

    def __init__(self, verbose: int | bool) -> None:
        self.is_on, self.begun, self.last = bool(verbose), time.monotonic(), time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if not self.is_on or (now - self.last < 2 and progress.done < progress.blocks):
            return
        self.last = now
        done, blocks, rounds = progress
        sys.stderr.write(
            f"labelweave: MaxMarginClassifier on Dask, {now - self.begun:.0f} s: {done} of {blocks} "
            f"blocks of labels fitted, {rounds} rounds\n"
        )
        sys.stderr.flush()
