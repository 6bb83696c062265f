"""Metrics of label sets and scores in a hierarchy, against slow references with sets of names."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave import HierarchicalClassifier, KernelLogisticClassifier, LabelMatrix, Taxonomy, metrics
from reference import hierarchy_metrics_twin as twin
from reference.random_graphs import taxonomies

_TREE = Taxonomy.from_nested({"animal": {"dog": ["poodle", "boxer"], "cat": None}})


def _drawn(graph, seed, share, n=6):
    """Draw labels of some nodes, some missing, with predicted sets and scores, many of them equal."""
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.permutation(graph.nodes)[: 1 + rng.integers(len(graph))]]
    Y = (rng.random((n, len(names))) < 0.3).astype(float)
    Y[:-1][rng.random((n - 1, len(names))) < share] = np.nan
    predicted = (rng.random(Y.shape) < 0.4).astype(int)
    return names, Y, predicted, rng.integers(0, 6, Y.shape) / 5


@settings(max_examples=25)
@given(graph=taxonomies(), seed=st.integers(0, 999), share=st.sampled_from([0.0, 0.3]))
def test_sets_against_slow_ones(graph, seed, share):
    names, Y, predicted, _ = _drawn(graph, seed, share)
    rows = twin.rows_of_sets(graph, names, Y, predicted)
    classes = twin.all_classes(graph, names)
    omitted = set(graph.roots) if set(classes) - set(graph.roots) else set()
    hit, found, positive = twin.counts(rows, omitted)
    truth = pd.DataFrame(Y, columns=names)
    given_ = (truth, predicted, graph)
    if hit + found + positive:  # else nothing may have been observed
        for metric, expected in (
            (metrics.hierarchical_precision_score, twin.share(hit, found)),
            (metrics.hierarchical_recall_score, twin.share(hit, positive)),
            (metrics.hierarchical_f1_score, twin.share(2 * hit, found + positive)),
        ):
            assert metric(*given_, leave_out=sorted(omitted)) == pytest.approx(expected)
    assert metrics.h_loss(*given_) == pytest.approx(twin.h_loss(graph, rows, twin.sibling_costs(graph)))
    ones = dict.fromkeys(graph.nodes, 1.0)
    assert metrics.h_loss(*given_, cost="one") == pytest.approx(twin.h_loss(graph, rows, ones))


@settings(max_examples=25)
@given(graph=taxonomies(), seed=st.integers(0, 999), share=st.sampled_from([0.0, 0.3]))
def test_fmax_smin_and_information_against_slow_ones(graph, seed, share):
    names, Y, predicted, scores = _drawn(graph, seed, share)
    rows = twin.rows_of_sets(graph, names, Y, predicted)
    truth, thresholds = pd.DataFrame(Y, columns=names), [0.1, 0.2, 0.5, 0.8, 1.0]
    bits = metrics.information_content(truth, graph)
    assert bits == pytest.approx(twin.information(graph, names, rows))
    assert metrics.smin_loss(truth, scores, graph, bits, thresholds=thresholds) == pytest.approx(
        twin.smin(graph, names, rows, scores, thresholds, bits), nan_ok=True
    )
    roots = set(graph.roots)
    omitted = roots if set(twin.all_classes(graph, names)) - roots else set()
    found = metrics.fmax_score(truth, scores, graph, thresholds=thresholds, leave_out=omitted)
    expected = twin.fmax(graph, names, rows, scores, thresholds, omitted)
    assert found == pytest.approx(expected, nan_ok=True)


def test_fmax_by_hand_at_the_thresholds_of_cafa():
    known = pd.DataFrame([[1, 1, 0, 0], [1, 0, 0, 1]], columns=["animal", "dog", "poodle", "cat"])
    scores = [[0.5, 0.4, 0.6, 0.0], [0.0, 0.0, 0.0, 0.005]]
    # at most 0.6 the first row gets three classes, of which two are right; the second never any
    assert metrics.fmax_score(known, scores, _TREE) == pytest.approx(2 * (2 / 3) * 0.5 / (2 / 3 + 0.5))


def test_fmax_is_0_where_nothing_is_predicted_and_nan_where_no_row_has_a_class():
    known = pd.DataFrame([[1, 1], [1, 0]], columns=["animal", "dog"])
    assert metrics.fmax_score(known, np.full((2, 2), 0.004), _TREE) == 0.0
    assert np.isnan(metrics.fmax_score(0 * known, np.full((2, 2), 0.5), _TREE))


def test_classes_above_tags_count_too():
    assert metrics.hierarchical_f1_score([["poodle"]], [["boxer"]], _TREE) == pytest.approx(4 / 6)
    assert metrics.hierarchical_recall_score([["poodle"]], [["dog"]], _TREE) == pytest.approx(2 / 3)
    assert metrics.hierarchical_precision_score([["poodle"]], [["dog"]], _TREE, average="example") == 1.0


def test_what_a_row_counts_does_not_depend_on_gaps_in_others():
    known = pd.DataFrame([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], columns=["poodle", "boxer", "cat"])
    guessed = [[1, 0, 0], [0, 1, 0]]
    gap = pd.DataFrame([[np.nan] * 3], columns=known.columns)
    more = pd.concat([known, gap])
    for metric in (metrics.hierarchical_precision_score, metrics.h_loss):
        assert metric(more, [*guessed, [0, 0, 1]], _TREE) == metric(known, guessed, _TREE) < 1
    assert metrics.information_content(more, _TREE) == metrics.information_content(known, _TREE)


def test_a_table_of_each_depth():
    Y, guess = [["poodle"], ["cat"], ["dog"]], [["boxer"], ["cat"], ["dog"]]
    table = metrics.depth_table(Y, Y_pred=guess, taxonomy=_TREE)
    assert [table[depth]["f1"] for depth in (0, 1, 2)] == [1.0, 1.0, 0.0]
    assert [table[depth]["classes"] for depth in (0, 1, 2)] == [1.0, 2.0, 2.0]
    assert [table[depth]["positives"] for depth in (0, 1, 2)] == [3.0, 3.0, 1.0]
    names = ["animal", "dog", "cat", "poodle", "boxer"]
    known = pd.DataFrame([[1, 1, 0, 1, 0], [1, 0, 1, 0, 0], [0, 0, 0, 0, np.nan]], columns=names)
    scores = np.array([[0.2, -1, -2, 0.3, -1], [1, -1, 0.4, -1, -1], [-1, -1, -1, -1, -1]])
    table = metrics.depth_table(known, scores, taxonomy=_TREE)
    assert table[1]["f1"] == table[1]["average_precision"] == 1.0
    part = metrics.average_precision_score(known[names[3:]], scores[:, 3:])
    assert table[2]["average_precision"] == pytest.approx(part)


def test_scorers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    leaves = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X[:, 2] > 0]).astype(float)
    Y = _TREE.with_ancestors(
        LabelMatrix.from_any(
            np.hstack([np.zeros((40, 2)), leaves]), ["animal", "dog", "poodle", "boxer", "cat"]
        )
    )
    model = HierarchicalClassifier(
        KernelLogisticClassifier(kernel="linear", hyperparameters="fixed"), _TREE
    ).fit(X, Y)
    sets, bits = model.predict(X), metrics.information_content(Y, _TREE)
    asked = ("hierarchical_f1", "hierarchical_precision", "hierarchical_recall", "neg_h_loss")
    scored = {name: metrics.get_scorer(name, taxonomy=_TREE)(model, X, Y) for name in asked}
    assert scored == {
        "hierarchical_f1": metrics.hierarchical_f1_score(Y, sets, _TREE),
        "hierarchical_precision": metrics.hierarchical_precision_score(Y, sets, _TREE),
        "hierarchical_recall": metrics.hierarchical_recall_score(Y, sets, _TREE),
        "neg_h_loss": -metrics.h_loss(Y, sets, _TREE),
    }
    assert scored["hierarchical_f1"] > 0.8
    probabilities = model.predict_proba(X)
    fmax = metrics.get_scorer("fmax", taxonomy=_TREE, leave_out=["animal"])(model, X, Y)
    assert fmax == metrics.fmax_score(Y, probabilities, _TREE, leave_out=["animal"])
    smin = metrics.get_scorer("neg_smin_loss", taxonomy=_TREE, information=bits)(model, X, Y)
    assert smin == -metrics.smin_loss(Y, probabilities, _TREE, bits) < 0
