"""A custom solver in MaxMarginClassifier: the same optimum, measured by the estimator."""

import numpy as np
import pytest
import scipy.sparse as sp
from attacks.own_solver import Fista

from drawn import draw_labels
from labelweave import MaxMarginClassifier
from small_models import within

X, Y = draw_labels(60, 5, 3)
Y = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)
TIES = np.eye(3) + 0.5


class Forgotten(Fista):
    """Not registered for model files."""


class NoAnswer(Fista):
    def certify(self, problem, state, status):
        return None, status


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"fit_intercept": False, "label_covariance": TIES},
        {"kernel": "rbf"},
        {"kernel": "rbf", "label_covariance": TIES, "false_negative_cost": 2.0, "class_weight": "balanced"},
        {"kernel": ["rbf", "linear"], "label_covariance": [TIES, np.eye(3)]},
        {"kernel": "rbf", "kernel_rank": 20},
        {"label_mean": np.full((3, 5), 0.1)},
    ],
    ids=str,
)
def test_the_optimum_is_that_of_the_library(parameters):
    own = MaxMarginClassifier(C=0.5, solver=Fista(), tol=1e-4, max_iter=20_000, **parameters).fit(X, Y)
    ours = MaxMarginClassifier(C=0.5, tol=1e-6, max_iter=20_000, **parameters).fit(X, Y)
    assert own.converged_
    assert own.duality_gap_ <= 1e-4
    np.testing.assert_allclose(own.trace_[-1].primal, ours.trace_[-1].primal, rtol=2e-4)


def test_rows_whose_kernel_matrix_is_not_kept_give_the_same():
    rows, table = draw_labels(200, 5, 3)
    parameters = {"solver": Fista(), "kernel": "rbf", "tol": 1e-3, "max_iter": 5000}
    kept = MaxMarginClassifier(**parameters).fit(rows, table)
    made = within(0.3, MaxMarginClassifier(**parameters), rows, table)
    np.testing.assert_allclose(made.decision_function(rows), kept.decision_function(rows), atol=1e-9)


def test_features_of_zero():
    assert MaxMarginClassifier(solver=Fista(), fit_intercept=False).fit(np.zeros((60, 2)), Y).converged_


def test_sparse_rows_of_many_features():
    wide = sp.csr_array(np.hstack([X, np.zeros((60, 100))]))
    assert MaxMarginClassifier(solver=Fista(), max_iter=5000).fit(wide, Y).converged_


def test_tolerance_and_limit_are_those_of_the_estimator():
    solver = Fista()
    model = MaxMarginClassifier(solver=solver, max_iter=3)
    with pytest.warns(UserWarning, match="iteration limit"):
        model.fit(X, Y)
    assert model.n_iter_ == 3
    assert not hasattr(solver, "tol")
    assert model.duality_gap_ == model.trace_[-1].gap > 1e-3


def test_a_model_file_holds_no_solver_that_is_not_registered(tmp_path):
    with pytest.raises(TypeError, match="class Forgotten cannot be stored; register the class"):
        MaxMarginClassifier(solver=Forgotten(), max_iter=5000).fit(X, Y).save(tmp_path / "forgotten.lw")


def test_what_an_own_solver_does_not_take_is_refused():
    with pytest.raises(TypeError, match=r"NoAnswer.certify must return \(record, status, answer\)"):
        MaxMarginClassifier(solver=NoAnswer(), max_iter=2).fit(X, Y)
