"""The max-margin classifier on Dask's collections."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from distributed import Client
from sklearn.utils import check_random_state

from labelweave.dask.classifier import PartitionedClassifier, refuse_kernel_matrix
from labelweave.dask.data import ReadData, arrange, corrected_by, gathered_labels
from labelweave.dask.features import PartitionedFeatures
from labelweave.dask.fit import FitPlan, Progress, TravellingFit
from labelweave.dask.store import Store
from labelweave.dask.tasks import Common, FittedBlock, never_stops
from labelweave.estimators import MaxMarginClassifier as LocalMaxMarginClassifier
from labelweave.estimators.class_weights import class_factors
from labelweave.estimators.held_out import tolerance_of_part
from labelweave.estimators.journal import Journal, data_fingerprint
from labelweave.estimators.max_margin.fit import MarginSettings
from labelweave.estimators.max_margin.kernel_factor import KernelFactor, kernel_factor
from labelweave.estimators.max_margin.solver_choice import choose_precision
from labelweave.estimators.parameters import (
    SHARED,
    ClassWeight,
    Costs,
    CovarianceLike,
    FlipRatesLike,
    KernelLike,
    MeanLike,
    RandomState,
    keep_parameters,
)
from labelweave.estimators.scorers import LinearScorer
from labelweave.features import FeatureMatrix
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.labels import LabelMean
from labelweave.labels.covariance.base import read_covariances
from labelweave.solvers import SolverResult, Status, TraceRecord

_LARGEST_SINGLE = 1e15  # squared norms beyond which products leave the range of float32


class MaxMarginClassifier(PartitionedClassifier):
    """:class:`labelweave.MaxMarginClassifier` on Dask's collections, with the same certificate.

    Rows stay in their partitions; blocks of 16 labels with their weights travel from one to the
    next, in an order drawn anew each round, which is dual coordinate ascent in another order of the rows.
    Small partitions are brought together first: where all rows are in one place, each block is fitted there
    by the ordinary algorithm.  A kernel without explicit features is replaced by a factor of its matrix,
    whose pivots are chosen over all partitions and whose rows stay there: the fit is the linear one to these.
    The bits depend on the partitions and the seed alone, not on the number of workers, nor on which of them
    died meanwhile.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The cluster; None is the client made last.
    C : float, default=1.0
        Weight of the losses.
    kernel : {"linear", "cosine", "rbf", "polynomial", "laplacian"}, Kernel or callable, default="linear"
        The kernel between rows; sums of kernels with covariances of their own are for data in memory.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the RBF, polynomial and Laplacian kernels, of the moments of all partitions.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    scaling : {"none"}, default="none"
        Features are taken as they are.
    label_covariance : LabelCovariance, array-like of shape (L, L) or None, default=None
        How labels vary and covary.  Labels that it couples travel all together; see the notes.
    label_mean : LabelMean, array-like of shape (L, d), DataFrame by label or None, default=None
        What weights are drawn to; None is 0.
    coupling : None, default=None
        Not learned here.
    hyperparameters : {"fixed"}, default="fixed"
        Not learned here.
    fit_intercept : bool, default=True
        Whether to add a constant feature 1.
    false_negative_cost : float, array-like of shape (L,) or Series by label, default=1.0
        Cost of missing a label that is there.
    false_positive_cost : float, array-like of shape (L,) or Series by label, default=1.0
        Cost of predicting a label that is not there.
    class_weight : {"balanced"}, dict, list of dict or None, default=None
        Weights of classes, counted over all partitions.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly; "propensity" counts over all partitions.
    threshold : {"auto", "f1", "micro_f1", "macro_f1", "example_f1", "hamming_loss"} or float, default="auto"
        Scores above it are predicted; a name is a measure, for which thresholds are chosen on rows that are
        held out.
    validation_fraction : "auto" or float, default="auto"
        Share of those rows, whose scores of all labels are brought to the client.
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
    kernel_rank : int or None, default=None
        The columns of the factor that stands for a kernel matrix; None for 2,000.  The model keeps so many
        rows.
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
        The weights, where the kernel has explicit features.  This and all other fitted attributes are those
        of the ordinary estimator.
    intercept_ : ndarray of shape (L,)
        The intercepts.
    duality_gap_ : float
        The relative duality gap, computed over all partitions in double precision, for weights made anew from
        the dual variables; where a factor stands for a kernel, of the problem with this factor.
    n_iter_ : int
        The most rounds of a block.

    Notes
    -----
    Labels that a covariance couples are one block, which is at two partitions at once, so that two workers at
    a time are busy.  Where rows are in several places they are 4,096 at most.

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
        "kernel": SHARED["kernel"],
        "label_covariance": SHARED["label_covariance"],
        "client": [Client, None],
    }
    _ordinary = LocalMaxMarginClassifier
    _one_machine: ClassVar[dict[str, tuple[Any, ...]]] = {
        "scaling": ("none",),
        "coupling": (None,),
        "hyperparameters": ("fixed",),
        "warm_start": (False,),
        "solver": ("auto", "coordinate_ascent"),
        "factorization": ("auto",),
        "prune": ("off",),
        "n_jobs": (None,),
    }
    _otherwise: ClassVar[dict[str, Any]] = {"solver": "auto"}  # coordinates of columns, for kernels too

    def __init__(
        self, client: Client | None = None, *, C: float = 1.0, kernel: KernelLike = "linear",
        gamma: str | float = "scale", degree: int = 3, coef0: float = 1.0, scaling: str = "none",
        label_covariance: CovarianceLike = None, label_mean: MeanLike = None,
        coupling: Literal["full"] | int | None = None,
        hyperparameters: Literal["fixed", "learn"] = "fixed", fit_intercept: bool = True,
        false_negative_cost: Costs = 1.0, false_positive_cost: Costs = 1.0,
        class_weight: ClassWeight = None, flip_rates: FlipRatesLike = None, threshold: str | float = "auto",
        validation_fraction: float | str = "auto", warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None, tol: float = 1e-3, max_iter: int = 1000,
        solver: str = "auto", factorization: str = "auto", kernel_rank: int | None = None,
        memory_budget: float = 2000.0, precision: str = "auto",
        prune: Literal["off", "certified", "small"] | float = "off",
        n_jobs: int | None = None, random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _reader(self) -> Any:
        refuse_kernel_matrix(self.kernel)
        return super()._reader()

    def _fit_local(
        self, local: LocalMaxMarginClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any
    ) -> None:
        local.checkpoint, local.verbose = None, 0
        local._form, local.classes_ = data.form, data.form.classes
        local._check_threshold()
        marks = self._marks(local, [facts.mark for facts in data.facts])
        data = corrected_by(client, data, self.flip_rates)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        settings = replace(local._settings(never_stops, Journal()), n_threads=1, seed=seed)  # type: ignore[arg-type]
        inputs = _Inputs.of(local, self._features(client, data), settings)
        self._refuse_wide(inputs.data)
        common = self._common(local, inputs.data, settings)
        if is_part:
            common = self._of_a_part(common)
        self._choose_thresholds(local, client, data, inputs, common)
        if inputs.data is not data:
            del data.rows[:]
        local._keep_result(self._travel(local, client, inputs, common, Store(self.checkpoint, marks)))

    def _choose_thresholds(
        self, local: LocalMaxMarginClassifier, client: Client, data: ReadData, inputs: _Inputs, common: Common
    ) -> None:
        """Choose them as the ordinary estimator does, whose fits of some rows are made on the cluster."""
        lines: Any = _Lines(self.verbose, "a part of the rows")
        if not local._holds_out:
            local._set_thresholds(None, None, None, lines, 0, None)  # type: ignore[arg-type]
            return
        labels, weights = gathered_labels(client, data)
        self._refuse_many_held(local, labels.n_labels, weights)

        def fit_part(kept: Array, stage: str) -> SolverResult:
            part = replace(inputs, data=inputs.data.some_rows(client, kept))
            return self._travel(local, client, part, self._of_a_part(common), Store(None, {}), lines)

        features = PartitionedFeatures(client, data)
        part = local._set_thresholds(features, lambda: labels, weights, lines, common.seed, fit_part)
        if part is not None and part.status is Status.INTERRUPTED:
            raise KeyboardInterrupt

    def _of_a_part(self, common: Common) -> Common:
        """Say how rows are fitted on which decisions are chosen."""
        tol = tolerance_of_part(self.tol, by_rows=True)
        return replace(common, tol=tol, settings=replace(common.settings, is_part=True))

    def _travel(
        self, local: LocalMaxMarginClassifier, client: Client, inputs: _Inputs, common: Common, store: Store,
        lines: _Lines | None = None,
    ) -> SolverResult:  # fmt: skip
        """Fit all labels to these rows, and keep the model."""
        begun, data = time.perf_counter(), inputs.data
        blocks = data.label_blocks(common.covariance)
        is_done = False
        try:
            places, shared = arrange(client, data, common, self.memory_budget)
            del data.rows[:]
            plan = FitPlan(
                blocks, places, shared, common.seed, common.tol, common.max_iter,
                is_coupled=common.covariance is not None,
            )  # fmt: skip
            ends = TravellingFit(client, plan, store, lines or _Lines(self.verbose)).run()
            is_done = True
        finally:
            store.close(is_done=is_done)
        return self._keep(local, blocks, common, ends, inputs.factor, begun)

    def _common(self, local: LocalMaxMarginClassifier, data: ReadData, settings: MarginSettings) -> Common:
        form, n_labels = data.form, len(data.counts.positives)
        covariance = local.label_covariance_ = read_covariances(
            self.label_covariance, None, n_labels, form.classes
        )[0]
        local.C_ = float(self.C)
        variances = covariance.variances()
        roots = None if covariance.is_diagonal or variances is None else np.sqrt(variances)
        mean = self._mean(local, data, n_labels)
        margins = local._margins(n_labels, mean)
        if mean is not None and roots is not None:
            mean = LabelMean(mean.label_factors / roots[:, None], mean.feature_factors)
        factors = (
            None if self.class_weight is None else class_factors(self.class_weight, form, data.counts.weights)
        )
        largest = 2.0 * float(self.C) * data.counts.largest
        for factor in (factors, roots):
            largest *= 1.0 if factor is None else float(np.max(factor))
        norm = max(facts.largest_norm for facts in data.facts)
        single = max(norm, largest) < _LARGEST_SINGLE
        return Common(
            form=form,
            upper=2.0 * float(self.C),
            margins=margins if roots is None else margins / roots,
            intercept=bool(self.fit_intercept),
            dtype=choose_precision(self.precision, self.tol, largest) if single else np.float64,
            seed=settings.seed,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            n_features=data.n_features,
            factors=factors,
            roots=roots,
            covariance=covariance if variances is None else None,
            mean=mean,
            settings=settings,
        )

    def _mean(self, local: LocalMaxMarginClassifier, data: ReadData, n_labels: int) -> LabelMean | None:
        shape = FeatureMatrix(sp.csr_array((0, data.n_features)))
        return local._mean(shape, n_labels)

    def _refuse_wide(self, data: ReadData) -> None:
        megabytes = 8e-6 * data.n_features * len(data.counts.positives)
        if megabytes > self.memory_budget:
            raise ParameterError(
                f"The weights of {data.n_features} features and {len(data.counts.positives)} labels take "
                f"{megabytes:.0f} MB on the client, but `memory_budget` is {self.memory_budget:g}; raise it."
            )

    def _marks(self, local: LocalMaxMarginClassifier, marks: list[str]) -> dict[str, str]:
        left_out = {"client", "checkpoint", "verbose"}
        parameters = {
            name: value for name, value in local._storable_parameters().items() if name not in left_out
        }
        return {"the parameters": data_fingerprint(parameters), "the partitions": data_fingerprint(marks)}

    def _keep(
        self, local: LocalMaxMarginClassifier, blocks: Sequence[Array], common: Common,
        ends: Sequence[FittedBlock], factor: KernelFactor | None, begun: float,
    ) -> SolverResult:  # fmt: skip
        """Put the model together."""
        n_labels = sum(map(len, blocks))
        coefficients, intercepts = np.empty((common.n_features, n_labels)).T, np.empty(n_labels)
        for labels, end in zip(blocks, ends, strict=True):
            coefficients[labels], intercepts[labels] = end.weights, end.intercepts
        if common.roots is not None:
            coefficients, intercepts = coefficients * common.roots[:, None], intercepts * common.roots
        if local.label_mean_ is not None:
            intercepts = intercepts + local.label_mean_.intercepts
        if factor is None:
            local.scorer_ = LinearScorer.of_labels(intercepts, coefficients, local.kernel_)
        else:
            local.scorer_ = factor.scorer(local.kernel_, intercepts, coefficients)
        n_rounds = max(end.rounds for end in ends)
        record = TraceRecord.of(sum(end.primal for end in ends), sum(end.dual for end in ends))
        record = record._replace(iteration=n_rounds, time=time.perf_counter() - begun)
        status = Status.CONVERGED if record.gap <= common.tol else Status.ITERATION_LIMIT
        return SolverResult(status, n_rounds, [record])


@dataclass(frozen=True)
class _Inputs:
    """The rows as they are fitted to: with explicit features, or with columns of a factor in their place."""

    data: ReadData
    factor: KernelFactor | None

    @classmethod
    def of(
        cls, local: LocalMaxMarginClassifier, features: PartitionedFeatures, settings: MarginSettings
    ) -> _Inputs:
        """Read the kernel, which the ordinary estimator gets."""
        source, explicit = local._read_kernel(features, settings.seed)
        factor = kernel_factor(local, source, explicit, features, settings)
        rows: Any = explicit if factor is None else factor.features
        return cls(rows.read, factor)


class _Lines:
    """Write to stderr how far a fit is, a line every two seconds."""

    def __init__(self, verbose: int | bool, what: str = "") -> None:
        self.is_on, self.begun, self.last = bool(verbose), time.monotonic(), time.monotonic()
        self.what = f", {what}" if what else ""

    def end_part(self) -> None:
        """Go on to the next part of the rows, of which nothing is to be said."""

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if not self.is_on or (now - self.last < 2 and progress.done < progress.blocks):
            return
        self.last = now
        done, blocks, rounds = progress
        sys.stderr.write(
            f"labelweave: MaxMarginClassifier on Dask{self.what}, {now - self.begun:.0f} s: {done} of "
            f"{blocks} blocks of labels fitted, {rounds} rounds\n"
        )
        sys.stderr.flush()
