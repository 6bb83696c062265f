"""Training and test rows have scikit-learn's sizes, keep their types and split labels in proportion."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, cross_val_score, train_test_split

from labelweave import LabelMatrix, MaxMarginClassifier, datasets
from labelweave.splits import (
    IterativeStratifiedKFold,
    IterativeStratifiedShuffleSplit,
    stratified_train_test_split,
)
from labelweave.splits.splitters import read_splits, splits_by
from refused import refusals

SIZES = st.none() | st.integers(1, 30) | st.floats(0.01, 0.99)

test_what_makes_no_sense_is_refused = refusals(__file__)


def labels(n_rows=200, n_labels=6, seed=0):
    generator = np.random.default_rng(seed)
    return (generator.random((n_rows, n_labels)) < np.linspace(0.02, 0.7, n_labels)).astype(int)


@settings(max_examples=200)
@given(st.integers(2, 30), SIZES, SIZES, st.integers(1, 3))
def test_sizes_are_scikit_learns(n_rows, train_size, test_size, n_splits):
    X, sizes = np.zeros((n_rows, 1)), {"train_size": train_size, "test_size": test_size}
    try:
        expected = [(len(a), len(b)) for a, b in ShuffleSplit(n_splits, **sizes, random_state=0).split(X)]
        possible = expected[0][1] > 0
    except ValueError:
        possible = False
    splitter = IterativeStratifiedShuffleSplit(n_splits, **sizes, random_state=0)
    if not possible:
        with pytest.raises(
            ValueError, match=r"(size|sum).*; pass a fraction between 0 and 1 or a number of rows"
        ):
            next(splitter.split(X, labels(n_rows)))
        return
    parts = list(splitter.split(X, labels(n_rows)))
    assert [(len(train), len(test)) for train, test in parts] == expected
    for train, test in parts:
        assert len(set(train) | set(test)) == len(train) + len(test)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_labels_are_shared_out_in_proportion(share):
    ours, chance = [], []
    for seed in range(5):
        Y = labels(seed=seed)
        splitters = (kind(1, test_size=share, random_state=seed) for kind in _KINDS)
        for splitter, found in zip(splitters, (ours, chance), strict=True):
            _, test = next(splitter.split(Y, Y))
            found.append(np.abs(Y[test].mean(axis=0) - Y.mean(axis=0)).mean())
    assert np.mean(ours) < 0.35 * np.mean(chance)


_KINDS = (IterativeStratifiedShuffleSplit, ShuffleSplit)


def test_rows_with_many_labels_do_not_gather_in_the_larger_part():
    Y = np.repeat(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]]), [40, 40, 120], axis=0)
    for _, test in IterativeStratifiedShuffleSplit(3, test_size=0.1, random_state=0).split(Y, Y):
        np.testing.assert_array_equal(Y[test].sum(axis=0), [8, 4, 12])


def test_one_size_alone_leaves_rows_out_in_proportion_too():
    Y = np.repeat(np.eye(4, dtype=int), 25, axis=0)
    splitter = IterativeStratifiedShuffleSplit(2, train_size=0.4, test_size=0.2, random_state=0)
    for train, test in splitter.split(Y, Y):
        np.testing.assert_array_equal(Y[train].sum(axis=0), 10)
        np.testing.assert_array_equal(Y[test].sum(axis=0), 5)


def test_every_kind_is_kept():
    Y = labels()
    names = [f"label {label}" for label in range(6)]
    arrays = {
        "array": Y,
        "list": [str(row) for row in range(200)],
        "frame": pd.DataFrame(Y, columns=names, index=np.arange(200) + 1000),
        "series": pd.Series(np.arange(200)),
        "csr": sp.csr_array(Y),
        "csc matrix": sp.csc_matrix(Y),
        "labels": LabelMatrix.from_any(Y, names),
    }
    parts = stratified_train_test_split(*arrays.values(), test_size=50, random_state=0, stratify=Y)
    train, test = parts[::2], parts[1::2]
    rows = [int(row) for row in train[1]], [int(row) for row in test[1]]
    assert (len(rows[0]), len(rows[1])) == (150, 50)
    for part, chosen in zip((train, test), rows, strict=True):
        array, _, frame, series, csr, matrix, matrix_of_labels = part
        np.testing.assert_array_equal(array, Y[chosen])
        assert list(frame.index) == [row + 1000 for row in chosen]
        assert list(frame.columns) == names
        assert list(series) == chosen
        assert isinstance(csr, sp.csr_array)
        assert isinstance(matrix, sp.csr_matrix)
        np.testing.assert_array_equal(csr.toarray(), Y[chosen])
        np.testing.assert_array_equal(matrix.toarray(), Y[chosen])
        assert isinstance(matrix_of_labels, LabelMatrix)
        assert list(matrix_of_labels.names) == names
        np.testing.assert_array_equal(matrix_of_labels.to_dense(), Y[chosen])


def test_the_last_array_is_stratified_by_and_a_quarter_is_the_default():
    Y = labels()
    X = np.arange(200)[:, None]
    given, by_name = (
        stratified_train_test_split(X, Y, random_state=0, stratify=stratify) for stratify in (None, Y)
    )
    for one, other in zip(given, by_name, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(given[1]) == len(train_test_split(X)[1]) == 50


def test_gaps_and_classes_are_taken():
    Y = labels().astype(float)
    Y[np.random.default_rng(0).random(Y.shape) < 0.4] = np.nan
    train, test = stratified_train_test_split(LabelMatrix.from_any(Y), test_size=0.25, random_state=0)
    np.testing.assert_allclose(test.observed_counts() / (train.observed_counts() / 3), 1, atol=0.1)
    classes = np.array(["a", "b"] * 40)
    assert sorted(stratified_train_test_split(classes, test_size=0.1)[1]) == ["a"] * 4 + ["b"] * 4


def test_the_seed_fixes_every_split():
    Y = labels(50)
    splitter = IterativeStratifiedShuffleSplit(3, test_size=0.3, random_state=5)
    first, again = ([test.tolist() for _, test in splitter.split(Y, Y)] for _ in range(2))
    assert first == again
    assert len({tuple(test) for test in first}) == 3
    assert splitter.get_n_splits() == 3


def test_cross_validation_takes_it():
    data = datasets.make_text_like(90, 160, 4, labels_per_row=1.5, random_state=0)
    cv = IterativeStratifiedShuffleSplit(2, test_size=0.3, random_state=0, order=2)
    Y = data.Y.to_dense().astype(int)
    scores = cross_val_score(MaxMarginClassifier(tol=1e-2), data.X, Y, cv=cv, scoring="f1_micro")
    assert scores.shape == (2,)


Y = np.array([[1.0, np.nan], [0, 1], [1, 1], [0, 0], [1, 0], [np.nan, 1]])


def test_marks_and_numbers_from_the_end_become_row_numbers():
    is_held = np.array([True, False, False, False, False, True])
    (train, held), (ahead, last) = read_splits([(~is_held, is_held), (range(5), [-1])], 6)
    assert (train.tolist(), held.tolist()) == ([1, 2, 3, 4], [0, 5])
    assert (ahead.tolist(), last.tolist()) == ([0, 1, 2, 3, 4], [5])


def test_the_order_of_rows_is_kept():
    assert read_splits([((3, 1), (2, 0))], 4)[0][0].tolist() == [3, 1]
    assert read_splits([([3, 1], [2, 0])], 4)[0][0].tolist() == [3, 1]


@pytest.mark.parametrize("cv", [KFold(2), PredefinedSplit([0, 1] * 3), IterativeStratifiedKFold(2)])
def test_any_splitter_takes_a_label_matrix(cv):
    held = [rows for _, rows in splits_by(cv, np.zeros((6, 1)), LabelMatrix.from_any(Y))]
    assert sorted(np.concatenate(held).tolist()) == list(range(6))


def test_our_own_splitters_see_which_labels_are_unobserved():
    labels = LabelMatrix.from_any(Y)
    cv = IterativeStratifiedKFold(3)
    for found, expected in zip(splits_by(cv, Y, labels), cv.split(Y, Y), strict=True):
        np.testing.assert_array_equal(found[1], expected[1])
