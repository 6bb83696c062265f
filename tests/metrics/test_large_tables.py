"""Tables of more than 2^31 entries, few of them stored: a small one in a corner counts as if alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import LabelMatrix
from labelweave.metrics import precision_at_k, propensities, propensity_scored_precision_at_k, score_table
from labelweave.metrics._inputs import signs_at

N_ROWS, N_LABELS = 50_000, 60_000
SMALL = np.random.default_rng(0).random((3, 40, 30))


def _in_the_corner(table):
    found = sp.coo_array(table)
    rows, labels = (
        part + size - own
        for part, size, own in zip(found.coords, (N_ROWS, N_LABELS), table.shape, strict=True)
    )
    return sp.csr_array((found.data, (rows, labels)), shape=(N_ROWS, N_LABELS))


@pytest.fixture(scope="module")
def tables():
    truth, predicted = (SMALL[0] < 0.2).astype(np.int8), (SMALL[1] < 0.3).astype(np.int8)
    return truth, SMALL[2], predicted


def test_metrics(tables):
    truth, scores, predicted = map(_in_the_corner, tables)
    weights = np.zeros(N_ROWS)
    weights[-40:] = 1.0
    assert N_ROWS * N_LABELS > 2**31
    found = score_table(truth, scores, predicted, sample_weight=weights)
    small = score_table(tables[0], sp.csr_array(tables[1]), tables[2])
    same = [
        "micro_f1",
        "example_f1",
        "subset_accuracy",
        "precision@5",
        "ndcg@5",
        "label_ranking_average_precision",
    ]
    assert {name: found[name] for name in same} == pytest.approx({name: small[name] for name in same})
    assert found["hamming_loss"] == pytest.approx(small["hamming_loss"] * 30 / N_LABELS)
    assert found["macro_f1"] == pytest.approx(small["macro_f1"] * 30 / N_LABELS)
    chances = propensities(truth)
    kept = propensity_scored_precision_at_k(truth, scores, chances, 3, sample_weight=weights)
    alone = propensity_scored_precision_at_k(tables[0], tables[1], chances[-30:], 3)
    assert kept == pytest.approx(alone)
    assert precision_at_k(truth, scores, 3, sample_weight=weights) == pytest.approx(small["precision@3"])


def test_signs_at_the_far_end(tables):
    truth = LabelMatrix(_in_the_corner(tables[0]))
    rows, labels = np.divmod(np.arange(1200), 30)
    found = signs_at(truth, rows + N_ROWS - 40, labels + N_LABELS - 30)
    np.testing.assert_array_equal(found.reshape(40, 30) > 0, tables[0] > 0)
