"""scikit-learn's callbacks are told of a wrapper's fits, and passed on to those inside."""

import numpy as np
import pytest
from sklearn.callback import ProgressBar
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from labelweave import (
    CalibratedLabelClassifier,
    ConformalLabelClassifier,
    MaxMarginClassifier,
    TunedThresholdClassifier,
)


class Watch:
    """Note every task that ends, as the path of names that leads to it; goes into estimators inside."""

    max_propagation_depth = None

    def __init__(self):
        self.paths, self.set_up, self.torn_down, self.most = [], 0, 0, None

    def setup(self, estimator, context):
        self.set_up += 1

    def on_fit_task_begin(self, estimator, context):
        if context.parent is None:
            self.most = context.max_subtasks

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.paths.append((type(estimator).__name__, context.task_name))
        self.last = fitted_estimator

    def teardown(self, estimator, context):
        self.torn_down += 1


@pytest.mark.parametrize(
    ("wrap", "fits"),
    [
        (TunedThresholdClassifier, 6),
        (lambda inner: TunedThresholdClassifier(inner, validation_fraction=0.2), 2),
        (lambda inner: CalibratedLabelClassifier(inner, cv=3), 4),
        (lambda inner: ConformalLabelClassifier(inner, level=0.3), 1),
    ],
)
def test_callbacks_see_the_fits_of_wrapper_and_inside(wrap, fits, rows):
    X, Y, X_test, _ = rows
    watch, inner = Watch(), MaxMarginClassifier(tol=1e-2)
    model = wrap(inner).set_callbacks(watch).fit(X, Y)
    assert (watch.set_up, watch.torn_down, watch.most) == (1, 1, fits)
    ended = [name for kind, name in watch.paths if kind == "MaxMarginClassifier" and name == "fit"]
    assert len(ended) == fits
    assert ("MaxMarginClassifier", "duality gap") in watch.paths
    assert watch.paths[-1] == (type(model).__name__, "fit")
    np.testing.assert_array_equal(watch.last.predict(X_test).toarray(), model.predict(X_test).toarray())
    np.testing.assert_array_equal(
        wrap(inner).fit(X, Y).decision_function(X_test), model.decision_function(X_test)
    )
    assert not hasattr(model.estimator_, "_skl_callbacks")


def test_an_estimator_without_callbacks_is_warned_of(rows):
    X, Y, *_ = rows
    model = TunedThresholdClassifier(OneVsRestClassifier(LogisticRegression()), cv=2).set_callbacks(Watch())
    with pytest.warns(UserWarning, match="does not support callbacks"):
        model.fit(X, Y)


def test_a_fitted_estimator_is_one_task(rows):
    X, Y, *_ = rows
    watch = Watch()
    TunedThresholdClassifier(MaxMarginClassifier().fit(X, Y), cv="prefit").set_callbacks(watch).fit(X, Y)
    assert watch.paths == [("TunedThresholdClassifier", "fit")]
    assert ProgressBar().max_propagation_depth == 1
