"""The calibration error against a loop over bins."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.labels import LabelMatrix
from labelweave.metrics import _inputs, expected_calibration_error


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"average": "samples"}, "average is 'samples'; pass 'micro', 'macro' or None"),
        ({"n_bins": 0}, "n_bins is 0; pass an integer from 1 to 10,000"),
        ({"probabilities": [[0.5], [-0.1]]}, r"The probability at row 1, label 0 is -0\.1"),
        ({"probabilities": [[0.5]]}, r"scores has shape \(1, 1\) but Y_true has shape \(2, 1\)"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        expected_calibration_error([[1], [0]], **{"probabilities": [[0.5], [0.5]], **arguments})


def test_safe_negatives_can_be_left_out():
    """A constant is calibrated over all entries of a sparse table, and says nothing of those that matter."""
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
    with pytest.raises(ValueError, match="least is 1"):
        expected_calibration_error(truth, bold, least=1)


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
    with pytest.raises(ValueError, match="label 1 is 2"):
        expected_calibration_error([[0, 1]], sp.csr_array([[0.0, 2.0]]))


def _at_most_two_rows(write_out):
    def checked(table, *given, **named):
        assert table.shape[0] <= 2
        return write_out(table, *given, **named)

    return checked
