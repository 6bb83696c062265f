"""Families of priors: their hyperparameters, and the prior at given values.

A family maps a vector theta to a :class:`~labelweave.problems.coupled_gram.ScorePrior`, and the gradient
of any function of the prior back to theta (the chain rule's last link).

:class:`TiedPriors` has a function for every node p of a taxonomy, with the covariance ``v_p K_p``, and a
class sums those on its path (Seeger 2008, section 3):

    sum_p v_s(p) K_k(p) ⊗ phi_p phi_p^T.

Flat classes are nodes without a tree: one shared kernel, one shape with one scale per class, or one kernel
per class are mc-tied, mc-semi and mc-sep of the paper's section 6.2.  The columns phi_p may be those of the
symmetric root of a given covariance.  :class:`LearnedCoupling` mixes independent functions, ``u = B f``, so
the scores have the prior ``sum_p K_p ⊗ b_p b_p^T`` (section 7.4.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from labelweave.features import Kernel
from labelweave.features.kernels import ARDKernel
from labelweave.foundation.array_types import Array, Floats
from labelweave.labels import LabelCovariance
from labelweave.labels.covariance import FactorCovariance, WeightedCovariance
from labelweave.problems.coupled_gram import PriorTerm, ScorePrior

_WIDEST = np.log(1e6)  # largest factor between a parameter and its start
_TENFOLD = np.log(10.0)
_LEAST_WEIGHT = 1e-6  # of a part at the start, so that the search can raise it


class TermGradient(NamedTuple):
    """Derivatives of a function of the prior by one term ``K_g ⊗ R_g``.

    kernel (p,): by the logarithms of the kernel's parameters.
    covariance: by the entries of R_g, symmetric; only by its diagonal where R_g is always diagonal.
    """

    kernel: Array
    covariance: Array

    def along(self, direction: LabelCovariance) -> float:
        """Return the derivative by a factor of a covariance that is added to R_g."""
        given = direction.diagonal() if self.covariance.ndim == 1 else direction.to_dense()
        return float(np.sum(self.covariance * given))


class PriorGradient(NamedTuple):
    """Derivatives of a function of the prior by its terms and by the variance of the intercepts."""

    terms: list[TermGradient]
    intercept_variance: float


class PriorFamily(ABC):
    """Priors with hyperparameters theta, most of which are logarithms.

    names, start, bounds: names of the entries of theta, initial values, and the box, of shape (p, 2).
    log_scales: which entries are logarithms of prior variances.
    ties_labels: whether some prior of the family couples labels.
    learns_covariance: whether :meth:`gradient` needs derivatives by all entries of label covariances, also
        where they are 0.
    """

    names: list[str]
    start: Floats
    bounds: Array
    log_scales: slice = slice(0)
    ties_labels: bool = True
    learns_covariance: bool = False

    def _lay_out(self, names: Sequence[str], start: Sequence[float] | Array) -> None:
        self.names, self.start = list(names), np.array(start, dtype=np.float64)
        self.bounds = self.start[:, None] + [-_WIDEST, _WIDEST]

    @abstractmethod
    def prior(self, theta: Array) -> ScorePrior:
        """Return the prior at theta."""

    @abstractmethod
    def gradient(self, theta: Array, by_prior: PriorGradient) -> Floats:
        """Convert the derivatives by the prior to those by theta."""

    def retreated(self, theta: Array) -> Floats:
        easier = np.array(theta)
        easier[self.log_scales] -= _TENFOLD
        return easier

    def penalty(self, theta: Array) -> tuple[float, Floats]:
        """Return minus the log prior of theta, which is added to the loss, and its gradient."""
        return 0.0, np.zeros(len(theta))

    def coarser(self) -> PriorFamily | None:
        """Tie separate hyperparameters, for a first search; None if there are none."""
        return None

    def from_coarser(self, theta: Array) -> Floats:
        return theta

    def values(self, theta: Array) -> dict[str, float]:
        return dict(zip(self.names, np.exp(theta).tolist(), strict=True))


def shape_names(kernel: Kernel | None) -> list[str]:
    return [] if kernel is None else kernel.parameter_names()


def shape_start(kernel: Kernel | None) -> Array:
    return np.empty(0) if kernel is None else kernel.log_parameters()


def shaped(kernel: Kernel | None, theta: Array) -> Kernel | None:
    return None if kernel is None else kernel.with_log_parameters(theta)


@dataclass(eq=False)
class GivenCovariance(PriorFamily):
    """``K ⊗ v R`` with R given, or ``K ⊗ sum_m v_m R_m`` for a sum with learned weights.

    The search starts from the kernel, None for a precomputed matrix.
    """

    kernel: Kernel | None
    covariance: LabelCovariance
    start_scale: float
    intercept_variance: float

    def __post_init__(self) -> None:
        given, self.parts, names, weights = self.covariance, [self.covariance], [""], np.ones(1)
        if isinstance(given, WeightedCovariance):
            self.parts, names, weights = given.parts, given.part_names, given.weights
        self.log_scales = slice(len(names))
        scales = np.log(self.start_scale * np.maximum(weights, _LEAST_WEIGHT))
        names = [*(_named("scale", name) for name in names), *shape_names(self.kernel)]
        self._lay_out(names, np.append(scales, shape_start(self.kernel)))

    def prior(self, theta: Array) -> ScorePrior:
        given, scales = self.covariance, np.exp(theta[self.log_scales])
        is_sum = isinstance(given, WeightedCovariance)
        scaled = cast(Any, given).reweighted(scales).fixed if is_sum else given.scaled(float(scales[0]))
        kernel = shaped(self.kernel, theta[self.log_scales.stop :])
        return ScorePrior((PriorTerm(kernel, scaled),), self.intercept_variance)

    def gradient(self, theta: Array, by_prior: PriorGradient) -> Floats:
        (term,) = by_prior.terms
        by_scale = np.exp(theta[self.log_scales]) * [term.along(part) for part in self.parts]
        return np.concatenate([by_scale, term.kernel])


@dataclass(frozen=True)
class NodeGroups:
    """A partition of the nodes: the group of every node, and names; one without name is the whole set."""

    of_node: Array
    names: list[str]

    @classmethod
    def of_everything(cls, n_nodes: int) -> NodeGroups:
        return cls(np.zeros(n_nodes, np.intp), [""])


class LearnedCoupling(PriorFamily):
    """``sum_p K_k(p) ⊗ b_p b_p^T`` with a learned B, from its start (L, r): ``K ⊗ B B^T`` with one shape.

    shapes: which factors share a kernel shape, none in the semiparametric latent factor model; None for all.
    """

    learns_covariance = True

    def __init__(
        self, kernel: Kernel | None, start: Array, label_names: Any, intercept_variance: float,
        shapes: NodeGroups | None = None,
    ) -> None:  # fmt: skip
        self.kernel, self.intercept_variance, self.size = kernel, intercept_variance, start.shape
        self.label_names, parameters, shape = label_names, shape_names(kernel), shape_start(kernel)
        one_shape = NodeGroups.of_everything(start.shape[1])
        self.shapes = shapes if shapes is not None and parameters else one_shape
        entries = [f"coupling[{name}, {factor}]" for name in label_names for factor in range(start.shape[1])]
        names = [_named(parameter, group) for group in self.shapes.names for parameter in parameters]
        self.n_shape = len(names)
        self._lay_out([*names, *entries], np.append(np.tile(shape, len(self.shapes.names)), start))
        self.bounds[self.n_shape :] = -np.inf, np.inf

    def _coupling(self, theta: Array) -> Array:
        return theta[self.n_shape :].reshape(self.size)

    def prior(self, theta: Array) -> ScorePrior:
        coupling, shapes = self._coupling(theta), theta[: self.n_shape].reshape(len(self.shapes.names), -1)
        terms = [
            PriorTerm(shaped(self.kernel, shape), FactorCovariance(coupling[:, self.shapes.of_node == group]))
            for group, shape in enumerate(shapes)
        ]
        return ScorePrior(tuple(terms), self.intercept_variance)

    def gradient(self, theta: Array, by_prior: PriorGradient) -> Floats:
        coupling = self._coupling(theta)
        by_coupling = np.empty(self.size)
        for group, term in enumerate(by_prior.terms):
            factors = self.shapes.of_node == group
            by_coupling[:, factors] = 2.0 * (term.covariance @ coupling[:, factors])
        return np.concatenate([*(term.kernel for term in by_prior.terms), by_coupling.ravel()])

    def coarser(self) -> LearnedCoupling | None:
        if len(self.shapes.names) == 1:
            return None
        return LearnedCoupling(
            self.kernel, self._coupling(self.start), self.label_names, self.intercept_variance
        )

    def from_coarser(self, theta: Array) -> Floats:
        count = self.n_shape // len(self.shapes.names)
        return np.concatenate([np.tile(theta[:count], len(self.shapes.names)), theta[count:]])

    def retreated(self, theta: Array) -> Floats:
        return np.concatenate([theta[: self.n_shape], theta[self.n_shape :] / np.sqrt(10.0)])

    def values(self, theta: Array) -> dict[str, float]:
        shape = np.exp(theta[: self.n_shape]).tolist()
        return dict(zip(self.names, shape + theta[self.n_shape :].tolist(), strict=True))


@dataclass(eq=False)
class TiedPriors(PriorFamily):
    """Priors with one scale and one kernel shape per group of nodes.

    membership (L, P): phi: which nodes each label lies under; the identity for flat classes.
    """

    kernel: Kernel | None
    membership: Any
    scales: NodeGroups
    shapes: NodeGroups
    start_scale: float
    intercept_variance: float

    def __post_init__(self) -> None:
        self.membership = sp.csc_array(self.membership, dtype=np.float64)
        parameters, shape = shape_names(self.kernel), shape_start(self.kernel)
        if not parameters:  # nothing distinguishes shapes
            self.shapes = NodeGroups.of_everything(len(self.scales.of_node))
        self.ties_labels = bool((np.diff(self.membership.indptr) > 1).any())
        self.n_shape, self.n_scales = len(parameters), len(self.scales.names)
        self.log_scales = slice(self.n_scales)
        names = [_named("scale", group) for group in self.scales.names]
        names += [_named(parameter, group) for group in self.shapes.names for parameter in parameters]
        start = np.full(self.n_scales, np.log(self.start_scale))
        self._lay_out(names, np.concatenate([start, np.tile(shape, len(self.shapes.names))]))

    def _variances(self, theta: Array) -> Array:
        return np.exp(theta[: self.n_scales])[self.scales.of_node]

    def prior(self, theta: Array) -> ScorePrior:
        variances, shapes = self._variances(theta), theta[self.n_scales :].reshape(len(self.shapes.names), -1)
        terms = [
            PriorTerm(shaped(self.kernel, shape), self._covariance(self.shapes.of_node == group, variances))
            for group, shape in enumerate(shapes)
        ]
        return ScorePrior(tuple(terms), self.intercept_variance)

    def _covariance(self, nodes: Array, variances: Array) -> LabelCovariance:
        factor = self.membership[:, nodes]
        if self.ties_labels:
            return FactorCovariance(factor @ sp.diags_array(np.sqrt(variances[nodes])))
        return FactorCovariance(np.empty((factor.shape[0], 0)), factor @ variances[nodes])

    def gradient(self, theta: Array, by_prior: PriorGradient) -> Floats:
        variances = self._variances(theta)
        by_node = np.zeros(len(variances))
        for group, term in enumerate(by_prior.terms):
            nodes = self.shapes.of_node == group
            by_node[nodes] = variances[nodes] * _by_variance(self.membership[:, nodes], term.covariance)
        by_scale = np.bincount(self.scales.of_node, by_node, minlength=self.n_scales)
        return np.concatenate([by_scale, *(term.kernel for term in by_prior.terms)])

    def coarser(self) -> TiedPriors | None:
        if len(self.names) == 1 + self.n_shape:
            return None
        all_nodes = NodeGroups.of_everything(len(self.scales.of_node))
        scale = float(np.exp(self.start[0]))
        return TiedPriors(self.kernel, self.membership, all_nodes, all_nodes, scale, self.intercept_variance)

    def from_coarser(self, theta: Array) -> Floats:
        return np.concatenate([np.full(self.n_scales, theta[0]), np.tile(theta[1:], len(self.shapes.names))])


def _by_variance(factor: Any, gradient: Array) -> Array:
    """Compute ``phi_p^T gradient phi_p`` for every node."""
    if gradient.ndim == 1:
        return np.asarray(factor.T @ gradient)
    return np.asarray(factor.multiply(gradient @ factor).sum(axis=0)).ravel()


def _named(parameter: str, group: str) -> str:
    return f"{parameter}[{group}]" if group else parameter


class SummedPriors(PriorFamily):
    """The sum of the priors of several families, ``sum_g K_g ⊗ R_g``, each with hyperparameters of its own.

    Their names end with the number of the family; the intercepts are those of the first.
    """

    def __init__(self, families: Sequence[PriorFamily]) -> None:
        self.families = list(families)
        self._cuts = np.cumsum([len(family.start) for family in families])[:-1]
        self._n_terms = [len(family.prior(family.start).terms) for family in families]
        names = [f"{name}[{place}]" for place, one in enumerate(families) for name in one.names]
        self._lay_out(names, np.concatenate([family.start for family in families]))
        self.bounds = np.concatenate([family.bounds for family in families])
        self.ties_labels = any(family.ties_labels for family in families)
        self.learns_covariance = any(family.learns_covariance for family in families)

    def _split(self, theta: Array) -> list[tuple[PriorFamily, Array]]:
        return list(zip(self.families, np.split(theta, self._cuts), strict=True))

    def prior(self, theta: Array) -> ScorePrior:
        priors = [family.prior(own) for family, own in self._split(theta)]
        terms = tuple(term for prior in priors for term in prior.terms)
        return ScorePrior(terms, priors[0].intercept_variance)

    def gradient(self, theta: Array, by_prior: PriorGradient) -> Floats:
        terms, found = iter(by_prior.terms), []
        for count, (family, own) in zip(self._n_terms, self._split(theta), strict=True):
            found.append(family.gradient(own, by_prior._replace(terms=list(islice(terms, count)))))
        return np.concatenate(found)

    def retreated(self, theta: Array) -> Floats:
        return np.concatenate([family.retreated(own) for family, own in self._split(theta)])

    def values(self, theta: Array) -> dict[str, float]:
        parts = enumerate(self._split(theta))
        values = [(f"[{place}]", family.values(own)) for place, (family, own) in parts]
        return {name + place: value for place, found in values for name, value in found.items()}


class _Extended(PriorFamily):
    """The priors of a family with more hyperparameters, logarithms appended to its own."""

    def __init__(self, family: PriorFamily, names: list[str], start: Array) -> None:
        self.family, self.n_own, self.more = family, len(family.start), names
        self._lay_out([*family.names, *names], np.concatenate([family.start, start]))
        self.bounds[: self.n_own] = family.bounds
        self.ties_labels, self.learns_covariance = family.ties_labels, family.learns_covariance

    def _split(self, theta: Array) -> tuple[Array, Array]:
        return theta[: self.n_own], theta[self.n_own :]

    def penalty(self, theta: Array) -> tuple[float, Floats]:
        own, more = self._split(theta)
        value, by_own = self.family.penalty(own)
        return value, np.concatenate([by_own, np.zeros(len(more))])

    def retreated(self, theta: Array) -> Floats:
        own, more = self._split(theta)
        return np.concatenate([self.family.retreated(own), more])

    def values(self, theta: Array) -> dict[str, float]:
        own, more = self._split(theta)
        return self.family.values(own) | dict(zip(self.more, np.exp(more).tolist(), strict=True))


class LearnedIntercepts(_Extended):
    """The priors of a family, with the variance of the intercepts as one more hyperparameter.

    Rare labels have intercepts far below 0, which the kernel replaces where the variance is too small.
    """

    def __init__(self, family: PriorFamily) -> None:
        start = np.log([family.prior(family.start).intercept_variance])
        super().__init__(family, ["intercept_variance"], start)

    def prior(self, theta: Array) -> ScorePrior:
        return replace(self.family.prior(theta[:-1]), intercept_variance=float(np.exp(theta[-1])))

    def gradient(self, theta: Array, by_prior: PriorGradient) -> Floats:
        by_logarithm = np.exp(theta[-1]) * by_prior.intercept_variance
        return np.append(self.family.gradient(theta[:-1], by_prior), by_logarithm)

    def coarser(self) -> LearnedIntercepts | None:
        coarse = self.family.coarser()
        return None if coarse is None else LearnedIntercepts(coarse)

    def from_coarser(self, theta: Array) -> Floats:
        return np.append(self.family.from_coarser(theta[:-1]), theta[-1])

    def retreated(self, theta: Array) -> Floats:
        return np.append(self.family.retreated(theta[:-1]), theta[-1] - _TENFOLD)


class FeatureWidths(_Extended):
    """The priors of a family of RBF kernels, with relative widths of the features that all kernels share.

    Their logarithms have the prior N(0, 1), minimized with the loss of all rows: few rows determine little.
    """

    def __init__(self, family: PriorFamily, feature_names: Sequence[str]) -> None:
        names = [f"feature_weight[{name}]" for name in feature_names]
        super().__init__(family, names, np.zeros(len(names)))

    def prior(self, theta: Array) -> ScorePrior:
        own, logarithms = self._split(theta)
        prior, weights = self.family.prior(own), np.exp(logarithms)
        terms = [
            PriorTerm(ARDKernel(cast(Any, term.kernel).gamma, weights), term.covariance)
            for term in prior.terms
        ]
        return replace(prior, terms=tuple(terms))

    def gradient(self, theta: Array, by_prior: PriorGradient) -> Floats:
        shared = [term._replace(kernel=term.kernel[:1]) for term in by_prior.terms]
        by_own = self.family.gradient(self._split(theta)[0], by_prior._replace(terms=shared))
        by_weights = np.sum([term.kernel[1:] for term in by_prior.terms], axis=0)
        return np.concatenate([by_own, by_weights])

    def penalty(self, theta: Array) -> tuple[float, Floats]:
        own, logarithms = self._split(theta)
        value, by_own = self.family.penalty(own)
        return value + float(logarithms @ logarithms) / 2, np.concatenate([by_own, logarithms])

    def coarser(self) -> PriorFamily:
        return self.family

    def from_coarser(self, theta: Array) -> Floats:
        return np.concatenate([theta, np.zeros(len(self.more))])
