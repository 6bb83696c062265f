"""What users of LowRankClassifier rely on."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from drawn import draw_labels
from labelweave import LabelMatrix, LowRankClassifier, Taxonomy
from labelweave.problems.low_rank_factors import LowRankFactors
from watching import Count

LOSSES = ["squared", "logistic", "squared_hinge"]
KERNELS = ["linear", "rbf", "precomputed"]


@pytest.fixture
def problem():
    return draw_labels(60, 8, 5, size=1 / 3, noise=0.1, above=0)


def _hide(Y, share=0.4):
    return np.where(np.random.default_rng(1).random(Y.shape) < share, np.nan, Y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_one_row_and_one_label(problem, loss, kernel):
    X, Y = problem
    given = X[:1] @ X[:1].T if kernel == "precomputed" else X[:1]
    row = LowRankClassifier(loss=loss, kernel=kernel, regularization=1e-3, max_iter=500).fit(given, Y[:1])
    np.testing.assert_array_equal(row.predict(given), Y[:1])
    given = X @ X.T if kernel == "precomputed" else X
    label = LowRankClassifier(loss=loss, kernel=kernel, regularization=1e-2, max_iter=500)
    label.fit(given, Y[:, :1])
    assert row.rank_ == label.rank_ == 1
    assert label.score(given, Y[:, :1]) > 0.9


@pytest.mark.parametrize(("rank", "expected"), [(1, 1), (5, 5), (10_000, 5), (0.4, 2), (0.999, 5), (1e-9, 1)])
def test_a_rank_above_what_the_data_allow_is_lowered(problem, rank, expected):
    X, Y = problem
    model = LowRankClassifier(rank).fit(X, Y)
    assert model.rank_ == expected
    assert model.feature_factors_.shape == (8, expected)
    assert model.label_factors_.shape == (5, expected)
    assert LowRankClassifier(rank).fit(X[:, :1], Y).rank_ == min(2, expected)
    assert LowRankClassifier(rank, kernel="rbf", kernel_rank=2).fit(X, Y).rank_ <= min(3, expected)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
def test_a_row_without_observed_labels_adds_nothing(problem, loss, penalty):
    X, Y = problem
    Y = _hide(Y)
    Y[7] = np.nan
    parameters = {"loss": loss, "penalty": penalty, "tol": 1e-9, "max_iter": 3000}
    model = LowRankClassifier(3, **parameters).fit(X, Y)
    without = LowRankClassifier(3, **parameters).fit(np.delete(X, 7, 0), np.delete(Y, 7, 0))
    np.testing.assert_allclose(model.decision_function(X), without.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
def test_labels_that_are_always_or_never_there_and_twins(problem, loss, penalty):
    X, Y = problem
    Y = np.c_[Y[:, 0], Y[:, 0], np.ones(60, int), np.zeros(60, int)]
    model = LowRankClassifier(loss=loss, penalty=penalty, regularization=0.1, max_iter=300).fit(X, Y)
    predicted, scores = model.predict(X), model.decision_function(X)
    np.testing.assert_array_equal(predicted[:, 2:], Y[:, 2:])
    np.testing.assert_allclose(scores[:, 0], scores[:, 1], atol=1e-2 * np.abs(scores).max())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
@pytest.mark.parametrize("loss", LOSSES)
def test_without_regularization_a_singular_problem_has_a_finite_answer(problem, kernel, penalty, loss):
    X, Y = problem
    X = np.c_[X, X[:, 0], np.zeros(60)]
    given = X @ X.T if kernel == "precomputed" else X
    parameters = {"regularization": 0, "loss": loss, "penalty": penalty, "kernel": kernel, "max_iter": 20}
    model = LowRankClassifier(3, **parameters).fit(given, _hide(Y))
    assert np.isfinite(model.decision_function(given)).all()
    assert np.isfinite(model.objective_)
    assert (np.diff([record.objective for record in model.trace_]) <= 1e-9).all()


@pytest.mark.parametrize(
    ("scale", "is_kernel"),
    [*((scale, False) for scale in (1e-140, 1e-20, 1e-6, 1e10, 1e39)), (1e-60, True), (1e19, True)],
)
def test_the_trace_norm_has_one_solution_on_any_scale(problem, scale, is_kernel):
    X, Y = problem
    model = LowRankClassifier(5, fit_intercept=False, kernel="precomputed" if is_kernel else "linear")
    fits = []
    for size in (1.0, scale):
        rows = size**2 * (X @ X.T) if is_kernel else size * X
        fits.append(model.set_params(regularization=0.3 * size).fit(rows, _hide(Y)).objective_)
    assert fits[1] == pytest.approx(fits[0], rel=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("loss", LOSSES)
def test_huge_and_tiny_features(problem, scale, precision, loss):
    X, Y = problem
    mixed = X * np.where(np.arange(8) < 4, scale, 1.0)
    parameters = {"loss": loss, "precision": precision, "max_iter": 200}
    model = LowRankClassifier(3, **parameters).fit(mixed, Y)
    assert np.isfinite(model.decision_function(mixed)).all()
    objectives = np.array([record.objective for record in model.trace_])
    slack = 1e-9 if precision == "float64" else 1e-5
    assert (np.diff(objectives) <= slack * objectives[0]).all()


def test_float32_is_close_to_float64(problem):
    X, Y = problem
    for loss in LOSSES:
        wide, single = (
            LowRankClassifier(3, loss, precision=precision, tol=1e-6, max_iter=500).fit(X, _hide(Y))
            for precision in ("float64", "float32")
        )
        assert single.feature_factors_.dtype == single.label_factors_.dtype == np.float32
        assert single.objective_ == pytest.approx(wide.objective_, rel=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("missing", [False, True])
def test_threads_change_no_bit(kernel, loss, missing):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(700, 20))
    Y = (X @ rng.normal(size=(20, 9)) > 0.5).astype(int)
    Y = _hide(Y) if missing else Y
    X = X @ X.T if kernel == "precomputed" else X
    one, two = (
        LowRankClassifier(4, loss, kernel=kernel, max_iter=3, n_jobs=jobs).fit(X, Y) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.feature_factors_, two.feature_factors_)
    np.testing.assert_array_equal(one.label_factors_, two.label_factors_)
    assert one.duality_gap_ == two.duality_gap_


def test_works_in_pipelines_and_searches():
    texts = ["red apple", "green apple", "red car", "fast car", "green tree", "tall tree"] * 5
    Y = sp.csr_array(np.array([[1, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]] * 5))
    search = GridSearchCV(
        make_pipeline(TfidfVectorizer(), LowRankClassifier()),
        {"lowrankclassifier__regularization": [0.1, 1000], "lowrankclassifier__rank": [1, 3]},
        cv=3,
    )
    search.fit(texts, Y)
    assert search.best_score_ == 1
    best = clone(search.best_estimator_).get_params()
    assert best["lowrankclassifier__rank"] == 3
    assert best["lowrankclassifier__regularization"] == 0.1


@pytest.mark.parametrize("loss", LOSSES)
def test_thresholds_are_where_predictions_change(problem, loss):
    X, Y = problem
    usual = LowRankClassifier(3, loss).fit(X, Y)
    assert (usual.thresholds_ == (0.5 if loss == "squared" else 0.0)).all()
    raw = usual.decision_function(X) + usual.thresholds_
    high = LowRankClassifier(3, loss, threshold=0.9).fit(X, Y)
    np.testing.assert_array_equal(high.predict(X), raw > 0.9)


@pytest.mark.parametrize("threshold", ["f1", "macro_f1"])
def test_chosen_thresholds_help_rare_labels(threshold):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    Y = (X @ rng.normal(size=(6, 8)) + rng.normal(size=(400, 8)) > 3).astype(int)
    train, test = slice(0, 300), slice(300, 400)
    scores = []
    for choice in ("auto", threshold):
        model = LowRankClassifier(4, threshold=choice, validation_fraction=0.3)
        scores.append(
            f1_score(Y[test], model.fit(X[train], _hide(Y[train], 0.2)).predict(X[test]), average="micro")
        )
    assert scores[1] > scores[0]
    assert len(np.unique(model.thresholds_)) == (1 if threshold == "f1" else 8)


def test_absent_may_mean_unknown():
    """Hidden positives are found again when negative entries weigh less."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    true = (X @ rng.normal(size=(6, 5)) > 0).astype(int)
    known = true * (rng.random(true.shape) < 0.4)
    found = [
        f1_score(true, LowRankClassifier(5, negative_weight=weight).fit(X, known).predict(X), average="micro")
        for weight in (1.0, 0.3)
    ]
    assert found[1] > found[0] + 0.1


@pytest.mark.parametrize("threshold", ["auto", "f1"])
def test_callbacks_see_every_round(problem, threshold):
    counter = Count()
    model = LowRankClassifier(3, threshold=threshold).set_callbacks(counter).fit(*problem)
    fits = 1 if threshold == "auto" else 6  # thresholds take five folds of so few rows
    assert counter.expected == LowRankClassifier().max_iter * fits
    assert model.n_iter_ == len(model.trace_) <= len(counter.names)
    assert threshold == "f1" or model.n_iter_ == len(counter.names)
    LowRankClassifier(3).set_callbacks(ProgressBar()).fit(*problem)


@pytest.mark.parametrize("threshold", ["auto", "f1"])
def test_a_callback_can_stop_the_fit(problem, threshold):
    counter = Count(stop_after=2)
    model = LowRankClassifier(3, tol=0, threshold=threshold).set_callbacks(counter)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(*problem)
    assert model.n_iter_ == len(counter.names) == 2
    assert model.predict(problem[0]).shape == (60, 5)


@pytest.mark.parametrize("half", ["improve_features", "improve_labels"])
@pytest.mark.parametrize("call", [1, 3])
@pytest.mark.parametrize("threshold", ["auto", "macro_f1"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_interrupted_fit_keeps_the_best_model_and_says_so(
    problem, monkeypatch, half, call, threshold, kernel
):
    true, calls = getattr(LowRankFactors, half), []

    def interrupted(self, *parts):
        calls.append(None)
        if len(calls) == call:
            raise KeyboardInterrupt
        return true(self, *parts)

    monkeypatch.setattr(LowRankFactors, half, interrupted)
    model = LowRankClassifier(3, tol=0, threshold=threshold, kernel=kernel)
    with pytest.raises(KeyboardInterrupt, match="interrupted; the model is the best one so far"):
        model.fit(*problem)
    assert len(calls) == call
    assert model.status_ == "interrupted"
    assert not model.converged_
    assert model.n_iter_ == len(model.trace_) == call - 1
    assert np.isfinite(model.decision_function(problem[0])).all()
    if call > 1:
        assert model.objective_ <= model.trace_[-1].objective * (1 + 1e-9)
        assert (model.predict(problem[0]) == problem[1]).mean() > 0.8


def test_a_fit_to_the_last_digit_ends(problem):
    model = LowRankClassifier(5, tol=0, max_iter=100_000).fit(*problem)
    assert model.converged_
    assert 0 <= model.duality_gap_ < 1e-3


@pytest.mark.parametrize("start", ["svd", "random"])
def test_both_starts_lead_to_one_objective(problem, start):
    X, Y = problem
    best = LowRankClassifier(5, tol=1e-9, max_iter=5000).fit(X, Y).objective_
    for seed in (0, 1):
        model = LowRankClassifier(5, start=start, tol=1e-9, max_iter=5000, random_state=seed).fit(X, Y)
        assert model.objective_ == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rank", 0), ("rank", 1.5), ("rank", -1), ("loss", "hinge"), ("penalty", "l1"),
        ("regularization", -1),
        ("negative_weight", 0), ("start", "zero"), ("threshold", "best"), ("tol", -1.0), ("max_iter", 0),
        ("precision", "float16"), ("validation_fraction", 1.0), ("intercept_scaling", 0),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(problem, name, value):
    with pytest.raises(ValueError, match=name):
        LowRankClassifier(**{name: value}).fit(*problem)


def test_a_mask_of_another_shape_is_refused(problem):
    _, Y = problem
    with pytest.raises(ValueError, match="shape"):
        LabelMatrix(sp.csr_array(Y), sp.csr_array(np.ones((60, 4))))


def test_thresholds_from_held_out_rows_need_two_rows(problem):
    X, Y = problem
    with pytest.raises(ValueError, match="more rows, or a number"):
        LowRankClassifier(threshold="f1").fit(X[:1], Y[:1])


@pytest.mark.parametrize(("precision", "scale"), [("float32", 1e30), ("float64", 1e160)])
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
def test_entries_whose_squares_overflow_are_refused(problem, precision, scale, penalty):
    X, Y = problem
    for given in (scale * X, sp.csr_array(scale * X)):
        with pytest.raises(ValueError, match=r"features up to 1e\+40|may overflow float32"):
            LowRankClassifier(precision=precision, penalty=penalty).fit(given, Y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(
    ("scaling", "words"),
    [(1e200, "intercept_scaling.* must be a float in the range"), (1e20, "may overflow float32")],
)
def test_a_constant_feature_whose_square_overflows_is_refused(problem, kernel, scaling, words):
    model = LowRankClassifier(kernel=kernel, precision="float32", intercept_scaling=scaling)
    with pytest.raises(ValueError, match=words):
        model.fit(*problem)


def test_what_float32_cannot_hold_is_refused(problem):
    X, Y = problem
    model = LowRankClassifier(precision="float32", penalty="ridge", fit_intercept=False)
    with pytest.raises(ValueError, match=r"whose squares float32 takes for 0"):
        model.set_params(penalty="trace_norm").fit(1e-30 * X, Y)
    uneven = X * np.where(np.arange(8) == 0, 1e-41, 1e-36)
    with pytest.raises(ValueError, match=r"weights up to \S+ in size, more than float32 can hold"):
        model.set_params(penalty="ridge", regularization=1e-82).fit(uneven, Y)


def test_a_row_known_to_an_inner_node_is_no_class_of_its_own():
    random = np.random.default_rng(1)
    X = random.normal(size=(80, 4))
    leaves = np.array(["dog", "cat", "oak", "elm"], object)[X.argmax(axis=1)]
    tree = Taxonomy.from_nested({"animal": ["dog", "cat"], "tree": ["oak", "elm"]})
    y = np.where(random.random(80) < 0.3, np.where(np.isin(leaves, ["dog", "cat"]), "animal", "tree"), leaves)
    model = LowRankClassifier(2, label_covariance=tree).fit(X, y)
    assert list(model.classes_) == ["cat", "dog", "elm", "oak"]


def test_a_gap_that_rounding_hides_is_not_stated():
    random = np.random.default_rng(0)
    X = 1e3 * random.normal(size=(60, 80))
    Y = (X[:, :3] > 0).astype(int)
    exact = LowRankClassifier(3, regularization=0.0).fit(X, Y)
    assert exact.objective_ >= 0
    with pytest.warns(ConvergenceWarning):
        separated = LowRankClassifier(3, "logistic", regularization=0.0).fit(X, Y)
    assert separated.objective_ < 1e-100
    for model in (exact, separated):
        assert not model.duality_gap_ < 0
