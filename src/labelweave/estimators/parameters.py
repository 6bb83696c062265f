"""Constructor parameters: how an estimator keeps them, and what is allowed for those that several have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from labelweave.features import Kernel
from labelweave.features.feature_matrix import LARGEST_FEATURE
from labelweave.foundation.arguments import ParameterError, checked
from labelweave.foundation.sklearn_compat import (
    Interval,
    InvalidParameterError,
    StrOptions,
    naming_parameter,
    validate_parameter_constraints,
)
from labelweave.labels import LabelCovariance, LabelMean, Taxonomy
from labelweave.labels.flip_rates import FlipRates, read_flip_rates
from labelweave.model_files import ModelFileError, save_object
from labelweave.model_files.schema import Made, Sizes, refuse

KernelLike: TypeAlias = str | Kernel | Callable[..., Any]
CovarianceLike: TypeAlias = LabelCovariance | Taxonomy | ArrayLike | None
MeanLike: TypeAlias = LabelMean | ArrayLike | None
Costs: TypeAlias = float | ArrayLike
ClassWeight: TypeAlias = Literal["balanced"] | Mapping[Any, float] | Sequence[Mapping[int, float]] | None
FlipRatesLike: TypeAlias = FlipRates | Sequence[Any] | Literal["propensity"] | None
RandomState: TypeAlias = int | np.random.RandomState | None

COUNT = Interval(Integral, 1, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NON_NEGATIVE = Interval(Real, 0, None, closed="left")

_LARGEST_NUMBER = 1000  # powers of two, of which there are still floating numbers
_LARGEST_COUNT = 63  # as far as whole numbers go in compiled code
_KERNELS = {"linear", "rbf", "polynomial", "poly", "laplacian", "cosine", "precomputed"}

SHARED: dict[str, list[Any]] = {
    "kernel": [StrOptions(_KERNELS), Kernel, callable],
    "gamma": [StrOptions({"scale", "auto"}), POSITIVE],
    "degree": [COUNT],
    "coef0": [NON_NEGATIVE],
    "scaling": [StrOptions({"none", "auto", "standard", "quantile", "unit"})],
    "kernel_rank": [COUNT, None],
    "rank": [COUNT, Interval(Real, 0, 1, closed="right")],
    "label_covariance": [LabelCovariance, Taxonomy, "array-like", None],
    "label_mean": [LabelMean, "array-like", "sparse matrix", None],
    "coupling": [StrOptions({"full"}), COUNT, None],
    "hyperparameters": [StrOptions({"fixed", "learn"})],
    "cv": ["cv_object"],
    "learning_rows": [Interval(Integral, 2, None, closed="left"), None],
    "max_learning_iter": [COUNT],
    "fit_intercept": ["boolean"],
    "intercept_scaling": [Interval(Real, 0, LARGEST_FEATURE, closed="right")],  # it is a feature
    "false_negative_cost": [NON_NEGATIVE, "array-like"],
    "false_positive_cost": [NON_NEGATIVE, "array-like"],
    "class_weight": [StrOptions({"balanced"}), dict, list, None],
    "flip_rates": [StrOptions({"propensity"}), FlipRates, tuple, list, None],
    "threshold": [StrOptions({"auto"}), Interval(Real, None, None, closed="neither")],
    "warm_start": ["boolean"],
    "checkpoint": [str, PathLike, None],
    "tol": [POSITIVE],
    "max_iter": [COUNT],
    "memory_budget": [POSITIVE],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
}
"""scikit-learn's declarative constraints by name; an estimator adds its own, and those that differ."""


def keep_parameters(estimator: Any, given: dict[str, Any]) -> None:
    """Keep what a constructor was called with under the same names, as scikit-learn asks.

    given: the constructor's ``locals()``, as its first statement.
    """
    own = ("self", "__class__")
    vars(estimator).update({name: value for name, value in given.items() if name not in own})


class CheckedParameters(BaseEstimator):
    """Base of all estimators: saves them, and before a fit refuses parameters that scikit-learn lets pass."""

    _parameter_constraints: ClassVar[Any]

    @checked
    def save(self, path: str | PathLike[str], *, key: bytes | None = None) -> None:
        """Write the fitted model to one file, without pickle; read it with :func:`labelweave.load`.

        Parameters
        ----------
        path : path-like
            The file, replaced only once the new one is complete.
        key : bytes or None, default=None
            A secret of 16 bytes or more to sign the file with (HMAC-SHA256), which
            ``labelweave.load(path, key=key)`` asks for; None for a checksum only.

        Raises
        ------
        TypeError
            If it is around an estimator that is not one of this library, which is named.
        """
        check_is_fitted(self)
        save_object(path, self, key=key)

    def _validate_params(self) -> None:
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            raise naming_parameter(error, self._parameter_constraints) from None
        self._refuse_odd_parameters(self.get_params(deep=False))
        self._refuse_together()

    def _refuse_together(self) -> None:
        """Refuse parameters that exclude each other, whatever the data are."""

    @classmethod
    def _refuse_odd_parameters(cls, given: Mapping[str, Any]) -> None:
        """Refuse classes for objects, flags for numbers and huge integers, of fits and of model files."""
        for name, value in given.items():
            allowed = cls._parameter_constraints.get(name)
            listed = allowed if isinstance(allowed, list) else []
            if isinstance(value, type):
                raise ValueError(f"{name} is the class {value.__name__}; give an object, not its class.")
            if isinstance(value, bool) and listed and not {"boolean", "verbose"} & {*map(str, listed)}:
                raise ValueError(f"{name} is {value}; it is no flag.")
            of_counts = any(isinstance(one, Interval) and one.type is Integral for one in listed)
            most = _LARGEST_COUNT if of_counts else _LARGEST_NUMBER
            if isinstance(value, int) and abs(value) >= 2**most:
                raise ParameterError(
                    f"`{name}` has {len(hex(value)) - 2} hexadecimal digits; it must be below 2^{most}."
                )
        rates = given.get("flip_rates")
        if isinstance(rates, (tuple, list)) and all(isinstance(one, (Real, str)) for one in rates):
            read_flip_rates(rates, [""])  # those of single labels are read with their names
        if given.get("n_jobs") == 0:
            raise ParameterError("`n_jobs` is 0; give a number of threads from 1 on, or -1 for all.")


COVARIANCE = Made(LabelCovariance, {"L": "n_labels"})
MEAN = Made(LabelMean, {"L": "n_labels", "d": "n_features"})


@dataclass(frozen=True)
class Parameters:
    """The field of the parameters of an estimator: those of its constructor, as fits allow."""

    estimator: Any

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """See :meth:`labelweave.model_files.schema.Field.check`."""
        names, constraints = signature(self.estimator).parameters, self.estimator._parameter_constraints
        if type(value) is not dict or not value.keys() <= names.keys():
            refuse(where, f"a dictionary of parameters of {self.estimator.__name__}")
        own = {name: constraints[name] for name in value if name in constraints}
        try:
            validate_parameter_constraints(own, value, self.estimator.__name__)
            self.estimator._refuse_odd_parameters(value)
        except ValueError as error:
            raise ModelFileError(f"its {where} are not allowed ({error}).") from None
