"""The family of priors that a classifier's parameters select."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from labelweave.estimators.kernel_classifier import is_learned
from labelweave.estimators.targets import node_name
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.feature_matrix import Moments
from labelweave.foundation.arguments import ParameterError
from labelweave.labels import Taxonomy
from labelweave.labels.covariance.base import read_covariance
from labelweave.problems.hyperparameters.priors import (
    FeatureWidths,
    GivenCovariance,
    LearnedCoupling,
    LearnedIntercepts,
    NodeGroups,
    PriorFamily,
    TiedPriors,
)

Grouping = Literal["shared", "class", "level", "subtree"]

TIES = ("shared", "scale", "class", "level", "subtree")
_GROUPINGS = ("shared", "class", "level", "subtree")
_FIRST_INTERCEPT_VARIANCE = 1.0
_ROUNDING = 1e-13  # of a mean: a deviation that a constant feature may have
_TREE_TIES = ("level", "subtree")


def prior_family(
    model: Any, features: FeatureMatrix, kernel: Kernel | None, n_labels: int, seed: int
) -> PriorFamily:
    """Return the family of priors that a classifier's parameters select.

    kernel: the kernel to start from; None for a precomputed kernel matrix.
    Raises ValueError if two label structures are given, or one that does not match the labels.
    """
    classes = [node_name(name) for name in model.classes_[-n_labels:]]
    family = _family_of_kernel(model, kernel, classes, seed)
    if model._has_widths:
        names = range(features.shape[1]) if features.names is None else features.names
        family = FeatureWidths(family, list(map(str, names)))
    return LearnedIntercepts(family) if model.intercept_variance == "learn" else family


def _of_intercepts(model: Any) -> float:
    return _FIRST_INTERCEPT_VARIANCE if model.intercept_variance == "learn" else model.intercept_variance


def refuse_priors(model: Any) -> None:
    """Raise for parameters of a classifier that define no prior, whatever the data are."""
    _structure_of(model.tie, model.taxonomy, model.label_covariance)
    model._refuse_unlearned()


def _structure_of(tie: Any, taxonomy: Any, label_covariance: Any) -> str | None:
    """Return the name of the label structure, or None; raise for several, or one that forbids the tie."""
    structures = {"taxonomy": taxonomy, "label_covariance": label_covariance}
    given = [name for name, value in structures.items() if value is not None]
    if isinstance(label_covariance, str) and label_covariance == "identity":
        given = []
    if len(given) > 1:
        both = " and ".join(f"`{name}`" for name in given)
        raise ParameterError(f"{both} are given, but labels have one structure; pass only one of them.")
    if given and given != ["taxonomy"] and tie != "shared":
        raise ParameterError(
            f"`tie={tie!r}` is invalid with `{given[0]}`, which shares one kernel; use `tie='shared'`."
        )
    in_tree = next((part for part in _pair_of_ties(tie) if part in _TREE_TIES), None)
    if in_tree is not None and not given and taxonomy is None:
        raise ParameterError(
            f"`tie={in_tree!r}` needs a `taxonomy`; pass one, or use `tie='shared'`, 'scale' or 'class'."
        )
    return next(iter(given), None)


def _family_of_kernel(model: Any, kernel: Kernel | None, names: list[str], seed: int) -> PriorFamily:
    structure, given = (
        _structure_of(model.tie, model.taxonomy, model.label_covariance),
        model.label_covariance,
    )
    if structure != "label_covariance":
        return _tied(model, kernel, names, is_tree=structure == "taxonomy")
    if is_learned(given):
        return _coupling(model, kernel, names, seed)
    covariance = read_covariance(given, len(names), names)
    covariance.check_variances(names)
    return GivenCovariance(kernel, covariance, float(model.scale), _of_intercepts(model))


def _coupling(model: Any, kernel: Kernel | None, names: list[str], seed: int) -> LearnedCoupling:
    labels = len(names)
    factors = labels if model.label_covariance == "learn" else int(model.label_covariance)
    if factors > labels:
        raise ParameterError(
            f"`label_covariance` is {factors}, but there are {labels} labels; use at most as many columns."
        )
    if factors == labels:
        start = np.sqrt(float(model.scale)) * np.eye(labels)
    else:
        drawn = np.random.default_rng(seed).standard_normal((labels, factors))
        start = np.sqrt(float(model.scale) / factors) * drawn
    return LearnedCoupling(kernel, start, names, _of_intercepts(model))


def _tied(model: Any, kernel: Kernel | None, names: list[str], *, is_tree: bool) -> TiedPriors:
    scale_tie, shape_tie = _pair_of_ties(model.tie)
    tree = model.taxonomy_
    if not is_tree or tree is None:
        membership = sp.eye_array(len(names), format="csr")
        scales, shapes = (_flat_groups(tie, names, tree) for tie in (scale_tie, shape_tie))
    else:
        tree = tree.restricted(names)
        tree = tree.pruned(keep=names) if tree.is_tree else tree
        membership = tree.membership(names)
        scales, shapes = (_tree_groups(tie, tree) for tie in (scale_tie, shape_tie))
    return TiedPriors(kernel, membership, scales, shapes, float(model.scale), _of_intercepts(model))


def _pair_of_ties(tie: Any) -> tuple[Grouping, Grouping]:
    pair = ("class", "shared") if tie == "scale" else (tie, tie) if isinstance(tie, str) else tuple(tie)
    if len(pair) != 2 or not all(part in _GROUPINGS for part in pair):
        raise ParameterError(
            f"`tie={tie!r}` is invalid; use one of {', '.join(map(repr, TIES))}, or a pair of "
            f"{', '.join(map(repr, _GROUPINGS))}, for scales and shapes."
        )
    return pair


def _flat_groups(tie: Grouping, names: list[str], tree: Taxonomy | None) -> NodeGroups:
    if tie == "shared":
        return NodeGroups.of_everything(len(names))
    if tree is None or tie == "class":
        return NodeGroups(np.arange(len(names)), names)
    return NodeGroups(*tree.restricted(names).pruned(keep=names).groups(tie, names))


def _tree_groups(tie: Grouping, tree: Taxonomy) -> NodeGroups:
    of_node, names = tree.groups(tie)
    return NodeGroups(of_node, [""] if tie == "shared" else names)


def paper_gamma(features: FeatureMatrix) -> float:
    """Return 1 / (2 sum of variances), or 1 for features that do not vary."""
    moments = features.summed(Moments.of)
    means, variances = moments.means, moments.variances
    scatter = float(np.where(np.abs(variances) > (_ROUNDING * means) ** 2, variances, 0.0).sum())
    return float(np.clip(0.5 / scatter, 1e-300, 1e300)) if scatter > 0 else 1.0
