"""Groups of rows, custom folds, and repeated rows: out-of-fold scores hold on new rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut

import labelweave as lw
from labelweave.decisions.automatic.label_sets import value_of_sets
from labelweave.problems.hyperparameters.out_of_fold import OutOfFoldRidge, oof_loss

N_GROUPS, SIZE = 40, 6
GROUPS = np.repeat(np.arange(N_GROUPS), SIZE)
AT_CHANCE = 2 * 0.4 / 1.4  # the micro-F1 of predicting all labels, each with a frequency of 0.4


def small(**parameters):
    return lw.AutoLabelClassifier(**{"members": ["rbf"], "time_budget": 1e-3} | parameters)


@pytest.fixture(scope="module")
def data():
    """Rows close to each other by group, whose labels features do not predict for other groups."""
    random = np.random.default_rng(0)
    X = random.normal(size=(N_GROUPS, 6))[GROUPS] + 0.05 * random.normal(size=(len(GROUPS), 6))
    return X, (random.random((N_GROUPS, 4)) < 0.4).astype(int)[GROUPS]


@pytest.mark.parametrize("metric", ["micro_f1", "subset_accuracy"])
@pytest.mark.parametrize("members", [["rbf"], ["forest"], ["rbf+forest"], ["linear", "max-margin"]])
def test_out_of_fold_values_are_those_of_other_groups(data, members, metric):
    X, Y = data
    model = small(members=members, metric=metric).fit(X, Y, groups=GROUPS)
    folds = model._out_of_fold.folds
    assert all(len(np.unique(folds[group == GROUPS])) == 1 for group in range(N_GROUPS))
    assert_array_equal(np.bincount(folds), np.full(5, len(X) // 5))
    chance = AT_CHANCE if metric == "micro_f1" else 0.6**4
    assert model.oof_score_ < chance + 3 * model.oof_standard_error_
    if members != ["linear", "max-margin"]:
        assert small(members=members, metric=metric).fit(X, Y).oof_score_ > 0.95


def test_nothing_is_chosen_by_rows_of_the_same_group(data):
    X, Y = data
    alone, together = (small().fit(X, Y, groups=groups) for groups in (None, GROUPS))
    gamma = [
        float(model.members_[0]["words"].split("gamma=")[1].split(")")[0]) for model in (alone, together)
    ]
    assert gamma[0] > 8 * gamma[1]  # wide enough to smooth over groups
    targets, folds = np.random.default_rng(3).normal(size=(120, 2)), np.arange(120) % 5
    gram = np.eye(120) + np.kron(np.eye(24), np.ones((5, 5)))
    ridge = OutOfFoldRidge(gram)
    losses = [np.square(targets - ridge.scores(targets, p, folds)).sum() for p in ridge.penalties]
    centered = targets - targets.mean(axis=0)
    assert oof_loss(gram, centered, folds) == pytest.approx(min(losses) / np.square(centered).sum())


def test_names_of_groups_and_rows_of_no_weight(data):
    X, Y = data
    own = small().fit(X, Y, groups=GROUPS)
    names = np.array([f"source {number:02}" for number in GROUPS], object)
    weights, more = np.ones(len(X) + 3), np.r_[GROUPS, 90, 91, 92]
    weights[-3:] = 0
    others = [
        small().fit(X, Y, groups=pd.Series(names)),
        small().fit(X, Y, groups=list(names)),
        small().fit(np.r_[X, X[:3]], np.r_[Y, Y[:3]], weights, groups=more),
    ]
    for other in others:
        assert (other.oof_score_, other.oof_standard_error_) == (own.oof_score_, own.oof_standard_error_)


@pytest.mark.parametrize(
    ("cv", "groups", "n_folds"),
    [
        (3, None, 3), (3, GROUPS, 3), (GroupKFold(4), GROUPS, 4), (KFold(4, shuffle=True), None, 4),
        (list(GroupKFold(4).split(GROUPS, groups=GROUPS)), GROUPS, 4), (None, None, 5),
        ((pair for pair in KFold(2).split(GROUPS)), None, 2), (LeaveOneGroupOut(), np.arange(240) % 24, 24),
    ],
)  # fmt: skip
def test_folds_may_be_given(data, cv, groups, n_folds, reloaded):
    model = small(cv=cv).fit(*data, groups=groups)
    assert model.plan_["folds"] == n_folds
    assert len(np.unique(model._out_of_fold.folds)) == min(n_folds, 10)  # combined in time linear in folds
    again = reloaded(model)
    assert again.cv == (cv if isinstance(cv, int) else None)
    assert_array_equal(again.predict(data[0]), model.predict(data[0]))


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")
def test_folds_that_divide_a_group_are_refused(data):
    with pytest.raises(ValueError, match="rows 0 and 1 of one group into two folds"):
        small(cv=KFold(5, shuffle=True, random_state=0)).fit(*data, groups=GROUPS)


def test_fewer_groups_than_folds_are_said(data):
    with pytest.warns(UserWarning, match="groups has 3 groups, so that there are 3 folds, not 5"):
        model = small().fit(*data, groups=np.minimum(GROUPS, 2))
    assert model.plan_["folds"] == 3


@pytest.mark.parametrize("metric", ["micro_f1", "macro_f1", "example_f1", "hamming_loss", "jaccard"])
def test_the_standard_error_counts_groups(metric):
    random = np.random.default_rng(1)
    truth, sets = (random.random((50, 3)) < 0.4).astype(int), (random.random((50, 3)) < 0.4).astype(np.int8)
    once = value_of_sets(lw.LabelMatrix.from_any(truth), sets, metric)
    copies = np.repeat(np.arange(50), 4)
    labels = lw.LabelMatrix.from_any(truth[copies])
    assert_allclose(value_of_sets(labels, sets[copies], metric, None, copies), once, rtol=1e-12)
    assert value_of_sets(labels, sets[copies], metric)[1] < 0.51 * once[1]


def repeated(kind):
    random = np.random.default_rng(2)
    text = lw.datasets.make_text_like(150, 2000, 8)
    tags, twice = text.Y.positives.toarray().astype(int), np.tile(np.arange(150), 2)
    dense, few = random.normal(size=(150, 20)), random.integers(0, 2, (300, 8)).astype(float)
    labels = (dense[:, :3] > 0).astype(int)
    noisy = text.X.toarray()[twice] * random.uniform(0.95, 1.05, (300, 2000))
    return {
        "text": (text.X, tags),
        "text twice": (text.X[twice], tags[twice]),
        "nearly twice": (sp.csr_array(noisy), tags[twice]),
        "dense twice": (dense[twice], labels[twice]),
        "other labels": (dense[twice], np.r_[labels, 1 - labels]),
        "three columns": (dense[twice, :3], labels[twice]),
        "categories": (few, few[:, :3].astype(int)),
        "sparse categories": (sp.csr_array(few), few[:, :3].astype(int)),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "is_said"),
    [
        ("text", False), ("text twice", True), ("nearly twice", True), ("dense twice", True),
        ("other labels", False), ("three columns", False), ("categories", False),
        ("sparse categories", False),
    ],
)  # fmt: skip
def test_rows_with_a_twin_in_another_fold_are_pointed_out(kind, is_said, recwarn):
    X, Y = repeated(kind)
    small(members=["linear"]).fit(X, Y)
    assert any("out-of-fold scores are optimistic" in str(one.message) for one in recwarn) == is_said
    recwarn.clear()
    small(members=["linear"]).fit(X, Y, groups=np.arange(len(Y)) % 150)
    assert not recwarn.list
