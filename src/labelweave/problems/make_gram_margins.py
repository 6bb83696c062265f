"""The max-margin dual on the kernel matrix of some rows, in the form that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.gram import FeatureGram, Gram, StoredGram, StreamedGram
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.spectrum import GramSpectrum, feature_spectrum, full_spectrum, leading_spectrum
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.arrays.linear_algebra import as_type
from labelweave.foundation.costs import MULTIPLICATIONS, warn_of_time
from labelweave.labels.covariance import LabelCovariance
from labelweave.problems.coupled_gram import CoupledGram, GramTerm
from labelweave.problems.gram_margins import GramMargins, MarginBox
from labelweave.problems.memory_plan import check_feature_bytes, plan_gram
from labelweave.problems.resources import Resources
from labelweave.problems.shifted_solves import CholeskySolves, SpectralSolves
from labelweave.solvers.box_dual import ShiftedSolves

_PRODUCT_STEPS = 20
_ROUNDS, _ENTRY_WORK = (
    25,
    100.0,
)  # of a usual fit; multiplications that take as long as an entry of the kernel


def feature_margins(
    box: MarginBox,
    features: FeatureMatrix,
    constant: float,
    covariance: LabelCovariance,
    resources: Resources,
) -> GramMargins:
    """State the dual on explicit features, whose dot products are the kernel.

    features (n, d): dense, or narrow enough to be held so.
    constant: added to every dot product.
    Returns the dual, with exact solves.
    Raises ValueError if the memory budget is too small.
    """
    workers = resources.workers
    check_feature_bytes(*features.shape, resources.budget)
    gram = FeatureGram(features, constant, resources.dtype, workers)
    spectrum = _of_type(feature_spectrum(gram), resources.dtype)
    solves = SpectralSolves(spectrum, covariance, workers)
    return GramMargins(box, _one_term(gram, covariance, workers), solves, resources.dtype, is_linear=True)


def kernel_margins(
    box: MarginBox,
    source: GramSource,
    constant: float,
    covariance: LabelCovariance,
    resources: Resources,
    gram: StoredGram | None = None,
) -> GramMargins:
    """State the dual on a kernel matrix, held and factorised as the memory budget allows.

    gram: the matrix, where it has been computed already.

    Raises ValueError if the memory budget is too small.
    """
    dtype, workers = resources.dtype, resources.workers
    if resources.factorization == "cholesky" and not covariance.is_diagonal:
        raise ParameterError(
            "`factorization='cholesky'` serves independent labels only; with a label covariance use "
            "'eigenvalues' or 'incomplete_cholesky'."
        )
    plan = plan_gram(source.n_rows, resources, covariance.is_diagonal, box.targets.shape[1])
    if not plan.is_stored:
        _warn_of_rounds(box, resources)
    stored = (gram or StoredGram.from_source(source, constant, dtype, workers)) if plan.is_stored else None
    held: Gram = stored or StreamedGram(source, constant, dtype, workers, plan.panel_bytes)
    solves: ShiftedSolves
    if stored and plan.factorization == "cholesky":
        solves = CholeskySolves(stored, workers)
    elif stored and plan.factorization == "eigenvalues":
        solves = SpectralSolves(_of_type(full_spectrum(stored), dtype), covariance, workers)
    else:
        spectrum = leading_spectrum(held, plan.rank, workers, resources.seed)
        solves = SpectralSolves(spectrum, covariance, workers)
    return GramMargins(box, _one_term(held, covariance, workers), solves, dtype)


def sum_margins(
    box: MarginBox, terms: Sequence[tuple[GramSource, LabelCovariance]], constant: float, resources: Resources
) -> GramMargins:
    """State the dual on a sum of kernel matrices, each with a label covariance of its own.

    Solves are with the product of one matrix and one covariance that is nearest to the sum, corrected in
    every round by the sum itself.

    Raises ValueError if the memory budget is too small.
    """
    n, dtype, workers = terms[0][0].n_rows, np.dtype(resources.dtype), resources.workers
    needed = float(n) * n * (dtype.itemsize * (len(terms) + 2) + 16)
    if needed > resources.budget:
        raise ParameterError(
            f"`memory_budget` is {resources.budget / 1e6:g} MB, but {len(terms)} kernel matrices of {n} rows "
            f"and a factor take {needed / 1e6:.0f} MB; give as much, or one kernel."
        )
    grams = [StoredGram.from_source(source, constant, dtype, workers) for source, _ in terms]
    covariances = [covariance for _, covariance in terms]
    of_rows, of_labels = _nearest_product([gram.table for gram in grams], covariances)
    table = sum(share * gram.table for share, gram in zip(of_rows, grams, strict=True))
    spectrum = _of_type(full_spectrum(StoredGram(np.asarray(table, dtype), workers)), dtype)
    mean = LabelCovariance.dense(
        sum(share * covariance.to_dense() for share, covariance in zip(of_labels, covariances, strict=True))
    )
    solves = SpectralSolves(replace(spectrum, is_exact=False), mean, workers)
    parts = [GramTerm(gram, covariance) for gram, covariance in zip(grams, covariances, strict=True)]
    return GramMargins(box, CoupledGram(parts, 0.0, workers), solves, dtype)


def _nearest_product(tables: list[Array], covariances: list[LabelCovariance]) -> tuple[Array, Array]:
    """Find the a, b for which ``sum a_g K_g (x) sum b_g R_g`` is nearest to the sum (Van Loan 1993)."""
    matrices = [covariance.to_dense() for covariance in covariances]
    P = np.array([[float(np.vdot(one, other)) for other in tables] for one in tables])
    Q = np.array([[float(np.vdot(one, other)) for other in matrices] for one in matrices])
    a = np.ones(len(tables))
    for _ in range(_PRODUCT_STEPS):  # alternating least squares; inner products of kernels are not negative
        b = P @ a / (a @ P @ a)
        a = Q @ b / (b @ Q @ b)
    return np.maximum(a, 0.0), np.maximum(b, 0.0)


def _warn_of_rounds(box: MarginBox, resources: Resources) -> None:
    """Warn of a kernel matrix of many rows that is computed anew in every round."""
    n_rows, n_labels = box.targets.shape
    work = _ROUNDS * float(n_rows) ** 2 * (_ENTRY_WORK + n_labels)
    enough = 2e-6 * n_rows**2 * np.dtype(resources.dtype).itemsize
    warn_of_time(
        f"The kernel matrix of {n_rows} rows does not fit `memory_budget={resources.budget / 1e6:g}`, and is "
        f"computed anew in each of {_ROUNDS} rounds or more, which",
        work / MULTIPLICATIONS / resources.workers.n_threads,
        f"give a `memory_budget` of {enough:.0f} megabytes, or fewer rows.",
    )


def _one_term(gram: Gram, covariance: LabelCovariance, workers: Workers) -> CoupledGram:
    return CoupledGram([GramTerm(gram, covariance)], 0.0, workers)


def _of_type(spectrum: GramSpectrum, dtype: npt.DTypeLike) -> GramSpectrum:
    return replace(spectrum, vectors=as_type(spectrum.vectors, dtype))
