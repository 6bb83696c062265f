"""Metrics as scikit-learn's scorers: missing labels, and labels that a model was not fitted to."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from drawn import draw_labels
from labelweave.metrics import f1_score, get_scorer
from labelweave.metrics.known_labels import TruthWarning, known_labels, truth_for, widened
from labelweave.splits import IterativeStratifiedKFold, IterativeStratifiedShuffleSplit

N_LABELS = 5
PARAMETERS = {
    "propensity_scored_precision_at_k": {"propensity": np.linspace(0.2, 1.0, N_LABELS), "k": 2},
    "precision_at_k": {"k": 2},
    "ndcg_at_k": {"k": 2},
}
OF_CLASSES = {"harmonic_mean_accuracy", "mean_reciprocal_rank", "neg_taxonomic_loss", "parent_accuracy"}
OF_PROBABILITIES = {"neg_log_loss", "neg_expected_calibration_error"}
OF_HIERARCHIES = {  # in test_hierarchies.py
    *(
        "hierarchical_f1",
        "hierarchical_precision",
        "hierarchical_recall",
        "neg_h_loss",
        "fmax",
        "neg_smin_loss",
    )
}
OF_LABELS = sorted(set(lw.metrics.get_scorer_names()) - OF_CLASSES - OF_HIERARCHIES)
TREE = lw.Taxonomy([("all", "a"), ("all", "pair"), ("pair", "b"), ("pair", "c")])


@pytest.fixture(scope="module")
def tables():
    return draw_labels(90, 6, N_LABELS, seed=3, noise=0.3, above=0.4, missing=0.3)


@pytest.fixture(scope="module")
def fitted(tables):
    return lw.LowRankClassifier(rank=3, loss="log_loss").fit(*tables)


@pytest.fixture(scope="module")
def probable(tables):
    return lw.KernelLogisticClassifier(kernel="linear").fit(*tables)


def expected(name, model, X, Y):
    """Compute the metric from the response by hand."""
    settings = dict(PARAMETERS.get(name, {}))
    sign, name = (-1, name.removeprefix("neg_")) if name.startswith("neg_") else (1, name)
    average, _, kind = name.partition("_")
    if kind == "average_precision":
        return lw.metrics.average_precision_score(Y, model.decision_function(X), average)
    if average in ("micro", "macro", "example"):
        return getattr(lw.metrics, f"{kind}_score")(Y, model.predict(X), average=average)
    if name in ("subset_accuracy", "hamming_loss"):
        response = model.predict(X)
    elif name in ("log_loss", "expected_calibration_error"):
        response = model.predict_proba(X)
    else:
        response = model.decision_function(X)
    return sign * getattr(lw.metrics, name)(Y, response, **settings)


@pytest.mark.parametrize("name", OF_LABELS)
def test_a_scorer_is_its_metric_of_the_response_it_needs(name, tables, fitted, probable):
    X, Y = tables
    model = probable if name in OF_PROBABILITIES else fitted
    scorer = lw.metrics.get_scorer(name, **PARAMETERS.get(name, {}))
    assert scorer(model, X, Y) == expected(name, model, X, Y)
    assert (scorer(model, X, Y) <= 0) == name.startswith("neg_")


def test_every_metric_of_a_number_has_a_scorer():
    shown = {"class_summary", "score_table", "error_reject_curve", "propensities", "f1_score", "depth_table"}
    shown |= {"column_accuracy_score"}
    averaged = {"average_precision_score", "precision_score", "recall_score"}
    averaged |= {"get_scorer", "get_scorer_names", "information_content"}
    names = {name.removeprefix("neg_") for name in lw.metrics.get_scorer_names()}
    names |= {f"{name}_score" for name in OF_HIERARCHIES}
    assert set(lw.metrics.__all__) - shown - averaged <= names


@pytest.mark.parametrize(
    "form",
    [
        lambda Y: Y,
        lambda Y: np.where(np.isnan(Y), np.nan, 2 * Y - 1),
        lw.LabelMatrix.from_any,
        lambda Y: pytest.importorskip("pandas").DataFrame(Y, columns=list("vwxyz")),
    ],
    ids=["zero-one", "minus-one", "LabelMatrix", "frame"],
)
@pytest.mark.parametrize("estimator", [lw.LowRankClassifier(), lw.MaxMarginClassifier()], ids=type)
def test_a_search_with_missing_labels_finds_what_the_loop_by_hand_finds(form, estimator, tables):
    X, Y = tables
    grid = {"rank": [1, 4]} if isinstance(estimator, lw.LowRankClassifier) else {"C": [1e-3, 1.0]}
    ((parameter, values),) = grid.items()
    folds = IterativeStratifiedKFold(3)
    search = GridSearchCV(
        estimator, grid, scoring=lw.metrics.get_scorer("micro_f1"), cv=folds, error_score="raise"
    ).fit(X, form(Y))
    by_hand = []
    for value in values:
        scores = []
        for train, held in folds.split(X, Y):
            model = clone(estimator).set_params(**{parameter: value}).fit(X[train], Y[train])
            scores.append(lw.metrics.f1_score(Y[held], model.predict(X[held])))
        by_hand.append(np.mean(scores))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand, rtol=1e-12)
    assert search.best_params_[parameter] == values[int(np.argmax(by_hand))]
    assert search.score(X, form(Y)) == lw.metrics.f1_score(Y, search.predict(X))


@pytest.mark.parametrize("search", [HalvingGridSearchCV, HalvingRandomSearchCV])
@pytest.mark.parametrize(
    "form", [lw.LabelMatrix.from_any, pd.DataFrame, np.asarray], ids=["labels", "frame", "array"]
)
def test_halving_searches_take_missing_labels(search, form, tables):
    X, Y = tables
    options = {"cv": IterativeStratifiedKFold(2), "min_resources": 30, "random_state": 0}
    scoring = lw.metrics.get_scorer("micro_f1")
    found = search(
        lw.LowRankClassifier(), {"rank": [1, 2, 4]}, scoring=scoring, error_score="raise", **options
    ).fit(X, form(Y))
    assert found.n_resources_[-1] > found.n_resources_[0] == 30
    assert found.score(X, form(Y)) == lw.metrics.f1_score(Y, found.predict(X))


def test_halving_searches_take_rows_without_a_class(tables):
    X, _ = tables
    y = np.array(["a", "b", "c"], object)[np.argmax(X[:, :3], axis=1)]
    y[::7] = None
    search = HalvingGridSearchCV(
        lw.KernelLogisticClassifier("linear", hyperparameters="fixed"), {"scale": [0.1, 1.0]},
        scoring=lw.metrics.get_scorer("neg_log_loss"), cv=IterativeStratifiedKFold(3), min_resources=40,
        error_score="raise",
    ).fit(X, y)  # fmt: skip
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_predictions_and_learning_curves_take_missing_labels(tables):
    X, Y = pd.DataFrame(tables[0]).add_prefix("x"), pd.DataFrame(tables[1], columns=list("vwxyz"))
    cv, scoring = IterativeStratifiedKFold(2), lw.metrics.get_scorer("macro_f1")
    assert cross_val_predict(lw.LowRankClassifier(), X, Y, cv=cv).shape == Y.shape
    scores = learning_curve(lw.LowRankClassifier(), X, Y, cv=cv, scoring=scoring, error_score="raise")[2]
    assert np.isfinite(scores).all()


def test_several_metrics_are_cross_validated_at_once_and_share_responses(tables, monkeypatch):
    X, Y = tables
    asked = []
    for method in ("predict", "decision_function"):
        original = getattr(lw.LowRankClassifier, method)
        monkeypatch.setattr(
            lw.LowRankClassifier, method, lambda self, X, f=original, m=method: asked.append(m) or f(self, X)
        )
    names = ["micro_f1", "macro_f1", "neg_hamming_loss", "average_auc", "precision_at_3", "neg_ranking_loss"]
    scoring = {name: lw.metrics.get_scorer(name) for name in names}
    splits = IterativeStratifiedShuffleSplit(2, test_size=0.3, random_state=0)
    found = cross_validate(
        lw.LowRankClassifier(rank=2), X, lw.LabelMatrix.from_any(Y), scoring=scoring, cv=splits
    )
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in names)
    assert sorted(asked) == ["decision_function"] * 2 + ["predict"] * 2


@pytest.mark.parametrize("name", OF_LABELS)
def test_a_fold_in_which_a_label_is_unobserved_does_not_make_a_search_nan(name, tables):
    X, Y = tables
    Y = Y.copy()
    Y[:30, 1] = np.nan  # the first fold holds no entry of the label out
    scorer = lw.metrics.get_scorer(name, **PARAMETERS.get(name, {}))
    model, grid = lw.LowRankClassifier(loss="log_loss"), {"rank": [1, 2]}
    if name in OF_PROBABILITIES:
        model, grid = lw.KernelLogisticClassifier(kernel="linear"), {"scale": [0.1, 1.0]}
    search = GridSearchCV(model, grid, scoring=scorer, cv=KFold(3), refit=False).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_scorers_are_pickled_cloned_and_shown(tables, fitted):
    X, Y = tables
    scorer = lw.metrics.get_scorer("precision_at_2")
    again = pickle.loads(pickle.dumps(scorer))
    assert (
        again(fitted, X, Y)
        == scorer(fitted, X, Y)
        == lw.metrics.precision_at_k(Y, fitted.decision_function(X), 2)
    )
    search = clone(GridSearchCV(lw.LowRankClassifier(), {"rank": [1]}, scoring=scorer))
    assert search.scoring(fitted, X, Y) == scorer(fitted, X, Y)
    assert "precision_at_k" in repr(scorer)
    assert "k=2" in repr(scorer)


def test_settings_and_weights_reach_the_metric(tables, fitted):
    X, Y = tables
    weights = np.linspace(0.0, 1.0, len(X))
    predicted = fitted.predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = lw.metrics.get_scorer("example_f1", zero_division=1.0)(fitted, X, Y, sample_weight=weights)
    assert found == lw.metrics.f1_score(
        Y, predicted, average="example", zero_division=1.0, sample_weight=weights
    )


def test_classes_with_and_without_a_taxonomy(tables):
    X, _ = tables
    y = np.array(["a", "b", "c"], object)[np.argmax(X[:, :3], axis=1)]
    y[::7] = None
    model = lw.KernelLogisticClassifier(kernel="linear").fit(X, y)
    probabilities, predicted = model.predict_proba(X), model.predict(X)
    for name, value in {
        "mean_reciprocal_rank": lw.metrics.mean_reciprocal_rank(y, probabilities, model.classes_),
        "neg_log_loss": -lw.metrics.log_loss(y, probabilities, model.classes_),
    }.items():
        assert lw.metrics.get_scorer(name)(model, X, y) == value
    seen = ["a", "b"]
    assert lw.metrics.get_scorer("harmonic_mean_accuracy", seen_classes=seen)(
        model, X, y
    ) == lw.metrics.harmonic_mean_accuracy(y, predicted, seen)
    for name, value in {
        "neg_taxonomic_loss": -lw.metrics.taxonomic_loss(y, predicted, TREE),
        "parent_accuracy": lw.metrics.parent_accuracy(y, predicted, TREE),
    }.items():
        assert lw.metrics.get_scorer(name, taxonomy=TREE)(model, X, y) == value


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_pipelines_forests_and_wrappers_are_scored(n_labels, tables):
    X, _ = tables
    Y = (X[:, :n_labels] > 0).astype(int)
    forest = RandomForestClassifier(5, random_state=0)
    for model in (
        make_pipeline(StandardScaler(), lw.MaxMarginClassifier()),
        make_pipeline(StandardScaler(), forest),
        lw.TunedThresholdClassifier(lw.LowRankClassifier(loss="log_loss"), cv=IterativeStratifiedKFold(2)),
    ):
        names = ["micro_f1", "average_auc", "label_ranking_average_precision"]
        scoring = {name: lw.metrics.get_scorer(name) for name in names}
        if hasattr(model, "predict_proba"):
            scoring["neg_log_loss"] = lw.metrics.get_scorer("neg_log_loss")
        found = cross_validate(model, X, Y, scoring=scoring, cv=KFold(2), error_score="raise")
        assert all(np.isfinite(found[f"test_{name}"]).all() for name in scoring)
        assert found["test_average_auc"].mean() > 0.8


def test_labels_in_another_order_than_the_models_are_refused():
    X = np.random.default_rng(0).normal(size=(60, 4))
    named = pd.DataFrame((X[:, :3] > 0).astype(int), columns=list("abc"))
    other = named[["c", "b", "a"]]
    model = make_pipeline(StandardScaler(), lw.LowRankClassifier(rank=3)).fit(X, named)
    for name in ("average_auc", "neg_expected_calibration_error", "micro_f1"):
        for labels in (other, lw.LabelMatrix.from_any(other)):
            with pytest.raises(ValueError, match="The model has label 'a' in column 0 where Y_true has 'c'"):
                lw.metrics.get_scorer(name)(model, X, labels)
    unnamed = lw.LowRankClassifier(rank=3).fit(X, named.to_numpy())
    numbered = other.set_axis([2, 1, 0], axis=1)  # numbers of labels without names are no names
    assert lw.metrics.get_scorer("average_auc")(unnamed, X, numbered) < 1.0


@pytest.mark.parametrize("value", [0, 1])
def test_one_label_that_was_always_the_same(value):
    X, Y = np.zeros((20, 1)), np.full((20, 1), value)
    forest = RandomForestClassifier(2).fit(X, Y.ravel())
    assert lw.metrics.get_scorer("neg_log_loss")(forest, X, Y) == pytest.approx(0.0)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
TAGS = [[tag for tag, x in zip("abc", row, strict=True) if x > 0] for row in X]
MORE = [[*tags, *(["zz"] if k % 3 == 0 else [])] for k, tags in enumerate(TAGS)]
FRAME = pd.DataFrame((X > 0).astype(int), columns=list("abc"))
MODELS = {
    "max-margin": lw.MaxMarginClassifier(),
    "kernel-logistic": lw.KernelLogisticClassifier(),
    "relevance": lw.BinaryRelevance(),
    "tuned": lw.TunedThresholdClassifier(lw.MaxMarginClassifier()),
    "conformal": lw.ConformalLabelClassifier(lw.MaxMarginClassifier(), level=0.3),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["tags", "series", "frame", "matrix"])
def test_further_labels_count_as_missed(name, form):
    model = MODELS[name].fit(X, TAGS)
    wide = FRAME.assign(zz=[int(k % 3 == 0) for k in range(60)])
    y = {"tags": MORE, "series": pd.Series(MORE), "frame": wide, "matrix": lw.LabelMatrix.from_any(wide)}[
        form
    ]
    plain = model.score(X, TAGS)
    with pytest.warns(TruthWarning, match=r"1 label unknown to the model count as missed.*'zz' \(20\)"):
        assert model.score(X, y) <= 2 / 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.score(X, y, unknown_labels="ignore") == plain
        assert model.score(X, TAGS) == plain
    with pytest.raises(ValueError, match="'zz' is unknown to the model"):
        model.score(X, y, unknown_labels="raise")
    for policy in ("keep", np.empty(0)):
        with pytest.raises(ValueError, match=r"unknown_labels is .*'ignore' or 'raise'"):
            model.score(X, TAGS, unknown_labels=policy)


@pytest.mark.parametrize(
    "name", ["micro_f1", "macro_f1", "example_recall", "subset_accuracy", "neg_hamming_loss", "average_auc",
             "micro_average_precision", "precision_at_1", "neg_ranking_loss", "neg_log_loss"]
)  # fmt: skip
def test_scorers_count_them_too(name):
    model = lw.KernelLogisticClassifier().fit(X[:40], TAGS[:40])
    with pytest.warns(TruthWarning, match="zz"):
        found = get_scorer(name)(model, X[40:], MORE[40:])
    ignored = get_scorer(name, unknown_labels="ignore")(model, X[40:], MORE[40:])
    assert ignored == get_scorer(name)(model, X[40:], TAGS[40:])
    assert found < ignored or name == "precision_at_1"
    with pytest.raises(ValueError, match="unknown to the model"):
        get_scorer(name, unknown_labels="raise")(model, X[40:], MORE[40:])


def test_scores_are_those_of_the_metrics():
    model = lw.MaxMarginClassifier().fit(X[:40], TAGS[:40])
    with pytest.warns(TruthWarning):
        found = get_scorer("micro_f1")(model, X[40:], MORE[40:])
    assert found == f1_score(MORE[40:], model.predict(X[40:]).tolist())


def test_classes_that_training_lacked_are_wrong():
    y = np.array(["ash", "oak", "elm"], object)[np.arange(60) % 3]
    later = np.where(np.arange(60) < 6, "yew", y)
    for model in (lw.MaxMarginClassifier(), lw.KernelLogisticClassifier()):
        model.fit(X, y)
        with pytest.warns(TruthWarning, match=r"1 class unknown to .* 'yew' \(6\)"):
            assert model.score(X, later) == pytest.approx(np.mean(model.predict(X) == later))
        assert model.score(X, later, unknown_labels="ignore") == model.score(X[6:], y[6:])
        with pytest.raises(ValueError, match="'yew' of row 0 is unknown"):
            model.score(X, later, unknown_labels="raise")


def test_searches_take_lists_of_tags_with_our_scorers_and_splitters():
    rare = [[*tags, *(["zz"] if k == 5 else [])] for k, tags in enumerate(TAGS)]
    for cv in (KFold(3), IterativeStratifiedKFold(3)):
        search = GridSearchCV(
            lw.MaxMarginClassifier(), {"C": [0.1, 1]}, scoring=get_scorer("micro_f1"), cv=cv
        )
        with pytest.warns(TruthWarning, match="zz"):
            assert search.fit(X, rare).best_score_ > 0.8


def test_the_truth_of_a_hierarchy_is_completed():
    tree = lw.Taxonomy([("top", "a"), ("top", "b")], nodes=["c"])
    y = FRAME.assign(top=0)[["top", "a", "b", "c"]]
    closed = tree.with_ancestors(y)
    for model in (
        lw.HierarchicalClassifier(lw.MaxMarginClassifier(), tree),
        lw.TunedThresholdClassifier(lw.HierarchicalClassifier(lw.MaxMarginClassifier(), tree), "micro_f1"),
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
    models = {
        "tree": lw.HierarchicalClassifier(lw.MaxMarginClassifier(), tree),
        "flat": lw.MaxMarginClassifier(),
    }
    with pytest.warns(TruthWarning, match="lack ancestors of their labels"):
        found = lw.compare(models, X, y, KFold(3))
    again = lw.compare(models, X, closed, KFold(3))
    assert found.means()["tree"]["micro_f1"] == again.means()["tree"]["micro_f1"]


def test_labels_a_model_calls_otherwise_are_its_own():
    tree = lw.Taxonomy([("top", "GO:1")])._with_aliases({"old": "GO:1"})
    truth = lw.LabelMatrix.from_any(np.array([[1, 0], [0, 0]]), ["old", "top"])
    with pytest.warns(TruthWarning, match="1 of 2 rows lack"):
        labels, columns = known_labels(truth, ["GO:1", "top"], "missed", tree)
    assert labels.names.tolist() == ["GO:1", "top"]
    assert labels.to_dense().tolist() == [[1, 1], [0, 0]]
    assert columns.tolist() == [0, 1]


def test_columns_of_missed_labels_come_last():
    truth = lw.LabelMatrix.from_any([[0, 1, 1]], ["a", "b", "new"])
    assert widened(np.array([[0.2, 0.3]]), truth, False).tolist() == [[0.2, 0.3, 0.0]]
    assert widened(np.array([[-2.0, 5.0]]), truth, False).tolist() == [[-2.0, 5.0, -3.0]]
    assert widened(np.array([[-1, 1]]), truth).toarray().tolist() == [[0, 1, 0]]
    same = np.array([[0.1]])
    for unnamed in (np.array([[0, 1]]), lw.LabelMatrix.from_any([[0, 1]])):
        assert widened(same, unnamed, False) is same


def test_labels_above_that_only_completion_adds_are_not_missed():
    tree = lw.Taxonomy([("top", "a"), ("top", "b")])
    model = lw.HierarchicalClassifier(lw.MaxMarginClassifier(), tree).fit(X, FRAME[["a", "b"]])
    assert model.score(X, FRAME[["a", "b"]].assign(top=0)) == model.score(X, FRAME[["a", "b"]])


def test_unknown_labels_without_a_positive_are_not_missed():
    y = FRAME.assign(never=0)
    model = lw.MaxMarginClassifier().fit(X, FRAME)
    assert np.shape(truth_for(y, model))[1] == 3
    assert model.score(X, y) == model.score(X, FRAME)


def test_table_models_pass_the_policy_on():
    rows = pd.DataFrame({"x": X[:, 0], "z": X[:, 1]})
    model = lw.TableModel(lw.MaxMarginClassifier(), numeric=["x", "z"]).fit(rows, TAGS)
    assert model.score(rows, MORE, unknown_labels="ignore") == model.score(rows, TAGS)
    gaps = rows.assign(x=rows["x"].where(rows.index > 3))
    assert (
        len(lw.TableModel(lw.MaxMarginClassifier(), numeric=["x", "z"]).fit(gaps, TAGS).predict(gaps)) == 60
    )
