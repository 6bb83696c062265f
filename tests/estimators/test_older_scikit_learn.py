"""The replacement of callbacks for scikit-learn before 1.9: the same calls with the same arguments."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from labelweave.foundation import sklearn_compat
from labelweave.foundation.sklearn_compat import (
    _CallbackSupport,
    _with_callbacks,
    callbacks_of,
    sparse_matmul_to_dense,
)


class Model(_CallbackSupport, BaseEstimator):
    """Takes steps with callbacks, until one of them stops it."""

    def __init__(self, n_steps=3, fails=False):
        self.n_steps, self.fails = n_steps, fails

    @_with_callbacks
    def fit(self, X=None):
        task = self._init_callback_context(max_subtasks=self.n_steps)
        task.call_on_fit_task_begin(estimator=self)
        for step in range(self.n_steps):
            self.step_ = step
            child = task.subcontext("step")
            child.call_on_fit_task_begin(estimator=self, X=X)
            made = {"coef_": step} if step else None
            if child.call_on_fit_task_end(estimator=self, X=X, reconstruction_attributes=lambda m=made: m):
                break
        with task.propagate_callback_context(self):
            task.call_on_fit_task_end(estimator=self, X=X)
        if self.fails:
            raise ValueError("no fit")
        return self


class Told:
    """Records its arguments; requests an end after a step."""

    def __init__(self, last=None):
        self.last, self.calls = last, []

    def setup(self, estimator, context):
        self.calls.append(("setup", context.max_subtasks))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, fitted_estimator):
        coef = None if fitted_estimator is None else fitted_estimator.coef_
        self.calls.append(("end", context.task_name, coef))
        assert fitted_estimator is not estimator
        return context.parent is not None and estimator.step_ == self.last


def test_callbacks_are_told_what_they_ask_for_and_end_the_fit():
    told = Told(last=1)
    Model().set_callbacks(told).fit()
    assert told.calls == [
        ("setup", 3), ("begin", "fit"), ("begin", "step"), ("end", "step", None), ("begin", "step"),
        ("end", "step", 1), ("end", "fit", None), ("teardown", "fit"),
    ]  # fmt: skip


def test_data_go_to_callbacks_that_name_them():
    class Data(Told):
        def on_fit_task_end(self, estimator, context, X):
            self.calls.append(X)

    data = Data()
    model = Model(n_steps=1).set_callbacks(data).fit("rows")
    assert data.calls[3:5] == ["rows", "rows"]
    assert model.step_ == 0


def test_they_end_with_a_fit_that_fails_and_are_kept_by_clones_alone():
    told = Told()
    model = Model(fails=True).set_callbacks(told)
    with pytest.raises(ValueError, match="no fit"):
        model.fit()
    assert told.calls[-1] == ("teardown", "fit")
    assert not hasattr(model, "_callback_fit_ctx")
    assert callbacks_of(clone(model)) == [told]
    assert callbacks_of(model.set_callbacks()) == []
    assert Model().fit().step_ == 2


def test_a_parameter_that_is_refused_before_a_task_begins_needs_no_end():
    class Refuses(Model):
        @_with_callbacks
        def fit(self, X=None):
            raise TypeError("refused")

    told = Told()
    with pytest.raises(TypeError, match="refused"):
        Refuses().set_callbacks(told).fit()
    assert told.calls == []


def test_products_of_sparse_matrices_are_dense_in_all_versions(monkeypatch):
    left, right = sp.csr_array([[1.0, 0.0], [2.0, 3.0]]), sp.csr_array([[0.0, 4.0], [5.0, 0.0]])
    expected = left.toarray() @ right.toarray()
    np.testing.assert_array_equal(sparse_matmul_to_dense(left, right), expected)
    functions = pytest.importorskip("sklearn.utils.sparsefuncs")
    monkeypatch.delattr(functions, "sparse_matmul_to_dense", raising=False)
    np.testing.assert_array_equal(sklearn_compat.sparse_matmul_to_dense(left, right), expected)
