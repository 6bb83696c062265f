"""Labels and classes of data, matched with those of a model."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import LabelMatrix, Taxonomy
from labelweave.metrics.known_labels import classes_of_labels, known_classes, known_labels, tags_of_model

Y = np.array([[1, 0, 1], [0, 1, np.nan]])


def test_labels_are_matched_by_name_in_the_order_of_the_data():
    labels, columns = known_labels(LabelMatrix.from_any(Y, ["c", "a", "d"]), ["a", "b", "c", "d"], "error")
    assert columns.tolist() == [2, 0, 3]
    assert labels.names.tolist() == ["c", "a", "d"]
    np.testing.assert_array_equal(labels.to_dense(), Y)


def test_labels_without_names_are_places_unless_there_are_more():
    labels, columns = known_labels(Y, ["a", "b", "c", "d"], "error")
    assert columns.tolist() == [0, 1, 2]
    assert labels.names.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"The label '0' is unknown to the model \(3 of 3 are\)"):
        known_labels(Y, ["a", "b"], "error")
    assert known_labels(Y, ["0", "1"], "ignore")[1].tolist() == [0, 1]


def test_unknown_labels_are_named_or_passed_over():
    given = LabelMatrix.from_any(Y, ["a", "x", "b"])
    with pytest.raises(ValueError, match=r"The label 'x' .* \(1 of 3 are\)"):
        known_labels(given, ["a", "b"], "error")
    labels, columns = known_labels(given, ["a", "b"], "ignore")
    assert columns.tolist() == [0, 1]
    np.testing.assert_array_equal(labels.to_dense(), Y[:, [0, 2]])
    with pytest.raises(ValueError, match="No label of the data is known"):
        known_labels(given, ["z"], "ignore")


def test_classes_are_names_numbers_or_places():
    one_hot = sp.csr_array(np.array([[0, 1], [1, 0], [0, 0]]))
    assert known_classes(one_hot, ["a", "b", "c"], None, "error").tolist() == ["b", "a", None]
    assert known_classes(one_hot, ["1", "0"], None, "error").tolist() == ["1", "0", None]
    assert known_classes([1.0, np.nan, 0], ["0", "1"], None, "error").tolist() == ["1", None, "0"]


def test_nodes_above_classes_are_known_in_part():
    tree = Taxonomy([("top", "a"), ("top", "b"), ("far", "c")])
    found = known_classes(["a", "top", "far"], ["a", "b"], tree, "ignore")
    assert found.tolist() == ["a", "top", None]
    with pytest.raises(ValueError, match="The class 'far' of row 2"):
        known_classes(["a", "top", "far"], ["a", "b"], tree, "error")
    with pytest.raises(ValueError, match="No row of the data has a class of the model"):
        known_classes([None, "far"], ["a", "b"], tree, "ignore")


def test_several_labels_are_one_class_on_a_path_only():
    labels = LabelMatrix.from_any(np.array([[1, 1, 0]]))
    tree = Taxonomy([("top", "a"), ("top", "b")])
    assert classes_of_labels(labels, ["top", "a", "b"], tree).tolist() == ["a"]
    with pytest.raises(ValueError, match=r"Row 0 .* has several labels, such as 'top' and 'a'"):
        classes_of_labels(labels, ["top", "a", "b"], None)


def test_tags_of_a_model_may_be_0_and_1_alone():
    model = SimpleNamespace(classes_=np.arange(10))
    assert tags_of_model([{0}, {1}], model).to_dense()[:, :3].tolist() == [[1, 0, 0], [0, 1, 0]]


def test_classes_are_matched_without_a_walk_through_all():
    class Counted(str):
        compared = 0
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            Counted.compared += 1
            return str.__eq__(self, other)

    names = [Counted(f"c{number}") for number in range(300)]
    assert known_classes(list(map(str, names)), names, None, "error")[-1] == "c299"
    assert Counted.compared < 10 * len(names)
