"""The base of classifiers with a kernel and thresholds, and the search for hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from numbers import Integral, Real
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from labelweave.estimators.base import CheckedParameters, LabelClassifier
from labelweave.estimators.journal import warn_of_end
from labelweave.estimators.parameters import ARD, COUNT, Parameters, keep_parameters, refuse_together
from labelweave.estimators.seen_rows import SeenRows
from labelweave.features import (
    ARDKernel,
    CallableKernel,
    FeatureMatrix,
    FeatureScaling,
    Kernel,
    LaplacianKernel,
    RBFKernel,
    make_kernel,
)
from labelweave.features.feature_matrix import dense_rows
from labelweave.features.gram import sources
from labelweave.features.gram.sources import GramSource, KernelSource, PrecomputedSource
from labelweave.features.kernels.kernel import part_of_others
from labelweave.foundation.arguments import ParameterMessage
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.costs import warn_caller
from labelweave.foundation.sklearn_compat import Interval, StrOptions
from labelweave.labels import LabelMatrix, LabelMean
from labelweave.labels.label_mean import read_label_mean
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import MEASURED, TEXT, Field, Items, Made, Maybe, Named, Numbers, Optional
from labelweave.problems.hyperparameters.out_of_fold import oof_loss

if TYPE_CHECKING:
    from labelweave.problems.hyperparameters.search import LearnedParameters, SearchRecord

_MOST_ROWS = 1000  # among which a scaling is chosen: two eigendecompositions of their kernel matrix
_MOST_LABELS = 256
_VECTOR = 32
_FULL = 0.1  # of the entries of sparse rows: as a dense array they take at most seven times the memory
_MOST_ENTRIES = 50_000_000  # of the dense array, 400 MB


def choose_scaling(
    features: FeatureMatrix, targets: Array, kernel_of: Callable[[FeatureMatrix], Kernel],
    folds: PerRow | None = None,
) -> FeatureScaling | None:  # fmt: skip
    """Choose the scaling with the least out-of-fold squared error of kernel ridge regression.

    Dense features: "standard", "quantile" or, with 32 and more columns as in embeddings, "unit".  Sparse
    ones: "unit", or None for unscaled.  Sparse ones with a tenth of all entries or more, as tables of
    numbers and categories have: as dense ones, or None; unit lengths would mix their columns, which trees
    split on.  At most 1,000 rows, the same in every call, and the 256 labels that vary most are used.

    Parameters
    ----------
    features : FeatureMatrix of shape (n, d)
        The training rows.
    targets : ndarray of shape (n, L)
        Targets of the regression; NaN where unobserved.
    kernel_of : callable
        Maps features to their kernel.
    folds : ndarray of int, shape (n,), default=None
        Fold numbers; None for leave-one-out.
    """
    lengths = features.squared_norms()
    if features.is_sparse and np.allclose(lengths[lengths > 0], 1.0, atol=1e-6) and lengths.any():
        return None  # of unit length already, as texts are, or empty
    table, found = _written_out(features), list[FeatureScaling | None]()
    if table is None:
        found = [FeatureScaling("unit"), None]
    else:
        found = [FeatureScaling.fit(kind, table) for kind in ("standard", "quantile")]
        is_vector = not features.is_sparse and features.shape[1] >= _VECTOR
        found += [None] if features.is_sparse else [FeatureScaling("unit")] if is_vector else []
    rows = drawn_rows(len(features), _MOST_ROWS)
    targets, folds = targets[rows], None if folds is None else folds[rows]
    if targets.shape[1] > _MOST_LABELS:
        spread = np.nan_to_num(np.nanvar(targets, axis=0))
        targets = targets[:, np.argsort(-spread, kind="stable")[:_MOST_LABELS]]
    losses = []
    for scaling in found:
        some = features.rows(rows) if scaling is None else scaling(features.rows(rows))
        some = some.astype(np.float64)
        placed = some.placed()
        losses.append(oof_loss(kernel_of(some).block(placed, placed), targets, folds))
    return found[int(np.argmin(losses))]


def drawn_rows(n: int, most: int) -> Array:
    """Sample at most this many of n rows, the same in every call, in their order."""
    if n <= most:
        return np.arange(n)
    rows: Array = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    return rows


def _written_out(features: FeatureMatrix) -> FeatureMatrix | None:
    """Return features as a dense array, if they are dense or rather full sparse rows."""
    if not features.is_sparse:
        return features
    n_entries = features.shape[0] * features.shape[1]
    is_full = features.data.nnz >= _FULL * n_entries and n_entries <= _MOST_ENTRIES
    return FeatureMatrix(features.data.toarray()) if is_full else None


TIES = ("shared", "scale", "class", "level", "subtree")
_KERNEL_ROWS = 200  # whose kernel matrix is checked
_FEWEST_ROWS = 20  # the check is not informative with fewer
_ALIKE = 0.95
_STRANGERS = 0.01


class ParameterGroup(StoredParameters, CheckedParameters):
    """Base of groups of related parameters, each the value of one parameter of an estimator."""

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the group; see :meth:`labelweave.model_files.Storable.from_state`."""
        Parameters(cls).check(state, cls.__name__, {})
        return cls(**state)


@storable("HyperparameterSearch")
class HyperparameterSearch(ParameterGroup):
    """Settings for learning kernel parameters, scales and penalties by the cross-validated loss's gradient.

    Pass it as ``hyperparameters``, where "learn" is short for one without arguments.

    Parameters
    ----------
    cv : int, splitter, iterable or None, default=5
        The folds: a number of random ones (None for 5; stratified for multi-label data), or splits.
        For groups of rows use ``list(GroupKFold(5).split(X, y, groups))``.
    learning_rows : int or None, default=None
        Learn on a random sample of this many rows, then fit all rows with the result; None for all.
    learning_blocks : int, default=1
        Learn on this many disjoint blocks of ``learning_rows`` rows, or on equal parts of all rows, by the
        mean of their losses.  Many hyperparameters need more than one block.  For kernel logistic models
        and those that learn by them.
    max_learning_iter : int, default=100
        Maximum number of evaluations of the cross-validated loss, including those on a first part of
        3,000 rows and more.
    criterion : {"cross_validation", "marginal_likelihood"}, default="cross_validation"
        What hyperparameters minimize: the loss of held-out rows, or minus Laplace's approximation to the log
        marginal likelihood, which has no folds and weighs all rows.  The latter is for logistic losses and
        takes n^3 multiplications per evaluation and label, and per pair of classes; set ``learning_rows``,
        or ``kernel_rank``.
    tie : {"shared", "scale", "class", "level", "subtree"}, list or dict of groups, or pair of these, \
            default="shared"
        Which functions share a scale and a kernel shape: all ("shared", the paper's mc-tied), all the shape
        ("scale", mc-semi), none ("class", mc-sep), nodes of one depth ("level") or under one child of the
        root ("subtree"), or those in one group: a list such as ``[0, 0, 1, 1]`` in the order of
        the classes, or a dict by name, with a taxonomy of its nodes.  A pair sets scale and shape
        separately.  With a given covariance the function of class p is column p of the symmetric root of R;
        with a learned one it is a column of B, whose length is its scale.
        For kernel logistic models.

    Examples
    --------
    >>> from labelweave import HyperparameterSearch, KernelLogisticClassifier
    >>> model = KernelLogisticClassifier(hyperparameters=HyperparameterSearch(cv=3, max_learning_iter=20))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "cv": ["cv_object"],
        "learning_rows": [Interval(Integral, 2, None, closed="left"), None],
        "learning_blocks": [COUNT],
        "max_learning_iter": [COUNT],
        "criterion": [StrOptions({"cross_validation", "marginal_likelihood"})],
        "tie": [StrOptions(set(TIES)), tuple, list, dict],
    }

    def __init__(
        self, cv: Any = 5, *, learning_rows: int | None = None, learning_blocks: int = 1,
        max_learning_iter: int = 100, criterion: str = "cross_validation", tie: Any = "shared",
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def to_state(self) -> dict[str, Any]:
        """Return the state that a model file stores; see :meth:`labelweave.model_files.Storable.to_state`."""
        state = super().to_state()
        # a splitter is not needed after the fit
        return state | {"cv": self.cv if isinstance(self.cv, Integral) else None}


_USUAL_SEARCH = HyperparameterSearch()
SEARCHED = [StrOptions({"fixed", "learn"}), HyperparameterSearch]


class KernelClassifier(LabelClassifier):
    """Base of classifiers with a kernel, which predict a label where its score is above a threshold.

    A fit sets ``coef_``, or ``dual_coef_`` with ``support_`` and ``support_vectors_``; and ``thresholds_``,
    on the scale of :meth:`_compared`.
    """

    kernel_: Kernel
    thresholds_: Array
    learning_trace_: list[SearchRecord]

    _stored: ClassVar[dict[str, Field]] = {
        "kernel_": Optional(Maybe(Made(Kernel), Items(Made(Kernel)))),
        "thresholds_": Numbers("K"),
        "hyperparameters_": Optional(Named(MEASURED)),
        "cross_validation_loss_": Optional(MEASURED),
        "learning_status_": Optional(TEXT),
        "learning_trace_": Optional(Items(Items(MEASURED))),
    }

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _has_widths(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == ARD

    @property
    def _kernels(self) -> Sequence[Any]:
        is_list = isinstance(self.kernel, list | tuple)
        return self.kernel if is_list else ["rbf" if self._has_widths else self.kernel]

    @property
    def _search(self) -> HyperparameterSearch | None:
        """How hyperparameters are learned; None if they are not."""
        given = getattr(self, "hyperparameters", "fixed")
        if isinstance(given, HyperparameterSearch):
            return given
        return _USUAL_SEARCH if given == "learn" else None

    @property
    def _most_learned(self) -> int:
        return 0 if self._search is None else self._search.max_learning_iter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    def _scale(self, features: FeatureMatrix, targets: LabelMatrix | Array, weights: Array) -> FeatureMatrix:
        """Scale the training rows, and keep how; targets, NaN where unobserved, may choose the scaling."""
        if self.scaling == "none":
            return features
        rows = np.flatnonzero(weights)
        some = features if len(rows) == len(features) else features.rows(rows)
        if self.scaling == "auto":
            table = targets.to_dense() if isinstance(targets, LabelMatrix) else targets
            self.scaling_ = choose_scaling(some, table[rows], self._usual_kernel)
        else:
            self.scaling_ = FeatureScaling.fit(self.scaling, some)
        return self._scaled(features)

    def _usual_kernel(self, features: FeatureMatrix) -> Kernel:
        """Return the kernel with its starting parameters, or the sum of several."""
        gamma: Any = self.gamma if isinstance(self.gamma, Real) or self.gamma == "auto" else "scale"
        return reduce(add, (make_kernel(kernel, gamma) for kernel in self._kernels)).resolved(features)

    def _forget_expansion(self, *more: str) -> None:
        for name in ("scorer_", "coef_", "dual_coef_", "support_", "support_vectors_", "kernel_", *more):
            self.__dict__.pop(name, None)

    def _read_kernel(self, features: FeatureMatrix, seed: int) -> tuple[GramSource, FeatureMatrix | None]:
        """Return the kernel of the training rows, and its explicit features where it has them."""
        if self._is_precomputed:
            given = PrecomputedSource(sources.checked_kernel_matrix(dense_rows(features)))
            sources.check_positive_semidefinite(given, seed)
            return given, None
        kernel = make_kernel(self.kernel, self.gamma)
        self.kernel_ = kernel.resolved(features)
        self._check_kernel(self.kernel_, features, seed)
        return sources.kernel_source(self.kernel_, features), self.kernel_.explicit_features(features)

    def _check_kernel(self, kernel: Kernel, features: FeatureMatrix, seed: int) -> None:
        """Reject a custom kernel that is not positive semi-definite; warn of a degenerate one."""
        if part_of_others(kernel) is not None:
            sources.check_positive_semidefinite(KernelSource(kernel, features.to_local()), seed)
        if isinstance(self.kernel, str) and not isinstance(self.gamma, Real):
            _warn_of_degenerate(kernel, features)

    def _storable_parameters(self) -> dict[str, Any]:
        if callable(self.kernel) and not isinstance(self.kernel, Kernel):
            CallableKernel(self.kernel).to_state()  # raises an error if it cannot be stored
        return super()._storable_parameters()

    @property
    def _level(self) -> float:
        """The default threshold."""
        return float(self.threshold) if isinstance(self.threshold, Real) else 0.0

    def _check_names_of_two(self) -> None:
        """Reject a single name that matches the first of two classes: by position it would be the second."""
        first, second = map(str, self.classes_)
        for what in ("label_mean", "false_negative_cost", "false_positive_cost"):
            given: Any = getattr(self, what, None)
            theirs = given.index if hasattr(given, "iloc") else getattr(given, "label_names", None)
            names = [] if theirs is None else [str(name) for name in theirs]
            if first in names and names != ["0"]:  # a position, where there are no names
                raise ValueError(
                    f"{what} names the class {first!r}, but two classes have one score, that of {second!r}; "
                    f"pass a value for {second!r} only."
                )

    def _begin(self, rows: SeenRows) -> LabelMatrix:
        labels = super()._begin(rows)
        self._set_threshold()
        return labels

    def _set_threshold(self) -> None:
        refuse_together(self, self._form.facts)
        if self._form.is_pair:
            self._check_names_of_two()
        self.thresholds_ = np.full(len(self._form.scored), self._level)

    def _mean(self, features: FeatureMatrix, n_labels: int) -> LabelMean | None:
        self.__dict__.pop("label_mean_", None)
        if self.label_mean is None:
            return None
        names = [str(name) for name in self.classes_[-n_labels:]]
        mean = read_label_mean(self.label_mean, names, features.shape[1], features.names)
        self.label_mean_ = mean
        return mean

    def _compared(self, scores: Array) -> Array:
        """Convert scores before thresholds to the scale of the thresholds."""
        return scores

    @property
    def _lowest_threshold(self) -> float:
        return float(np.min(self.thresholds_))

    def _deciding_blocks(self, X: Any) -> Iterator[Array]:
        if self._form.is_ranked:
            return self._form.deciding(self._score_blocks(X))
        return (
            self._compared(scores) - self.thresholds_ for scores in self._score_blocks(X, self._raw_scores)
        )

    def _keep_learned(self, learned: LearnedParameters | None) -> None:
        self.cross_validation_loss_ = np.nan if learned is None else learned.value
        self.learning_status_ = "fixed" if learned is None else learned.status
        self.learning_trace_ = [] if learned is None else learned.trace
        if self.learning_status_ == "interrupted":
            done = len(self.learning_trace_)
            warn_of_end(
                f"The search for hyperparameters was interrupted after {done} evaluations; the model has "
                "the best of these."
            )

    def to_state(self) -> dict[str, Any]:
        """Return the state that a model file stores; see :meth:`LabelClassifier.to_state`."""
        state = super().to_state()
        if "learning_trace_" in state["fitted"]:
            state["fitted"]["learning_trace_"] = [list(record) for record in self.learning_trace_]
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Any:
        """Restore the fitted model; see :meth:`LabelClassifier.from_state`."""
        from labelweave.problems.hyperparameters.search import SearchRecord

        model: Any = super().from_state(state)
        if "learning_trace_" in vars(model):
            model.learning_trace_ = [SearchRecord(*record) for record in model.learning_trace_]
        return model


def _warn_of_degenerate(kernel: Kernel, features: FeatureMatrix) -> None:
    """Warn where a distance-based kernel is nearly equal for all pairs of rows, or nearly 0."""
    if len(features) < _FEWEST_ROWS or not isinstance(kernel, RBFKernel | ARDKernel | LaplacianKernel):
        return
    step = max(1, len(features) // _KERNEL_ROWS)
    some = features.to_local(np.arange(len(features))[: step * _KERNEL_ROWS : step])
    values = kernel.block(some, some)[np.triu_indices(len(some), 1)]
    if values.min() > 1 - 1e-12:  # equal rows, which no width separates
        return
    middle, high = np.quantile(values, [0.5, 0.99])
    if middle > _ALIKE:
        what = f"almost constant (half of its values are above {middle:.3g}), so it hardly distinguishes rows"
    elif high < _STRANGERS:
        what = f"almost the identity (99 % of its values are below {high:.2g}), so rows have little in common"
    else:
        return
    said = (
        f"The matrix of {kernel} is {what}; use `scaling='auto'` if features differ in scale, otherwise "
        "another `gamma`."
    )
    warn_caller(ParameterMessage(said))
