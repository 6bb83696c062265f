"""Splits of rows into folds or into training and test rows, stratified by labels."""

from labelweave.splits.splitters import (
    IterativeStratifiedKFold,
    IterativeStratifiedShuffleSplit,
    stratified_train_test_split,
)

__all__ = ["IterativeStratifiedKFold", "IterativeStratifiedShuffleSplit", "stratified_train_test_split"]
