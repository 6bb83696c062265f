import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import t as student
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GroupKFold, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.tree import DecisionTreeClassifier

import labelweave as lw
from labelweave import TunedThresholdClassifier, compare, metrics
from labelweave.datasets import make_text_like


@pytest.fixture(scope="module")
def data():
    return make_text_like(n_rows=300, n_features=80, n_labels=6, words_per_row=20, random_state=0)


@pytest.fixture(scope="module")
def models():
    return {"margin": lw.MaxMarginClassifier(), "svm": OneVsRestClassifier(RidgeClassifier())}


def test_values_are_those_of_fits_by_hand(data, models):
    splits = list(KFold(3).split(np.zeros(300)))
    found = compare(models, data.X, data.Y.positives, cv=splits)
    assert found.models == ["margin", "svm"]
    train, test = splits[1]
    model = lw.MaxMarginClassifier().fit(data.X[train], data.Y[train])
    table = metrics.score_table(
        data.Y[test], model.decision_function(data.X[test]), Y_pred=model.predict(data.X[test])
    )
    for name, value in table.items():
        assert found.values["margin"][name][1] == value
    assert found.metrics[-3:] == ["fit_seconds", "predict_seconds", "megabytes"]
    assert (found.values["margin"]["megabytes"] > 0).all()


def test_differences_have_the_corrected_interval(data, models):
    splits = list(KFold(4).split(np.zeros(300)))
    found = compare(models, data.X, data.Y.positives, cv=splits, reference="svm")
    gaps = found.values["margin"]["micro_f1"] - found.values["svm"]["micro_f1"]
    half = student.ppf(0.975, 3) * np.sqrt((1 / 4 + 1 / 3) * gaps.var(ddof=1))
    one = found.difference("margin", "micro_f1")
    assert one.mean == pytest.approx(gaps.mean())
    assert (one.low, one.high) == pytest.approx((gaps.mean() - half, gaps.mean() + half))
    assert found.difference("svm", "micro_f1", "margin").mean == pytest.approx(-gaps.mean())
    assert set(found.differences()) == {"margin"}


def test_labels_are_ranked_as_before_thresholds_were_tuned(data):
    margin = lw.MaxMarginClassifier(tol=1e-6)  # tuned fits start elsewhere, and agree within tol
    tuned = {
        "option": lw.MaxMarginClassifier(threshold=-0.2, tol=1e-6),
        "wrapper": TunedThresholdClassifier(margin, cv=3),
    }
    tuned["pipeline"] = make_pipeline(MaxAbsScaler(), tuned["wrapper"])
    plain = {"plain": margin, "scaled": make_pipeline(MaxAbsScaler(), margin)}
    found = compare(plain | tuned, data.X, data.Y, cv=2).values
    for name, same in (("option", "plain"), ("wrapper", "plain"), ("pipeline", "scaled")):
        assert (found[name]["micro_f1"] != found[same]["micro_f1"]).any()
        np.testing.assert_array_equal(found[name]["precision@1"], found[same]["precision@1"])


def test_same_model_twice_differs_by_nothing(data):
    found = compare([lw.MaxMarginClassifier(), lw.MaxMarginClassifier()], data.X, data.Y, cv=2)
    assert found.models == ["MaxMarginClassifier", "MaxMarginClassifier 2"]
    one = found.difference("MaxMarginClassifier 2", "micro_f1")
    assert (one.mean, one.low, one.high) == (0.0, 0.0, 0.0)
    assert not one.is_clear


def test_folds_of_a_number_are_stratified_and_seeded(data, models):
    once = compare({"m": models["margin"]}, data.X, data.Y, cv=3, random_state=1)
    again = compare({"m": models["margin"]}, data.X, data.Y, cv=3, random_state=1)
    assert np.array_equal(once.values["m"]["micro_f1"], again.values["m"]["micro_f1"])


def test_gaps_are_never_counted(data):
    Y = data.Y.to_signs().astype(float)
    Y[Y == -1] = 0
    Y[np.random.default_rng(0).random(Y.shape) < 0.2] = np.nan
    found = compare({"m": lw.MaxMarginClassifier()}, data.X, Y, cv=[(np.arange(200), np.arange(200, 300))])
    model = lw.MaxMarginClassifier().fit(data.X[:200], Y[:200])
    assert found.values["m"]["hamming_loss"][0] == metrics.hamming_loss(Y[200:], model.predict(data.X[200:]))
    assert np.isnan(compare({"a": model, "b": model}, data.X, Y, cv=[(range(200), range(200, 300))])
                    .difference("b", "micro_f1").low)  # fmt: skip


def test_one_class_a_row():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), np.repeat(["a", "b", "c"], 30)
    X[:, 0] += np.repeat([0, 2, 4], 30)
    found = compare([("lr", LogisticRegression()), ("ridge", RidgeClassifier())], X, y, cv=3)
    assert found.means()["lr"]["accuracy"] > 0.6
    assert np.isnan(found.values["ridge"]["log_loss"]).all()
    assert "log_loss" in repr(found)


def test_estimators_without_scores_and_with_lists_of_probabilities(data):
    X = data.X.toarray()
    Y = (data.Y.to_signs() > 0).astype(int)
    found = compare({"knn": KNeighborsClassifier(), "dummy": DummyClassifier()}, X, Y, cv=2)
    assert 0 <= found.means()["knn"]["precision@1"] <= 1


def test_frames_and_groups_go_in_a_frame_comes_out(data, models):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(data.X.toarray())
    Y = pd.DataFrame((data.Y.to_signs() > 0).astype(int), columns=list("abcdef"))
    groups = np.arange(300) // 10
    found = compare(models, X, Y, cv=list(GroupKFold(3).split(X, Y, groups)))
    frame = found.to_frame()
    assert frame.loc["micro_f1", ("svm", "difference")] == pytest.approx(
        found.difference("svm", "micro_f1").mean
    )


def test_sparse_labels_and_the_callback(data):
    calls = []
    compare({"m": lw.MaxMarginClassifier()}, data.X, sp.csr_array(data.Y.positives), cv=2,
            on_fit=lambda name, fold: calls.append((name, fold)))  # fmt: skip
    assert calls == [("m", 0), ("m", 1)]


def test_one_model_and_a_single_fold_are_said_plainly(data):
    found = compare(lw.MaxMarginClassifier(), data.X, data.Y, cv=[(np.arange(200), np.arange(200, 300))])
    assert found.models == ["MaxMarginClassifier"]
    assert repr(found).endswith("on a single fold")


def test_marks_of_rows_are_as_good_as_their_numbers(data):
    is_test = np.arange(300) % 3 == 0
    model = {"m": lw.MaxMarginClassifier()}
    marked = compare(model, data.X, data.Y, cv=[(~is_test, is_test)])
    numbered = compare(model, data.X, data.Y, cv=[(np.flatnonzero(~is_test), np.flatnonzero(is_test))])
    assert marked.values["m"]["micro_f1"] == numbered.values["m"]["micro_f1"]


def test_one_label_in_a_column(data):
    Y = data.Y.positives[:, [0]].toarray()
    found = compare({"one vs rest": OneVsRestClassifier(RidgeClassifier())}, data.X, Y, cv=2)
    assert found.values["one vs rest"]["micro_f1"].shape == (2,)


def test_a_model_that_cannot_be_written_has_no_size(data):
    class Written(DummyClassifier):
        def __reduce_ex__(self, protocol):
            raise TypeError("not to be written")

    Y = data.Y.positives.toarray()
    found = compare({"dummy": Written(strategy="most_frequent")}, data.X.toarray(), Y, cv=2)
    assert np.isnan(found.values["dummy"]["megabytes"]).all()


def test_pipelines_of_texts():
    texts = [f"a {word} thing {k}" for k, word in enumerate(["red", "blue", "red blue"] * 10)]
    Y = np.array([["red" in text, "blue" in text] for text in texts], int)
    models = {"texts": make_pipeline(TfidfVectorizer(), lw.MaxMarginClassifier(C=10))}
    found = compare(models, texts, Y, 3)
    assert found.means()["texts"]["micro_f1"] == 1.0
    assert "precision@1" in found.metrics
    assert found.means()["texts"]["megabytes"] > 0


def test_lists_of_tags_are_for_all_models(data):
    tags = [[f"tag {k}" for k in row.nonzero()[0]] for row in data.Y.positives.toarray()]
    found = compare(
        {"margin": lw.MaxMarginClassifier(), "tree": DecisionTreeClassifier(max_depth=2, random_state=0)},
        data.X,
        tags,
        2,
    )
    same = compare({"tree": DecisionTreeClassifier(max_depth=2, random_state=0)}, data.X, data.Y, 2)
    assert found.means()["tree"]["micro_f1"] == same.means()["tree"]["micro_f1"]


def test_sets_of_classes_have_coverage_and_size():
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 4))
    y = X[:, :3].argmax(axis=1)
    model = lw.ConformalLabelClassifier(LogisticRegression(), level=0.3, guarantee="expectation")
    found = compare(model, X, y, KFold(3)).values["ConformalLabelClassifier"]
    train, test = next(KFold(3).split(X))
    model.fit(X[train], y[train])
    assert found["coverage"][0] == model.score(X[test], y[test])
    assert found["set_size"][0] == model.predict(X[test]).sum(axis=1).mean()


def test_columns_of_classes_and_rows_without_one():
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = X[:, :3].argmax(axis=1)
    one, other = (compare(LogisticRegression(), X, given, 3) for given in (y, y[:, None]))
    assert one.means()["LogisticRegression"]["accuracy"] == other.means()["LogisticRegression"]["accuracy"]
    with pytest.raises(ValueError, match="A row of y has no class"):
        compare(lw.MaxMarginClassifier(), X, np.where(np.arange(60) == 7, np.nan, y), 3)


def test_rows_without_a_class_are_neither_right_nor_wrong():
    X = np.arange(40.0)[:, None]
    y = np.where(X[:, 0] % 20 < 10, "a", "b").astype(object)
    y[30:] = None
    model = {"tree": DecisionTreeClassifier(), "margin": lw.MaxMarginClassifier(kernel="rbf")}
    X %= 20
    splits = [(np.arange(20), np.arange(20, 40))]
    found = compare(model, X, y, splits).values
    assert [found[name]["accuracy"][0] for name in model] == [1.0, 1.0]
    unknown = [(np.arange(20), np.arange(30, 40))]
    assert np.isnan(
        compare(lw.MaxMarginClassifier(), X, y, unknown).means()["MaxMarginClassifier"]["accuracy"]
    )
