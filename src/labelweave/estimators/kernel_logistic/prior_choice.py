"""The family of priors that a classifier's parameters select."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from labelweave.estimators.kernel_classifier import TIES
from labelweave.estimators.parameters import is_identity, is_learned
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.feature_matrix import Moments
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.labels import Taxonomy
from labelweave.labels.covariance.base import read_covariance
from labelweave.labels.label_names import as_text
from labelweave.problems.hyperparameters import priors

Grouping: TypeAlias = Any  # a name of :data:`_GROUPINGS`, or the group of every function

_GROUPINGS = ("shared", "class", "level", "subtree")
_GROUPS = (list, tuple, Mapping)
_FIRST_INTERCEPT_VARIANCE = 1.0
_ROWS_OF_MEAN = 1000
_MOST_VARIANCE = 1e3
_ROUNDING = 1e-13  # of a mean: a deviation that a constant feature may have


def prior_family(
    model: Any, features: FeatureMatrix, kernels: Sequence[Kernel | None], n_labels: int, seed: int,
    known: Array,
) -> priors.PriorFamily:  # fmt: skip
    """Return the family of priors that a classifier's parameters select.

    kernels: those to start from, whose terms are added; None for a precomputed kernel matrix.
    known: the rows that have a weight and a known label.
    Raises ValueError if two label structures are given, or one that does not match the labels.
    """
    classes = [as_text(name) for name in model.classes_[-n_labels:]]
    shares = _shares(kernels, features, known, model._search is not None)
    families = [
        _family_of_kernel(model, kernel, given, classes, share * float(model.scale), seed + place)
        for place, (kernel, given, share) in enumerate(zip(kernels, _structures(model), shares, strict=True))
    ]
    family = families[0] if len(families) == 1 else priors.SummedPriors(families)
    if model._has_widths:
        names = range(features.shape[1]) if features.names is None else features.names
        family = priors.FeatureWidths(family, list(map(str, names)))
    return priors.LearnedIntercepts(family) if model.intercept_variance == "learn" else family


def _shares(
    kernels: Sequence[Kernel | None], features: FeatureMatrix, known: Array, is_learned: bool
) -> list[float]:
    """Return factors of the first scales.

    With several kernels each has an equal part of a mean variance of 1.  That of one kernel is moved to
    within a thousandfold of 1 where a search follows: it finds no way from the scores of other units.
    """
    some = features.to_local(known[:_ROWS_OF_MEAN])
    means = [1.0 if kernel is None else float(np.mean(kernel.diagonal(some))) for kernel in kernels]
    most = 1.0 if len(kernels) > 1 else _MOST_VARIANCE if is_learned else np.inf
    wanted = np.clip(means, 1.0 / most, most) / len(kernels)
    return [float(part / mean) if mean > 0 else 1.0 for part, mean in zip(wanted, means, strict=True)]


def _structures(model: Any) -> list[Any]:
    """Return a label covariance for each kernel; raise if there are not as many."""
    given, kernels = model.label_covariance, model.kernel
    if not isinstance(kernels, list | tuple):
        return [given]
    found = [None] * len(kernels) if given is None else list(given) if isinstance(given, list | tuple) else []
    if not kernels or len(found) != len(kernels):
        raise ParameterError(
            f"`kernel` is a list of {len(kernels)}, and `label_covariance` one of {len(found)}; give one "
            "kernel or more, and one covariance for each, or None."
        )
    return found


def _of_intercepts(model: Any) -> float:
    return _FIRST_INTERCEPT_VARIANCE if model.intercept_variance == "learn" else model.intercept_variance


def _tie(model: Any) -> Any:
    """Return which functions share what the search learns; all where nothing is learned."""
    return "shared" if model._search is None else model._search.tie


def check_priors(model: Any) -> None:
    """Raise for parameters of a classifier that define no prior, whatever the data are."""
    _structures(model)
    _pair_of_ties(_tie(model))


def _family_of_kernel(
    model: Any, kernel: Kernel | None, given: Any, names: list[str], scale: float, seed: int
) -> priors.PriorFamily:
    if is_learned(given) and not isinstance(given, list | tuple):
        return _coupling(model, kernel, _first_coupling(given, len(names), scale, seed), names)
    own = _tie(model)
    membership: Any = sp.eye_array(len(names), format="csr")
    if is_identity(given) and model.taxonomy_ is not None and given is None:
        tree = model.taxonomy_.restricted(names)
        tree = tree.pruned(keep=names) if tree.is_tree else tree
        membership = tree.membership(names)
        scales, shapes = (_tree_groups(tie, tree) for tie in _pair_of_ties(own))
    else:
        scales, shapes = (_flat_groups(tie, names, model.taxonomy_) for tie in _pair_of_ties(own))
    if not is_identity(given):
        covariance = read_covariance(given, len(names), names)
        covariance.check_variances(names)
        if isinstance(own, str) and own == "shared":
            return priors.GivenCovariance(kernel, covariance, scale, _of_intercepts(model))
        values, vectors = covariance.spectrum()
        membership = (vectors * np.sqrt(values)) @ vectors.T  # the symmetric root: a function per label
    return priors.TiedPriors(kernel, membership, scales, shapes, scale, _of_intercepts(model))


def _first_coupling(given: Any, labels: int, scale: float, seed: int) -> Array:
    factors = labels if given == "learn" else int(given)
    if factors > labels:
        raise ParameterError(
            f"`label_covariance` is {factors}, but there are {labels} labels; use at most as many columns."
        )
    if factors == labels:
        return np.asarray(np.sqrt(scale) * np.eye(labels))
    drawn = np.random.default_rng(seed).standard_normal((labels, factors))
    return np.asarray(np.sqrt(scale / factors) * drawn)


def _coupling(model: Any, kernel: Kernel | None, start: Array, names: list[str]) -> priors.LearnedCoupling:
    factors = names if start.shape[1] == len(names) else list(map(str, range(start.shape[1])))
    shapes = _flat_groups(_pair_of_ties(_tie(model))[1], factors, None)  # scales are lengths of columns
    return priors.LearnedCoupling(kernel, start, names, _of_intercepts(model), shapes)


def _pair_of_ties(tie: Any) -> tuple[Grouping, Grouping]:
    """Return the groupings of scales and of shapes."""
    if isinstance(tie, str | Mapping):
        return ("class", "shared") if tie == "scale" else (tie, tie)
    if len(tie) == 2 and all(isinstance(part, _GROUPS) or part in _GROUPINGS for part in tie):
        return tie[0], tie[1]
    if not tie or any(isinstance(group, str) and group in TIES for group in tie):
        raise ParameterError(
            f"`tie={tie!r}` is invalid; use one of {', '.join(map(repr, TIES))}, the group of each class, "
            f"or a pair of {', '.join(map(repr, _GROUPINGS))} and groups, for scales and shapes."
        )
    return tie, tie


def _flat_groups(tie: Grouping, names: list[str], tree: Taxonomy | None) -> priors.NodeGroups:
    if isinstance(tie, _GROUPS):
        return _given_groups(tie, names)
    if tie == "shared":
        return priors.NodeGroups.of_everything(len(names))
    if tree is None or tie == "class":
        return priors.NodeGroups(np.arange(len(names)), names)
    return priors.NodeGroups(*tree.restricted(names).pruned(keep=names).groups(tie, names))


def _tree_groups(tie: Grouping, tree: Taxonomy) -> priors.NodeGroups:
    if isinstance(tie, _GROUPS):
        return _given_groups(tie, tree.nodes)
    of_node, names = tree.groups(tie)
    return priors.NodeGroups(of_node, [""] if tie == "shared" else names)


def _given_groups(given: Any, names: Sequence[str]) -> priors.NodeGroups:
    """Return the groups of functions, from a list in their order or a mapping by their names."""
    if isinstance(given, Mapping):
        by_name = {str(name): group for name, group in given.items()}
        lacking = next((name for name in names if name not in by_name), None)
        if lacking is not None:
            raise ParameterError(f"`tie` has no group for {lacking!r}; pass one for every function.")
        given = [by_name[name] for name in names]
    if len(given) != len(names):
        raise ParameterError(
            f"`tie` has {len(given)} groups, but there are {len(names)} functions; pass one per function."
        )
    groups, of_node = np.unique([str(group) for group in given], return_inverse=True)
    return priors.NodeGroups(of_node, groups.tolist() if len(groups) > 1 else [""])


def paper_gamma(features: FeatureMatrix) -> float:
    """Return 1 / (2 sum of variances), or 1 for features that do not vary."""
    moments = features.summed(Moments.of)
    means, variances = moments.means, moments.variances
    scatter = float(np.where(np.abs(variances) > (_ROUNDING * means) ** 2, variances, 0.0).sum())
    return float(np.clip(0.5 / scatter, 1e-300, 1e300)) if scatter > 0 else 1.0
