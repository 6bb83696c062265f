"""The base of the classifiers: validating data, predicting in blocks, progress, model files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from labelweave.estimators import entry_weights
from labelweave.estimators.entry_weights import SignFactors
from labelweave.estimators.journal import (
    FitArguments,
    Journal,
    data_fingerprint,
    fit_method,
    warn_of_end,
)
from labelweave.estimators.label_predictions import LabelPredictions
from labelweave.estimators.parameters import MEAN, Parameters, refuse_together
from labelweave.estimators.scorers import Scorer, attribute_of_scorer
from labelweave.estimators.seen_rows import SeenRows, kept_rows
from labelweave.estimators.stored_form import FORM, check_columns
from labelweave.features import FeatureMatrix, FeatureScaling
from labelweave.features.feature_matrix import LARGEST_FEATURE, filled, first_text, refuse_times
from labelweave.foundation.arguments import ParameterError, shown
from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import (
    HOME,
    checked_csr,
    panels,
    read_row_weights,
    refuse_lazy,
    unmasked,
)
from labelweave.foundation.config import BUDGET, USUAL_BUDGET
from labelweave.foundation.frames import first_entry_of_no_number, is_frame, with_vectors_as_rows
from labelweave.foundation.sklearn_compat import (
    CallbackSupportMixin,
    Interval,
    InvalidParameterError,
    naming_parameter,
)
from labelweave.labels import LabelCovariance, LabelMatrix, LabelMean, targets
from labelweave.labels.flip_rates import read_flip_rates
from labelweave.labels.label_names import read_entry_weights
from labelweave.labels.targets import check_lengths
from labelweave.model_files import ModelFileError, save_model, schema
from labelweave.problems.losses import EntryLoss
from labelweave.solvers import SolverResult, State, Status, TraceRecord
from labelweave.testing.checks import check_own

_SCORES_AT_ONCE = 16_000_000  # scores held in memory at a time, 128 MB
_LARGEST_NUMBER = 1000  # exponent of a power of two that float64 can still represent
_LARGEST_COUNT = 63  # bits of the integers of compiled code
NOT_THE_FIT = {"n_jobs", "warm_start", "checkpoint", "verbose"}  # parameters that do not change the result


class CheckedParameters(BaseEstimator):
    """Base of all estimators: saves them, and before a fit rejects parameters that scikit-learn allows."""

    _parameter_constraints: ClassVar[Any]
    _has_gap_of_losses: ClassVar[bool] = True

    save = save_model

    def set_params(self, **params: Any) -> Self:
        """Set parameters; see :meth:`sklearn.base.BaseEstimator.set_params`."""
        for group, _, part in (name.partition("__") for name in params):
            value = params.get(group, getattr(self, group, None))
            if part and group in self._get_param_names() and not hasattr(value, "set_params"):
                allowed = self._parameter_constraints.get(group, ())
                kinds = " or ".join(one.__name__ for one in allowed if hasattr(one, "set_params"))
                what = f"{group} to a {kinds or 'group that has it'}"
                raise ValueError(f"{group} is {value!r}, which has no {part!r}; set {what} first.")
        return super().set_params(**params)

    def _validate_params(self) -> None:
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            raise naming_parameter(error, self._parameter_constraints) from None
        own = self.get_params(deep=False)
        self._refuse_odd_parameters(own)
        for value in own.values():
            for part in value if isinstance(value, list | tuple) else [value]:
                if isinstance(part, EntryLoss | LabelCovariance):
                    check_own(part, has_gap=self._has_gap_of_losses)
            if isinstance(value, CheckedParameters) and not hasattr(value, "fit"):
                value._validate_params()
        self._refuse_together()

    @property
    def _n_columns(self) -> int:
        return 1 if self._form.is_pair else len(self.classes_)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _refuse_together(self) -> None:
        """Raise if parameters exclude each other, whatever the data are."""

    @classmethod
    def _refuse_odd_parameters(cls, given: Mapping[str, Any]) -> None:
        """Reject classes for objects, booleans for numbers and huge integers, in fits and model files."""
        for name, value in given.items():
            allowed = cls._parameter_constraints.get(name)
            listed = allowed if isinstance(allowed, list) else []
            if isinstance(value, type):
                raise ValueError(f"{name} is the class {value.__name__}; pass an object, not its class.")
            if isinstance(value, bool) and listed and not {"boolean", "verbose"} & {*map(str, listed)}:
                raise ValueError(f"{name} is {value}; it must not be a boolean.")
            of_counts = any(isinstance(one, Interval) and one.type is Integral for one in listed)
            most = _LARGEST_COUNT if of_counts else _LARGEST_NUMBER
            if isinstance(value, int) and abs(value) >= 2**most:
                raise ParameterError(
                    f"`{name}` is an integer of {len(hex(value)) - 2} hexadecimal digits; it must be below "
                    f"2^{most}."
                )
        rates = given.get("flip_rates")
        if isinstance(rates, (tuple, list)) and all(isinstance(one, (Real, str)) for one in rates):
            read_flip_rates(rates, [""])  # those of single labels are read with their names
        if given.get("n_jobs") == 0:
            raise ParameterError("`n_jobs` is 0; it must be a number of threads >= 1, or -1 for all.")


class LabelClassifier(CallbackSupportMixin, LabelPredictions, CheckedParameters):
    """Base of the classifiers: scores are linear in the fitted weights unless a subclass overrides this."""

    scorer_: Scorer
    trace_: list[TraceRecord]
    scaling_: FeatureScaling | None
    label_mean_: LabelMean | None = None
    feature_means_: Floats | None = None
    """What stands for missing features in predictions, shape (d,); None refuses them."""
    first_feature_: int | None = None
    """From where the svmlight file of the training rows counted features, 0 or 1; None if there was none."""

    class_weight: Any = None
    flip_rates: Any = None
    label_mean: Any = None
    warm_start: bool = False
    verbose: int = 0

    _usual_budget: ClassVar[float] = USUAL_BUDGET
    _weight_type: ClassVar[Any] = np.float64  # of row weights; None to keep theirs

    _states: Mapping[str, State] = {}
    _outer_journal: Journal | None = None  # of the fit that this one is a part of
    _seen: Any = None  # rows of earlier calls, where a fit continues with more
    _end: Any = None  # where the last fit ended, for a warm start

    _stored: ClassVar[dict[str, schema.Field]] = {
        "scorer_": schema.Made(Scorer, {"L": "n_labels"}),
        "n_features_in_": schema.count("d", 1),
        "feature_means_": schema.Optional(schema.Maybe(schema.Numbers("d"))),
        "first_feature_": schema.Optional(schema.count(most=1)),
        "scaling_": schema.Optional(schema.Maybe(schema.Made(FeatureScaling))),
        "label_mean_": schema.Optional(MEAN),
        "trace_": schema.Named(schema.Items(schema.MEASURED, "t")),
        "status_": schema.TEXT,
        "converged_": schema.Optional(schema.FLAG),
        **dict.fromkeys(("n_iter_", "rank_"), schema.Optional(schema.count())),
        **dict.fromkeys(("duality_gap_", "objective_", "alpha_"), schema.Optional(schema.MEASURED)),
    }
    """What model files have of fitted attributes; subclasses add theirs."""

    __getattr__ = attribute_of_scorer

    def _refuse_together(self) -> None:
        refuse_together(self)

    @property
    def _budget(self) -> float:
        """Megabytes for what grows with the number of row pairs."""
        home = HOME.get()
        return BUDGET.get("megabytes") or (home and home.megabytes) or self._usual_budget

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None, entry_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The training rows.
        y : array-like of shape (n, L) or (n,), sparse matrix, DataFrame, LabelMatrix, n lists of tags or \
                ClassProbabilities
            Labels 0/1 or -1/1 with NaN where unobserved; or one class per row, or per row and column, None
            or NaN where unobserved.  With a taxonomy as the covariance a row may name an inner node: classes
            below are unobserved in it, the others negative.  A row without observed labels adds nothing.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of the rows' losses.
        entry_weight : {array-like, sparse matrix, DataFrame by label} of shape (n, L), default=None
            Non-negative weights of single entries' losses; an entry that is not stored has weight 1.

        Returns
        -------
        Self
            The fitted model itself.

        Raises
        ------
        ValueError
            If the data, or their combination with the parameters, are invalid; it names the row or label.
        KeyboardInterrupt
            After Ctrl-C, with the best model so far kept; see :func:`labelweave.set_config`.

        Warns
        -----
        ConvergenceWarning
            If the fit ended before ``tol`` was reached.
        UnobservedLabelWarning
            If a label has no observed value in training; ``unobserved_labels_`` has its number.
        """
        features = self._read_features(X, reset=True)
        y = targets.tags_read(y)
        rows = self._read_rows(features, y, sample_weight, entry_weight)
        self._seen = None
        self._fit(rows, self._last_end(len(features)), FitArguments(X, y, sample_weight))
        if hasattr(type(self), "partial_fit") and self.warm_start:
            self._seen = kept_rows(rows, y)
        return self

    def _read_rows(self, features: FeatureMatrix, y: Any, sample_weight: Any, entry_weight: Any) -> Any:
        """Validate the arguments of ``fit``, and scale the features."""
        covariance = getattr(self, "label_covariance", None)
        labels, form = targets.read_targets(y, covariance, is_related=self._relates_labels)
        check_lengths(len(features), len(labels))
        weights = self._row_weights(sample_weight, features)
        features = self._scale(features, labels, weights)
        entries = read_entry_weights(entry_weight, labels, form.scored)
        return SeenRows(features, labels, weights, form, entries=entries)

    def _scale(self, features: FeatureMatrix, targets: Any, weights: Array) -> FeatureMatrix:
        return features

    def _fit(self, rows: Any, before: Any, arguments: FitArguments) -> None:
        """Fit to validated rows, from the end of the last fit if that is passed; keep the model."""
        raise NotImplementedError

    def _last_end(self, n_rows: int) -> Any:
        """Return the end of the last fit if it is to start a fit of this many rows."""
        return self._end if self.warm_start else None

    def _begin(self, rows: SeenRows) -> LabelMatrix:
        """Keep the form of the labels, and return them, corrected for flips."""
        assert isinstance(rows.labels, LabelMatrix), "classes were made labels"
        assert rows.form is not None, "the form is known with the labels"
        self._form, self.classes_ = rows.form, rows.form.classes
        refuse_together(self, self._form.facts)
        counts, seen = rows.labels.positive_counts(), rows.labels.observed_counts()
        self._rare_share = float(counts.sum(where=10 * counts < seen) / max(1, counts.sum()))
        return self._corrected(rows.labels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags

    def _read_features(self, X: Any, *, reset: bool) -> FeatureMatrix:
        """Check X: names and width as in scikit-learn, entries here, where errors can name them."""
        if isinstance(X, FeatureMatrix) and not reset:  # checked by the model that contains this one
            return self._scaled(X)
        checked = X if not reset and self._is_plain(X) else self._read_numbers(X, reset=reset)
        if not reset and self.feature_means_ is not None:
            checked = filled(checked, self.feature_means_)
        return self._scaled(self._checked_features(checked))

    def _checked_features(self, numbers: Any) -> FeatureMatrix:
        return FeatureMatrix(numbers, getattr(self, "feature_names_in_", None), LARGEST_FEATURE)

    def _read_numbers(self, X: Any, *, reset: bool) -> Any:
        """Read X as an array or CSR, of which entries may still be missing or infinite."""
        refuse_lazy(X, "X")
        if not isinstance(X, np.ndarray) or X.dtype == object:
            X = with_vectors_as_rows(X)
        if sp.issparse(X):  # before scikit-learn passes it to SciPy's loops
            X = checked_csr(X, "X")
        elif isinstance(X, np.ndarray):
            refuse_times(X)
        elif is_frame(X):
            refuse_times(X[:1])
        try:
            if (reset or isinstance(X, (np.ndarray, str))) and (text := first_text(X)) is not None:
                raise ValueError(
                    f"X has the text {text[:40]!r}, which is not a number; use TableModel for frames with "
                    "texts, or a pipeline with a vectorizer for lists."
                )
            checked = validate_data(
                self, unmasked(X), reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32],
                ensure_all_finite=False, accept_large_sparse=True,
            )  # fmt: skip
        except OverflowError:
            raise ValueError("X has an integer too large for float64; scale X down.") from None
        except (TypeError, ValueError):
            found = first_entry_of_no_number(X) if reset else None
            if found is None:
                raise
            raise ValueError(
                f"Column {found[0]!r} of X has {shown(found[1])}, which is not a number; use TableModel for "
                "frames with texts and categories."
            ) from None
        if reset:
            self.scaling_ = None
            for name in ("feature_means_", "first_feature_"):
                self.__dict__.pop(name, None)
        return checked

    def _is_plain(self, X: Any) -> bool:
        """Whether scikit-learn's validation would return rows unchanged."""
        is_array = type(X) is np.ndarray or (sp.issparse(X) and X.format == "csr")
        is_read = is_array and X.dtype in (np.float64, np.float32) and X.ndim == 2 and X.shape[0] > 0
        has_more = hasattr(self, "feature_names_in_") or self.feature_means_ is not None
        return bool(is_read and not has_more and X.shape[1] == self.n_features_in_)

    def _scaled(self, features: FeatureMatrix) -> FeatureMatrix:
        scaling = getattr(self, "scaling_", None)
        return features if scaling is None else scaling(features)

    def _row_weights(self, sample_weight: Any, features: FeatureMatrix) -> Array:
        return read_row_weights(sample_weight, len(features), dtype=self._weight_type)

    def _corrected(self, labels: LabelMatrix) -> LabelMatrix:
        """Replace labels by targets that correct for known flip rates."""
        if self.flip_rates is None:
            return labels
        if self._form.has_one_class:
            raise ValueError(entry_weights.RATES_OF_CLASSES)
        return entry_weights.corrected_by(self.flip_rates, labels)

    def _weighted_by_class(self, labels: LabelMatrix, weights: Array) -> tuple[Array, SignFactors | None]:
        if self.class_weight is None:
            return weights, None
        return entry_weights.weights_by_class(self.class_weight, labels, self._form, weights)

    def _rows_by_class(self, labels: LabelMatrix, weights: Array) -> Array:
        """Weight rows by their class, where entries cannot have weights of their own."""
        if self.class_weight is None:
            return weights
        if not self._form.has_one_class:
            refuse_together(self, {"weights of rows alone": ""})
        found, factors = self._weighted_by_class(labels, weights)
        if factors is not None:
            found = found * np.where(labels.to_signs()[:, 0] > 0, *factors)
        if weights.any() and not found.any():
            raise ValueError("class_weight is 0 for every class in y; at least one must be above 0.")
        return found

    def _open_journal(self, **data: Any) -> Journal:
        """Start the journal of a fit; ``data`` are nested arrays, by the names that users see."""
        if self._outer_journal is not None:
            return self._outer_journal
        if self.checkpoint is None:
            return Journal()
        parameters = {
            name: value for name, value in self._storable_parameters().items() if name not in NOT_THE_FIT
        }
        marks = {"the parameters": data_fingerprint(type(self).__name__, parameters)}
        return Journal(self.checkpoint, marks | {name: data_fingerprint(part) for name, part in data.items()})

    def _close_journal(self, journal: Journal, *, is_done: bool) -> None:
        journal.close(is_done=is_done)
        self._states = journal.states if self.warm_start and HOME.get() is None else {}

    def _keep_result(self, result: SolverResult, message: str = "", *, is_convex: bool = True) -> None:
        """Keep how a fit ended; for a non-convex objective the gap certifies a convex one nearby."""
        if result.status is Status.INDEFINITE:
            raise ParameterError(f"{result.status.value} The relative gap is {result.gap:.2e}.")
        if np.isnan(result.gap) and not np.isfinite(result.trace[-1].primal):  # not a solver without a gap
            raise ValueError(
                "The objective overflowed, since data, weights or parameters are too large; scale them down."
            )
        self.converged_ = result.converged and is_convex
        self.status_ = ("settled" if result.converged and not is_convex else result.status.name).lower()
        self.n_iter_ = result.n_iter
        self.duality_gap_ = result.gap
        self.trace_ = result.trace
        if self.status_ not in ("converged", "settled"):
            usual = f"{result.status.value} The gap is {result.gap:.2e} after {result.n_iter} rounds."
            warn_of_end(message or usual)

    @property
    def _lowest_threshold(self) -> float:
        """The lowest threshold, as a score before thresholds."""
        return 0.0

    def _wide_scores(self, features: FeatureMatrix) -> Array:
        """Score each column of the label matrix, above 0 where it is positive: shape (n, columns)."""
        shift = self._lowest_threshold
        return self._raw_scores(features) - shift if shift else self._raw_scores(features)

    def _raw_scores(self, features: FeatureMatrix) -> Array:
        """Score before thresholds: shape (n, columns)."""
        scores = self.scorer_.scores_at_home(features)
        if self.label_mean_ is None or self.scorer_.holds_mean:
            return scores
        return scores + self.label_mean_.scores(features.data)

    @property
    def _relates_labels(self) -> bool:
        """Whether more than the rows informs labels, also unobserved ones."""
        parameters = ("label_mean", "label_covariance", "taxonomy")
        given = [getattr(self, name, None) for name in parameters]
        return any(not (one is None or isinstance(one, str | Integral)) for one in given)

    def _score_blocks(self, X: Any, score: Callable[[FeatureMatrix], Array] | None = None) -> Iterator[Array]:
        features = self._read_features(X, reset=False)
        size = max(1, _SCORES_AT_ONCE // max(1, len(self.intercept_)))
        parts = panels(len(features), size) if len(features) > size else []
        return map(score or self._wide_scores, map(features.rows, parts) if parts else [features])

    def to_state(self) -> dict[str, Any]:
        """Return the state that a model file stores.

        Returns
        -------
        dict
            Parameters and fitted attributes.
        """
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        names = fitted.pop("feature_names_in_", None)
        fitted["trace_"] = _columns_of_trace(self.trace_)
        fitted.pop("classes_")
        parameters = self._storable_parameters()
        if "label_mean_" in fitted:
            parameters["label_mean"] = None  # the fitted one is stored
        return {
            "parameters": parameters,
            "fitted": fitted,
            "feature_names": None if names is None else np.asarray(names, dtype=np.str_),
            **self._form_state(),
        }

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        sizes: schema.Sizes = {}
        fitted = schema.stored_fields(cls)
        fields: dict[str, schema.Field] = {
            "parameters": Parameters(cls),
            "fitted": schema.Record(fitted),
            "feature_names": schema.Maybe(schema.Texts("d")),
        }
        schema.Record(fields | FORM).check(state, cls.__name__, sizes)
        check_columns(state["form"]["kind"], sizes)
        names = state["feature_names"]
        if names is not None and len(set(names.tolist())) < len(names):
            raise ModelFileError(f"its {cls.__name__}.feature_names are not distinct.")
        parts = (state["fitted"].get(name) for name in ("scorer_", "scaling_"))
        if not all(part is None or part.takes(sizes["d"]) for part in parts):
            raise ModelFileError(f"its {cls.__name__} does not have weights for {sizes['d']} features.")

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LabelClassifier:
        """Restore the fitted model.

        Parameters
        ----------
        state : dict
            The result of ``to_state``.

        Returns
        -------
        LabelClassifier
            The model; its arrays are read-only.
        """
        given = state["parameters"]
        if given.get("class_weight") is not None:
            given["class_weight"] = entry_weights.class_weight_of_state(given["class_weight"])
        cls._check_state(state)
        model = cls(**state["parameters"])
        fitted = state["fitted"]
        rows = zip(*fitted["trace_"].values(), strict=True)
        trace = [TraceRecord(**dict(zip(fitted["trace_"], row, strict=True))) for row in rows]
        model.__dict__.update(fitted | {"trace_": trace})
        if state["feature_names"] is not None:
            model.feature_names_in_ = state["feature_names"].astype(object)
        model._set_form(state)
        if model.label_mean_ is not None:
            model.label_mean = model.label_mean_
        return model


def _columns_of_trace(trace: list[TraceRecord]) -> dict[str, list[Any]]:
    """Return the columns of a trace by name, without those that a solver does not record."""
    columns = zip(TraceRecord._fields, zip(*trace, strict=True), strict=False)
    return {name: list(column) for name, column in columns if not np.isnan(column).all()}
