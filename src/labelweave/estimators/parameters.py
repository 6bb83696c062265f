"""Constructor parameters: how an estimator stores them, shared constraints, and what goes together.

Fits in memory, on devices and to partitions, and the command line refuse by the one table ``RULES``, in the
same words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from labelweave.features import Kernel
from labelweave.features.feature_matrix import LARGEST_FEATURE
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.arrays import HOME
from labelweave.foundation.sklearn_compat import Interval, StrOptions, validate_parameter_constraints
from labelweave.labels import LabelCovariance, LabelMean, Taxonomy
from labelweave.labels.covariance import WeightedCovariance
from labelweave.labels.flip_rates import FlipRates
from labelweave.model_files import ModelFileError
from labelweave.model_files.schema import Made, Sizes, refuse
from labelweave.problems.low_rank_factors import make_entry_loss
from labelweave.solvers import Solver

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


def is_learned(label_covariance: Any) -> bool:
    """Whether the search learns a covariance, or one of a list of them."""
    if isinstance(label_covariance, list | tuple):
        return any(is_learned(one) for one in label_covariance if not isinstance(one, list | tuple))
    is_word = isinstance(label_covariance, str) and label_covariance == "learn"
    return is_word or isinstance(label_covariance, Integral)


def is_identity(label_covariance: Any) -> bool:
    """Whether there is no covariance, or the identity by name, or a list of these."""
    if isinstance(label_covariance, list | tuple):
        return len(label_covariance) > 0 and all(map(is_identity, label_covariance))
    return label_covariance is None or (isinstance(label_covariance, str) and label_covariance == "identity")


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


_ABSENT, _SHOWN = object(), (str, Real, list, tuple, dict)


class Rule(NamedTuple):
    """Parameters with which a fact allows some values only, or the models that go with a fact.

    names: parameters of the model, its search or its fit; empty for the model itself.
    fact: one of ``FACTS``, which parameters settle, or one that a fit passes, as "partitions".
    allowed: the values, types of values or names of models that go with it, or whether a value does.
    says: the sentence, in which the name, value and allowed values are filled in, and what the fact carries.
    models: the only classes that the rule is for.
    """

    names: str
    fact: str
    allowed: tuple[Any, ...] | Callable[[Any], bool]
    says: str
    models: str = ""

    def allows(self, value: Any) -> bool:
        if callable(self.allowed):
            return self.allowed(value)
        return any(
            isinstance(value, one) if isinstance(one, type) else isinstance(value, type(one)) and value == one
            for one in self.allowed
        )

    @property
    def allowed_words(self) -> list[str]:
        """What goes with the fact, as messages name it."""
        words = () if callable(self.allowed) else (one for one in self.allowed if not isinstance(one, type))
        return [str(one) if not self.names else repr(one) for one in words]


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _has_words(value: Any, *words: str) -> bool:
    return any(isinstance(part, str) and part in words for part in _parts(value))


FACTS: dict[str, Callable[[Any], bool]] = {
    "any fit": lambda model: True,
    "nothing learned": lambda model: model._search is None,
    "a kernel matrix": lambda model: getattr(model, "kernel", None) == "precomputed",
    "several kernels": lambda model: isinstance(model.kernel, list | tuple),
    "all negatives": lambda model: model.negatives == "all",
    "no taxonomy": lambda model: model.taxonomy is None,
    "a taxonomy": lambda model: getattr(model, "taxonomy", None) is not None,
    "a label mean": lambda model: model.label_mean is not None,
    "weights to learn": lambda model: any(
        isinstance(one, WeightedCovariance) for one in _parts(model.label_covariance)
    ),
    "an own loss": lambda model: not isinstance(model.loss, str),
    "no convex loss": lambda model: not make_entry_loss(model.loss).is_convex,
    "no ridge": lambda model: (
        model._ranks is None and (model.loss, model.penalty) != ("squared_error", "ridge")
    ),
    "no bound": lambda model: model._ranks is not None or model.alpha == 0,
}
_LEARNED = (
    "`{name}={value}` is learned, but `hyperparameters='fixed'`; pass `hyperparameters='learn'`, or a fixed "
    "value."
)
_OF_LOGISTIC = "`{name}={value}` is for kernel logistic models; use {allowed}."
_OF_MEMORY = "`{name}={value}` is for data in memory; with Dask collections {model} takes {allowed}."
_OF_NUMPY = "`{name}={value}` has no form for arrays of {fact}; use {first}, or X as a NumPy array."
_LOW, _MARGIN = "LowRankClassifier", "MaxMarginClassifier"
_LOGISTIC, _GRAPH, _AUTO = "KernelLogisticClassifier", "LabelGraphClassifier", "AutoLabelClassifier"
_FACTORIZED = ("alternating_directions", "cholesky", "eigenvalues", "incomplete_cholesky")
RULES = (
    Rule("", "rows on a device", (_AUTO, _MARGIN, _LOGISTIC, _LOW),
         "{model} has no form for arrays of {fact}; pass X as a NumPy array, or use {allowed}."),
    Rule("", "columns", (_MARGIN, _LOGISTIC, _LOW, "BinaryRelevance", _AUTO),
         "y has columns of classes, such as {fact}, which {model} does not take; use {allowed}, or pass "
         "labels of 0 and 1."),
    Rule("", "unsure classes on a device", (),
         "A partially observed class, or columns of classes, has no form for arrays of {fact}; pass X as a "
         "NumPy array."),
    Rule("label_covariance", "nothing learned", lambda value: not is_learned(value), _LEARNED),
    Rule("kernel", "nothing learned", lambda value: not isinstance(value, str) or value != ARD, _LEARNED),
    Rule("tie", "any fit", ("shared",), _OF_LOGISTIC, f"{_MARGIN} {_LOW}"),
    Rule("learning_blocks", "any fit", (1,), _OF_LOGISTIC, _LOW),
    Rule("criterion", "any fit", ("cross_validation",), _OF_LOGISTIC, _LOW),
    Rule("label_covariance", "a taxonomy", is_identity,
         "`taxonomy` and `label_covariance` are given, but labels have one structure; pass one of them."),
    Rule("tie", "weights to learn", ("shared",),
         "`tie={value}` is invalid with a `label_covariance` of learned weights, whose parts share one "
         "kernel; use `tie='shared'`, or a list of kernels with a part each.", _LOGISTIC),
    Rule("tie", "no taxonomy", lambda value: not _has_words(value, "level", "subtree"),
         "`tie={value}` needs a `taxonomy`; pass one, or use `tie='shared'`, 'scale' or 'class'.", _LOGISTIC),
    Rule("decision", "no taxonomy", ("most_probable",),
         "`decision={value}` needs a `taxonomy`, or `decision='most_probable'`."),
    Rule("decision", "many labels", ("most_probable",),
         "`decision={value}` is for one class per row, but y has many labels per row."),
    Rule("criterion", "an own loss", ("cross_validation",),
         "`criterion={value}` is for `loss='log_loss'`, but it is {of.loss!r}."),
    Rule("uncertainty", "an own loss", (None,),
         "`uncertainty={value}` is for `loss='log_loss'`, but it is {of.loss!r}."),
    Rule("uncertainty", "a kernel matrix", (None,),
         "`uncertainty={value}` needs the kernel of new rows with themselves, which X does not have with "
         "`kernel='precomputed'`; pass features and a kernel."),
    Rule("uncertainty", "inner nodes", (None,),
         "`uncertainty={value}` needs the class of every row, but {fact} rows of y name inner nodes of the "
         "taxonomy; leave these out, or use `uncertainty=None`."),
    Rule("entry_weight class_weight flip_rates uncertainty", "columns", (None,), _COLUMNS := (
         "`{name}` is given, but y has columns of classes, each with a softmax loss that takes none; leave "
         "it out, or use MaxMarginClassifier or LowRankClassifier."), _LOGISTIC),
    Rule("solver", "columns", ("auto",), _COLUMNS, _LOGISTIC),
    Rule("criterion", "columns", ("cross_validation",), _COLUMNS, _LOGISTIC),
    Rule("threshold", "ranked classes", ("auto",),
         "`threshold={value}` is for many labels per row or two classes, but y has {fact} classes; use "
         "`threshold='auto'`."),
    Rule("prune", "a label mean", ("off",),
         "`prune={value}` sets weights to 0 that `label_mean` sets to other values; use one of them."),
    Rule("prune", "weights to learn", ("off",),
         "`prune={value}` fits labels one by one, but the weights of `label_covariance` are learned from "
         "all; use `prune='off'`, or `label_covariance.fixed`.", _MARGIN),
    Rule("kernel_rank", "several kernels", (None,),
         "`kernel_rank` needs one kernel, but kernel is a list; pass their sum.", _MARGIN),
    Rule("hyperparameters", "several kernels", ("fixed",),
         "`hyperparameters='learn'` needs one kernel, but kernel is a list; pass their sum.", _MARGIN),
    Rule("n_trees", "all negatives", (None, 1),
         "`n_trees={value}` with `negatives='all'` fits the same labels more than once; use `n_trees=1`, or "
         "`negatives='reached'`."),
    Rule("class_weight", "weights of rows alone", (None,),
         "`class_weight` of {model} needs one class per row, but y has many labels; use sample_weight, or "
         "MaxMarginClassifier, LowRankClassifier or BinaryRelevance."),
    Rule("loss", "costs of entries", ("hamming",),
         '`loss={value}` is for whole label sets, but entries have costs or weights; leave these out, or '
         'leave `loss` at "hamming".', _GRAPH),
    Rule("penalty", "no bound", lambda value: value != "trace_bound",
         "`penalty='trace_bound'` needs `alpha` > 0, the largest trace norm, and a number as `rank`; for a "
         "RankSearch use `penalty='trace_norm'`, with the same solutions.", _LOW),
    Rule("penalty", "no convex loss", lambda value: value != "trace_bound",
         "`penalty='trace_bound'` is for convex losses, but `loss` is {of.loss!r}; use "
         "`penalty='trace_norm'`.", _LOW),
    Rule("loss", "any fit", lambda value: getattr(value, "is_convex", True),
         "`loss={value}` is not convex, but Newton's method needs a convex one; use `loss='log_loss'`, or "
         "LowRankClassifier.", _LOGISTIC),
    Rule("hyperparameters", "no ridge", ("fixed",),
         "`hyperparameters='learn'` is for `loss='squared_error'` with `penalty='ridge'`, but they are "
         "{of.loss!r} and {of.penalty!r}; use these, or a RankSearch over `alphas`.", _LOW),
    Rule("scaling", "a kernel matrix", ("none",),
         "`scaling={value}` is for features, but X is a kernel matrix; use {allowed}."),
    Rule("label_mean", "a kernel matrix", (None,),
         "`label_mean` has weights of features, but X is a kernel matrix; pass features and a kernel."),
    Rule("solver", "no explicit features",
         ("auto", "alternating_directions", "block_ascent", "working_set", *_FACTORIZED[1:], Solver),
         "`solver={value}` needs explicit features, which this kernel lacks; use {allowed}, or set "
         "`kernel_rank`."),
    Rule("solver", "a sum of kernels", ("auto", *_FACTORIZED, Solver),
         "`solver={value}` is for one kernel, not for a sum of kernels with label covariances; use "
         "{allowed}."),
    Rule("solver", "pruning", ("auto", "coordinate_ascent"),
         "`solver={value}` cannot drop weights, as in `prune={of.prune!r}`; use {allowed}."),
    Rule("solver", "a device", ("auto", *_FACTORIZED, "function_gradients"), _OF_NUMPY),
    Rule("prune", "a device", ("off",), _OF_NUMPY),
    Rule("checkpoint uncertainty", "a device", (None,), _OF_NUMPY),
    Rule("kernel_rank", "a device", (None,), _OF_NUMPY, _LOGISTIC),
    Rule("criterion", "a device", ("cross_validation",), _OF_NUMPY),
    Rule("loss", "a device", ("log_loss", "squared_error", "squared_hinge"), _OF_NUMPY),
    Rule("uncertainty", "partitions", (None,), _OF_MEMORY),
    Rule("warm_start", "partitions", (False,), _OF_MEMORY, f"{_LOGISTIC} {_GRAPH} {_LOW} {_MARGIN}"),
    Rule("scaling", "partitions", ("none",), _OF_MEMORY),
    Rule("time_limit", "partitions", (None,), _OF_MEMORY),
    Rule("hyperparameters", "partitions", ("fixed",), _OF_MEMORY, f"{_LOW} {_MARGIN}"),
    Rule("solver", "partitions", ("auto", "function_gradients", "symmetrized_gradients"),
         _OF_MEMORY, _LOGISTIC),
    Rule("solver", "partitions", ("auto", "coordinate_ascent"), _OF_MEMORY, _MARGIN),
    Rule("prune", "partitions", ("off",), _OF_MEMORY, _MARGIN),
    Rule("n_jobs", "partitions", (None,), _OF_MEMORY, _MARGIN),
    Rule("kernel", "partitions", ("linear",), _OF_MEMORY, _GRAPH),
    Rule("inputs", "partitions", ("features",), _OF_MEMORY),
    Rule("kernel", "partitions", lambda value: not _has_words(value, "precomputed", ARD),
         "`kernel={value}` is for data in memory; pass the features and a kernel of one width."),
    Rule("kernel", "partitions", lambda value: not isinstance(value, list | tuple),
         "`kernel` is a list of kernels, which are for data in memory; pass one kernel.", _MARGIN),
    Rule("label_covariance", "partitions", lambda value: not isinstance(value, WeightedCovariance),
         "`label_covariance` has weights that are learned, and partitioned rows do not allow this; give its "
         "attribute .fixed, with weights learned on a sample of the rows.", _MARGIN),
    Rule("rank", "partitions", lambda value: not hasattr(value, "set_params"),
         "`rank` is a choice of several, which is for data in memory; pass one number."),
)  # fmt: skip


def refuse_together(model: Any, facts: Mapping[str, Any] | None = None, **given: Any) -> None:
    """Raise ParameterError, a ValueError, for the first rule that a model breaks.

    facts: what holds of targets or rows, and what the sentence says of it; by default what parameters settle.
    given: arguments of ``fit`` by name.
    """
    search = getattr(model, "_search", None)
    for rule in RULES:
        if (rule.models and type(model).__name__ not in rule.models.split()) or (
            rule.fact not in (FACTS if facts is None else facts)
        ):
            continue
        for name in rule.names.split() or [""]:
            own = getattr(model, name, getattr(search, name, _ABSENT)) if name else type(model).__name__
            value = given.get(name, own)
            if value is _ABSENT or rule.allows(value) or (facts is None and not FACTS[rule.fact](model)):
                continue
            allowed = rule.allowed_words
            filled = {
                "name": name,
                "value": repr(value) if isinstance(value, _SHOWN) else type(value).__name__,
                "allowed": " or ".join(filter(None, (", ".join(allowed[:-1]), *allowed[-1:]))),
                "first": "".join(allowed[:1]),
                "fact": "" if facts is None else facts[rule.fact],
                "model": type(model).__name__,
            }
            raise ParameterError(rule.says.format(of=model, **filled))


def refuse_at_home(estimator: Any, *facts: str) -> None:
    """Raise ParameterError for a model, or one inside, that has no form for arrays of X's library.

    *facts: what else holds there, as "a device" in a fit.
    """
    if (home := HOME.get()) is None:
        return
    while (inner := getattr(estimator, "estimator", None)) is not None:
        estimator = inner
    refuse_together(estimator, dict.fromkeys(("rows on a device", *facts), home.library))
