"""The max-margin dual on the kernel matrix of some rows, in the form that fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.gram import FeatureGram, StoredGram, StreamedGram
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.spectrum import (
    GramSpectrum,
    feature_spectrum,
    full_spectrum,
    leading_spectrum,
)
from labelweave.labels.covariance import LabelCovariance
from labelweave.problems.gram_margins import GramMargins, MarginBox
from labelweave.problems.memory_plan import check_feature_bytes, plan_gram
from labelweave.problems.resources import Resources
from labelweave.problems.shifted_solves import CholeskySolves, ShiftedSolves, SpectralSolves

__all__ = ["feature_margins", "kernel_margins"]


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
    check_feature_bytes(*features.shape, resources.budget)
    gram = FeatureGram(features, constant, resources.dtype, resources.workers)
    spectrum = _of_type(feature_spectrum(gram), resources.dtype)
    solves = SpectralSolves(spectrum, covariance, resources.workers)
    return GramMargins(box, gram, covariance, solves, resources.dtype, is_linear=True)


def kernel_margins(
    box: MarginBox,
    source: GramSource,
    constant: float,
    covariance: LabelCovariance,
    resources: Resources,
) -> GramMargins:
    """State the dual on a kernel matrix, held and factorised as the memory budget allows.

    Raises ValueError if the memory budget is too small.
    """
    dtype, workers = resources.dtype, resources.workers
    if resources.factorization == "cholesky":
        _require_identity(covariance)
    plan = plan_gram(
        source.n_rows,
        dtype,
        resources.budget,
        is_diagonal=covariance.is_diagonal,
        factorization=resources.factorization,
        n_labels=box.targets.shape[1],
    )
    if not plan.is_stored:
        streamed = StreamedGram(source, constant, dtype, workers, plan.panel_bytes)
        spectrum = leading_spectrum(streamed, plan.rank, workers, resources.seed)
        return GramMargins(box, streamed, covariance, SpectralSolves(spectrum, covariance, workers), dtype)
    gram = StoredGram.from_source(source, constant, dtype, workers)
    solves: ShiftedSolves
    if plan.factorization == "cholesky":
        solves = CholeskySolves(gram, workers)
    elif plan.factorization == "eigenvalues":
        solves = SpectralSolves(_of_type(full_spectrum(gram), dtype), covariance, workers)
    else:
        spectrum = leading_spectrum(gram, plan.rank, workers, resources.seed)
        solves = SpectralSolves(spectrum, covariance, workers)
    return GramMargins(box, gram, covariance, solves, dtype)


def _require_identity(covariance: LabelCovariance) -> None:
    if not covariance.is_diagonal:
        raise ValueError(
            "factorization='cholesky' serves independent labels only; with a label covariance use "
            "'eigenvalues' or 'incomplete_cholesky'."
        )


def _of_type(spectrum: GramSpectrum, dtype: npt.DTypeLike) -> GramSpectrum:
    return replace(spectrum, vectors=np.ascontiguousarray(spectrum.vectors, dtype=dtype))
