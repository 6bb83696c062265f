"""The HTML of an estimator in notebooks: scikit-learn's own, and the facts once it is fitted."""

import re
import subprocess
import sys
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

import labelweave as lw
from labelweave.app.facts import fact_lines, model_facts
from labelweave.app.facts.lines import label_lines
from labelweave.app.facts.words import changed_parameters, plain_parameters
from labelweave.datasets import make_text_like

EVIL = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def data():
    found = make_text_like(200, 60, 5, labels_per_row=2, words_per_row=12, random_state=1)
    return found.X, lw.LabelMatrix(found.Y.positives, None, [EVIL, "a & b", "c", "d", "e"])


def table(model):
    shown = model._repr_mimebundle_()["text/html"]
    before, *after = shown.split('<table class="labelweave-facts">')
    assert "sk-top-container" in before
    pairs = re.findall(r"<tr><th[^>]*>(.*?)</th><td>(.*?)</td></tr>", after[0]) if after else []
    assert all("<" not in text for pair in pairs for text in pair)
    return {name: unescape(text) for name, text in pairs}


def test_facts_of_a_fitted_model_are_shown_and_escaped(data):
    model = lw.MaxMarginClassifier()
    assert table(model) == {}
    found = table(model.fit(*data))
    assert found["model"] == "MaxMarginClassifier"
    assert found["labels"] == f"5: {EVIL}, a & b, c, d, e"
    assert found["features"] == "60, without names"
    assert found["gap"] == f"{model.duality_gap_:.2e} (converged)"
    assert EVIL not in model._repr_html_()
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (lw.LowRankClassifier(rank=2), {"rank", "threshold", "gap", "fit"}),
        (lw.LowRankClassifier(lw.RankSearch([1, 2], [1.0], cv=2)), {"rank", "chosen"}),
        (lw.LabelGraphClassifier("full", 0.1, tol=0.3), {"graph", "gap", "fit"}),
        (lw.KernelLogisticClassifier(hyperparameters="fixed"), {"prior", "kernel", "fit"}),
        (lw.BinaryRelevance(), {"labels", "fit"}),
        (lw.ConformalLabelClassifier(lw.TunedThresholdClassifier(lw.MaxMarginClassifier()), level=0.4),
         {"decides", "around", "guarantee", "gap"}),
    ],
)  # fmt: skip
def test_every_kind_of_model_says_what_it_is(data, model, named):
    assert named <= set(table(model.fit(*data)))


@pytest.mark.parametrize(
    ("model", "share", "is_told"),
    [
        (lw.MaxMarginClassifier(), 0.05, True),
        (lw.LowRankClassifier(2), 0.05, True),
        (lw.BinaryRelevance(), 0.05, True),
        (lw.MaxMarginClassifier(), 0.5, False),
        (lw.MaxMarginClassifier(threshold=-0.5), 0.05, False),
        (lw.TunedThresholdClassifier(lw.MaxMarginClassifier()), 0.05, False),
        (lw.KernelLogisticClassifier(hyperparameters="fixed"), 0.05, False),
    ],
)
def test_the_usual_threshold_is_said_to_miss_rare_labels(model, share, is_told):
    X = np.random.default_rng(0).normal(size=(100, 4))
    Y = X[:, :2] > np.quantile(X[:, :2], 1 - share, axis=0)
    found = table(model.fit(X, Y)).get("advice", "")
    assert found.startswith("100% of the labels" * is_told)
    assert ("TunedThresholdClassifier(model), or --tune-threshold micro_f1" in found) == is_told


@pytest.mark.parametrize("inner", [RandomForestClassifier(5), OneVsRestClassifier(LogisticRegression())])
def test_around_other_estimators_only_what_is_known_is_said(data, inner):
    X, Y = data[0], data[1].positives.toarray()
    found = table(lw.TunedThresholdClassifier(inner).fit(X, Y))
    assert set(found) == {"model", "decides", "labels", "features"}
    assert found["model"] == f"TunedThresholdClassifier around {type(inner).__name__}"


def test_estimators_of_texts_and_of_many_iterations_are_shown(data):
    X, Y = data[0].toarray(), data[1].positives.toarray()
    found = table(lw.CalibratedLabelClassifier(RidgeClassifier(solver="lsqr"), method="sigmoid").fit(X, Y))
    assert found["features"] == "60, without names"
    texts = ["red rose", "blue sea", "rose", "blue ink"] * 10
    reader = make_pipeline(CountVectorizer(), LogisticRegression())
    found = table(lw.TunedThresholdClassifier(reader).fit(texts, [1, 0, 1, 0] * 10))
    assert set(found) == {"model", "decides", "steps before", "classes"}


def test_a_taxonomy_is_named(data):
    y = np.array(["dog", "cat", "oak"])[np.arange(60) % 3]
    tree = lw.Taxonomy.from_nested({"animal": ["dog", "cat"], "plant": ["oak"]})
    model = lw.KernelLogisticClassifier(taxonomy=tree, hyperparameters="fixed").fit(data[0][:60], y)
    assert table(model)["taxonomy"].startswith("5 nodes")
    assert table(model)["classes"] == "3: cat, dog, oak"


def test_numbers_of_numpy_are_shown_as_numbers():
    found = plain_parameters(lw.MaxMarginClassifier(C=np.float64(2.5), max_iter=np.int64(7)))
    assert (found["C"], found["max_iter"]) == (2.5, 7)
    for same in (1, np.float64(1), np.int64(1)):
        assert changed_parameters(lw.MaxMarginClassifier(C=same)) == ()
    assert changed_parameters(lw.MaxMarginClassifier(C=2, warm_start=0)) == ("C", "warm_start")


def test_estimators_do_not_import_facts():
    code = "import sys, labelweave.estimators; sys.exit('labelweave.app.facts' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_stands_for_missing_features_is_said():
    model = lw.MaxMarginClassifier().fit(np.eye(4), np.eye(4))
    assert model_facts(model).imputed is None
    model.feature_means_ = np.full(4, 0.25)
    assert model_facts(model).imputed == "missing values of 4 features are imputed with training means"
    assert fact_lines(model_facts(model))["missing"].startswith("missing values")


def test_names_with_commas_are_told_apart():
    facts = SimpleNamespace(labels=["big, heavy", "new"], one_class_a_row=False, unobserved=[], features=None)
    assert label_lines(facts) == {"labels": "2: 'big, heavy', new"}
