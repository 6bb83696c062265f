"""The max-margin classifier on partitions: blocks of labels travel, or are fitted where all rows are."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import Client
from sklearn.utils import check_random_state

from labelweave.dask.client import budget_of, budget_words
from labelweave.dask.data import ReadData, arrange, corrected_by
from labelweave.dask.features import PartitionedFeatures
from labelweave.dask.fit import FitPlan, Progress, TravelingFit
from labelweave.dask.store import Store
from labelweave.dask.tasks import Common, FittedBlock, never_stops
from labelweave.estimators import MaxMarginClassifier
from labelweave.estimators.entry_weights import class_factors
from labelweave.estimators.held_out import tolerance_of_part
from labelweave.estimators.journal import Journal, data_fingerprint
from labelweave.estimators.max_margin.fit import MarginSettings, choose_precision
from labelweave.estimators.max_margin.kernel_factor import KernelFactor, kernel_factor
from labelweave.estimators.scorers import LinearScorer
from labelweave.features import FeatureMatrix
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.labels import LabelMean
from labelweave.labels.covariance.base import read_covariances
from labelweave.solvers import SolverResult, Status, TraceRecord

_LARGEST_SINGLE = 1e15  # squared norms beyond which products leave the range of float32


def fit_to(model: MaxMarginClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any) -> None:
    """Fit to partitions that workers have read.

    If all rows fit in one place, each block of labels is a task there, the ordinary algorithm; otherwise
    blocks travel from place to place.  A kernel without explicit features is replaced by a factor of its
    matrix.
    """
    model._form, model.classes_ = data.form, data.form.classes
    model._set_threshold()
    marks = _marks(model, [facts.mark for facts in data.facts])
    data = corrected_by(client, data, model.flip_rates)
    seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    settings = replace(model._settings(never_stops, Journal()), n_threads=1, seed=seed)  # type: ignore[arg-type]
    features = PartitionedFeatures(client, data, is_verbose=bool(model.verbose))
    inputs = _Inputs.of(model, features, settings)
    _refuse_wide(model, inputs.data)
    common = _common(model, inputs.data, settings)
    if is_part:
        common = _of_a_part(common)
    if inputs.data is not data:
        del data.rows[:]
    store, lines = Store(model.checkpoint, marks), _Lines(model.verbose)
    model._keep_result(_travel(model, client, inputs, common, store, lines))


def _of_a_part(common: Common) -> Common:
    """Return the settings for rows whose scores choose decisions."""
    tol = tolerance_of_part(common.tol, by_rows=True)
    return replace(common, tol=tol, settings=replace(common.settings, is_part=True))


def _travel(
    model: MaxMarginClassifier, client: Client, inputs: _Inputs, common: Common, store: Store, lines: _Lines
) -> SolverResult:
    """Fit all labels to these rows, and store the data for scores."""
    begun, data = time.perf_counter(), inputs.data
    blocks = data.label_blocks(common.covariance)
    is_done = False
    try:
        places, shared = arrange(client, data, common, budget_of(model))
        del data.rows[:]
        plan = FitPlan(
            blocks, places, shared, common.seed, common.tol, common.max_iter,
            is_coupled=common.covariance is not None,
        )  # fmt: skip
        ends = TravelingFit(client, plan, store, lines).run()
        is_done = True
    finally:
        store.close(is_done=is_done)
    return _keep(model, blocks, common, ends, inputs.factor, begun)


def _common(model: MaxMarginClassifier, data: ReadData, settings: MarginSettings) -> Common:
    form, n_labels = data.form, len(data.counts.positives)
    covariance = read_covariances(model.label_covariance, None, n_labels, form.classes)[0]
    model.label_covariance_, model.C_ = covariance, float(model.C)
    variances = covariance.variances()
    roots = None if covariance.is_diagonal or variances is None else np.sqrt(variances)
    mean = model._mean(FeatureMatrix(sp.csr_array((0, data.n_features))), n_labels)
    margins = model._margins(n_labels, mean)
    if mean is not None and roots is not None:
        mean = LabelMean(mean.label_factors / roots[:, None], mean.feature_factors)
    factors = (
        None if model.class_weight is None else class_factors(model.class_weight, form, data.counts.weights)
    )
    largest = 2.0 * float(model.C) * data.counts.largest
    for factor in (factors, roots):
        largest *= 1.0 if factor is None else float(np.max(factor))
    norm = max(facts.largest_norm for facts in data.facts)
    single = max(norm, largest) < _LARGEST_SINGLE
    return Common(
        form=form,
        upper=2.0 * float(model.C),
        margins=margins if roots is None else margins / roots,
        intercept=bool(model.fit_intercept),
        dtype=choose_precision(model.dtype, model.tol, largest) if single else np.float64,
        seed=settings.seed,
        tol=float(model.tol),
        max_iter=int(model.max_iter),
        n_features=data.n_features,
        factors=factors,
        roots=roots,
        covariance=covariance if variances is None else None,
        mean=mean,
        settings=settings,
    )


def _refuse_wide(model: MaxMarginClassifier, data: ReadData) -> None:
    megabytes = 8e-6 * data.n_features * len(data.counts.positives)
    if megabytes > budget_of(model):
        raise ParameterError(
            f"The weights of {data.n_features} features and {len(data.counts.positives)} labels take "
            f"{megabytes:.0f} MB on the client, but {budget_words(model)}; raise it."
        )


def _marks(model: MaxMarginClassifier, marks: list[str]) -> dict[str, str]:
    given = model._storable_parameters().items()
    parameters = {name: value for name, value in given if name not in ("checkpoint", "verbose")}
    parameters["memory_budget"] = budget_of(model)
    return {"the parameters": data_fingerprint(parameters), "the partitions": data_fingerprint(marks)}


def _keep(
    model: MaxMarginClassifier, blocks: Sequence[Array], common: Common, ends: Sequence[FittedBlock],
    factor: KernelFactor | None, begun: float,
) -> SolverResult:  # fmt: skip
    n_labels = sum(map(len, blocks))
    coefficients, intercepts = np.empty((common.n_features, n_labels)).T, np.empty(n_labels)
    for labels, end in zip(blocks, ends, strict=True):
        coefficients[labels], intercepts[labels] = end.weights, end.intercepts
    if common.roots is not None:
        coefficients, intercepts = coefficients * common.roots[:, None], intercepts * common.roots
    if model.label_mean_ is not None:
        intercepts = intercepts + model.label_mean_.intercepts
    if factor is None:
        model.scorer_ = LinearScorer.of_labels(intercepts, coefficients, model.kernel_)
    else:
        model.scorer_ = factor.scorer(model.kernel_, intercepts, coefficients)
    n_rounds = max(end.rounds for end in ends)
    record = TraceRecord.of(sum(end.primal for end in ends), sum(end.dual for end in ends))
    record = record._replace(iteration=n_rounds, time=time.perf_counter() - begun)
    status = Status.CONVERGED if record.gap <= common.tol else Status.ITERATION_LIMIT
    return SolverResult(status, n_rounds, [record])


@dataclass(frozen=True)
class _Inputs:
    """The rows for the fit: with explicit features, or with columns of a factor."""

    data: ReadData
    factor: KernelFactor | None

    @classmethod
    def of(
        cls, model: MaxMarginClassifier, features: PartitionedFeatures, settings: MarginSettings
    ) -> _Inputs:
        """Compute the inputs from the kernel, which is stored in the model."""
        source, explicit = model._read_kernel(features, settings.seed)
        factor = kernel_factor(model, source, explicit, features, settings)
        rows: Any = explicit if factor is None else factor.features
        return cls(rows.read, factor)


class _Lines:
    """Writes the progress of a fit to stderr every two seconds."""

    def __init__(self, verbose: int | bool) -> None:
        self.is_on, self.begun, self.last = bool(verbose), time.monotonic(), time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if not self.is_on or (now - self.last < 2 and progress.done < progress.blocks):
            return
        self.last = now
        done, blocks, rounds = progress
        sys.stderr.write(
            f"labelweave: MaxMarginClassifier on Dask, {now - self.begun:.0f} s: {done} of "
            f"{blocks} blocks of labels fitted, {rounds} rounds\n"
        )
        sys.stderr.flush()
