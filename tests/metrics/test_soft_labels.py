"""Labels that are probabilities in metrics and thresholds: expected counts, or the more likely ones."""

import numpy as np
import pytest

from labelweave import LabelMatrix, metrics
from labelweave.postprocessing import calibrate_labels, choose_thresholds
from labelweave.postprocessing.labeled_scores import read_labeled_scores
from labelweave.postprocessing.thresholds.objective import count_sets


def _case(seed=0, rows=30):
    rng = np.random.default_rng(seed)
    P = np.round(rng.random((rows, 3)), 2)
    P[rng.random(P.shape) < 0.3] = 0.0
    P[rng.random(P.shape) < 0.1] = np.nan
    return P, rng.integers(0, 2, P.shape), rng.standard_normal(P.shape), rng.random(rows)


def test_sets_are_counted_by_expectation():
    P, predicted, _, weights = _case()
    labels, seen = LabelMatrix.from_probabilities(P), ~np.isnan(P)
    shares, rows = np.nan_to_num(P), weights[:, None]
    hit, there, said = ((rows * part).sum() for part in (shares * predicted, shares, predicted * seen))
    found = metrics.f1_score(labels, predicted, sample_weight=weights)
    assert found == pytest.approx(2 * hit / (there + said))
    wrong = (rows * seen * abs(shares - predicted)).sum() / (rows * seen).sum()
    assert metrics.hamming_loss(labels, predicted, sample_weight=weights) == pytest.approx(wrong)
    of_rows = metrics.recall_score(labels, predicted, average="example")
    each = (shares * predicted).sum(axis=1) / np.maximum(shares.sum(axis=1), 1e-300)
    assert of_rows == pytest.approx(each[seen.any(axis=1)].mean())


def test_rankings_and_whole_sets_see_the_likelier_labels():
    P, predicted, scores, _ = _case()
    labels = LabelMatrix.from_probabilities(P)
    assert metrics.ranking_loss(labels, scores) == metrics.ranking_loss(labels.most_likely(), scores)
    found = metrics.subset_accuracy(labels, predicted)
    assert found == metrics.subset_accuracy(labels.most_likely(), predicted)


def test_log_loss_is_the_expected_one():
    P, _, scores, _ = _case()
    given, seen = 1 / (1 + np.exp(-scores)), ~np.isnan(P)
    losses = -(P * np.log(given) + (1 - P) * np.log(1 - given))
    labels = LabelMatrix.from_probabilities(P)
    assert metrics.log_loss(labels, given) == pytest.approx(losses[seen].mean())


@pytest.mark.parametrize("scope", ["label", "global"])
@pytest.mark.parametrize("objective", ["micro_f1", "macro_f1", "hamming_loss"])
@pytest.mark.parametrize("scale", [1.0, 1.6])
def test_thresholds_are_the_best_of_all_cuts(scope, objective, scale):
    P, _, scores, weights = _case(rows=12)
    labels = LabelMatrix.from_probabilities(P)
    labels = LabelMatrix._of_targets(scale * labels.expected_positives, labels.observed, None)
    table = read_labeled_scores(labels, scores, weights)

    def worth(thresholds):
        value = count_sets(table, lambda block: block > thresholds).measure(objective)
        return -value if objective == "hamming_loss" else value

    found = choose_thresholds(labels, scores, objective, scope=scope, sample_weight=weights)
    best = worth(found.thresholds)
    cuts = np.append(np.sort(scores, axis=None), -np.inf)
    if scope == "global":
        assert best >= max(worth(np.full(3, cut)) for cut in cuts) - 1e-9
        return
    for label in range(3):  # no change of a single label's threshold improves it
        for cut in cuts:
            others = found.thresholds.copy()
            others[label] = cut
            assert best >= worth(others) - 1e-9


def test_curves_take_probabilities_as_targets():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((4000, 1))
    truth = 1 / (1 + np.exp(-(2 * scores - 1)))
    found = calibrate_labels(LabelMatrix.from_probabilities(truth), scores, "sigmoid")
    np.testing.assert_allclose(found.probabilities(scores), truth, atol=0.01)
