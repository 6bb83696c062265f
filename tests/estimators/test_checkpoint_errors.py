"""Errors of a fit that goes on from a checkpoint name the file; others are left as they are."""

from types import SimpleNamespace

import numpy as np
import pytest

from labelweave.estimators.journal import Journal
from labelweave.estimators.low_rank.ridge_learning import RidgeSearch
from labelweave.labels import LabelMatrix
from labelweave.model_files import ModelFileError
from labelweave.problems.label_entries import EntryWeights


@pytest.mark.parametrize("error", [ValueError("no such row."), KeyError("part"), ZeroDivisionError("1 / 0")])
def test_errors_name_the_file_only_where_it_was_read(tmp_path, error):
    journal = Journal(tmp_path / "c.lw")
    with pytest.raises(type(error)), journal.going_on():
        raise error
    journal.read.add("part")
    with pytest.raises(ModelFileError, match="cannot go on from it"), journal.going_on():
        raise error
    with pytest.raises(ModelFileError, match=r"^damaged$"), journal.going_on():
        raise ModelFileError("damaged")
    with pytest.raises(KeyboardInterrupt), journal.going_on():
        raise KeyboardInterrupt
    with journal.going_on():
        pass


def test_entries_that_are_not_positive_have_their_own_weight():
    labels = LabelMatrix.from_any([[1, 0], [0, 1]])

    def weights(negative, factors=None):
        search = SimpleNamespace(settings=SimpleNamespace(negative_weight=negative))
        return RidgeSearch._entry_weights(search, SimpleNamespace(labels=labels, factors=factors))

    assert weights(1.0) is None
    np.testing.assert_array_equal(weights(0.5), [[1, 0.5], [0.5, 1]])
    factors = EntryWeights(positive=np.array([[2.0, 3.0]]), negative=np.array([[5.0, 7.0]]))
    np.testing.assert_array_equal(weights(0.5, factors), [[2, 3.5], [2.5, 3]])
