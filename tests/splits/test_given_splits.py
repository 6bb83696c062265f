import numpy as np
import pytest
from sklearn.model_selection import KFold, PredefinedSplit

from labelweave.labels import LabelMatrix
from labelweave.splits import IterativeStratifiedKFold
from labelweave.splits.splitters import read_splits, splits_by

Y = np.array([[1.0, np.nan], [0, 1], [1, 1], [0, 0], [1, 0], [np.nan, 1]])


def test_marks_and_numbers_from_the_end_become_row_numbers():
    is_held = np.array([True, False, False, False, False, True])
    (train, held), (ahead, last) = read_splits([(~is_held, is_held), (range(5), [-1])], 6)
    assert (train.tolist(), held.tolist()) == ([1, 2, 3, 4], [0, 5])
    assert (ahead.tolist(), last.tolist()) == ([0, 1, 2, 3, 4], [5])


def test_the_order_of_rows_is_kept():
    assert read_splits([((3, 1), (2, 0))], 4)[0][0].tolist() == [3, 1]
    assert read_splits([([3, 1], [2, 0])], 4)[0][0].tolist() == [3, 1]


@pytest.mark.parametrize(
    ("splits", "said"),
    [
        ([], "cv gives no folds"),
        ([3], "Fold 0 of cv is no pair"),
        ([([0], [1]), ([0], [])], "Fold 1 of cv has 1 rows to train on and 0 to hold out"),
        ([([0], [9])], "Fold 0 of cv names rows that are not there"),
        ([([0], [0.5])], "Fold 0 of cv names rows that are not there"),
        ([(np.ones(5, bool), [1])], "Fold 0 of cv names rows that are not there"),
        ([([[0, 1]], [2])], r"Fold 0 of cv has rows of shape \(1, 2\); give one list"),
    ],
)
def test_bad_splits_are_one_sentence(splits, said):
    with pytest.raises(ValueError, match=said):
        read_splits(splits, 6)


@pytest.mark.parametrize("cv", [KFold(2), PredefinedSplit([0, 1] * 3), IterativeStratifiedKFold(2)])
def test_any_splitter_takes_a_label_matrix(cv):
    held = [rows for _, rows in splits_by(cv, np.zeros((6, 1)), LabelMatrix.from_any(Y))]
    assert sorted(np.concatenate(held).tolist()) == list(range(6))


def test_our_own_splitters_see_which_labels_are_unobserved():
    labels = LabelMatrix.from_any(Y)
    cv = IterativeStratifiedKFold(3)
    for found, expected in zip(splits_by(cv, Y, labels), cv.split(Y, Y), strict=True):
        np.testing.assert_array_equal(found[1], expected[1])
