"""The base class of meta-classifiers that turn another classifier's scores into decisions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import hash as hash_of
from sklearn.base import MetaEstimatorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from labelweave.decisions.label_scores import TrainingRows, rows_of, score_blocks, score_held_out, split_rows
from labelweave.estimators.base import NOT_THE_FIT, CheckedParameters
from labelweave.estimators.entry_weights import corrected_like
from labelweave.estimators.held_out import HeldOutScores
from labelweave.estimators.journal import (
    Journal,
    data_fingerprint,
    meta_fit_method,
)
from labelweave.estimators.label_predictions import LabelPredictions
from labelweave.estimators.parameters import Parameters, refuse_together
from labelweave.estimators.stored_form import FORM, check_columns
from labelweave.estimators.table_model import TableModel
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import check_sparse, read_row_weights, unmasked
from labelweave.foundation.frames import FrameForm, library_of
from labelweave.foundation.sklearn_compat import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
)
from labelweave.labels import ClassProbabilities, LabelMatrix, Taxonomy, targets
from labelweave.labels.tags import tag_rows
from labelweave.labels.targets import TargetForm
from labelweave.metrics._classes import as_text
from labelweave.metrics.known_labels import fitted_inside, tags_of_model
from labelweave.model_files import ModelFileError
from labelweave.model_files.pipelines import kept_form
from labelweave.model_files.schema import Field, Made, Optional, Record, Sizes, count, stored_fields
from labelweave.model_files.storable import storable_name


class DecisionClassifier(MetaEstimatorMixin, CallbackSupportMixin, LabelPredictions, CheckedParameters):
    """Base of classifiers that turn the scores of another classifier into decisions.

    ``decision_function`` returns scores that rank labels and rows as decisions do; ``predict`` returns the
    decisions.
    """

    estimator_: Any
    n_features_in_: int
    feature_names_in_: Array

    _outer_journal: Journal | None = None  # of the fit that contains this one
    _shared_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "response_method": [StrOptions({"auto", "decision_function", "predict_proba"})],
        "cv": ["cv_object", StrOptions({"prefit"})],
        "validation_fraction": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    _stored: ClassVar[dict[str, Field]] = {"n_features_in_": Optional(count("d", 1))}
    """The fitted attributes in model files; subclasses add theirs."""

    _kept_as: ClassVar[dict[str, str]] = {}
    """Parameters that files do not hold, with the fitted attributes that stand for them, or none."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.classifier_tags.multi_class = False
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_label = inner.classifier_tags.multi_label
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags

    @meta_fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the estimator, and choose decisions on the scores of held-out rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame, list} of n rows
            The input of the estimator.
        y : array-like of shape (n, L) or (n,), sparse matrix, DataFrame or LabelMatrix
            The targets of the estimator, or lists of tags or a LabelMatrix, without missing labels for an
            estimator of another library; unobserved labels do not count in the choice.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows, for the estimator and for the choice.  A row of weight 2 counts as two rows,
            so weights much below 1 mean few rows, which shrinks curves and thresholds toward each other.

        Returns
        -------
        Self
            The fitted model itself.

        Raises
        ------
        ValueError
            If there are too few rows (the message names how many a guarantee needs), labels do not match the
            estimator or a taxonomy, or scores or parameters are invalid.
        """
        return self._fit_rows(self._read(X, y, sample_weight))

    def _fit_rows(self, data: TrainingRows) -> Self:
        self._choose(self._cross_fit(data))
        self._close(data)
        return self

    def _choose(self, held: HeldOutScores) -> None:
        raise NotImplementedError

    def _words(self, is_inside: bool) -> str:
        """Describe what was chosen; is_inside: for a classifier around this one."""
        raise NotImplementedError

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingRows:
        check_sparse(X, "X")
        check_sparse(y, "y")
        X, y = indexable(X, y)
        if not rows_of(X):
            raise ValueError("X has 0 rows (n_samples=0); pass at least 2.")
        labels, form = self._read_targets(y)
        targets.check_lengths(rows_of(X), len(labels))
        labels, classes = self._keep_targets(labels, form)
        if form.container == "tags":
            y = labels  # so that splits keep all tags
        weights = None if sample_weight is None else read_row_weights(sample_weight, len(labels))
        return TrainingRows(X, y, labels, weights, classes)

    def _keep_targets(self, labels: LabelMatrix, form: TargetForm) -> tuple[LabelMatrix, Array | None]:
        """Store the form of targets; return the labels to choose on, and the classes of single-label rows."""
        refuse_together(self, getattr(fitted_inside(self.estimator), "_form", form).facts | form.facts)
        self._refuse_other_labels(labels, form)
        if form.has_one_class and self._for_sets:
            raise ValueError(
                f"{self._for_sets} is for label sets, but y has one of {len(form.classes)} classes per row; "
                "leave it out."
            )
        classes = None
        if form.one_of is not None:
            labels, form = self._read_classes(labels, form)
            classes = form.classes
        elif not form.has_one_class:
            labels = self._completed(labels)
        self._form, self.classes_ = form, form.classes
        return labels, classes

    def _read_targets(self, y: Any) -> tuple[LabelMatrix, TargetForm]:
        """Read y; labels of a fitted estimator exist whether a row has them or not."""
        tree = getattr(self.estimator, "taxonomy", None)
        tree = None if tree is None else Taxonomy.from_any(tree)
        known = self._known
        if known is not None and known.dtype.kind in "OU" and tag_rows(y) is not None:
            return self._read_known_tags(y)
        is_several = known is not None and len(known) > 1 and not isinstance(y, ClassProbabilities)
        if known is None or not is_several or targets.has_many_labels(y):
            return targets.read_targets(y, tree, is_related=self._relates_labels)
        labels, form = targets.read_targets(
            np.concatenate([np.asarray(column_or_1d(unmasked(y))), known]), tree
        )
        strange = sorted(set(form.classes.tolist()) - set(known.tolist()))
        if strange:
            raise ValueError(
                f"y has the class {strange[0]!r}, which the fitted estimator lacks; pass only rows "
                f"of its {len(known)} classes."
            )
        return labels[: len(labels) - len(known)], replace(form, classes=known)

    @property
    def _known(self) -> Array | None:
        """The labels or classes of a fitted estimator; None before its fit."""
        known = getattr(self.estimator, "classes_", None) if self._is_prefit else None
        return None if known is None or isinstance(known, list) else np.asarray(known)

    def _read_known_tags(self, y: Any) -> tuple[LabelMatrix, TargetForm]:
        """Read lists of tags as the labels of a fitted estimator; ignore other tags."""
        labels = tags_of_model(y, self.estimator)
        targets.require_observed(labels, is_related=self._relates_labels)
        own = getattr(getattr(fitted_inside(self.estimator), "_form", None), "frame", None)
        frame = FrameForm(library_of(y), None if own is None else own.labels)
        form = targets.LabelSets(labels.names.astype(object), "tags", frame=frame)
        return labels, replace(form, unobserved=targets.label_form(labels, labels).unobserved)

    def _refuse_other_labels(self, labels: LabelMatrix, form: TargetForm) -> None:
        """Raise for named labels, or probabilities of classes, that differ from a fitted estimator's."""
        known = self._known
        if known is None:
            return
        are_labels = not form.has_one_class
        if are_labels and (known.dtype.kind not in "OU" or labels.names is None):
            return
        ours, theirs = ([as_text(name) for name in names.tolist()] for names in (form.classes, known))
        # labels that share no name are matched by position, as in metrics
        by_place = are_labels and len(ours) == len(theirs) and not set(ours) & set(theirs)
        if ours != theirs and not by_place and len(theirs) > 1:
            raise ValueError(
                "y has other labels than the fitted estimator, or in another order; pass the labels in "
                "its classes_, in that order."
            )

    @property
    def _for_sets(self) -> str:
        """The parameter that is invalid with one class per row, as users write it; or an empty string."""
        return ""

    @property
    def _relates_labels(self) -> bool:
        """Whether the classifier inside relates labels by more than rows."""
        return bool(getattr(self.estimator, "_relates_labels", False))

    def _read_classes(self, labels: LabelMatrix, form: TargetForm) -> tuple[LabelMatrix, TargetForm]:
        """Accept or reject multi-class y; return one column per class, and the form."""
        raise ValueError(
            f"Only binary classification is supported where y has one class per row, but y has "
            f"{len(form.classes)} classes; pass one column of 0 and 1 per class."
        )

    @property
    def _one_of(self) -> Array | None:
        """The classes where each row has one; None for many labels per row or two classes."""
        return self._form.one_of

    def _cross_fit(self, data: TrainingRows) -> HeldOutScores:
        """Score held-out rows, and fit to all rows."""
        if self._is_prefit:
            return self._score_all(data)
        splits = split_rows(self.cv, data, self.validation_fraction, self._seed())
        data = self._announced(data, len(splits) + 1)
        held, part = score_held_out(data, splits, self._response, partial(data.fit, self))
        if not self._form.has_one_class:
            held = replace(held, labels=corrected_like(self.estimator, held.labels))
        self._keep_estimator(data.fit(self, part=part))
        return held

    def _score_all(self, data: TrainingRows) -> HeldOutScores:
        """Score all rows, or a sample of many, by the prefit estimator."""
        check_is_fitted(self.estimator)
        self._keep_estimator(self.estimator)
        everything = [(None, np.arange(len(data.labels)))]
        data = self._announced(data, 0)
        return score_held_out(data, everything, self._response, lambda *_: self.estimator)[0]

    def _announced(self, data: TrainingRows, fits: int) -> TrainingRows:
        """Announce the number of fits to callbacks; return rows with the place to report them to."""
        context = self._init_callback_context(max_subtasks=fits)
        context.call_on_fit_task_begin(estimator=self, **data.facts)
        self._journal = self._open_journal(data)
        return replace(data, callbacks=context, journal=self._journal)

    def _open_journal(self, data: TrainingRows) -> Journal:
        """Start the journal of all fits, in the file of the estimator's ``checkpoint``."""
        if self._outer_journal is not None:
            return self._outer_journal
        path = checkpoint_of(self)
        if path is None:
            return Journal()
        settings = {name: value for name, value in self.get_params().items() if not hasattr(value, "fit")}
        names = [name for name in settings if name.rpartition("__")[2] not in NOT_THE_FIT]
        marks = {
            "the parameters": hash_of([type(self).__name__, {name: settings[name] for name in names}]),
            "X": hash_of(data.X),
            "y": data_fingerprint(data.labels.parts()),
            "sample_weight": data_fingerprint(data.weights),
        }
        return Journal(path, marks)

    def _close(self, data: TrainingRows) -> None:
        journal: Journal = self.__dict__.pop("_journal", Journal())
        journal.close(is_done=getattr(layers(self)[-1], "status_", "") != "interrupted")
        self._callback_fit_ctx.call_on_fit_task_end(
            estimator=self, reconstruction_attributes={}, **data.facts
        )

    @property
    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str)  # "prefit"; arrays cannot be compared with a string

    @property
    def _response(self) -> str:
        return str(self.response_method)

    def _keep_estimator(self, fitted: Any) -> None:
        self.estimator_ = fitted
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    def _decisions(self, scores: Array) -> Array:
        """Shift scores so that positive scores are predicted: shape (n, L)."""
        raise NotImplementedError

    def _ranked(self, scores: Array) -> Array:
        """Convert scores to those of ``decision_function``: shape (n, L)."""
        raise NotImplementedError

    def _inner_blocks(self, X: Any) -> Iterator[Array]:
        check_is_fitted(self)
        return score_blocks(self.estimator_, X, self._n_columns, self._response, self._one_of)

    def _score_blocks(self, X: Any) -> Iterator[Array]:
        return map(self._obeying, map(self._ranked, self._inner_blocks(X)))

    def _deciding_blocks(self, X: Any) -> Iterator[Array]:
        return map(self._obeying, map(self._decisions, self._inner_blocks(X)))

    @property
    def _hierarchy(self) -> Taxonomy | None:
        """The hierarchy by which labels are completed, before or after the fit."""
        return getattr(vars(self).get("estimator_", self.estimator), "_hierarchy", None)

    def _completed(self, labels: LabelMatrix) -> LabelMatrix:
        """Complete labels by the hierarchy of a classifier inside, if any."""
        inner = self.estimator
        return inner._completed(labels) if isinstance(inner, DecisionClassifier) else labels

    def _obeying(self, scores: Array) -> Array:
        """Make the scores of all labels obey the hierarchy of a classifier inside, if any."""
        inner = self.estimator_
        return inner._obeying(scores) if isinstance(inner, DecisionClassifier) else scores

    @property
    def _enforces(self) -> bool:
        """Whether label sets obey a hierarchy in addition to thresholds."""
        inner = self.estimator_
        return isinstance(inner, DecisionClassifier) and inner._enforces

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file; see :meth:`labelweave.model_files.Storable.to_state`."""
        try:
            storable_name(kept_form(self.estimator_))
        except TypeError:
            raise TypeError(
                f"A {type(self).__name__} around a {type(self.estimator_).__name__} cannot be stored in a "
                "model file; use labelweave's estimators, such as MaxMarginClassifier or BinaryRelevance, "
                "or pipelines that end in one, or store the model with pickle or skops."
            ) from None
        parameters = self._storable_parameters()
        del parameters["estimator"]
        if "cv" in parameters and not isinstance(parameters["cv"], (Integral, str)):
            parameters["cv"] = None  # a splitter is not needed after the fit
        parameters |= dict.fromkeys(self._kept_as)
        kept_elsewhere = ("estimator_", "classes_", "feature_names_in_")
        fitted = {k: v for k, v in vars(self).items() if k.endswith("_") and k not in kept_elsewhere}
        state = {"parameters": parameters, "estimator": kept_form(self.estimator_), "fitted": fitted}
        return state | self._form_state()

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        sizes: Sizes = {}
        fields: dict[str, Field] = {
            "parameters": Parameters(cls),
            "estimator": Made((LabelPredictions, TableModel, Pipeline)),
        }
        Record(fields | {"fitted": Record(stored_fields(cls))} | FORM).check(state, cls.__name__, sizes)
        check_columns(state["form"]["kind"], sizes)
        inner, response = state["estimator"], state["parameters"].get("response_method", "auto")
        form = _scores_of(inner)._form
        kinds = form.kind, len(form.classes), getattr(inner, "n_features_in_", None)
        if cls._gives_sets_of_classes(state):
            known, own_classes = form.classes.tolist(), state["classes"].tolist()
            is_part = len(set(own_classes)) == len(own_classes) and set(known) <= set(own_classes)
            is_part &= form.has_one_class  # whose probabilities do not sum to 1
            # the training rows may lack a class
            kinds = "labels" if is_part else "other classes", sizes["C"], kinds[2]
        own = cls._kind_inside(state["form"]["kind"]), sizes["C"], state["fitted"].get("n_features_in_")
        is_known = not form.has_one_class or set(form.classes.tolist()) <= set(state["classes"].tolist())
        if kinds != own or not (is_known and (response == "auto" or hasattr(inner, response))):
            raise ModelFileError(f"its {cls.__name__} does not match the classifier inside.")

    @classmethod
    def _kind_inside(cls, kind: str) -> str:
        """Return the kind of the inner classifier's targets, for targets of this kind."""
        return kind

    @classmethod
    def _gives_sets_of_classes(cls, state: dict[str, Any]) -> bool:
        """Whether the state belongs to a classifier that predicts sets of classes."""
        return False

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> DecisionClassifier:
        """Restore the object; see :meth:`labelweave.model_files.Storable.from_state`."""
        cls._check_state(state)
        model = cls(state["estimator"], **state["parameters"])
        model.__dict__.update(state["fitted"])
        for name, found in cls._kept_as.items():
            setattr(model, name, getattr(model, found, None))
        model._keep_estimator(state["estimator"])
        model._set_form(state)
        return model


def checkpoint_of(estimator: Any) -> Any:
    while hasattr(estimator, "_outer_journal"):
        if hasattr(estimator, "checkpoint"):
            return estimator.checkpoint
        estimator = getattr(estimator, "estimator", getattr(estimator, "classifier", None))
    return None


def _scores_of(model: Any) -> Any:
    """Return the scoring step of a pipeline, or of a model of tables."""
    if isinstance(model, Pipeline):
        return _scores_of(model[-1])
    return _scores_of(model.classifier_) if isinstance(model, TableModel) else model


def layers(classifier: Any) -> list[Any]:
    found = [classifier]
    while isinstance(found[-1], DecisionClassifier):
        found.append(found[-1].estimator_)
    return found
