"""Ridge regressions of labels on the others, against least squares one label at a time."""

import numpy as np
import pytest

from labelweave import LabelCovariance, LabelMatrix, Taxonomy
from labelweave.app.noise.related_labels import _Part, label_strengths, relate_labels
from labelweave.labels import CliqueGraph


def test_no_label_explains_itself_and_the_rest_is_ridge_regression():
    rng = np.random.default_rng(0)
    table, residuals, folds = rng.random((30, 5)), rng.normal(size=(30, 5)), np.arange(30) % 3
    part = _Part(table, residuals, folds, 1, None)
    found = part.of_all()(0.7)
    rows = table[folds != 1] - table[folds != 1].mean(axis=0)
    for label in range(5):
        others = np.flatnonzero(np.arange(5) != label)
        A = rows[:, others]
        expected = np.linalg.solve(A.T @ A + 0.7 * np.eye(4), A.T @ residuals[folds != 1, label])
        assert found[others, label] == pytest.approx(expected, abs=1e-10)
        assert found[label, label] == 0.0


def test_evidence_is_the_sum_of_effects_and_the_better_table_is_taken():
    rng = np.random.default_rng(1)
    table = (rng.random((200, 4)) < 0.5).astype(float)
    residuals = 0.5 * (table[:, [1, 2, 3, 0]] - 0.5) + 0.1 * rng.normal(size=(200, 4))
    residuals[5, 2] = np.nan
    found = relate_labels(residuals, [rng.random((200, 4)), table], np.arange(200) % 4)
    assert found.known is table
    assert found.effects(7, 2).sum() == pytest.approx(found.evidence[7, 2])
    assert np.argmax(np.abs(found.effects(7, 2))) == 3
    assert np.isfinite(found.evidence).all()


def test_nothing_is_found_where_nothing_is():
    assert (
        relate_labels(np.zeros((20, 3)), [np.random.default_rng(0).random((20, 3))], np.arange(20) % 4)
        is None
    )


def test_related_labels_alone_have_ridge_regressions_with_penalties_of_their_own():
    rng = np.random.default_rng(3)
    table, residuals, folds = rng.random((40, 5)), rng.normal(size=(40, 5)), np.arange(40) % 4
    strengths = np.triu(rng.random((5, 5)) * (rng.random((5, 5)) < 0.6), 1)
    strengths += strengths.T
    strengths[:, 4] = strengths[4] = 0.0
    part = _Part(table, residuals, folds, 1, strengths)
    found = part.among()(0.7)
    rows, right = table[folds != 1] - table[folds != 1].mean(axis=0), residuals[folds != 1]
    for label in range(5):
        near = np.flatnonzero(strengths[:, label])
        A, penalties = rows[:, near], np.diag(0.7 / strengths[near, label])
        expected = np.linalg.solve(A.T @ A + penalties, A.T @ right[:, label])
        assert found[near, label] == pytest.approx(expected, abs=1e-10)
        assert np.count_nonzero(found[:, label]) == len(near)
    part.take(found)
    assert part.moments == pytest.approx(rows.T @ (right - rows @ found))
    assert part.residuals == pytest.approx(residuals[folds == 1] - part.rows @ found)


def test_a_structure_helps_where_rows_are_few_and_a_wrong_one_does_no_harm():
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.normal(size=(120, 15)), 4, axis=1)  # labels in fours
    table = truth + 0.5 * rng.normal(size=truth.shape)
    residuals, folds = truth + 2.0 * rng.normal(size=truth.shape), np.arange(120) % 5
    right = np.kron(np.eye(15), np.ones((4, 4))) - np.eye(60)
    order = rng.permutation(60)
    errors = {
        name: np.square(truth - relate_labels(residuals, [table], folds, given).evidence).mean()
        for name, given in (("none", None), ("right", right), ("wrong", right[order][:, order]))
    }
    assert errors["right"] < 0.8 * errors["none"]
    assert errors["wrong"] < 1.05 * errors["none"]


def test_strengths_are_read_from_any_structure():
    labels = LabelMatrix.from_any(np.eye(3, dtype=int), names=["a", "b", "c"])
    covariance = np.array([[4.0, -1.0, 0.0], [-1.0, 1.0, 0.5], [0.0, 0.5, 1.0]])
    expected = np.array([[0.0, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.0]])
    np.testing.assert_allclose(label_strengths(covariance, labels), expected)
    named = LabelCovariance.dense(covariance[::-1, ::-1], ["c", "b", "a"])
    np.testing.assert_allclose(label_strengths(named, labels), expected)
    tree = Taxonomy.from_nested({"r": ["a", "b"], "s": ["c"]})
    assert label_strengths(tree, labels)[0, 1] > label_strengths(tree, labels)[0, 2]
    for graph in (CliqueGraph(3, [(0, 2)], ["c", "x", "a"]), CliqueGraph(3, [(2, 0)], ["c", "b", "a"])):
        np.testing.assert_array_equal(label_strengths(graph, labels), np.fliplr(np.diag([1.0, 0.0, 1.0])))
    with pytest.raises(ValueError, match="The graph has 2 labels, but y has 3"):
        label_strengths(CliqueGraph(2, [(0, 1)]), labels)
    for nonsense in (None, 1.5, "tree", {"a": "b"}):
        with pytest.raises(ValueError, match="use True, False, or a covariance"):
            label_strengths(nonsense, labels)
    with pytest.raises(ValueError, match="over 2 labels but y has 3"):
        label_strengths(np.eye(2), labels)
