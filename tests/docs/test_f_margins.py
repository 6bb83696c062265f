"""The label set of the highest loss and score is that of all label sets."""

from itertools import product

import numpy as np
import pytest
from benchmarks.papers.f_margins import worst_set
from sklearn.metrics import f1_score


@pytest.mark.parametrize("n_true", range(6))
def test_the_worst_set_is_that_of_all_sets(n_true):
    random = np.random.default_rng(n_true)
    sets = np.array(list(product((0.0, 1.0), repeat=5)))
    for scale in (0.01, 0.1, 1.0) * 5:
        truth, scores = random.permutation(np.arange(5) < n_true).astype(float), scale * random.normal(size=5)
        values = [1.0 - f1_score(truth, one, zero_division=1.0) + scores @ one for one in sets]
        labels, loss = worst_set(scores, truth)
        assert loss == pytest.approx(1.0 - f1_score(truth, labels, zero_division=1.0))
        assert loss + scores @ labels == pytest.approx(max(values))
