"""Splits by groups, and custom splits, with learning on all rows and on some."""

import warnings
from functools import partial
from itertools import tee

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, LeaveOneGroupOut, StratifiedKFold

import labelweave as lw
from drawn import draw_labels
from labelweave.estimators import journal
from labelweave.estimators.held_out import held_out_rows, reusable_splits
from labelweave.estimators.low_rank.ridge_learning import labels_to_split
from labelweave.labels.targets import label_form

GROUPS = np.arange(60) // 6  # six rows belong together


_drawn = partial(draw_labels, d=3, noise=0.5, above=0.2)


SHORT = lw.HyperparameterSearch(max_learning_iter=3)
MODELS = {
    "kernel logistic": lw.KernelLogisticClassifier(hyperparameters=SHORT),
    "low rank": lw.LowRankClassifier(2, penalty="ridge", kernel="rbf", hyperparameters=SHORT),
    "low rank, chosen": lw.LowRankClassifier(
        lw.RankSearch([1, 2], [1.0, 3.0]), kernel="rbf", hyperparameters=SHORT
    ),
}
EVERY = pytest.mark.parametrize("name", MODELS)


def _fit(name, X, Y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model, cv = clone(MODELS[name]), parameters.get("cv")
        for part in ("rank", "hyperparameters"):  # the folds of both searches are the same
            group = getattr(model, part, None)
            if hasattr(group, "get_params"):
                own = {one: value for one, value in parameters.items() if one in group.get_params()}
                if hasattr(cv, "__next__"):
                    cv, own["cv"] = tee(cv)
                setattr(model, part, group.set_params(**own))
        own = {one: value for one, value in parameters.items() if one in model.get_params(deep=False)}
        return model.set_params(**own).fit(X, Y)


@EVERY
@pytest.mark.parametrize("learning_rows", [None, 30])
def test_splits_by_groups_are_given_as_a_list(name, learning_rows, reloaded):
    X, Y = _drawn()
    splits = list(GroupKFold(5).split(X, Y, GROUPS))
    model = _fit(name, X, Y, cv=splits, learning_rows=learning_rows)
    once = _fit(name, X, Y, cv=iter(splits), learning_rows=learning_rows)  # a generator is used up
    masks = [np.isin(np.arange(60), test) for _, test in splits]
    marked = _fit(name, X, Y, cv=[(~mask, mask) for mask in masks], learning_rows=learning_rows)
    other = _fit(name, X, Y, cv=KFold(5, shuffle=True, random_state=3), learning_rows=learning_rows)
    assert model.hyperparameters_ == once.hyperparameters_ == marked.hyperparameters_
    assert model.cross_validation_loss_ != other.cross_validation_loss_
    np.testing.assert_array_equal(reloaded(model).predict(X), model.predict(X))


def test_folds_of_some_rows_keep_groups_together():
    chosen = np.sort(np.random.default_rng(1).permutation(60)[:30])
    splits = list(GroupKFold(5).split(np.zeros((60, 1)), None, GROUPS))
    held_out = held_out_rows(splits, chosen, np.zeros(60), 0)
    assert held_out.shape == (30, 5)
    assert (held_out.sum(axis=1) == 1).all()
    for group in np.unique(GROUPS[chosen]):
        assert len(np.unique(held_out[GROUPS[chosen] == group], axis=0)) == 1


def test_several_blocks_share_splits_that_are_given_once():
    X, Y = _drawn()
    splits = GroupKFold(3).split(X, Y, GROUPS)
    model = _fit("kernel logistic", X, Y, cv=splits, learning_blocks=2)
    again = _fit("kernel logistic", X, Y, cv=list(GroupKFold(3).split(X, Y, GROUPS)), learning_blocks=2)
    assert model.hyperparameters_ == again.hyperparameters_


def test_splits_that_can_be_used_again_stay_as_they_are():
    splits = [(np.arange(3), np.arange(3, 6))]
    assert reusable_splits(splits) is splits
    assert reusable_splits(None) is None
    assert reusable_splits(5) == 5
    assert reusable_splits(iter(splits)) == splits


@EVERY
@pytest.mark.parametrize("splitter", [GroupKFold(3), LeaveOneGroupOut(), GroupShuffleSplit(2)], ids=str)
@pytest.mark.parametrize("learning_rows", [None, 30])
def test_splitters_that_want_groups_say_what_to_do(name, splitter, learning_rows):
    X, Y = _drawn()
    message = r"cannot split the rows by y alone \(The 'groups' parameter should not be None"
    with pytest.raises(ValueError, match=message) as caught:
        _fit(name, X, Y, cv=splitter, learning_rows=learning_rows)
    assert "pass splits, such as cv=list(splitter.split(X, y, groups))." in str(caught.value)


@EVERY
def test_splitters_that_cannot_stratify_say_what_to_do(name):
    X, Y = _drawn()
    with pytest.raises(ValueError, match=r"cannot split the rows by y alone .* pass splits, such as cv=list"):
        _fit(name, X, Y, cv=StratifiedKFold(3))
    if name == "kernel logistic":
        return
    classes = Y.argmax(axis=1)
    assert _fit(name, X, classes, cv=StratifiedKFold(3)).learning_status_ != "fixed"


BAD = {
    "no pairs": ([np.arange(3)], "Fold 0 of cv is not a pair"),
    "numbers": ([1, 2], "Fold 0 of cv is not a pair"),
    "rows left out": ([(np.arange(30), np.arange(40, 60))], "Fold 0 of cv has row 30 in neither part"),
    "rows twice": ([(np.arange(31), np.arange(30, 60))], "Fold 0 of cv has row 30 in both parts"),
    "no fold": ([], "cv has no folds"),
    "one fold": (1, "n_splits"),
    "an empty fold": ([(np.arange(60), [])], "Fold 0 of cv has 60 training rows and 0 held-out rows"),
    "nothing to train on": ([([], range(60))], "Fold 0 of cv has 0 training rows"),
    "rows that are not there": ([(range(60), [60])], "Fold 0 of cv has invalid rows"),
    "fractions": ([(np.arange(30) + 0.5, np.arange(30, 60))], "Fold 0 of cv has invalid rows"),
}


@EVERY
@pytest.mark.parametrize("kind", BAD)
def test_folds_that_are_none_are_one_sentence(name, kind):
    splits, message = BAD[kind]
    with pytest.raises(ValueError, match=message):
        _fit(name, *_drawn(), cv=splits)


def test_a_fold_that_holds_out_all_rows_learned_on_is_refused():
    chosen = np.flatnonzero(GROUPS == 2)
    splits = list(GroupKFold(5).split(np.zeros((60, 1)), None, GROUPS))
    with pytest.raises(ValueError, match="use other folds, or more learning"):
        held_out_rows(splits, chosen, np.zeros(60), 0)


def test_a_checkpoint_of_other_folds_is_refused(tmp_path, monkeypatch):
    path, (X, Y) = tmp_path / "fit.lwc", _drawn()
    monkeypatch.setattr(journal.Journal, "close", lambda self, is_done: self.write())
    _fit("kernel logistic", X, Y, checkpoint=path)
    with pytest.raises(ValueError, match=r"to another fit:.*cv"):
        _fit("kernel logistic", X, Y, checkpoint=path, cv=[(np.arange(30), np.arange(30, 60))])


def _labels(n=120, missing=0.0):
    random = np.random.default_rng(2)
    table = (random.random((n, 5)) < [0.5, 0.2, 0.1, 0.1, 0.05]).astype(float)
    table[random.random((n, 5)) < missing] = np.nan
    return table


@pytest.mark.parametrize("cv", [None, 5])
@pytest.mark.parametrize("kind", [np.asarray, lw.LabelMatrix.from_any])
def test_a_number_of_folds_spreads_labels_evenly(cv, kind):
    table = _labels()
    held_out = held_out_rows(cv, np.arange(120), kind(table), 0)
    assert (held_out.sum(axis=1) == 1).all()
    assert (held_out.sum(axis=0) == 24).all()
    counts = held_out.T @ table
    assert (counts.max(axis=0) - counts.min(axis=0) <= 2).all()


def test_folds_of_some_rows_spread_the_labels_of_these():
    table, chosen = _labels(missing=0.2), np.arange(0, 120, 2)
    table[chosen[:20]] = np.nan
    held_out = held_out_rows(3, chosen, table, 0)
    assert (held_out.sum(axis=1) == 1).all()
    assert (held_out.sum(axis=0) == 20).all()
    counts = held_out.T @ (table[chosen] == 1).astype(int)
    assert (counts.max(axis=0) - counts.min(axis=0) <= 2).all()


def test_a_number_of_folds_splits_classes_at_random():
    classes = np.arange(60) % 3
    held_out = held_out_rows(5, np.arange(60), classes, 3)
    splits = KFold(5, shuffle=True, random_state=3).split(classes)
    np.testing.assert_array_equal(held_out, np.array([np.isin(np.arange(60), test) for _, test in splits]).T)


@EVERY
def test_rows_without_any_observed_label_take_no_part_in_losses(name):
    X, Y = _drawn()
    table = Y.astype(float)
    table[:20] = np.nan
    model = _fit(name, X, table, cv=3)
    assert np.isfinite(model.cross_validation_loss_)


@pytest.mark.parametrize("cv", [None, 5, KFold(3), [(np.arange(60), np.arange(60, 120))]])
def test_sparse_labels_are_not_made_dense_for_a_number_of_folds(cv):
    labels = lw.LabelMatrix.from_any(_labels())
    targets = labels_to_split(labels, label_form(labels, labels), cv)
    assert (targets is labels) == (cv is None or cv == 5)
    assert len(targets) == 120
