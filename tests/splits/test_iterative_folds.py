"""Folds partition the rows, have one size, and spread labels better than chance and the printed algorithm."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict, cross_val_score

from labelweave import LabelMatrix, LowRankClassifier, MaxMarginClassifier, RankSearch, datasets
from labelweave.splits import IterativeStratifiedKFold
from reference.stratification_twin import frequency_deviation, paper_folds

ENTRIES = st.sampled_from([0.0, 0.0, 1.0, np.nan])


@st.composite
def targets(draw, entries=ENTRIES):
    n_rows = draw(st.integers(2, 25))
    Y = draw(hnp.arrays(float, (n_rows, draw(st.integers(0, 6))), elements=entries))
    splitter = IterativeStratifiedKFold(draw(st.integers(2, n_rows)), order=draw(st.sampled_from([1, 2])))
    if draw(st.booleans()):
        splitter.shuffle, splitter.random_state = True, draw(st.integers(0, 9))
    return Y, splitter


def folds_of(splitter, Y):
    n_rows = Y.shape[0]
    folds = np.full(n_rows, -1)
    for number, (train, test) in enumerate(splitter.split(np.zeros((n_rows, 1)), Y)):
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()
        np.testing.assert_array_equal(np.union1d(train, test), np.arange(n_rows))
        assert len(train) + len(test) == n_rows
        assert (folds[test] == -1).all()
        folds[test] = number
    assert (folds >= 0).all()
    return folds


def fold_counts(marks, folds):
    return np.bincount(folds, weights=marks, minlength=folds.max() + 1)


def related_labels(n_rows=300, n_labels=14, seed=0):
    generator = np.random.default_rng(seed)
    levels = generator.normal(size=(n_rows, 3)) @ generator.normal(size=(3, n_labels))
    noise = generator.normal(size=(n_rows, n_labels))
    return (levels + noise > np.linspace(0.5, 5, n_labels)).astype(int)


@settings(max_examples=150)
@given(targets())
def test_folds_part_the_rows_and_have_one_size(case):
    Y, splitter = case
    sizes = np.bincount(folds_of(splitter, Y))
    assert len(sizes) == splitter.get_n_splits() == splitter.n_splits
    assert np.ptp(sizes) <= 1


@given(targets(st.sampled_from([0.0, 0.0, 1.0])))
def test_the_kind_of_Y_does_not_matter(case):
    Y, splitter = case
    folds = folds_of(splitter, Y)
    alike = [Y.astype(bool), 2 * Y - 1, sp.coo_array(Y), pd.DataFrame(Y.astype(int)), LabelMatrix.from_any(Y)]
    for same in alike:
        np.testing.assert_array_equal(folds_of(splitter, same), folds)


@given(targets())
def test_gaps_are_the_same_in_a_frame_and_a_label_matrix(case):
    Y, splitter = case
    folds = folds_of(splitter, Y)
    np.testing.assert_array_equal(folds_of(splitter, pd.DataFrame(Y)), folds)
    np.testing.assert_array_equal(folds_of(splitter, LabelMatrix.from_any(Y)), folds)


@settings(max_examples=150)
@given(hnp.arrays(float, st.integers(2, 40), elements=ENTRIES), st.integers(2, 6), st.integers(0, 3))
def test_one_label_is_spread_evenly_by_positives_and_by_observed_negatives(y, n_splits, seed):
    splitter = IterativeStratifiedKFold(min(n_splits, len(y)), shuffle=True, random_state=seed)
    folds = folds_of(splitter, y[:, None])
    counts = sorted(np.ptp(fold_counts(y == value, folds)) for value in (0, 1))
    assert counts[0] <= 1
    assert counts[1] <= 2  # where sizes differ by one


def test_gaps_leave_each_fold_its_share_of_what_was_observed():
    generator = np.random.default_rng(0)
    Y = np.where(generator.random((500, 4)) < [0.1, 0.3, 0.5, 0.8], 1.0, 0.0)
    Y[generator.random(Y.shape) < [0.9, 0.8, 0.3, 0.5]] = np.nan
    folds = folds_of(IterativeStratifiedKFold(5, shuffle=True, random_state=0), Y)
    for label in range(4):
        for value in (0, 1):
            assert np.ptp(fold_counts(Y[:, label] == value, folds)) <= 3


def test_entries_as_likely_as_not_are_gaps():
    table = np.random.default_rng(0).choice([0.1, 0.5, 0.9], size=(60, 4))
    sure = np.select([table < 0.5, table > 0.5], [0.0, 1.0], np.nan)
    folds, same = (
        [test.tolist() for _, test in IterativeStratifiedKFold(3).split(table, labels)]
        for labels in (LabelMatrix.from_probabilities(table), sure)
    )
    assert folds == same


def test_rows_of_which_nothing_is_observed_are_spread():
    Y = np.full((100, 3), np.nan)
    Y[::4] = np.random.default_rng(0).integers(2, size=(25, 3))
    folds = folds_of(IterativeStratifiedKFold(5), Y)
    assert np.ptp(fold_counts(np.isnan(Y).all(axis=1), folds)) <= 2


def test_rows_without_a_positive_label_are_spread():
    Y = related_labels()
    bare = ~Y.any(axis=1)
    assert 30 < bare.sum() < 200
    folds = folds_of(IterativeStratifiedKFold(7, shuffle=True, random_state=0), Y)
    assert np.ptp(fold_counts(bare, folds)) <= 2


def test_negatives_of_a_label_that_most_rows_have_are_spread():
    Y = np.ones((60, 3), int)
    Y[np.arange(15), np.arange(15) % 3] = 0
    folds = folds_of(IterativeStratifiedKFold(5, shuffle=True, random_state=0), Y)
    for label in range(3):
        np.testing.assert_array_equal(fold_counts(Y[:, label] == 0, folds), 1)


def test_a_label_with_fewer_positives_than_folds_is_in_so_many_folds():
    Y = np.zeros((50, 4), int)
    for label in range(4):
        Y[np.arange(3) + 5 * label, label] = 1
    folds = folds_of(IterativeStratifiedKFold(5, shuffle=True, random_state=1), Y)
    for label in range(4):
        assert sorted(fold_counts(Y[:, label], folds)) == [0, 0, 1, 1, 1]


def test_a_label_that_nobody_has_changes_nothing():
    Y = related_labels(60)
    more = np.hstack([Y, np.zeros((60, 2), int)])
    splitter = IterativeStratifiedKFold(4)
    np.testing.assert_array_equal(folds_of(splitter, more), folds_of(splitter, Y))


def test_every_row_can_be_a_fold():
    Y = related_labels(30)
    assert sorted(folds_of(IterativeStratifiedKFold(30), Y)) == list(range(30))


@pytest.mark.parametrize("n_folds", [3, 5, 10])
def test_frequencies_deviate_less_than_with_the_printed_algorithm_and_with_chance(n_folds):
    ours, printed, chance = [], [], []
    for seed in range(6):
        Y = related_labels(seed=seed)
        splitter = IterativeStratifiedKFold(n_folds, shuffle=True, random_state=seed)
        ours.append(frequency_deviation(Y, folds_of(splitter, Y)))
        printed.append(frequency_deviation(Y, paper_folds(Y, n_folds, np.random.default_rng(seed))))
        random = KFold(n_folds, shuffle=True, random_state=seed)
        chance.append(frequency_deviation(Y, folds_of(random, Y)))
    assert np.mean(ours) < 1.01 * np.mean(printed)
    assert np.mean(ours) < 0.3 * np.mean(chance)


def test_the_second_order_spreads_pairs():
    Y = related_labels(400)
    first, second = np.triu_indices(Y.shape[1], 1)
    pairs = Y[:, first] * Y[:, second]
    found = [
        frequency_deviation(pairs, folds_of(IterativeStratifiedKFold(5, order=order), Y)) for order in (1, 2)
    ]
    assert found[1] < 0.7 * found[0]


def test_classes_are_spread_as_scikit_learn_spreads_them():
    classes = np.array(list("aaaaabbbbbbbbccddddddddddd"))
    splitter = IterativeStratifiedKFold(4, shuffle=True, random_state=0)
    known = folds_of(StratifiedKFold(2), classes[:20])
    for name in "abcd":
        assert np.ptp(fold_counts(classes == name, folds_of(splitter, classes))) <= 1
        assert np.ptp(fold_counts(classes[:20] == name, known)) <= 1
    numbers = np.unique(classes, return_inverse=True)[1]
    as_object = pd.Series(classes, dtype=object)
    np.testing.assert_array_equal(folds_of(splitter, numbers), folds_of(splitter, classes))
    np.testing.assert_array_equal(folds_of(splitter, as_object), folds_of(splitter, classes))


@pytest.mark.parametrize("missing", [None, np.nan])
def test_rows_whose_class_is_missing_are_spread(missing):
    classes = np.array(["a"] * 10 + ["b"] * 10 + [missing] * 8, dtype=object)
    folds = folds_of(IterativeStratifiedKFold(4), classes)
    np.testing.assert_array_equal(fold_counts(np.arange(28) >= 20, folds), 2)


def test_the_seed_fixes_the_folds():
    Y = related_labels(80)
    one, same, other = (
        folds_of(IterativeStratifiedKFold(4, shuffle=True, random_state=seed), Y) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    state = np.random.RandomState(0)
    going_on = IterativeStratifiedKFold(4, shuffle=True, random_state=state)
    assert (folds_of(going_on, Y) != folds_of(going_on, Y)).any()


def test_a_sparse_Y_is_not_densified():
    generator = np.random.default_rng(0)
    rows, labels = np.repeat(np.arange(2_000), 3), generator.integers(100_000, size=6_000)
    Y = sp.csr_array((np.ones(6_000), (rows, labels)), shape=(2_000, 100_000))
    Y.data[:] = 1
    splitter = IterativeStratifiedKFold(2)
    list(splitter.split(Y[:10], Y[:10]))
    tracemalloc.start()
    list(splitter.split(Y, Y))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e7  # 200 MB as a table of bytes


def test_scikit_learn_and_our_own_cross_validations_take_it():
    data = datasets.make_text_like(90, 160, 4, labels_per_row=1.5, random_state=0)
    Y = data.Y.to_dense().astype(int)
    cv = IterativeStratifiedKFold(3, shuffle=True, random_state=0)
    model = MaxMarginClassifier(tol=1e-2)
    assert cross_val_score(model, data.X, Y, cv=cv, scoring="f1_micro").shape == (3,)
    assert cross_val_predict(model, data.X, pd.DataFrame(Y), cv=cv).shape == (90, 4)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=cv, scoring="f1_micro").fit(data.X, Y)
    assert search.n_splits_ == 3
    assert cross_val_score(model, data.X, data.Y, cv=cv).shape == (3,)
    assert LowRankClassifier(RankSearch([2], [1.0], cv=cv)).fit(data.X, data.Y).n_splits_ == 3


def test_it_shows_its_parameters():
    shown = " ".join(repr(IterativeStratifiedKFold(3)).split())
    assert shown == "IterativeStratifiedKFold(n_splits=3, order=1, random_state=None, shuffle=False)"
