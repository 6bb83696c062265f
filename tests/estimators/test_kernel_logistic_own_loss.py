"""Losses of users' own in the place of the logistic one."""

import numpy as np
import pytest
from attacks.small_fits import grouped
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr, ndtr

from drawn import draw_labels
from labelweave import HyperparameterSearch, KernelLogisticClassifier, load
from labelweave.labels import ClassProbabilities, LabelMatrix
from labelweave.model_files import storable
from labelweave.problems.losses import EntryLoss
from labelweave.problems.losses.entry_losses import LogisticEntryLoss, SquaredHingeEntryLoss


@storable("tests.ProbitLoss", {})
class ProbitLoss(EntryLoss):
    """Minus the logarithm of the normal distribution function."""

    def value(self, signs, scores):
        return -log_ndtr(signs * scores)

    def gradient(self, signs, scores):
        return -signs * self._hazard(signs * scores)

    @staticmethod
    def _hazard(margins):
        return np.exp(-(margins**2) / 2 - log_ndtr(margins)) / margins.dtype.type(np.sqrt(2 * np.pi))

    def curvature(self, signs, scores):
        hazard = self._hazard(signs * scores)
        return hazard * (hazard + signs * scores)

    def conjugate(self, signs, gradients):
        """Compute what is asked for, at gradients of 0: the loss comes as near to 0 as one likes."""
        assert not gradients.any()
        return gradients


class GenericLogistic(LogisticEntryLoss):
    log_odds = EntryLoss.log_odds


def problem(labels=3):
    return draw_labels(d=3, n_labels=labels, above=0, missing=0.0)


def fixed(**parameters):
    return KernelLogisticClassifier(hyperparameters="fixed", gamma=0.3, tol=1e-8, **parameters)


def test_a_probit_model_is_the_minimum_that_an_independent_solver_finds():
    X, Y = problem()
    Y[3, 1] = np.nan
    weights = np.linspace(0.5, 2.0, len(X))
    model = fixed(loss=ProbitLoss(), scale=2.0).fit(X, Y, weights)
    gram = 2.0 * np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(2)) + 1.0  # of the kernel and the intercepts
    for label in range(3):
        seen = ~np.isnan(Y[:, label])
        signs, root = 2 * Y[seen, label] - 1, np.linalg.cholesky(gram + 1e-10 * np.eye(len(X)))

        def objective(point, seen=seen, signs=signs, root=root):
            return weights[seen] @ -log_ndtr(signs * (root @ point)[seen]) + point @ point / 2

        best = minimize(objective, np.zeros(len(X)), method="L-BFGS-B", tol=1e-12)
        probabilities = ndtr(root @ best.x)
        np.testing.assert_allclose(model.predict_proba(X)[:, label], probabilities, atol=2e-3)
    odds = model.decision_function(X)
    np.testing.assert_allclose(expit(odds), model.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), odds > 0)


@pytest.mark.parametrize("structure", [{}, {"label_covariance": np.eye(3) + 1}, {"label_covariance": 1}])
def test_the_logistic_loss_as_an_own_one_is_the_logistic_one(structure):
    X, Y = problem()
    Y[::4, 0] = np.nan
    learned = {"hyperparameters": HyperparameterSearch(max_learning_iter=4) if structure else "fixed"}
    own = KernelLogisticClassifier(loss=GenericLogistic(), **learned, **structure).fit(X, Y)
    known = KernelLogisticClassifier(**learned, **structure).fit(X, Y)
    np.testing.assert_allclose(own.predict_proba(X), known.predict_proba(X), atol=1e-9)


def test_a_learned_width_lowers_the_held_out_loss_of_an_own_loss():
    X, Y = problem()
    model = grouped(KernelLogisticClassifier, loss=ProbitLoss(), gamma=30.0, max_learning_iter=15).fit(X, Y)
    first = model.learning_trace_[0]
    assert model.cross_validation_loss_ < 0.9 * first.value
    assert model.hyperparameters_["gamma"] < 10.0


def test_hinges_have_probabilities_in_proportion_too():
    X, Y = problem()
    loss = SquaredHingeEntryLoss()
    model = fixed(loss=loss).fit(X, Y)
    shares = model.predict_proba(X)
    assert ((shares > 0) & (shares < 1)).all()
    assert (model.predict(X) == Y).mean() > 0.8


def test_targets_that_are_probabilities_weigh_the_likelier_value():
    X, Y = problem()
    q = np.where(Y > 0, 0.8, 0.1)
    graded = fixed(loss=ProbitLoss()).fit(X, LabelMatrix.from_probabilities(q))
    weighted = fixed(loss=ProbitLoss()).fit(X, Y, entry_weight=np.abs(2 * q - 1))
    np.testing.assert_allclose(graded.predict_proba(X), weighted.predict_proba(X), atol=1e-6)


def test_two_classes_and_model_files(tmp_path):
    X, Y = problem(labels=1)
    names = np.where(Y[:, 0] > 0, "yes", "no")
    model = fixed(loss=ProbitLoss()).fit(X, names)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1)
    assert (model.predict(X) == names).mean() > 0.8
    model.save(tmp_path / "probit.lw")
    again = load(tmp_path / "probit.lw")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("y", [np.arange(60) % 3, ClassProbabilities(np.full((60, 3), 1 / 3))])
def test_one_class_a_row_has_the_softmax_loss(y):
    with pytest.raises(ValueError, match=r"loss=ProbitLoss\(\) is for labels, but y has one class per row"):
        fixed(loss=ProbitLoss()).fit(problem()[0], y)
