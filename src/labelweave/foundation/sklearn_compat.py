"""scikit-learn's private and moving names: this is the only file to adapt when a release moves one.

scikit-learn's decorator of ``fit`` has no types; here it keeps those of the decorated method for type
checkers.  Callbacks came with version 1.9.  With earlier versions the classes here call those that are set on
an estimator of this library; callbacks do not pass through a search.
"""

import copy
import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import wraps
from typing import Any, TypeVar, cast

from sklearn import base
from sklearn.base import _clone_parametrized as _clone_parametrized
from sklearn.metrics._scorer import _BaseScorer as _BaseScorer
from sklearn.model_selection._split import _validate_shuffle_split as _validate_shuffle_split
from sklearn.utils import _safe_indexing as _safe_indexing
from sklearn.utils._missing import is_pandas_na as is_pandas_na
from sklearn.utils._param_validation import HasMethods as HasMethods
from sklearn.utils._param_validation import Hidden as Hidden
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import InvalidParameterError as InvalidParameterError
from sklearn.utils._param_validation import Options as Options
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils._param_validation import validate_parameter_constraints as validate_parameter_constraints
from sklearn.utils.metaestimators import _safe_split as _safe_split
from sklearn.utils.validation import _num_samples as _num_samples

from labelweave.foundation.arguments import ParameterMessage

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Method], _Method]:
    decorate = base._fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)
    return cast(Callable[[_Method], _Method], decorate)


_PLAIN = {
    "boolean": "True or False",
    "cv_object": "an int in the range [2, inf)",
    "random_state": "an int in the range [0, 2**32)",
}


def naming_parameter(error: InvalidParameterError, constraints: Mapping[str, Any]) -> InvalidParameterError:
    """Let other interfaces rename the parameter of an error, and list what it accepts."""
    said = str(error)
    name, (wanted, _, got) = said.split("'", 2)[1], said.partition(" must be ")[2].rpartition(". Got ")
    allowed = [text for text in map(_plainly, constraints[name]) if text is not None]
    wanted = " or ".join(allowed) or wanted
    return InvalidParameterError(ParameterMessage(f"`{name}` must be {wanted}. Got {got}", said))


def _plainly(constraint: Any) -> str | None:
    if isinstance(constraint, StrOptions):
        return f"one of {', '.join(sorted(constraint.options))}"
    if isinstance(constraint, Options):
        return " or ".join(map(str, constraint.options))
    if isinstance(constraint, Interval):
        return str(constraint)
    return _PLAIN.get(constraint) if isinstance(constraint, str) else None


def callbacks_of(estimator: Any) -> list[Any]:
    return list(getattr(estimator, "_skl_callbacks", []))


class _FitTask:
    """A task of a fit that callbacks observe."""

    def __init__(self, callbacks: list[Any], task_name: str, max_subtasks: int | None, parent: Any) -> None:
        self.callbacks, self.task_name = callbacks, task_name
        self.max_subtasks, self.parent = max_subtasks, parent

    def subcontext(self, task_name: str = "", max_subtasks: int | None = 0) -> "_FitTask":
        return _FitTask(self.callbacks, task_name, max_subtasks, self)

    def propagate_callback_context(self, estimator: Any) -> Any:
        """Do nothing: an inner estimator has its own callbacks or none."""
        return nullcontext()

    def call_on_fit_task_begin(self, **facts: Any) -> None:
        self._call("on_fit_task_begin", **facts)

    def call_on_fit_task_end(self, **facts: Any) -> bool:
        return self._call("on_fit_task_end", **facts)

    def _call(
        self, hook: str, *, estimator: Any, reconstruction_attributes: Any = None, **facts: Any
    ) -> bool:
        """Call every callback with the facts it accepts; return whether one requests to stop."""
        stop = False
        for method in [getattr(callback, hook) for callback in self.callbacks]:
            wanted = inspect.signature(method).parameters
            told = {name: fact for name, fact in facts.items() if name in wanted}
            if "fitted_estimator" in wanted:
                made = reconstruction_attributes
                made = made() if callable(made) else made
                told["fitted_estimator"] = fitted = None if made is None else copy.copy(estimator)
                if fitted is not None:
                    vars(fitted).update(made)
            stop |= bool(method(estimator, self, **told))
        return stop


class _CallbackSupport:
    """Mixin of estimators with callbacks; clones keep the callbacks."""

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Set the callbacks; without arguments, remove them."""
        self.__dict__.pop("_skl_callbacks", None)
        if callbacks:
            self._skl_callbacks = list(callbacks)
        return self

    def __sklearn_clone__(self) -> Any:
        return _clone_parametrized(self).set_callbacks(*callbacks_of(self))

    def _init_callback_context(self, max_subtasks: int | None = 0) -> _FitTask:
        task = _FitTask(callbacks_of(self), "fit", max_subtasks, None)
        self._callback_fit_ctx = task
        for callback in task.callbacks:
            callback.setup(self, task)
        return task


def _with_callbacks(method: _Method) -> _Method:
    """End the callbacks after a fit, even after an error."""

    @wraps(method)
    def managed(self: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return method(self, *arguments, **options)
        finally:
            task = self.__dict__.pop("_callback_fit_ctx", None)
            for callback in task.callbacks if task else []:
                callback.teardown(self, task)

    return cast(_Method, managed)


try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ModuleNotFoundError:  # before 1.9
    CallbackSupportMixin, with_callbacks = _CallbackSupport, _with_callbacks


def sparse_matmul_to_dense(left: Any, right: Any) -> Any:
    """Multiply sparse matrices to a dense one, (n, k)."""
    try:
        from sklearn.utils.sparsefuncs import sparse_matmul_to_dense as multiply
    except ImportError:  # before 1.7
        return (left @ right).toarray()
    return multiply(left, right)
