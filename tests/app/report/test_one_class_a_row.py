"""Reports of models that pick one class per row."""

import numpy as np
import pytest

from labelweave import KernelLogisticClassifier, MaxMarginClassifier
from labelweave.app.report.label_numbers import label_numbers, node_numbers
from labelweave.app.report.measured import measure
from labelweave.app.report.reported_rows import read_rows
from labelweave.app.report.row_examples import RowExamples
from labelweave.datasets import make_taxonomy
from labelweave.metrics import class_summary
from labelweave.metrics.known_labels import known_classes


@pytest.fixture(scope="module")
def tree_rows():
    data = make_taxonomy(27 * 4 + 150, 6, noise=0.8, random_state=0)
    return data.X, data.classes.copy(), data.taxonomy


@pytest.fixture(scope="module")
def tree_model(tree_rows):
    X, classes, taxonomy = tree_rows
    model = KernelLogisticClassifier(taxonomy=taxonomy, hyperparameters="fixed", tol=1e-2)
    return model.fit(X[:108], classes[:108])


def test_metrics_confusions_and_the_tree(report, tree_model, tree_rows):
    X, classes, taxonomy = tree_rows
    page = report(tree_model, X[108:], classes[108:])
    metrics = class_summary(
        classes[108:], tree_model.predict_proba(X[108:]), tree_model.classes_, taxonomy=taxonomy
    )
    loss = "levels of the tree between the right class and the predicted one; lower is better"
    assert f"Taxonomic loss {loss} {metrics['taxonomic_loss']:.4f}" in page.text
    for words in ("Weak classes", "Predicted instead", "The tree", "Parent accuracy"):
        assert words in page.text
    assert "have prior correlations by their common ancestors" in page.text


def test_nodes_are_counted_by_rows(tree_model, tree_rows):
    X, classes, taxonomy = tree_rows
    y = classes[108:].copy()
    y[0], y[1] = taxonomy.parent[y[0]], None  # partially observed, and not at all
    measured = measure(read_rows(tree_model, X[108:], None), y, "error", lambda words: None)
    found = {node.name: node for node in node_numbers(taxonomy, measured, label_numbers(measured.outcomes))}
    predicted = tree_model.predict(X[108:])
    for name in [*taxonomy.roots, taxonomy.parent[y[2]], y[2]]:
        true = np.array([entry is not None and name in taxonomy.path(entry) for entry in y])
        chosen = np.array([name in taxonomy.path(entry) for entry in predicted])
        known = y != None  # noqa: E711
        assert found[name].positive == true.sum()
        assert found[name].predicted == (chosen & known).sum()
        assert found[name].hits == (true & chosen).sum()
    assert len(measured.outcomes.truth) == len(y) - 2
    assert measured.outcomes.rows[0] == 2
    assert len(measured.notes) == 2


def test_a_decision_that_is_not_the_most_probable(tree_rows):
    X, classes, taxonomy = tree_rows
    model = KernelLogisticClassifier(
        taxonomy=taxonomy, hyperparameters="fixed", tol=1e-2, decision="least_expected_loss"
    ).fit(X[:108], classes[:108])
    measured = measure(read_rows(model, X[108:], None), classes[108:], "error", lambda words: None)
    assert measured.predicted_nodes.tolist() == model.predict(X[108:]).tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_without_probabilities(report, data, n_classes):
    X, Y = data
    y = np.array(["no", "yes", "maybe"])[Y.to_dense()[:, :2].sum(axis=1).astype(int) % n_classes]
    model = MaxMarginClassifier().fit(X[:200], y[:200])
    page = report(model, X[200:], y[200:])
    accuracy = (model.predict(X[200:]) == y[200:]).mean()
    assert f"Accuracy share of rows with the right class {accuracy:.4f}" in page.text
    assert "intercept" in page.text
    assert ("above its threshold" in page.text) == (n_classes == 2)
    assert ("its score; the prediction depends on all classes" in page.text) == (n_classes == 3)


def test_of_two_classes_the_threshold_is_shown(report):
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.where(X[:, 0] > 1, "yes", "no")
    model = KernelLogisticClassifier(kernel="linear", hyperparameters="fixed", threshold=0.3).fit(X, y)
    rows = read_rows(model, X, None)
    outcomes = measure(rows, y, "error", lambda words: None).outcomes
    assert outcomes.thresholds.tolist() == [1 - model.thresholds_[0], model.thresholds_[0]]
    assert ((outcomes.scores > outcomes.thresholds) == (outcomes.predicted.toarray() > 0)).all()
    examples = [label for row in RowExamples(rows, outcomes).across(20) for label in row.labels]
    assert all((label.total > 0) == (label.verdict != "missed") for label in examples)
    said = "the distance of a class above its threshold, in log-odds of the probabilities"
    assert said in report(model, X, y).text


def test_labels_stand_for_classes(tree_model, tree_rows):
    import scipy.sparse as sp

    from labelweave import LabelMatrix

    X, classes, _ = tree_rows
    names = [str(name) for name in tree_model.classes_]
    places = np.array([names.index(entry) for entry in classes[108:]])
    one_hot = sp.csr_array((np.ones(150, np.int8), (np.arange(150), places)), shape=(150, 27))
    by_name = measure(read_rows(tree_model, X[108:], None), classes[108:], "error", lambda words: None)
    for Y in (LabelMatrix(one_hot), LabelMatrix(one_hot, None, names)):
        found = measure(read_rows(tree_model, X[108:], None), Y, "error", lambda words: None)
        assert found.metrics == by_name.metrics


def test_classes_that_do_not_fit(tree_model, tree_rows):
    X, classes, taxonomy = tree_rows
    rows, y = read_rows(tree_model, X[108:], None), classes[108:].copy()
    y[3] = "elsewhere"
    with pytest.raises(ValueError, match="'elsewhere' of row 3"):
        measure(rows, y, "error", lambda words: None)
    assert len(measure(rows, y, "ignore", lambda words: None).outcomes.truth) == 149
    with pytest.raises(ValueError, match="No row of the data has a class of the model"):
        measure(rows, [None] * 150, "error", lambda words: None)
    with pytest.raises(ValueError, match="No row of the data has a class of the model, only nodes above"):
        measure(rows, [taxonomy.parent[entry] for entry in classes[108:]], "error", lambda words: None)
    several = np.zeros((150, 27))
    several[4, :2] = 1
    with pytest.raises(ValueError, match="Row 4 has two most specific nodes"):
        measure(rows, several, "error", lambda words: None)
    with pytest.raises(ValueError, match=r"Row 4 .* has several labels"):
        known_classes(several, rows.label_names, None, "error")
