"""The log loss and the calibration error: scikit-learn's values, and loops for missing entries."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import log_loss as sklearn_log_loss

from labelweave import LabelMatrix, Taxonomy, metrics
from labelweave.metrics import _inputs, expected_calibration_error

NAMES = ["poodle", "boxer", "cat", "oak"]
TREE = Taxonomy.from_nested({"animal": {"dog": ["poodle", "boxer"], "cat": None}, "plant": ["oak", "elm"]})
SMALLEST = float(np.finfo(np.float64).eps)


def distributions(generator, n_rows):
    return generator.dirichlet(np.full(4, 0.3), size=n_rows)


def slow_class_loss(truths, table, weights):
    below = {node: [k for k, name in enumerate(NAMES) if node in TREE.path(name)] for node in TREE.nodes}
    total = weight_sum = 0.0
    for truth, row, weight in zip(truths, table, weights, strict=True):
        if truth is not None and weight:
            mass = sum(row[k] for k in below[truth])
            total -= weight * math.log(min(max(mass, SMALLEST), 1 - SMALLEST))
            weight_sum += weight
    return total / weight_sum


def slow_label_loss(Y, table, weights):
    total = weight_sum = 0.0
    for y, row, weight in zip(Y, table, weights, strict=True):
        for label, positive in zip(y, row, strict=True):
            if not math.isnan(label):
                p = min(max(positive if label == 1 else 1 - positive, SMALLEST), 1 - SMALLEST)
                total -= weight * math.log(p)
                weight_sum += weight
    return total / weight_sum


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
def test_one_class_a_row_equals_scikit_learn(dtype, seed, weighted):
    generator = np.random.default_rng(seed)
    table = distributions(generator, 9).astype(dtype)
    table[0] = [0, 0, 1, 0]
    truths = generator.integers(0, 4, 9)
    weights = generator.random(9) if weighted else None
    expected = sklearn_log_loss(truths, table, labels=range(4), sample_weight=weights)
    assert metrics.log_loss(truths, table, sample_weight=weights) == pytest.approx(expected, rel=1e-5)
    names = [NAMES[k] for k in truths]
    assert metrics.log_loss(names, table, NAMES, sample_weight=weights) == pytest.approx(expected, rel=1e-5)


@given(seed=st.integers(0, 2**32 - 1))
def test_truths_at_inner_nodes_have_the_mass_below(seed):
    generator = np.random.default_rng(seed)
    table = distributions(generator, 12)
    truths = generator.choice([*NAMES, "dog", "animal", "plant", None], 12).tolist()
    truths[0] = "dog"
    weights = generator.choice([0.0, 1.0, 2.0], 12)
    weights[0] = 1.0
    loss = metrics.log_loss(truths, table, NAMES, taxonomy=TREE, sample_weight=weights)
    assert loss == pytest.approx(slow_class_loss(truths, table, weights))


@st.composite
def label_cases(draw):
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 5)))
    Y = draw(hnp.arrays(float, shape, elements=st.sampled_from([0.0, 1.0, np.nan])))
    Y[0, 0] = 1.0
    table = draw(hnp.arrays(float, shape, elements=st.sampled_from([0.0, 0.1, 0.5, 0.75, 1.0])))
    weights = draw(hnp.arrays(float, shape[0], elements=st.sampled_from([0.5, 1.0, 2.0])))
    return Y, table, weights


@given(case=label_cases())
def test_many_labels_a_row_equals_loops(case):
    Y, table, weights = case
    expected = slow_label_loss(*case)
    assert metrics.log_loss(Y, table, sample_weight=weights) == pytest.approx(expected)
    targets = LabelMatrix.from_any(Y)
    assert metrics.log_loss(targets, table, sample_weight=weights) == pytest.approx(expected)


def test_many_labels_equal_scikit_learns_mean_over_labels(monkeypatch):
    generator = np.random.default_rng(0)
    Y, table = generator.integers(0, 2, (40, 5)), generator.random((40, 5))
    expected = np.mean([sklearn_log_loss(Y[:, k], table[:, k], labels=[0, 1]) for k in range(5)])
    monkeypatch.setattr(_inputs, "BLOCK_ENTRIES", 15)
    for given_Y in (Y, 2 * Y - 1, sp.csr_array(Y)):
        assert metrics.log_loss(given_Y, table) == pytest.approx(expected)


def test_frames_are_read_by_name():
    pd = pytest.importorskip("pandas")
    Y = pd.DataFrame([[1, 0], [np.nan, 1]], columns=["a", "b"])
    table = pd.DataFrame([[0.5, 0.5], [0.1, 0.5]], columns=["a", "b"])
    assert metrics.log_loss(Y, table) == pytest.approx(math.log(2))
    with pytest.raises(ValueError, match="same labels in the same order"):
        metrics.log_loss(Y, table[["b", "a"]])


def test_columns_that_are_numbers_are_classes_that_are_numbers():
    pd = pytest.importorskip("pandas")
    y, table = np.array([0.0, 1.0, np.nan]), np.array([[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]])
    for columns in ([0.0, 1.0], [0, 1], ["0", "1"]):
        assert metrics.log_loss(y, pd.DataFrame(table, columns=columns)) == pytest.approx(math.log(2))
    named = pd.DataFrame(table, columns=[0.0, 1.0])
    assert metrics.log_loss(y, named, [0.0, 1.0]) == pytest.approx(math.log(2))


def test_blocks_of_rows_without_weight_count_nothing(monkeypatch):
    monkeypatch.setattr(_inputs, "BLOCK_ENTRIES", 2)
    Y, table = [[1, 0], [0, 1]], [[0.9, 0.1], [0.5, 0.5]]
    assert metrics.log_loss(Y, table, sample_weight=[0, 1]) == pytest.approx(math.log(2))


def slow_error(truth, probabilities, n_bins):
    truth, probabilities = truth.ravel(), probabilities.ravel()
    seen = ~np.isnan(truth)
    truth, probabilities = truth[seen], probabilities[seen]
    total = 0.0
    for number in range(n_bins):
        last = number == n_bins - 1
        inside = (probabilities * n_bins >= number) & (last | (probabilities * n_bins < number + 1))
        total += abs(probabilities[inside].sum() - truth[inside].sum())
    return total / len(truth)


@pytest.mark.parametrize("values", [[0.0, 1.0, np.nan], [0.0, 0.3, 0.8, np.nan]])
@given(seed=st.integers(0, 99), n_bins=st.integers(1, 12))
@settings(max_examples=40)
def test_it_equals_a_loop(values, seed, n_bins):
    rng = np.random.default_rng(seed)
    truth = rng.choice(values, (9, 4))
    truth[0] = 1
    probabilities, labels = rng.integers(0, 9, (9, 4)) / 8, LabelMatrix.from_probabilities(truth)
    assert expected_calibration_error(labels, probabilities, n_bins=n_bins) == pytest.approx(
        slow_error(truth, probabilities, n_bins)
    )
    by_label = expected_calibration_error(labels, probabilities, n_bins=n_bins, average=None)
    expected = [slow_error(truth[:, [k]], probabilities[:, [k]], n_bins) for k in range(4)]
    np.testing.assert_allclose(by_label, expected, atol=1e-15)
    macro = expected_calibration_error(labels, probabilities, n_bins=n_bins, average="macro")
    assert macro == pytest.approx(np.mean(expected))


def test_safe_negatives_can_be_omitted():
    """A constant is calibrated over all entries of a sparse table, but not over those that matter."""
    generator = np.random.default_rng(0)
    truth = (generator.random((500, 40)) < 0.02).astype(int)
    constant = np.full(truth.shape, truth.mean())
    assert expected_calibration_error(truth, constant) < 1e-12
    assert np.isnan(expected_calibration_error(truth, constant, least=0.05))
    bold = np.where(generator.random(truth.shape) < 0.01, 0.8, 0.001)
    kept = bold > 0.05
    assert expected_calibration_error(truth, bold) < 0.04
    expected = abs(0.8 - truth[kept].mean())
    assert expected_calibration_error(truth, bold, least=0.05) == pytest.approx(expected)
    hidden = np.where(kept, truth, np.nan)
    for average in ("macro", None):
        np.testing.assert_allclose(
            expected_calibration_error(truth, bold, least=0.05, average=average),
            expected_calibration_error(hidden, bold, average=average),
        )


@pytest.mark.parametrize("least", [0.0, 0.05])
def test_sparse_probabilities_are_written_out_some_rows_at_a_time(monkeypatch, least):
    rng = np.random.default_rng(2)
    truth = (rng.random((20, 6)) < 0.3).astype(int)
    table = np.where(rng.random(truth.shape) < 0.4, rng.random(truth.shape), 0.0)
    expected = expected_calibration_error(truth, table, average=None, least=least)
    monkeypatch.setattr(_inputs, "BLOCK_ENTRIES", 12)
    monkeypatch.setattr(sp.csr_array, "toarray", _at_most_two_rows(sp.csr_array.toarray))
    truth = LabelMatrix.from_any(truth)
    found = expected_calibration_error(truth, sp.csr_array(table), average=None, least=least)
    np.testing.assert_allclose(found, expected)


def _at_most_two_rows(write_out):
    def checked(table, *given, **named):
        assert table.shape[0] <= 2
        return write_out(table, *given, **named)

    return checked
