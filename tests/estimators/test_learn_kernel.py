"""Kernels, scales and label covariances learned by a likelihood, for models that have none."""

import numpy as np
import pytest

from labelweave import KernelLogisticClassifier, LabelCovariance, LabelMatrix
from labelweave.arrays import Workers
from labelweave.estimators.folds import LearningBlock, held_out_rows
from labelweave.estimators.kernel_logistic.fit import FitSettings, learn_kernel
from labelweave.features import FeatureMatrix, RBFKernel


def _data(n=80):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    common = np.sin(2 * X[:, :1])
    Y = (common * [1, 1, -1, -1] + 0.7 * random.normal(size=(n, 4)) > 0).astype(float)
    Y[random.random(Y.shape) < 0.1] = np.nan
    return X, Y


def _learned(loss="logistic", iterations=15, **options):
    X, Y = _data()
    labels, every = LabelMatrix.from_any(Y), np.arange(len(X))
    block = LearningBlock(every, held_out_rows(5, every, labels, 0))
    workers = Workers()
    with workers.running():
        settings = FitSettings(workers, 0, learning_iterations=iterations)
        return learn_kernel(
            FeatureMatrix(X), labels, np.ones(len(X)), RBFKernel(0.2), block, settings, loss=loss, **options
        )


def test_it_learns_what_the_kernel_logistic_model_learns():
    X, Y = _data()
    found = _learned(scale=10.0)
    folds = held_out_rows(5, np.arange(80), LabelMatrix.from_any(Y), 0)
    cv = [(np.flatnonzero(~held), np.flatnonzero(held)) for held in folds.T]
    model = KernelLogisticClassifier(gamma=0.2, scale=10.0, cv=cv, max_learning_iter=15).fit(X, Y)
    assert found.kernel.gamma == pytest.approx(model.hyperparameters_["gamma"], rel=1e-6)
    assert found.scale == pytest.approx(model.hyperparameters_["scale"], rel=1e-6)
    assert not found.covariance.ties_labels


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_loss_falls(loss):
    found = _learned(loss)
    assert found.learned.value < found.learned.trace[0].value
    assert found.kernel.gamma != pytest.approx(0.2, rel=0.05)


def test_a_learned_covariance_sees_who_goes_with_whom():
    found = _learned(factors=2)
    assert found.covariance.diagonal().mean() == pytest.approx(1.0)
    correlations = found.covariance.correlations()
    assert correlations[0, 1] > 0.3 > -0.3 > correlations[0, 2]


def test_a_given_covariance_is_kept():
    given = LabelCovariance.dense(0.5 * np.eye(4) + 1.5)
    found = _learned(covariance=given, scale=2.0)
    assert found.covariance is given
    assert found.learned.theta[0] == pytest.approx(np.log(found.scale))


def test_the_squared_loss_finds_a_scale_for_targets_of_both_signs():
    fixed = _learned("squared", iterations=1, scale=3.0)
    assert fixed.scale == pytest.approx(3.0)
