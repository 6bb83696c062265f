"""Splits of rows into folds or into training and test rows, stratified by labels."""

from labelweave.splits.iterative_folds import IterativeStratifiedKFold
from labelweave.splits.iterative_shuffle import IterativeStratifiedShuffleSplit
from labelweave.splits.train_test import stratified_train_test_split

__all__ = ["IterativeStratifiedKFold", "IterativeStratifiedShuffleSplit", "stratified_train_test_split"]
