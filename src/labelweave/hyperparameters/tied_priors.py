"""Priors over the nodes of a taxonomy, or over flat classes, whose hyper-parameters are tied.

Every node p has a function of its own with the covariance ``v_p K_p``; a class adds up those on its
path (Seeger 2008, section 3).  Nodes of one group share the scale v, or the shape of the kernel:

    sum_p v_s(p) K_k(p) ⊗ phi_p phi_p^T.

Flat classes are nodes without a tree: one shared kernel, one shape with a scale a
class, or a kernel a class are mc-tied, mc-semi and mc-sep of the paper's section 6.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.array_types import Array
from labelweave.features import Kernel
from labelweave.hyperparameters.prior_family import PriorFamily, PriorSlopes
from labelweave.labels import LabelCovariance
from labelweave.labels.covariance.factor import FactorCovariance
from labelweave.problems.score_prior import PriorTerm, ScorePrior

__all__ = ["NodeGroups", "TiedPriors"]


_WIDEST = np.log(1e6)  # how far a parameter may go from its start, as a factor


@dataclass(frozen=True)
class NodeGroups:
    """A partition of the nodes.

    of_node (P,): the group of every node.
    names: the groups, for people; one of no name is everything.
    """

    of_node: Array
    names: list[str]


class TiedPriors(PriorFamily):
    """Priors with a scale a group of nodes and a kernel shape a group of nodes.

    kernel: the shape to start from, its parameters numbers; None for a kernel matrix that was given.
    membership (L, P): phi: which nodes each label lies under; the identity for flat classes.
    scales: the nodes that share a scale.
    shapes: the nodes that share a shape.
    start_scale: the scale to start from.
    """

    learns_covariance = False

    def __init__(
        self,
        kernel: Kernel | None,
        membership: Any,
        scales: NodeGroups,
        shapes: NodeGroups,
        start_scale: float,
        intercept_variance: float,
    ) -> None:
        self.kernel, self.membership = kernel, sp.csc_array(membership, dtype=np.float64)
        parameters = [] if kernel is None else kernel.parameter_names()
        if not parameters:  # nothing to tell shapes apart
            shapes = NodeGroups(np.zeros(len(scales.of_node), np.intp), [""])
        self.scales, self.shapes, self.intercept_variance = scales, shapes, intercept_variance
        counts = np.diff(self.membership.indptr)
        self.ties_labels = bool((counts > 1).any())
        self.n_shape = len(parameters)
        shape_start = np.empty(0) if kernel is None else kernel.log_parameters()
        n_scales, n_shapes = len(scales.names), len(shapes.names)
        self.start = np.concatenate([np.full(n_scales, np.log(start_scale)), np.tile(shape_start, n_shapes)])
        self.names = [_named("scale", group) for group in scales.names] + [
            _named(parameter, group) for group in shapes.names for parameter in parameters
        ]
        self.bounds = [(value - _WIDEST, value + _WIDEST) for value in self.start.tolist()]

    def _split(self, theta: Array) -> tuple[Array, Array]:
        """Give the variance of every node, and the shapes, one a row."""
        n_scales = len(self.scales.names)
        return np.exp(theta[:n_scales])[self.scales.of_node], theta[n_scales:].reshape(
            len(self.shapes.names), -1
        )

    def prior(self, theta: Array) -> ScorePrior:
        variances, shapes = self._split(theta)
        terms = []
        for group, shape in enumerate(shapes):
            kernel = self.kernel if self.kernel is None else self.kernel.with_log_parameters(shape)
            terms.append(PriorTerm(kernel, self._covariance(self.shapes.of_node == group, variances)))
        return ScorePrior(tuple(terms), self.intercept_variance)

    def _covariance(self, nodes: Array, variances: Array) -> LabelCovariance:
        factor = self.membership[:, nodes]
        if self.ties_labels:
            return FactorCovariance(factor @ sp.diags_array(np.sqrt(variances[nodes])))
        return FactorCovariance(np.empty((factor.shape[0], 0)), factor @ variances[nodes])

    def slope(self, theta: Array, slopes: PriorSlopes) -> npt.NDArray[np.float64]:
        variances, _ = self._split(theta)
        by_node = np.zeros(len(variances))
        for group, term in enumerate(slopes.terms):
            nodes = self.shapes.of_node == group
            by_node[nodes] = variances[nodes] * self._by_variance(self.membership[:, nodes], term.covariance)
        by_scale = np.bincount(self.scales.of_node, by_node, minlength=len(self.scales.names))
        return np.concatenate([by_scale, *(term.kernel for term in slopes.terms)])

    def _by_variance(self, factor: Any, slope: Array) -> Array:
        """Compute ``phi_p^T slope phi_p`` for every node."""
        if slope.ndim == 1:
            return np.asarray(factor.T @ slope)
        return np.asarray(factor.multiply(slope @ factor).sum(axis=0)).ravel()

    def coarser(self) -> TiedPriors | None:
        if len(self.names) == len(self.start) == 1 + self.n_shape:
            return None
        everything = NodeGroups(np.zeros(len(self.scales.of_node), np.intp), [""])
        scale = float(np.exp(self.start[0]))
        return TiedPriors(
            self.kernel, self.membership, everything, everything, scale, self.intercept_variance
        )

    def from_coarser(self, theta: Array) -> npt.NDArray[np.float64]:
        scales = np.full(len(self.scales.names), theta[0])
        return np.concatenate([scales, np.tile(theta[1:], len(self.shapes.names))])

    def retreated(self, theta: Array) -> npt.NDArray[np.float64]:
        n_scales = len(self.scales.names)
        return np.concatenate([theta[:n_scales] - np.log(10.0), theta[n_scales:]])

    def values(self, theta: Array) -> dict[str, float]:
        return dict(zip(self.names, np.exp(theta).tolist(), strict=True))


def _named(parameter: str, group: str) -> str:
    return f"{parameter}[{group}]" if group else parameter
