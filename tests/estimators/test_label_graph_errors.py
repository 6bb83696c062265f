"""Bad input to LabelGraphClassifier: one sentence that says what is wrong and what to do."""

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelweave import CliqueGraph, LabelGraphClassifier

X = np.random.default_rng(0).normal(size=(30, 3))
Y = (X @ np.random.default_rng(1).normal(size=(3, 4)) > 0).astype(int)
NAMES = ["sea", "sand", "boat", "city"]


def refused(
    message, *, targets=Y, features=X, error=ValueError, sample_weight=None, entry_weight=None, **parameters
):
    """Fit and read the message, which is one paragraph."""
    with pytest.raises(error, match=message) as caught:
        LabelGraphClassifier(**parameters).fit(features, targets, sample_weight, entry_weight)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ("abc", r"graph is 'abc'; it is one of 'learn', 'chow-liu', 'full', 'none', a CliqueGraph"),
        (5, r"graph is 5; it is one of"),
        (None, r"graph is None; it is one of"),
        (zip([0], [1], strict=True), r"graph is a zip, which one fit uses up; give a list of its tuples"),
        (["sea", "boat"], r"The edge at position 0 is 'sea'; give a pair of labels"),
        ([5], r"The edge at position 0 is 5; give a pair of labels"),
        ([("sea", "see")], r"unknown label name 'see'; labels are the names 'sea', 'sand', 'boat', 'city'"),
        ([(0, 4)], r"unknown label number 4; .* the numbers from 0 to 3"),
        ([(0, -1)], r"unknown label number -1"),
        ([(0, 1.0)], r"unknown label number 1.0"),
        ([("sea", "sea")], r"joins the label 'sea' to itself; leave it out"),
        ([("sea", "sand"), ("sand", "sea")], r"given twice, at positions 0 and 1; give each edge once"),
        ([("sea",)], r"has 1 label\(s\); give two"),
        (networkx.Graph([("sea", "see")]), r"The node 'see' of the graph is no label; name its nodes like"),
        (networkx.DiGraph([("sea", "boat")]), r"directed or has parallel edges; give a plain networkx.Graph"),
        (networkx.Graph([("sea", "sea")]), r"joins the label 'sea' to itself"),
        (CliqueGraph(3, [(0, 1)]), r"The graph has 3 labels but Y has 4; give a graph over Y's labels"),
        (CliqueGraph(2, [(0, 1)], ["sea", "see"]), r"unknown label name 'see'"),
    ],
)
def test_graphs_that_are_none(graph, message):
    refused(message, graph=graph, targets=pd.DataFrame(Y, columns=NAMES))


def test_names_without_names():
    refused(r"unknown label name 'sea'; labels are the numbers from 0 to 3", graph=[("sea", "sand")])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_rounds": 0}, r'max_rounds is 0; .* at least one round: give 1 or more, or graph="none"'),
        ({"max_rounds": -3}, r"max_rounds is -3"),
        ({"max_rounds": 2.5}, "max_rounds"),
        ({"cliques_per_round": 0}, "cliques_per_round"),
        ({"regularization": 0}, "regularization"),
        ({"regularization": "small"}, "regularization"),
        ({"graph_tol": -1}, "graph_tol"),
        ({"clique_size": 1}, "clique_size"),
        ({"clique_size": 9}, "clique_size"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"validation_fraction": 3}, "validation_fraction"),
        ({"early_stopping": "yes"}, "early_stopping"),
        ({"false_positive_cost": -1}, "false_positive_cost"),
        ({"false_positive_cost": "high"}, "false_positive_cost"),
        ({"false_negative_cost": [1, 2]}, r"false_negative_cost has shape \(2,\); .* each of the 4 labels"),
        (
            {"false_negative_cost": [1, 2, -1, 1]},
            r"false_negative_cost is -1 at label 2; costs must be finite numbers >= 0",
        ),
        ({"false_negative_cost": [1, 2, np.inf, 1]}, r"false_negative_cost is inf at label 2"),
        ({"false_negative_cost": ["a", 2, 1, 1]}, r"false_negative_cost has an entry that is no number"),
        ({"fit_intercept": 2}, "fit_intercept"),
        ({"intercept_scaling": 0}, "intercept_scaling"),
        ({"inference": "magic"}, "inference"),
        ({"exact_width": 21}, "exact_width"),
        ({"exact_width": -1}, "exact_width"),
        ({"max_nodes": 0}, "max_nodes"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_jobs": "all"}, "n_jobs"),
        ({"random_state": "dice"}, "random_state"),
    ],
)
def test_parameters(parameters, message):
    refused(message, **parameters)


def test_graphs_that_are_too_wide_for_exact_inference():
    advice = r'raise exact_width \(up to 20\), leave out edges, or give inference="auto"'
    refused(
        rf"The graph of 6 cliques has width 3, above exact_width=2; {advice}",
        graph="full",
        inference="exact",
        exact_width=2,
    )
    refused(r"width 1, above exact_width=0", graph="chow-liu", inference="exact", exact_width=0)
    grown = {"inference": "exact", "exact_width": 1, "graph_tol": 0.0, "regularization": 1e-3, "tol": 0.05}
    refused(r"has width 2, above exact_width=1; raise .*, lower max_rounds or cliques_per_round, or", **grown)


def test_too_few_rows_to_hold_some_out():
    refused(r"0.1 of 1 rows leaves none to learn from; give more rows with", features=X[:1], targets=Y[:1],
            early_stopping=True)  # fmt: skip
    unseen = np.where(np.arange(30)[:, None] < 1, Y, np.nan)
    refused(r"0.2 of 1 rows leaves none to learn from; give more rows with an observed label", features=X[:8],
            targets=unseen[:8], validation_fraction=0.2)  # fmt: skip


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (
            np.zeros((30, 3)),
            r"known has shape \(30, 3\); it needs a row for each of the 30 rows of X and a col",
        ),
        (np.zeros((29, 4)), r"known has shape \(29, 4\)"),
        (pd.DataFrame({"sea": np.zeros(30), "see": np.zeros(30)}), r"known has a column 'see', which is no"),
        (np.full((30, 4), 3.0), r"3"),
        (sp.csr_array((29, 4)), r"known has shape \(29, 4\)"),
        (np.full((30, 4), 2.0), "known cannot be read as labels: .* row 0, label 0 is 2.0"),
    ],
)
def test_known_labels(known, message):
    fitted = LabelGraphClassifier("none", tol=0.1).fit(X, pd.DataFrame(Y, columns=NAMES))
    with pytest.raises(ValueError, match=message) as caught:
        fitted.predict_map(X, known)
    assert "\n" not in str(caught.value)
