"""Constructors of label covariances, available as ``LabelCovariance.<name>(...)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import checked_csr
from labelweave.labels.covariance.sources import (
    matrix_and_names,
    mean_outer_product,
    shrunk_correlations,
    signature_factor,
)
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.labels.taxonomy import Taxonomy

if TYPE_CHECKING:
    from labelweave.labels.covariance import (
        DenseCovariance,
        FactorCovariance,
        IdentityCovariance,
        WeightedCovariance,
    )


class _Kinds(SimpleNamespace):
    """The subclasses that constructors return, which are defined later."""

    identity: type[IdentityCovariance]
    dense: type[DenseCovariance]
    factor: type[FactorCovariance]
    weighted: type[WeightedCovariance]


KINDS = _Kinds()


class CovarianceConstructors:
    """Mixin of ``LabelCovariance`` with the constructors, which return its subclasses."""

    @staticmethod
    def identity(n_labels: int, label_names: Sequence[str] | Array | None = None) -> IdentityCovariance:
        """Make the covariance of independent labels.

        Parameters
        ----------
        n_labels : int
            The number of labels.
        label_names : sequence of str or None, default=None
            One name per label.

        Returns
        -------
        IdentityCovariance
            The identity.
        """
        return KINDS.identity(n_labels, label_names)

    @staticmethod
    def dense(matrix: Any, label_names: Sequence[str] | Array | None = None) -> DenseCovariance:
        """Make a covariance from a dense matrix, with a check.

        Parameters
        ----------
        matrix : array-like or DataFrame of shape (L, L)
            Symmetric and positive semi-definite.  The rows of a frame may have the labels in another order
            than its columns.
        label_names : sequence of str or None, default=None
            One name per label; by default a frame's columns.

        Returns
        -------
        DenseCovariance
            The covariance.

        Raises
        ------
        ValueError
            If it is not square, finite, symmetric or positive semi-definite, or the rows and columns of a
            frame have different names.
        """
        table, names = matrix_and_names(matrix)
        return KINDS.dense(table, names if label_names is None else label_names)

    @staticmethod
    def low_rank(
        factor: Any, diagonal: Any = 0.0, label_names: Sequence[str] | Array | None = None
    ) -> FactorCovariance:
        """Make ``diag(diagonal) + factor factor^T``.

        Parameters
        ----------
        factor : array-like or sparse matrix of shape (L, r)
            The factor.
        diagonal : float or array-like of shape (L,), default=0.0
            Non-negative variances specific to each label.
        label_names : sequence of str or None, default=None
            One name per label.

        Returns
        -------
        FactorCovariance
            The covariance.

        Raises
        ------
        ValueError
            If the factor is not finite and two-dimensional, or invalid, or the diagonal does not match it.
        """
        factor = checked_csr(factor, "The covariance factor") if sp.issparse(factor) else factor
        made = KINDS.factor(factor, diagonal, label_names)
        if not np.isfinite(made.diagonal()).all():
            raise ValueError("The covariance factor leads to infinite variances; scale it down.")
        return made

    @staticmethod
    @checked
    def from_taxonomy(
        taxonomy: Taxonomy, label_names: Sequence[str] | Array, variances: dict[str, float] | None = None,
        *, normalized: bool = False,
    ) -> FactorCovariance:  # fmt: skip
        """Make labels share the variances of their common ancestors: R = Phi diag(v) Phi^T.

        Parameters
        ----------
        taxonomy : Taxonomy
            The hierarchy.
        label_names : sequence of str
            The labels in order, each a node of the taxonomy.
        variances : dict of str to float or None, default=None
            The variance v of each node, 1 by default.
        normalized : bool, default=False
            Whether labels have variance 1, so that R has their correlations.  Otherwise a label with many
            ancestors, for example by several parents, has a large variance.

        Returns
        -------
        FactorCovariance
            The covariance (Seeger 2008, section 3); for graphs a kernel of common ancestors.

        Raises
        ------
        ValueError
            If a label or a node of ``variances`` is not in the taxonomy, or a variance is negative.

        Examples
        --------
        >>> from labelweave import LabelCovariance, Taxonomy
        >>> graph = Taxonomy([("pet", "dog"), ("canine", "dog"), ("pet", "cat")])
        >>> LabelCovariance.from_taxonomy(graph, ["dog", "cat"], normalized=True).to_dense().round(2)
        array([[1.  , 0.41],
               [0.41, 1.  ]])
        """
        given = variances or {}
        _check_node_variances(given, taxonomy)
        roots = np.sqrt([given.get(node, 1.0) for node in taxonomy.nodes])
        factor = taxonomy.membership(label_names) @ sp.diags_array(roots)
        if normalized:
            lengths = np.sqrt(np.asarray((factor * factor).sum(axis=1)).ravel())
            factor = sp.diags_array(1 / np.where(lengths > 0, lengths, 1.0)) @ factor
        return KINDS.factor(factor, label_names=label_names)

    @staticmethod
    @checked
    def from_signatures(signatures: Any, class_prior: Any = None) -> FactorCovariance:
        """Make labels covary as over known classes: ``R = sum_c p(c) y_c y_c^T``.

        This is the prior of the paper's zero-shot experiment (Hariharan et al. 2012,
        section 7.2.1): the classes are those of the test rows, and y_c their labels, -1 or 1.

        Parameters
        ----------
        signatures : array-like, DataFrame or sparse matrix of shape (classes, L)
            The labels of every class, 0/1 or -1/1; the columns of a frame are the labels and its index the
            classes.
        class_prior : array-like of shape (classes,), Series, dict or None, default=None
            Non-negative weights p of the classes, scaled to sum to 1; None for uniform weights.  A series or
            dict with the names of the classes may have any order.

        Returns
        -------
        FactorCovariance
            The covariance, of rank at most the number of classes and with variances 1.

        Raises
        ------
        ValueError
            If an entry is no label, naming class and label, or the prior is invalid.

        Examples
        --------
        >>> from labelweave import LabelCovariance
        >>> LabelCovariance.from_signatures([[1, 1, 0], [0, 0, 1]], class_prior=[3, 1])
        LabelCovariance(3 labels, rank 2, variances 1, 0 ~ 1 +1.00, 0 ~ 2 -1.00)
        """
        factor, names = signature_factor(signatures, class_prior)
        return KINDS.factor(factor, label_names=names)

    @staticmethod
    @checked
    def from_labels(Y: Any, *, centered: bool = True, prior_count: float = 5.0) -> DenseCovariance:
        """Make labels covary by their correlations in a label matrix, shrunk for rare labels.

        Parameters
        ----------
        Y : array-like, DataFrame, sparse matrix or LabelMatrix of shape (n, L)
            Labels 0/1 or -1/1, NaN where unobserved.
        centered : bool, default=True
            Whether to subtract the mean of every label.  False averages ``y_i y_i^T`` over rows in -1/1, as
            in the benchmarks of the paper's section 7.2.2 (Table 3), which makes all rare labels alike: none
            of them is present in nearly every row.
        prior_count : float, default=5.0
            The number of pseudo-rows of independent labels: a label whose rarer value occurs in n rows keeps
            the share ``sqrt(n / (n + prior_count))`` of each of its correlations.  Only if centered.

        Returns
        -------
        DenseCovariance
            The covariance, with variances 1.

        Raises
        ------
        ValueError
            If Y has no rows, no labels, or more than 20,000 labels, or ``prior_count`` is negative.

        Notes
        -----
        With missing entries, the covariance of two labels is over the rows where both are observed, and 0 if
        there is no such row.  Such a matrix can have negative eigenvalues.  It is then replaced by the
        nearest positive semi-definite one (negative eigenvalues become 0), scaled so that the variances are 1
        again; this takes O(L^3) time.

        Examples
        --------
        >>> from labelweave import LabelCovariance
        >>> Y = [[1, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 1]]
        >>> LabelCovariance.from_labels(Y, centered=False).to_dense()
        array([[ 1. ,  0.5, -0.5],
               [ 0.5,  1. ,  0. ],
               [-0.5,  0. ,  1. ]])
        >>> LabelCovariance.from_labels(Y, prior_count=0).to_dense().round(2)
        array([[ 1.  ,  0.58, -0.58],
               [ 0.58,  1.  ,  0.  ],
               [-0.58,  0.  ,  1.  ]])
        """
        labels = LabelMatrix.from_any(Y).most_likely()
        found = shrunk_correlations(labels, prior_count) if centered else mean_outer_product(labels)
        return KINDS.dense.from_semidefinite(found, labels.names)

    @staticmethod
    @checked
    def weighted(parts: Mapping[str, Any] | Sequence[Any], weights: Any = None) -> WeightedCovariance:
        """Make a sum of covariances, ``R = sum_m w_m R_m``, whose weights models learn.

        :class:`MaxMarginClassifier` learns weights that sum to 1 by its own objective,
        :class:`KernelLogisticClassifier` a scale for each part by its cross-validated loss.  Elsewhere, and
        with ``hyperparameters="fixed"`` of the latter, they stay as they are.

        Parameters
        ----------
        parts : dict of str to LabelCovariance or array-like of shape (L, L), or list of them
            The covariances R_m by name, over the same labels, each scaled to a mean variance of 1.
        weights : array-like of shape (m,) or None, default=None
            The weights to begin with, >= 0; None for equal ones that sum to 1.

        Returns
        -------
        WeightedCovariance
            The sum, with attributes ``parts``, ``weights`` and ``part_names``; ``fixed`` is the same
            covariance with weights that no model changes.

        Raises
        ------
        ValueError
            If there are no parts, they differ in their labels, one has no variance, or the weights do not
            match them.

        Examples
        --------
        >>> import numpy as np
        >>> from labelweave import LabelCovariance
        >>> shared = LabelCovariance.low_rank(np.ones((3, 1)))
        >>> LabelCovariance.weighted({"own": LabelCovariance.identity(3), "shared": shared})
        LabelCovariance(3 labels, weighted sum of 0.5 own + 0.5 shared, variances 1, 0 ~ 1 +0.50)
        """
        names = [*map(str, parts)] if isinstance(parts, Mapping) else None
        return KINDS.weighted(list(parts.values() if isinstance(parts, Mapping) else parts), weights, names)


def _check_node_variances(given: Mapping[str, float], taxonomy: Taxonomy) -> None:
    known = set(taxonomy.nodes)
    for node, variance in given.items():
        if node not in known:
            raise ValueError(f"variances has {node!r}, which is not a node of the taxonomy; remove it.")
        if not variance >= 0 or not np.isfinite(variance):
            raise ValueError(f"The variance of node {node!r} is {variance}; it must be a number >= 0.")
