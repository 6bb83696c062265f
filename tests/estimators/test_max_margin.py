"""What users of MaxMarginClassifier rely on."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import labelweave
from drawn import draw_labels
from labelweave import LabelMatrix, MaxMarginClassifier, Taxonomy
from watching import Count


@pytest.fixture
def problem():
    return draw_labels(60, 8, 5, size=1 / 3, noise=0.1, above=0)


@pytest.mark.filterwarnings("ignore:C=")  # says that margins are kept more exactly than they can be
@pytest.mark.parametrize("scale", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_coordinate_ascent_does_not_mind_small_features(scale, tol):
    """With C over the square of the scale it is the same problem, in both precisions."""
    table = sp.random_array((60, 30), density=0.3, format="csr", rng=np.random.default_rng(0))
    labels = np.random.default_rng(0).random((60, 4)) < 0.3
    model = MaxMarginClassifier(tol=tol, fit_intercept=False, solver="coordinate_ascent")
    expected = clone(model).fit(table, labels).decision_function(table)
    model.set_params(C=1 / scale**2).fit(scale * table, labels)
    assert model.converged_
    np.testing.assert_allclose(model.decision_function(scale * table), expected, atol=20 * tol)


@pytest.mark.parametrize("C", [1e-20, 1e-100, 1e-200])
def test_coordinate_ascent_does_not_mind_a_small_c(C):
    """The bounds of the variables would be 0 in single precision."""
    table = sp.random_array((60, 30), density=0.3, format="csr", rng=np.random.default_rng(0))
    labels = np.random.default_rng(0).random((60, 4)) < 0.3
    model = MaxMarginClassifier(C, solver="coordinate_ascent").fit(table, labels)
    assert model.converged_
    assert np.abs(model.coef_).max() > C


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": -1}, "'C' parameter"),
        ({"kernel": "banana"}, "'kernel' parameter"),
        ({"label_covariance": np.eye(3)}, "over 3 labels but y has 5"),
        ({"label_covariance": -np.eye(5)}, "smallest eigenvalue is -1"),
        ({"label_covariance": np.triu(np.ones((5, 5)))}, "not symmetric"),
        ({"label_covariance": Taxonomy([("root", "leaf")])}, "'0' is not in the taxonomy"),
        ({"false_negative_cost": [1, 2]}, "false_negative_cost has shape"),
        ({"false_positive_cost": [1, 2, 3, 4, -5]}, "costs must be finite numbers >= 0"),
    ],
)
def test_nonsense_parameters_are_refused(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        MaxMarginClassifier(**parameters).fit(*problem)


def test_the_certificate_is_what_it_says(problem):
    X, Y = problem
    model = MaxMarginClassifier(C=0.7, tol=1e-5).fit(X, Y)
    signs = 2 * Y - 1
    scores = X @ model.coef_.T + model.intercept_
    penalty = ((model.coef_**2).sum() + (model.intercept_**2).sum()) / 2
    primal = penalty + 2 * 0.7 * np.maximum(0, 1 - signs * scores).sum()
    last = model.trace_[-1]
    assert model.converged_
    assert primal == pytest.approx(last.primal, rel=1e-12)
    assert 0 <= model.duality_gap_ == (last.primal - last.dual) / last.primal <= 1e-5
    looser = MaxMarginClassifier(C=0.7, tol=1e-2).fit(X, Y).trace_[-1]
    assert looser.dual <= last.primal * (1 + 1e-12)
    assert last.dual <= looser.primal * (1 + 1e-12)


def test_same_bits_for_any_number_of_threads():
    data = labelweave.datasets.make_text_like(400, 300, 70, random_state=0)
    models = [MaxMarginClassifier(n_jobs=jobs).fit(data.X, data.Y) for jobs in (None, 1, 2, 5)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        np.testing.assert_array_equal(model.intercept_, models[0].intercept_)


def test_works_in_pipelines_and_searches():
    texts = ["red apple", "green apple", "red car", "fast car", "green tree", "tall tree"] * 5
    Y = sp.csr_array(np.array([[1, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]] * 5))
    search = GridSearchCV(
        make_pipeline(TfidfVectorizer(), MaxMarginClassifier()), {"maxmarginclassifier__C": [0.1, 10]}, cv=3
    )
    search.fit(texts, Y)
    assert search.best_score_ == 1
    assert clone(search.best_estimator_).get_params()["maxmarginclassifier__C"] == 10


def test_callbacks_see_the_gap_shrink(problem):
    counter = Count()
    MaxMarginClassifier(tol=1e-3).set_callbacks(counter).fit(*problem)
    assert len(counter.names) == counter.expected == 30
    MaxMarginClassifier().set_callbacks(ProgressBar()).fit(*problem)


def test_costs_move_predictions(problem):
    X, Y = problem
    hard = np.where(np.random.default_rng(3).random(Y.shape) < 0.2, 1 - Y, Y)
    counts = [
        MaxMarginClassifier(C=0.1, false_negative_cost=cost).fit(X, hard).predict(X).sum()
        for cost in (0.2, 1.0, 5.0)
    ]
    assert counts[0] < counts[1] < counts[2]


def test_a_taxonomy_helps_a_rare_sibling():
    """A label with two positives borrows from its sibling through their common parent."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(1, 20))
    X = rng.normal(size=(300, 20)) / 4
    score = (X @ common.T)[:, 0]
    Y = np.column_stack([score > 0.5, score > 0.5])
    observed = np.ones_like(Y)
    observed[8:, 1] = False
    train = LabelMatrix(sp.csr_array(Y), names=["often", "rare"]).masked(sp.csr_array(observed))
    tree = Taxonomy([("parent", "often"), ("parent", "rare")])
    alone = MaxMarginClassifier().fit(X, train).predict(X).toarray()
    together = MaxMarginClassifier(label_covariance=tree).fit(X, train).predict(X).toarray()
    assert (together[:, 1] == Y[:, 1]).mean() > (alone[:, 1] == Y[:, 1]).mean() + 0.05


def test_a_row_known_to_an_inner_node_is_no_class_of_its_own():
    random = np.random.default_rng(1)
    X = random.normal(size=(200, 4))
    leaves = np.array(["dog", "cat", "oak", "elm"], object)[X.argmax(axis=1)]
    tree = Taxonomy.from_nested({"animal": ["dog", "cat"], "tree": ["oak", "elm"]})
    above = {"dog": "animal", "cat": "animal", "oak": "tree", "elm": "tree"}
    coarse = random.random(200) < 0.4
    y = np.array([above[leaf] if flag else leaf for leaf, flag in zip(leaves, coarse, strict=True)], object)
    model = MaxMarginClassifier(label_covariance=tree, tol=1e-6).fit(X, y)
    assert list(model.classes_) == ["cat", "dog", "elm", "oak"]
    wide = (leaves[:, None] == model.classes_).astype(float)
    siblings = np.array([[above[leaf] == above[name] for name in model.classes_] for leaf in leaves])
    wide[coarse[:, None] & siblings] = np.nan
    twin = MaxMarginClassifier(label_covariance=tree, tol=1e-6).fit(
        X, pd.DataFrame(wide, columns=model.classes_)
    )
    np.testing.assert_allclose(model.decision_function(X), twin.decision_function(X), atol=1e-3)
    with pytest.raises(ValueError, match="no node of the taxonomy"):
        model.fit(X, np.where(coarse, "stone", leaves))
