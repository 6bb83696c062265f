"""The max-margin dual on the kernel matrix of some rows, stored and factorized within a memory budget.

The budget is for what grows with the number of row pairs: the matrix, its factors and the
panels in which it is computed.  About thirty arrays of rows x labels are needed in addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.gram import FeatureGram, Gram, StoredGram, StreamedGram
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.spectrum import GramSpectrum, feature_spectrum, full_spectrum, leading_spectrum
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.arrays.linear_algebra import HOME, as_type, dot
from labelweave.foundation.costs import MULTIPLICATIONS, warn_of_time
from labelweave.labels.covariance import LabelCovariance
from labelweave.problems.coupled_gram import CoupledGram, GramTerm
from labelweave.problems.gram_margins import GramMargins
from labelweave.problems.kernel_row_margins import MarginBox, Resources
from labelweave.problems.shifted_solves import CholeskySolves, SpectralSolves
from labelweave.solvers.box_dual import ShiftedSolves

_LARGEST_FULL_SPECTRUM, _DEVICE_SPECTRUM = 2500, 15000  # rows; eigenvalues of this many take about 4 s
_LARGEST_RANK = 1500
_ROWS_A_RANK = 20
_LABELS_A_RANK = 20  # so that the factor takes about as long as ten rounds
_USUAL_RANK = 100  # at least, where there are rows and memory for it
_SMALLEST_RANK = 4
_PANEL_BYTES = 64e6  # for the blocks in which a matrix is computed that is not kept
_SMALLEST_PANEL_BYTES = 2e5
_FACTOR_COPIES = 2  # of rows x rank, while a low-rank factor is computed
_PRODUCT_STEPS = 20
_ROUNDS, _ENTRY_WORK = 25, 100.0  # of a typical fit; cost of a kernel entry, in multiplications


@dataclass(frozen=True)
class GramPlan:
    """Whether the matrix is stored, and the memory for its panels if it is not."""

    factorization: str
    is_stored: bool
    rank: int
    panel_bytes: float


def plan_gram(n_rows: int, resources: Resources, is_diagonal: bool, n_labels: int) -> GramPlan:
    """Choose a plan within the memory budget.

    is_diagonal: whether labels are independent, so that a Cholesky factor suffices.
    n_labels: labels, since computing a factor of rank r costs as much as r / L rounds.
    Raises ValueError if the budget is too small; the message has the smallest sufficient one.
    """
    size, budget = np.dtype(resources.dtype).itemsize, resources.budget
    factorization = resources.factorization
    table = float(n_rows) ** 2 * size
    needed = {"cholesky": 2 * table, "eigenvalues": table + 4 * float(n_rows) ** 2 * 8}
    if factorization == "auto":
        exact = "cholesky" if is_diagonal else "eigenvalues"
        most = _LARGEST_FULL_SPECTRUM if HOME.get() is None else _DEVICE_SPECTRUM
        small = is_diagonal or n_rows <= most
        factorization = exact if small and needed[exact] <= budget else "incomplete_cholesky"
    if factorization in needed:
        _require(needed[factorization], budget, f"solver={factorization!r} of {n_rows} rows")
        return GramPlan(factorization, is_stored=True, rank=n_rows, panel_bytes=0)
    wanted = max(_USUAL_RANK, min(_LARGEST_RANK, n_rows // _ROWS_A_RANK, _LABELS_A_RANK * n_labels))
    wanted, a_rank = min(n_rows, wanted), float(_FACTOR_COPIES * n_rows * size)
    if table + wanted * a_rank <= budget:
        return GramPlan("incomplete_cholesky", is_stored=True, rank=wanted, panel_bytes=0)
    what = f"blocks and a factor of the kernel matrix of {n_rows} rows"
    _require(_SMALLEST_RANK * a_rank + _SMALLEST_PANEL_BYTES, budget, what)
    panel_bytes = max(_SMALLEST_PANEL_BYTES, min(_PANEL_BYTES, budget / 4))
    rank = int(min(wanted, (budget - panel_bytes) / a_rank))
    return GramPlan("incomplete_cholesky", is_stored=False, rank=rank, panel_bytes=panel_bytes)


def feature_bytes(n_rows: int, n_features: int) -> float:
    """Estimate the memory for dense features and their factor, in double and single precision."""
    return 24.0 * n_rows * (n_features + 1)


def _require(needed: float, budget: float, what: str) -> None:
    if needed > budget:
        raise ParameterError(
            f"`memory_budget` is {budget / 1e6:g} MB, too small for {what}; pass at least "
            f"{np.ceil(needed / 1e5) / 10:g} MB."
        )


def feature_margins(
    box: MarginBox,
    features: FeatureMatrix,
    constant: float,
    covariance: LabelCovariance,
    resources: Resources,
) -> GramMargins:
    """State the dual on explicit features, whose dot products are the kernel.

    features (n, d): dense, or narrow enough to be stored so.
    constant: added to every dot product.
    Returns the dual, with exact solves.
    Raises ValueError if the memory budget is too small.
    """
    workers, (n_rows, n_features) = resources.workers, features.shape
    what = f"the factor of {n_rows} rows of {n_features} features"
    _require(feature_bytes(n_rows, n_features), resources.budget, what)
    gram = FeatureGram(features, constant, resources.dtype, workers)

    def solves() -> ShiftedSolves:
        return SpectralSolves(_of_type(feature_spectrum(gram), resources.dtype), covariance, workers)

    return GramMargins(box, _one_term(gram, covariance, workers), solves, resources.dtype, is_linear=True)


def kernel_margins(
    box: MarginBox,
    source: GramSource,
    constant: float,
    covariance: LabelCovariance,
    resources: Resources,
    gram: StoredGram | None = None,
) -> GramMargins:
    """State the dual on a kernel matrix, stored and factorized as the memory budget allows.

    gram: the matrix, if it is already computed.
    Raises ValueError if the memory budget is too small.
    """
    dtype, workers = resources.dtype, resources.workers
    if resources.factorization == "cholesky" and not covariance.is_diagonal:
        raise ParameterError(
            "`solver='cholesky'` is for independent labels; with a label covariance use 'eigenvalues' or "
            "'incomplete_cholesky'."
        )
    plan = plan_gram(source.n_rows, resources, covariance.is_diagonal, box.targets.shape[1])
    if not plan.is_stored:
        _warn_of_rounds(box, resources)
    stored = (gram or StoredGram.from_source(source, constant, dtype, workers)) if plan.is_stored else None
    held: Gram = stored or StreamedGram(source, constant, dtype, workers, plan.panel_bytes)

    def solves() -> ShiftedSolves:
        if stored and plan.factorization == "cholesky":
            return CholeskySolves(stored, workers)
        if stored and plan.factorization == "eigenvalues":
            return SpectralSolves(_of_type(full_spectrum(stored), dtype), covariance, workers)
        spectrum = leading_spectrum(held, plan.rank, workers, resources.seed)
        return SpectralSolves(spectrum, covariance, workers)

    return GramMargins(box, _one_term(held, covariance, workers), solves, dtype)


def sum_margins(
    box: MarginBox, terms: Sequence[tuple[GramSource, LabelCovariance]], constant: float, resources: Resources
) -> GramMargins:
    """State the dual on a sum of kernel matrices, each with a label covariance of its own.

    Solves use the product of one matrix and one covariance that is nearest to the sum, corrected in
    every round by the sum itself.

    Raises ValueError if the memory budget is too small.
    """
    n, dtype, workers = terms[0][0].n_rows, np.dtype(resources.dtype), resources.workers
    needed = float(n) * n * (dtype.itemsize * (len(terms) + 2) + 16)
    if needed > resources.budget:
        raise ParameterError(
            f"`memory_budget` is {resources.budget / 1e6:g} MB, but {len(terms)} kernel matrices of {n} rows "
            f"and a factor take {needed / 1e6:.0f} MB; raise it, or use one kernel."
        )
    grams = [StoredGram.from_source(source, constant, dtype, workers) for source, _ in terms]
    covariances = [covariance for _, covariance in terms]

    def solves() -> ShiftedSolves:
        of_rows, of_labels = _nearest_product([gram.table for gram in grams], covariances)
        table: Any = sum(float(share) * gram.table for share, gram in zip(of_rows, grams, strict=True))
        spectrum = _of_type(full_spectrum(StoredGram(as_type(table, dtype), workers)), dtype)
        mean = sum(share * one.to_dense() for share, one in zip(of_labels, covariances, strict=True))
        return SpectralSolves(replace(spectrum, is_exact=False), LabelCovariance.dense(mean), workers)

    parts = [GramTerm(gram, covariance) for gram, covariance in zip(grams, covariances, strict=True)]
    return GramMargins(box, CoupledGram(parts, 0.0, workers), solves, dtype)


def _nearest_product(tables: list[Array], covariances: list[LabelCovariance]) -> tuple[Array, Array]:
    """Find the a, b for which ``sum a_g K_g (x) sum b_g R_g`` is nearest to the sum (Van Loan 1993)."""
    matrices = [covariance.to_dense() for covariance in covariances]
    P = np.array([[dot(one, other) for other in tables] for one in tables])
    Q = np.array([[float(np.vdot(one, other)) for other in matrices] for one in matrices])
    a = np.ones(len(tables))
    for _ in range(_PRODUCT_STEPS):  # alternating least squares; inner products of kernels are non-negative
        b = P @ a / (a @ P @ a)
        a = Q @ b / (b @ Q @ b)
    return np.maximum(a, 0.0), np.maximum(b, 0.0)


def _warn_of_rounds(box: MarginBox, resources: Resources) -> None:
    """Warn of a kernel matrix of many rows that is recomputed in every round."""
    n_rows, n_labels = box.targets.shape
    work = _ROUNDS * float(n_rows) ** 2 * (_ENTRY_WORK + n_labels)
    enough = 2e-6 * n_rows**2 * np.dtype(resources.dtype).itemsize
    warn_of_time(
        f"The kernel matrix of {n_rows} rows exceeds `memory_budget={resources.budget / 1e6:g}` and is "
        f"recomputed in {_ROUNDS} or more rounds, which",
        work / MULTIPLICATIONS / resources.workers.n_threads,
        f"raise it to {enough:.0f} (megabytes), or pass fewer rows.",
    )


def _one_term(gram: Gram, covariance: LabelCovariance, workers: Workers) -> CoupledGram:
    return CoupledGram([GramTerm(gram, covariance)], 0.0, workers)


def _of_type(spectrum: GramSpectrum, dtype: npt.DTypeLike) -> GramSpectrum:
    return replace(spectrum, vectors=as_type(spectrum.vectors, dtype))
