"""Dependence between labels is learned on out-of-fold scores, where it lowers the out-of-fold loss."""

import numpy as np
from numpy.testing import assert_array_equal
from scipy.special import expit

from labelweave import AutoLabelClassifier
from labelweave.app.facts import fact_lines, model_facts
from labelweave.decisions.automatic.combination import couple_labels
from labelweave.decisions.automatic.table import TrainingTable
from labelweave.features import FeatureMatrix


def table(targets, seed=0):
    n = len(targets)
    folds = np.random.default_rng(seed).permutation(np.arange(n) % 5)
    return TrainingTable(FeatureMatrix(np.zeros((n, 1))), targets, np.ones(n), folds, 1, 100, 0)


def related(n=300, seed=0):
    """Two identical labels, one of which has much better scores."""
    random = np.random.default_rng(seed)
    one = (random.random(n) < 0.4).astype(float)
    targets = np.column_stack([one, one, random.random(n) < 0.5]).astype(float)
    return targets, 4 * targets - 2 + random.normal(size=(n, 3)) * [0.5, 8.0, 2.0]


def test_a_label_that_is_scored_badly_gains_by_one_that_is_scored_well():
    targets, scores = related()
    whole = table(targets)
    found = couple_labels(whole, scores)
    assert whole.log_loss(found.odds) < 0.7 * whole.log_loss(scores)
    assert found.matrix[0, 1] > 1
    assert found.matrix[1, 1] < -1
    new_targets, new = related(seed=1)
    coupled = new + expit(new) @ found.matrix + found.shift
    assert table(new_targets).log_loss(coupled) < 0.7 * table(new_targets).log_loss(new)


def test_rows_are_coupled_by_other_rows():
    """The targets of a fold affect only the scores of the other folds."""
    targets, scores = related()
    whole = table(targets)
    here = whole.folds == 0
    moved = targets.copy()
    moved[here] += 0.01 * np.random.default_rng(1).normal(size=moved[here].shape)
    first = couple_labels(whole, scores)
    second = couple_labels(TrainingTable(**vars(whole) | {"targets": moved}), scores)
    assert_array_equal(second.odds[here], first.odds[here])
    assert (second.odds[~here] != first.odds[~here]).any()


def test_what_is_missing_says_nothing():
    targets, scores = related()
    partly = np.where(np.random.default_rng(2).random(targets.shape) < 0.3, np.nan, targets)
    found = couple_labels(table(partly), scores)
    assert table(targets).log_loss(found.odds) < 0.8 * table(targets).log_loss(scores)


def test_labels_are_left_alone_where_nothing_is_gained():
    random = np.random.default_rng(0)
    targets = (random.random((200, 3)) < 0.5).astype(float)
    assert couple_labels(table(targets), np.zeros((200, 3))) is None
    assert couple_labels(table(targets[:, :1]), random.normal(size=(200, 1))) is None


def test_a_fit_keeps_what_labels_say_of_each_other(reloaded):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 30))
    latent = X[:, :1] + 0.1 * random.normal(size=(200, 1))
    Y = (latent > [0.0, 0.1, -0.1, 0.2]).astype(int)
    Y[:, 3] = random.random(200) < 0.5
    model = AutoLabelClassifier(members=["rbf"]).fit(X[:120], Y[:120])
    assert model.oof_loss_ <= model.uncoupled_loss_
    assert (model.scorer_.coupling is None) == (model.oof_loss_ == model.uncoupled_loss_)
    is_said = "without label correlations" in fact_lines(model_facts(model))["out-of-fold"]
    assert is_said == (model.scorer_.coupling is not None)
    again = reloaded(model)
    assert_array_equal(again.predict_proba(X[120:]), model.predict_proba(X[120:]))
