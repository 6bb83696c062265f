"""LowRankClassifier: ranks, scales, thresholds, callbacks, and fits that resume from others."""

import numpy as np
import pytest
from attacks.small_fits import mark
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score

from drawn import draw_labels
from labelweave import LabelMatrix, LowRankClassifier, RankSearch
from labelweave.estimators.low_rank.fit import columns_for_rank, largest_rank
from watching import Count

LOSSES = ["squared_error", "log_loss", "squared_hinge"]
KERNELS = ["linear", "rbf", "precomputed"]


@pytest.fixture
def problem():
    return draw_labels(60, 8, 5, size=1 / 3, noise=0.1, above=0)


def _hide(Y, share=0.4):
    return np.where(np.random.default_rng(1).random(Y.shape) < share, np.nan, Y)


@pytest.mark.parametrize(("rank", "expected"), [(1, 1), (5, 5), (10_000, 5), (0.4, 2), (0.999, 5), (1e-9, 1)])
def test_a_rank_above_what_the_data_allow_is_lowered(problem, rank, expected):
    X, Y = problem
    model = LowRankClassifier(rank).fit(X, Y)
    assert model.rank_ == expected
    assert model.feature_factors_.shape == (8, expected)
    assert model.label_factors_.shape == (5, expected)
    assert LowRankClassifier(rank).fit(X[:, :1], Y).rank_ == min(2, expected)
    few = LowRankClassifier(rank, kernel="rbf", kernel_rank=2).fit(X, Y)
    assert few.rank_ <= min(3, expected)
    assert len(few.support_) == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
@pytest.mark.parametrize("loss", LOSSES)
def test_without_regularization_a_singular_problem_has_a_finite_answer(problem, kernel, penalty, loss):
    X, Y = problem
    X = np.c_[X, X[:, 0], np.zeros(60)]
    given = X @ X.T if kernel == "precomputed" else X
    parameters = {"alpha": 0, "loss": loss, "penalty": penalty, "kernel": kernel, "max_iter": 20}
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
        fits.append(model.set_params(alpha=0.3 * size).fit(rows, _hide(Y)).objective_)
    assert fits[1] == pytest.approx(fits[0], rel=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("loss", LOSSES)
def test_huge_and_tiny_features(problem, scale, precision, loss):
    X, Y = problem
    mixed = X * np.where(np.arange(8) < 4, scale, 1.0)
    parameters = {"loss": loss, "dtype": precision, "max_iter": 200}
    model = LowRankClassifier(3, **parameters).fit(mixed, Y)
    assert np.isfinite(model.decision_function(mixed)).all()
    objectives = np.array([record.objective for record in model.trace_])
    slack = 1e-9 if precision == "float64" else 1e-5
    assert (np.diff(objectives) <= slack * objectives[0]).all()


def test_a_large_constant_feature_is_one_feature():
    """The largest rank that 4 features and a constant can have is 5, whatever the constant's size."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)), rng.integers(0, 2, (30, 9)).astype(float)
    Y[0, 0] = np.nan
    assert LowRankClassifier(1.0, fit_intercept=30.0).fit(X, Y).rank_ == 5


def test_float32_is_close_to_float64(problem):
    X, Y = problem
    for loss in LOSSES:
        wide, single = (
            LowRankClassifier(3, loss, dtype=precision, tol=1e-6, max_iter=500).fit(X, _hide(Y))
            for precision in ("float64", "float32")
        )
        assert single.feature_factors_.dtype == single.label_factors_.dtype == np.float32
        assert single.objective_ == pytest.approx(wide.objective_, rel=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_thresholds_are_where_predictions_change(problem, loss):
    X, Y = problem
    usual = LowRankClassifier(3, loss).fit(X, Y)
    assert (usual.thresholds_ == (0.5 if loss == "squared_error" else 0.0)).all()
    raw = usual.decision_function(X) + usual.thresholds_
    high = LowRankClassifier(3, loss, threshold=0.9).fit(X, Y)
    np.testing.assert_array_equal(high.predict(X), raw > 0.9)


def test_absent_may_mean_unknown():
    """Hidden positives are recovered when negative entries have less weight."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    true = (X @ rng.normal(size=(6, 5)) > 0).astype(int)
    known = true * (rng.random(true.shape) < 0.4)
    models = [LowRankClassifier(5, class_weight={0: cost}).fit(X, known) for cost in (1.0, 0.3)]
    found = [f1_score(true, model.predict(X), average="micro") for model in models]
    assert found[1] > found[0] + 0.1


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.97])
@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_one_cost_of_all_labels_is_that_of_each(loss, missing):
    """The first keeps the loss in its sparse form, the second has a weight for every entry."""
    X, Y = draw_labels(n=200, d=8, n_labels=6, missing=missing)
    settings = {"loss": loss, "penalty": "ridge", "tol": 1e-10, "max_iter": 1000}
    one, each = (
        LowRankClassifier(6, class_weight=c, **settings).fit(X, LabelMatrix.from_any(Y), entry_weight=w)
        for c, w in (({0: 0.3}, None), (None, np.where(Y == 1, 1.0, 0.3)))
    )
    assert one.objective_ == pytest.approx(each.objective_, rel=1e-6)
    np.testing.assert_allclose(one.decision_function(X), each.decision_function(X), atol=2e-3)


def test_callbacks_see_every_round(problem):
    counter = Count()
    model = LowRankClassifier(3).set_callbacks(counter).fit(*problem)
    assert counter.expected == LowRankClassifier().max_iter
    assert model.n_iter_ == len(model.trace_) == len(counter.names)
    LowRankClassifier(3).set_callbacks(ProgressBar()).fit(*problem)


def test_a_fit_to_the_last_digit_ends(problem):
    model = LowRankClassifier(5, tol=0, max_iter=100_000).fit(*problem)
    assert model.status_ == "settled"
    assert 0 <= model.duality_gap_ < 1e-3


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"rank": 1}, "settled"),  # the bound is active
        ({"rank": 5, "tol": 1e-2}, "converged"),
        ({"rank": 1, "penalty": "ridge"}, "converged"),  # solved exactly
        ({"rank": 2, "penalty": "ridge", "loss": "log_loss"}, "settled"),  # no bound
    ],
)
def test_only_a_certified_objective_has_converged(settings, status):
    X, Y = np.random.default_rng(0).normal(size=(60, 8)), np.random.default_rng(1).random((60, 5)) < 0.4
    model = LowRankClassifier(**settings).fit(X, Y)
    assert model.status_ == status
    assert model.converged_ == (model.duality_gap_ <= model.tol) == (status == "converged")


@pytest.mark.parametrize("start", ["svd", "random"])
def test_both_starts_lead_to_one_objective(problem, start):
    X, Y = problem
    best = LowRankClassifier(5, tol=1e-9, max_iter=5000).fit(X, Y).objective_
    for seed in (0, 1):
        model = LowRankClassifier(5, init=start, tol=1e-9, max_iter=5000, random_state=seed).fit(X, Y)
        assert model.objective_ == pytest.approx(best, rel=1e-4)


def test_a_gap_that_rounding_hides_is_not_stated():
    random = np.random.default_rng(0)
    X = 1e3 * random.normal(size=(60, 80))
    Y = (X[:, :3] > 0).astype(int)
    exact = LowRankClassifier(3, alpha=0.0).fit(X, Y)
    assert exact.objective_ >= 0
    with pytest.warns(ConvergenceWarning):
        separated = LowRankClassifier(3, "log_loss", alpha=0.0).fit(X, Y)
    assert separated.objective_ < 1e-100
    for model in (exact, separated):
        assert not model.duality_gap_ < 0


@pytest.mark.parametrize(
    ("rank", "labels", "columns"),
    [(1, 10, 1), (7, 3, 7), (np.int64(4), 10, 4), (1.0, 10, 10), (0.25, 10, 2), (0.35, 10, 4), (0.01, 10, 1)],
)
def test_shares_are_rounded_and_at_least_one(rank, labels, columns):
    found = columns_for_rank(rank, labels)
    assert found == columns
    assert type(found) is int


@pytest.mark.parametrize("rank", [0.2, 0.5, 0.7, 1.0])
def test_all_models_read_a_share_in_the_same_way(rank):
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(30, 9)), (random.random((30, 7)) < 0.4).astype(int)
    models = [LowRankClassifier(rank), LowRankClassifier(RankSearch([rank], [1.0], cv=2))]
    columns = {model.fit(X, Y).label_factors_.shape[1] for model in models}
    assert columns == {columns_for_rank(rank, 7)}


def test_no_product_of_factors_has_a_larger_rank():
    sizes = (50, 4, 20, True), (50, 4, 20, False), (3, 4, 20, True), (50, None, 20, True), (0, 0, 5, False)
    assert [largest_rank(*size) for size in sizes] == [5, 4, 3, 20, 1]


FITS = {
    "trace norm": {"rank": 3},
    "log_loss": {"rank": 3, "loss": "log_loss"},
    "kernel": {"rank": 3, "kernel": "rbf"},
    "low-rank kernel": {"rank": 3, "kernel": "rbf", "kernel_rank": 20, "loss": "squared_hinge"},
}


def _drawn(n=90, d=8, labels=6):
    return draw_labels(n, d, labels, size=0.5, rank=3, noise=0.2, missing=0.0)


def test_a_warm_start_finds_columns_that_a_stronger_penalty_had_no_room_for():
    X, Y = _drawn()
    options = {"rank": 6, "tol": 1e-8, "max_iter": 2000}
    model = LowRankClassifier(**options, alpha=20.0, warm_start=True).fit(X, Y)
    sizes = np.linalg.norm(model.label_factors_, axis=0)
    assert (sizes < 1e-3 * sizes.max()).any()
    model.set_params(alpha=0.1).fit(X, Y)
    alone = LowRankClassifier(**options, alpha=0.1).fit(X, Y)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-4)
    # other shapes start afresh
    other = LowRankClassifier(**options).fit(X[:, :5], Y[:, :4])
    model.set_params(alpha=1.0).fit(X[:, :5], Y[:, :4])
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-4)


def test_more_rows_cost_less_than_a_fit_to_all():
    X, Y = _drawn(400, 30, 20)
    options = {"rank": 8, "loss": "log_loss", "tol": 1e-5, "max_iter": 500}
    model = LowRankClassifier(**options).partial_fit(X[:380], Y[:380])
    model.partial_fit(X[380:], Y[380:])
    alone = LowRankClassifier(**options).fit(X, Y)
    work, all_work = (sum(record.feature_iterations for record in fit.trace_) for fit in (model, alone))
    assert work < 0.7 * all_work
    assert model.objective_ <= alone.objective_ * (1 + 1e-3)


def test_classes_may_come_later():
    X, _ = _drawn()
    classes = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    order = np.argsort(classes)
    model = LowRankClassifier(5, alpha=0.1)
    model.partial_fit(X[order[:10]], classes[order[:10]], classes=["a", "b"])
    assert set(model.predict(X)) <= {"a", "b"}
    model.partial_fit(X[order[10:]], classes[order[10:]])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(X, classes) > 0.8


def test_what_partial_fit_cannot_do_is_said():
    assert not hasattr(LowRankClassifier(kernel="precomputed"), "partial_fit")
    with pytest.raises(ValueError, match="classes is for y with one class per row"):
        LowRankClassifier(3).partial_fit(*_drawn(), classes=[0, 1])


@pytest.mark.parametrize("name", FITS)
def test_a_fit_goes_on_from_the_model_of_a_part(name):
    X, Y = _drawn(300, 20, 10)
    kept = np.sort(np.random.default_rng(0).permutation(300)[:270])
    parameters = FITS[name] | {"tol": 1e-6, "max_iter": 2000}
    part = LowRankClassifier(**parameters).fit(X[kept], Y[kept])
    alone = LowRankClassifier(**parameters).fit(X, Y)
    fitted = LowRankClassifier(**parameters)._fit_from(part, kept, X, Y)
    assert fitted.objective_ <= alone.objective_ * (1 + 1e-3)
    assert fitted.n_iter_ <= alone.n_iter_
    assert fitted.warm_start is False
    weighted = LowRankClassifier(**parameters)._fit_from(part, kept, X, Y, sample_weight=np.ones(300))
    assert mark(weighted, X) == mark(fitted, X)
