"""A row of weight 2 counts as two rows in every metric and scorer, one of weight 0 as none."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from labelweave import LabelMatrix, LowRankClassifier, Taxonomy, metrics

RANDOM = np.random.default_rng(0)
N = 60
Y = (RANDOM.random((N, 5)) < 0.4).astype(float)
GAPS = np.where(RANDOM.random(Y.shape) < 0.2, np.nan, Y)
TABLE = np.round(1 / (1 + np.exp(-(Y + RANDOM.normal(size=Y.shape)))), 2)
WEIGHTS = RANDOM.integers(0, 4, N)
AGAIN = np.repeat(np.arange(N), WEIGHTS)
NAMES = np.array(["cat", "dog", "elm", "oak"])
CLASSES, PREDICTED = NAMES[RANDOM.integers(0, 4, N)], NAMES[RANDOM.integers(0, 4, N)]
SHARES = RANDOM.dirichlet(np.ones(4), N)
TREE = Taxonomy.from_nested({"animal": ["cat", "dog"], "tree": ["elm", "oak"]})
GRAPH = Taxonomy([("a", "c"), ("b", "c"), ("c", "d"), ("a", "e")])
NAMED = LabelMatrix.from_any(GAPS, ["a", "b", "c", "d", "e"])
BITS = dict.fromkeys("abcde", 2.0)
SETS, OF_CLASSES = (TABLE > 0.5).astype(int), {"classes": NAMES.tolist()}
CASES = {
    "average_auc": (GAPS, TABLE, {}),
    "class_summary": (CLASSES, SHARES, {**OF_CLASSES, "taxonomy": TREE}),
    "column_accuracy_score": (np.c_[CLASSES, PREDICTED], np.c_[PREDICTED, PREDICTED], {}),
    "coverage_error": (GAPS, TABLE, {}),
    "expected_calibration_error": (GAPS, TABLE, {}),
    "depth_table": (NAMED, TABLE - 0.5, {"taxonomy": GRAPH}),
    "fmax_score": (NAMED, TABLE, {"taxonomy": GRAPH}),
    "h_loss": (NAMED, SETS, {"taxonomy": GRAPH}),
    "hierarchical_f1_score": (NAMED, SETS, {"taxonomy": GRAPH}),
    "hierarchical_precision_score": (NAMED, SETS, {"taxonomy": GRAPH}),
    "hierarchical_recall_score": (NAMED, SETS, {"taxonomy": GRAPH}),
    "smin_loss": (NAMED, TABLE, {"taxonomy": GRAPH, "information": BITS}),
    "average_precision_score": (GAPS, TABLE, {}),
    "f1_score": (GAPS, SETS, {"average": "macro"}),
    "hamming_loss": (GAPS, SETS, {}),
    "harmonic_mean_accuracy": (CLASSES, PREDICTED, {"seen_classes": ["cat", "elm"]}),
    "label_ranking_average_precision": (GAPS, TABLE, {}),
    "log_loss": (GAPS, TABLE, {}),
    "mean_reciprocal_rank": (CLASSES, SHARES, OF_CLASSES),
    "ndcg_at_k": (GAPS, TABLE, {"k": 2}),
    "parent_accuracy": (CLASSES, PREDICTED, {"taxonomy": TREE}),
    "precision_at_k": (GAPS, TABLE, {"k": 2}),
    "precision_score": (GAPS, SETS, {"average": "example"}),
    "propensity_scored_precision_at_k": (GAPS, TABLE, {"propensity": [0.1, 0.3, 0.5, 0.8, 1.0], "k": 2}),
    "ranking_loss": (GAPS, TABLE, {}),
    "recall_score": (GAPS, SETS, {}),
    "score_table": (GAPS, TABLE, {"k": (1, 2)}),
    "subset_accuracy": (GAPS, SETS, {}),
    "taxonomic_loss": (CLASSES, PREDICTED, {"taxonomy": TREE}),
}
NO_ROWS_TO_WEIGHT = {
    "error_reject_curve",
    "get_scorer",
    "get_scorer_names",
    "information_content",
    "propensities",
}


def _plain(found):
    if not isinstance(found, dict):
        return {"": found}
    lines = found.items() if all(isinstance(line, dict) for line in found.values()) else [("", found)]
    return {(place, name): x for place, line in lines for name, x in line.items()}


def test_every_metric_is_here():
    functions = {name for name in metrics.__all__ if inspect.isfunction(getattr(metrics, name))}
    assert functions == CASES.keys() | NO_ROWS_TO_WEIGHT


@pytest.mark.parametrize("name", CASES)
def test_weights_are_repetitions(name):
    truth, given, settings = CASES[name]
    metric = getattr(metrics, name)
    weighted = metric(truth, given, **settings, sample_weight=WEIGHTS)
    assert _plain(weighted) == pytest.approx(_plain(metric(truth[AGAIN], given[AGAIN], **settings)))
    assert _plain(weighted) != pytest.approx(_plain(metric(truth, given, **settings)))
    with pytest.raises(ValueError, match="sample_weight"):
        metric(truth, given, **settings, sample_weight=-np.ones(N))


@pytest.mark.parametrize("average", ["label", "example"])
def test_weighted_areas_of_sparse_scores(average):
    few = np.where(TABLE > 0.6, TABLE, 0)
    dense = metrics.average_auc(GAPS, few, average, sample_weight=WEIGHTS)
    stored = sp.csr_array(few)
    assert metrics.average_auc(GAPS, stored, average, sample_weight=WEIGHTS) == pytest.approx(dense)


def test_weighted_areas_like_scikit_learn():
    theirs = roc_auc_score(Y, TABLE, average="macro", sample_weight=WEIGHTS)
    assert metrics.average_auc(Y, TABLE, sample_weight=WEIGHTS) == pytest.approx(theirs)


def test_scorers_take_weights():
    X = TABLE + RANDOM.normal(scale=0.1, size=TABLE.shape)
    model = LowRankClassifier(rank=3).fit(X, GAPS)
    for name in ("micro_f1", "average_auc", "neg_ranking_loss", "precision_at_2"):
        scorer = metrics.get_scorer(name)
        weighted = scorer(model, X, GAPS, sample_weight=WEIGHTS)
        assert weighted == pytest.approx(scorer(model, X[AGAIN], GAPS[AGAIN])), name
    assert model.score(X, GAPS, WEIGHTS) == pytest.approx(model.score(X[AGAIN], GAPS[AGAIN]))


@pytest.mark.parametrize(
    ("truth", "scores", "weights"),
    [
        ([[1], [0], [0]], [[0.5], [0.9], [-np.inf]], [1e17, 1, 3]),
        ([[1], [0], [np.nan]], [[0.5], [-np.inf], [0.9]], [1e17, 1, 3]),
        (
            [[1, k % 2] for k in range(8)],
            [[1, 1.5 - k % 2] for k in range(8)],
            [0.3, 0.4, 0.8, 0.2, 0.6, 0.8, 0.3, 0.1],
        ),
    ],
)  # fmt: skip
def test_areas_of_sparse_scores_count_only_weights_that_are_there(truth, scores, weights):
    rows, labels = np.nonzero(np.isfinite(scores))
    stored = sp.csr_array((np.asarray(scores)[rows, labels], (rows, labels)), shape=np.shape(scores))
    dense = metrics.average_auc(truth, scores, sample_weight=weights)
    assert metrics.average_auc(truth, stored, sample_weight=weights) == pytest.approx(dense)


def test_areas_of_a_label_do_not_depend_on_weights_in_others():
    truth = np.array([[0, np.nan], [1, 0], [1, 1], [1, 0]])
    scores = np.array([[0.1, 0.5], [0.2, 0.1], [0.3, 0.5], [0.4, 0.9]])
    weights = [1e16, 1, 1, 1]
    each = [metrics.average_auc(truth[:, [k]], scores[:, [k]], sample_weight=weights) for k in (0, 1)]
    assert each == [1.0, 0.5]
    assert metrics.average_auc(truth, scores, sample_weight=weights) == 0.75


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("power", [1000, -1060])
def test_only_ratios_of_weights_count(name, power):
    truth, given, settings = CASES[name]
    metric = getattr(metrics, name)
    weighted = _plain(metric(truth, given, **settings, sample_weight=WEIGHTS))
    scaled = _plain(metric(truth, given, **settings, sample_weight=np.ldexp(WEIGHTS, power)))
    same = {place for place in weighted if "positives" not in place}
    np.testing.assert_equal({k: scaled[k] for k in same}, {k: weighted[k] for k in same})
