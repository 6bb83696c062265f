"""Constructor parameters: how an estimator stores them, and the constraints that several share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from labelweave.features import Kernel
from labelweave.features.feature_matrix import LARGEST_FEATURE
from labelweave.foundation.sklearn_compat import Interval, StrOptions, validate_parameter_constraints
from labelweave.labels import LabelCovariance, LabelMean, Taxonomy
from labelweave.labels.flip_rates import FlipRates
from labelweave.model_files import ModelFileError
from labelweave.model_files.schema import Made, Sizes, refuse

KernelLike: TypeAlias = str | Kernel | Callable[..., Any]
CovarianceLike: TypeAlias = LabelCovariance | Taxonomy | ArrayLike | None
LearnableCovariance: TypeAlias = CovarianceLike | Literal["learn", "identity"] | int
MeanLike: TypeAlias = LabelMean | ArrayLike | None
Costs: TypeAlias = float | ArrayLike
ClassWeight: TypeAlias = Literal["balanced"] | Mapping[Any, float] | Sequence[Mapping[int, float]] | None
FlipRatesLike: TypeAlias = FlipRates | Sequence[Any] | Literal["propensity"] | None
RandomState: TypeAlias = int | np.random.RandomState | None

COUNT = Interval(Integral, 1, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NON_NEGATIVE = Interval(Real, 0, None, closed="left")

_KERNELS = {"linear", "rbf", "poly", "laplacian", "cosine", "precomputed"}

LEARNED_COVARIANCE = [StrOptions({"learn"}), COUNT]  # of labels: a square factor, or one of so many columns
ARD = "ard"  # the kernel with one width per feature
SIZE_OF_INTERCEPT = ["boolean", Interval(Real, 0, LARGEST_FEATURE, closed="right")]  # a feature's size

SHARED: dict[str, list[Any]] = {
    "kernel": [StrOptions(_KERNELS), Kernel, callable],
    "gamma": [StrOptions({"scale", "auto"}), POSITIVE],
    "scaling": [StrOptions({"none", "auto", "standard", "quantile", "unit"})],
    "kernel_rank": [COUNT, None],
    "rank": [COUNT, Interval(Real, 0, 1, closed="right")],
    "label_covariance": [LabelCovariance, Taxonomy, "array-like", None],
    "label_mean": [LabelMean, "array-like", "sparse matrix", None],
    "fit_intercept": ["boolean"],
    "false_negative_cost": [NON_NEGATIVE, "array-like"],
    "false_positive_cost": [NON_NEGATIVE, "array-like"],
    "class_weight": [StrOptions({"balanced"}), dict, list, None],
    "flip_rates": [StrOptions({"propensity"}), FlipRates, tuple, list, None],
    "threshold": [StrOptions({"auto"}), Interval(Real, None, None, closed="neither")],
    "warm_start": ["boolean"],
    "checkpoint": [str, PathLike, None],
    "tol": [POSITIVE],
    "max_iter": [COUNT],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
}
"""scikit-learn's declarative constraints by name; an estimator adds its own, and those that differ."""


def keep_parameters(estimator: Any, given: dict[str, Any]) -> None:
    """Store the arguments of a constructor, its ``locals()``, by the same names, as scikit-learn requires."""
    own = ("self", "__class__")
    vars(estimator).update({name: value for name, value in given.items() if name not in own})


COVARIANCE = Made(LabelCovariance, {"L": "n_labels"})
MEAN = Made(LabelMean, {"L": "n_labels", "d": "n_features"})


@dataclass(frozen=True)
class Parameters:
    """The field of the parameters of an estimator: those of its constructor, with its constraints."""

    estimator: Any

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        names, constraints = signature(self.estimator).parameters, self.estimator._parameter_constraints
        if type(value) is not dict or not value.keys() <= names.keys():
            refuse(where, f"a dictionary of parameters of {self.estimator.__name__}")
        own = {name: constraints[name] for name in value if name in constraints}
        try:
            validate_parameter_constraints(own, value, self.estimator.__name__)
            self.estimator._refuse_odd_parameters(value)
        except ValueError as error:
            raise ModelFileError(f"its {where} are not allowed ({error}).") from None
