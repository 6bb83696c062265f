"""Checks of parameters, weights and checkpoints in every fit, and the scaling of features."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from labelweave import BinaryRelevance, CalibratedLabelClassifier, LabelMatrix, MaxMarginClassifier
from labelweave.decisions import label_scores
from labelweave.decisions.label_scores import row_blocks
from labelweave.estimators import kernel_classifier
from labelweave.estimators.journal import Journal
from labelweave.estimators.kernel_classifier import choose_scaling
from labelweave.estimators.label_graph import inputs
from labelweave.estimators.label_graph.inputs import learned_width, out_of_fold_ridge
from labelweave.estimators.low_rank.ridge_learning import RidgeSearch
from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel
from labelweave.features.feature_matrix import column_means, filled
from labelweave.foundation.arrays import Workers, read_row_weights
from labelweave.labels.targets import TargetForm
from labelweave.model_files import ModelFileError
from labelweave.problems.label_entries import EntryWeights

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3))
Y = (X[:, :2] > 0).astype(int)


def test_flags_may_be_flags_and_the_log_a_number():
    model = MaxMarginClassifier(fit_intercept=False, warm_start=True, verbose=False).fit(X, Y)
    assert not np.any(model.intercept_)


def test_weights_of_rows_are_numbers_of_any_type():
    for given in ([0, 1], [0.0, 1.0], np.array([False, True]), np.float16([0, 1])):
        np.testing.assert_array_equal(read_row_weights(given, 2), [0.0, 1.0], strict=True)
    assert read_row_weights(np.float32([0, 1]), 2, dtype=None).dtype == np.float32
    assert read_row_weights([0, 0], 2, may_vanish=True).tolist() == [0.0, 0.0]
    assert read_row_weights(None, 2).tolist() == read_row_weights(1, 2).tolist() == [1.0, 1.0]


def test_the_scale_of_features_is_chosen_by_a_part_of_rows_and_labels(monkeypatch):
    def linear(rows):
        return LinearKernel()

    targets = np.column_stack([X[:, 0] + 1e-3 * X[:, 1], np.zeros(40)])
    wide = FeatureMatrix(X * [1.0, 1e4, 1e-4])
    whole = choose_scaling(wide, targets, linear)
    monkeypatch.setattr(kernel_classifier, "_MOST_ROWS", 20)
    monkeypatch.setattr(kernel_classifier, "_MOST_LABELS", 1)
    part = choose_scaling(wide, targets, linear)
    assert whole is not None
    assert part is not None
    assert part.to_state().keys() == whole.to_state().keys()
    unit = sp.csr_array(np.eye(3)[np.arange(40) % 3])
    assert choose_scaling(FeatureMatrix(unit), targets, linear) is None


def test_sparse_rows_that_are_rather_full_are_scaled_as_dense_ones():
    random = np.random.default_rng(1)
    X = random.normal(size=(80, 6)) * (random.random((80, 6)) < 0.7) + 3
    Y = (X[:, :2] > 3).astype(int)
    dense = MaxMarginClassifier(scaling="auto").fit(X, Y)
    sparse = MaxMarginClassifier(scaling="auto").fit(sp.csr_array(X), Y)
    assert sparse.scaling_.kind == dense.scaling_.kind
    expected = dense.decision_function(X)
    for model, rows in ((dense, sp.csr_array(X)), (sparse, X), (sparse, sp.csr_array(X))):
        assert np.allclose(model.decision_function(rows), expected)


def test_missing_features_of_sparse_rows_get_means_of_their_columns():
    dense = np.array([[1.0, np.nan, 0.0], [3.0, 4.0, np.nan], [np.nan, 0.0, 6.0]])
    stored = sp.csr_array(dense)
    expected = [2.0, 2.0, 3.0]
    np.testing.assert_array_equal(column_means(stored), expected)
    np.testing.assert_array_equal(column_means(dense), expected)
    whole = filled(stored, column_means(stored))
    np.testing.assert_array_equal(whole.toarray(), filled(dense, column_means(dense)))
    assert np.isnan(stored.data).sum() == 3  # the input is unchanged
    assert filled(whole, column_means(stored)) is whole
    np.testing.assert_array_equal(column_means(sp.csr_array(np.eye(2))), [0.5, 0.5])


@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array])
def test_means_of_columns_are_summed_in_double_precision(hold):
    years = np.full((200_000, 2), 2019.5, np.float32)
    np.testing.assert_allclose(column_means(hold(years)), 2019.5, rtol=1e-12)
    years[7, 1] = np.nan
    np.testing.assert_allclose(column_means(hold(years)), 2019.5, rtol=1e-12)
    np.testing.assert_array_equal(column_means(hold(years[:0])), 0.0)


def test_rows_are_handed_out_in_blocks_that_fit(monkeypatch):
    model = BinaryRelevance().fit(X, Y)
    assert [len(part) for part in row_blocks(model, X, 2)] == [40]
    monkeypatch.setattr(label_scores, "_SCORES_AT_ONCE", 30)
    parts = list(row_blocks(model, X, 2))
    assert max(map(len, parts)) <= 15
    np.testing.assert_array_equal(np.vstack(parts), X)
    whole = CalibratedLabelClassifier(MaxMarginClassifier(kernel="precomputed"))
    assert [len(part) for part in row_blocks(whole, np.eye(40), 2)] == [40]


def test_the_width_of_a_kernel_has_the_least_out_of_fold_loss(monkeypatch):
    line = np.linspace(-2, 2, 40)[:, None]
    labels, weights = LabelMatrix.from_any((np.sin(14 * line) > 0).astype(int)), np.ones(40)
    losses = []
    for width in inputs._WIDTHS:
        sizes, axes = np.linalg.eigh(rbf_kernel(line, gamma=width))
        root = axes * np.sqrt(np.maximum(sizes, 0))
        losses.append(out_of_fold_ridge(root, labels, weights).loss)
    with Workers().running() as workers:
        found = learned_width(RBFKernel(1.0), FeatureMatrix(line), (labels, weights), 0, workers)
        monkeypatch.setattr(inputs, "_ROWS_FOR_WIDTH", 30)
        of_some = learned_width(RBFKernel(1.0), FeatureMatrix(line), (labels, weights), 0, workers)
    assert found.gamma == inputs._WIDTHS[np.argmin(losses)]
    assert of_some.gamma in inputs._WIDTHS


def test_forms_of_targets_from_files_are_checked():
    state = {"kind": "labels", "container": "dense", "negative": 0, "frame": None, "unobserved": (1,)}
    form = TargetForm.from_state(state, np.array(["a", "b"]))
    assert form.unobserved == (1,)
    for wrong in ((2,), (-1,), (0.5,)):
        with pytest.raises(ValueError, match="no numbers of 2 labels"):
            TargetForm.from_state(state | {"unobserved": wrong}, np.array(["a", "b"]))


@pytest.mark.parametrize("error", [ValueError("no such row."), KeyError("part"), ZeroDivisionError("1 / 0")])
def test_errors_name_the_file_only_where_it_was_read(tmp_path, error):
    journal = Journal(tmp_path / "c.lw")
    with pytest.raises(type(error)), journal.going_on():
        raise error
    journal.read.add("part")
    with pytest.raises(ModelFileError, match="cannot resume from it"), journal.going_on():
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
