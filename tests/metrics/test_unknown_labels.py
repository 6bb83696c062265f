"""Labels and classes of the truth that a model was not fitted to: one policy in scores and scorers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, KFold

from labelweave import (
    BinaryRelevance,
    ConformalLabelClassifier,
    HierarchicalClassifier,
    KernelLogisticClassifier,
    LabelMatrix,
    MaxMarginClassifier,
    TableModel,
    Taxonomy,
    TunedThresholdClassifier,
    compare,
)
from labelweave.metrics import f1_score, get_scorer
from labelweave.metrics.known_labels import TruthWarning, known_labels, truth_for, widened
from labelweave.splits import IterativeStratifiedKFold

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
TAGS = [[tag for tag, x in zip("abc", row, strict=True) if x > 0] for row in X]
MORE = [[*tags, *(["zz"] if k % 3 == 0 else [])] for k, tags in enumerate(TAGS)]
FRAME = pd.DataFrame((X > 0).astype(int), columns=list("abc"))
MODELS = {
    "max-margin": MaxMarginClassifier(),
    "kernel-logistic": KernelLogisticClassifier(),
    "relevance": BinaryRelevance(),
    "tuned": TunedThresholdClassifier(MaxMarginClassifier()),
    "conformal": ConformalLabelClassifier(MaxMarginClassifier(), level=0.3),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["tags", "series", "frame", "matrix"])
def test_further_labels_count_as_missed(name, form):
    model = MODELS[name].fit(X, TAGS)
    wide = FRAME.assign(zz=[int(k % 3 == 0) for k in range(60)])
    y = {"tags": MORE, "series": pd.Series(MORE), "frame": wide, "matrix": LabelMatrix.from_any(wide)}[form]
    plain = model.score(X, TAGS)
    with pytest.warns(TruthWarning, match=r"1 label unknown to the model count as missed.*'zz' \(20\)"):
        assert model.score(X, y) <= 2 / 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.score(X, y, unknown_labels="ignore") == plain
        assert model.score(X, TAGS) == plain
    with pytest.raises(ValueError, match="'zz' is unknown to the model"):
        model.score(X, y, unknown_labels="raise")


@pytest.mark.parametrize(
    "name", ["micro_f1", "macro_f1", "example_recall", "subset_accuracy", "neg_hamming_loss", "average_auc",
             "micro_average_precision", "precision_at_1", "neg_ranking_loss", "neg_log_loss"]
)  # fmt: skip
def test_scorers_count_them_too(name):
    model = KernelLogisticClassifier().fit(X[:40], TAGS[:40])
    with pytest.warns(TruthWarning, match="zz"):
        found = get_scorer(name)(model, X[40:], MORE[40:])
    ignored = get_scorer(name, unknown_labels="ignore")(model, X[40:], MORE[40:])
    assert ignored == get_scorer(name)(model, X[40:], TAGS[40:])
    assert found < ignored or name == "precision_at_1"
    with pytest.raises(ValueError, match="unknown to the model"):
        get_scorer(name, unknown_labels="raise")(model, X[40:], MORE[40:])


def test_scores_are_those_of_the_metrics():
    model = MaxMarginClassifier().fit(X[:40], TAGS[:40])
    with pytest.warns(TruthWarning):
        found = get_scorer("micro_f1")(model, X[40:], MORE[40:])
    assert found == f1_score(MORE[40:], model.predict(X[40:]).tolist())


def test_classes_that_training_lacked_are_wrong():
    y = np.array(["ash", "oak", "elm"], object)[np.arange(60) % 3]
    later = np.where(np.arange(60) < 6, "yew", y)
    for model in (MaxMarginClassifier(), KernelLogisticClassifier()):
        model.fit(X, y)
        with pytest.warns(TruthWarning, match=r"1 class unknown to .* 'yew' \(6\)"):
            assert model.score(X, later) == pytest.approx(np.mean(model.predict(X) == later))
        assert model.score(X, later, unknown_labels="ignore") == model.score(X[6:], y[6:])
        with pytest.raises(ValueError, match="'yew' of row 0 is unknown"):
            model.score(X, later, unknown_labels="raise")


def test_searches_take_lists_of_tags_with_our_scorers_and_splitters():
    rare = [[*tags, *(["zz"] if k == 5 else [])] for k, tags in enumerate(TAGS)]
    for cv in (KFold(3), IterativeStratifiedKFold(3)):
        search = GridSearchCV(MaxMarginClassifier(), {"C": [0.1, 1]}, scoring=get_scorer("micro_f1"), cv=cv)
        with pytest.warns(TruthWarning, match="zz"):
            assert search.fit(X, rare).best_score_ > 0.8


def test_the_truth_of_a_hierarchy_is_completed():
    tree = Taxonomy([("top", "a"), ("top", "b")], nodes=["c"])
    y = FRAME.assign(top=0)[["top", "a", "b", "c"]]
    closed = tree.with_ancestors(y)
    for model in (
        HierarchicalClassifier(MaxMarginClassifier(), tree),
        TunedThresholdClassifier(HierarchicalClassifier(MaxMarginClassifier(), tree), "micro_f1"),
    ):
        model.fit(X, y)
        with pytest.warns(TruthWarning, match="rows lack ancestors of their labels in the hierarchy"):
            found = model.score(X, y)
        assert found == model.score(X, closed) > 0.5
        with pytest.warns(TruthWarning, match="lack ancestors of their labels"):
            assert get_scorer("micro_f1")(model, X, y) == get_scorer("micro_f1")(model, X, closed)
    with pytest.warns(TruthWarning) as said:
        assert model.score(X, [["a", "new"], *map(list, TAGS[1:])]) > 0.5
    assert {"new" in str(one.message) for one in said} == {True, False}
    models = {"tree": HierarchicalClassifier(MaxMarginClassifier(), tree), "flat": MaxMarginClassifier()}
    with pytest.warns(TruthWarning, match="lack ancestors of their labels"):
        found = compare(models, X, y, KFold(3))
    again = compare(models, X, closed, KFold(3))
    assert found.means()["tree"]["micro_f1"] == again.means()["tree"]["micro_f1"]


def test_labels_a_model_calls_otherwise_are_its_own():
    tree = Taxonomy([("top", "GO:1")])._with_aliases({"old": "GO:1"})
    truth = LabelMatrix.from_any(np.array([[1, 0], [0, 0]]), ["old", "top"])
    with pytest.warns(TruthWarning, match="1 of 2 rows lack"):
        labels, columns = known_labels(truth, ["GO:1", "top"], "missed", tree)
    assert labels.names.tolist() == ["GO:1", "top"]
    assert labels.to_dense().tolist() == [[1, 1], [0, 0]]
    assert columns.tolist() == [0, 1]


def test_columns_of_missed_labels_come_last():
    truth = LabelMatrix.from_any([[0, 1, 1]], ["a", "b", "new"])
    assert widened(np.array([[0.2, 0.3]]), truth, False).tolist() == [[0.2, 0.3, 0.0]]
    assert widened(np.array([[-2.0, 5.0]]), truth, False).tolist() == [[-2.0, 5.0, -3.0]]
    assert widened(np.array([[-1, 1]]), truth).toarray().tolist() == [[0, 1, 0]]
    same = np.array([[0.1]])
    for unnamed in (np.array([[0, 1]]), LabelMatrix.from_any([[0, 1]])):
        assert widened(same, unnamed, False) is same


def test_further_columns_without_names_are_refused_as_before():
    model = MaxMarginClassifier().fit(X, FRAME)
    for wide in (np.ones((60, 4)), LabelMatrix.from_any(np.ones((60, 4)))):
        with pytest.raises(ValueError, match="shape"):
            model.score(X, wide)


def test_labels_above_that_only_completion_adds_are_not_missed():
    tree = Taxonomy([("top", "a"), ("top", "b")])
    model = HierarchicalClassifier(MaxMarginClassifier(), tree).fit(X, FRAME[["a", "b"]])
    assert model.score(X, FRAME[["a", "b"]].assign(top=0)) == model.score(X, FRAME[["a", "b"]])


def test_unknown_labels_without_a_positive_are_not_missed():
    y = FRAME.assign(never=0)
    model = MaxMarginClassifier().fit(X, FRAME)
    assert np.shape(truth_for(y, model))[1] == 3
    assert model.score(X, y) == model.score(X, FRAME)


def test_table_models_pass_the_policy_on():
    rows = pd.DataFrame({"x": X[:, 0], "z": X[:, 1]})
    model = TableModel(MaxMarginClassifier(), numeric=["x", "z"]).fit(rows, TAGS)
    assert model.score(rows, MORE, unknown_labels="ignore") == model.score(rows, TAGS)
    gaps = rows.assign(x=rows["x"].where(rows.index > 3))
    assert len(TableModel(MaxMarginClassifier(), numeric=["x", "z"]).fit(gaps, TAGS).predict(gaps)) == 60
