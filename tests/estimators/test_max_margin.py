"""Linear max-margin models: their certificates, resumed fits, and factors of kernels."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning

import labelweave as lw
from drawn import draw_labels
from labelweave.estimators import journal
from labelweave.estimators.max_margin import feature_weights
from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.gram import incomplete_cholesky
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.arrays import Workers
from labelweave.problems.hyperparameters.cross_validation import CrossValidationLikelihood
from labelweave.solvers import DualCoordinateAscent
from watching import Count


@pytest.fixture
def problem():
    return draw_labels(60, 8, 5, size=1 / 3, noise=0.1, above=0)


@pytest.mark.filterwarnings("ignore:C=")  # warns of rounding of margins
@pytest.mark.parametrize("scale", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_coordinate_ascent_does_not_mind_small_features(scale, tol):
    """With C over the square of the scale it is the same problem, in both precisions."""
    table = sp.random_array((60, 30), density=0.3, format="csr", rng=np.random.default_rng(0))
    labels = np.random.default_rng(0).random((60, 4)) < 0.3
    model = lw.MaxMarginClassifier(tol=tol, fit_intercept=False, solver="coordinate_ascent")
    expected = clone(model).fit(table, labels).decision_function(table)
    model.set_params(C=1 / scale**2).fit(scale * table, labels)
    assert model.converged_
    np.testing.assert_allclose(model.decision_function(scale * table), expected, atol=20 * tol)


@pytest.mark.parametrize("C", [1e-20, 1e-100, 1e-200])
def test_coordinate_ascent_does_not_mind_a_small_c(C):
    """The bounds of the variables would be 0 in single precision."""
    table = sp.random_array((60, 30), density=0.3, format="csr", rng=np.random.default_rng(0))
    labels = np.random.default_rng(0).random((60, 4)) < 0.3
    model = lw.MaxMarginClassifier(C, solver="coordinate_ascent").fit(table, labels)
    assert model.converged_
    assert np.abs(model.coef_).max() > C


def test_the_certificate_is_what_it_says(problem):
    X, Y = problem
    model = lw.MaxMarginClassifier(C=0.7, tol=1e-5).fit(X, Y)
    signs = 2 * Y - 1
    scores = X @ model.coef_.T + model.intercept_
    penalty = ((model.coef_**2).sum() + (model.intercept_**2).sum()) / 2
    primal = penalty + 2 * 0.7 * np.maximum(0, 1 - signs * scores).sum()
    last = model.trace_[-1]
    assert model.converged_
    assert primal == pytest.approx(last.primal, rel=1e-12)
    assert 0 <= model.duality_gap_ == (last.primal - last.dual) / last.primal <= 1e-5
    looser = lw.MaxMarginClassifier(C=0.7, tol=1e-2).fit(X, Y).trace_[-1]
    assert looser.dual <= last.primal * (1 + 1e-12)
    assert last.dual <= looser.primal * (1 + 1e-12)


def test_callbacks_see_the_gap_shrink(problem):
    counter = Count()
    lw.MaxMarginClassifier(tol=1e-3).set_callbacks(counter).fit(*problem)
    assert len(counter.names) == counter.expected == 30
    lw.MaxMarginClassifier().set_callbacks(ProgressBar()).fit(*problem)


def test_a_taxonomy_helps_a_rare_sibling():
    """A label with two positives borrows from its sibling through their common parent."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(1, 20))
    X = rng.normal(size=(300, 20)) / 4
    score = (X @ common.T)[:, 0]
    Y = np.column_stack([score > 0.5, score > 0.5])
    observed = np.ones_like(Y)
    observed[8:, 1] = False
    train = lw.LabelMatrix(sp.csr_array(Y), names=["often", "rare"]).masked(sp.csr_array(observed))
    tree = lw.Taxonomy([("parent", "often"), ("parent", "rare")])
    alone = lw.MaxMarginClassifier().fit(X, train).predict(X).toarray()
    together = lw.MaxMarginClassifier(label_covariance=tree).fit(X, train).predict(X).toarray()
    assert (together[:, 1] == Y[:, 1]).mean() > (alone[:, 1] == Y[:, 1]).mean() + 0.05


R = 0.6 * np.eye(6) + 0.4


def _data(n=150):
    return draw_labels(n, 8, 6, above=0.5, missing=0.1)


@pytest.mark.slow
def test_learned_hyperparameters_are_part_of_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_SECONDS", 0.0)
    X, Y = _data()
    path, write, evaluated = tmp_path / "fit.lwc", journal.Journal.write, []
    options = {"kernel": "rbf", "hyperparameters": "learn", "label_covariance": 2, "tol": 1e-5}
    evaluate = CrossValidationLikelihood.__call__

    def counted(criterion, theta):
        evaluated.append(theta)
        return evaluate(criterion, theta)

    monkeypatch.setattr(CrossValidationLikelihood, "__call__", counted)
    whole = lw.MaxMarginClassifier(**options).fit(X, Y)
    needed = len(evaluated)
    for states in (6, needed + 1, needed + 4):  # within the search, the surrogate's fit and the last one
        evaluated.clear()
        calls = []

        def killed(self, calls=calls, states=states):
            write(self)
            calls.append(1)
            if len(calls) == states:
                raise SystemExit

        model = lw.MaxMarginClassifier(**options, checkpoint=path)
        monkeypatch.setattr(journal.Journal, "write", killed)
        with pytest.raises(SystemExit):
            model.fit(X, Y)
        monkeypatch.setattr(journal.Journal, "write", write)
        assert path.exists()
        model.fit(X, Y)
        assert not path.exists()
        assert len(evaluated) == needed  # none was computed twice
        assert model.C_ == whole.C_
        np.testing.assert_array_equal(model.decision_function(X), whole.decision_function(X))


def test_a_covariance_may_come_with_more_labels():
    X, Y = _data()
    known = Y.copy()
    known[:100, 4:] = np.nan  # two labels unknown in the first rows
    model = lw.MaxMarginClassifier(tol=1e-5).partial_fit(X[:100], Y[:100, :4])
    model.set_params(label_covariance=R).partial_fit(X[100:], Y[100:])
    whole = lw.MaxMarginClassifier(tol=1e-5, label_covariance=R).fit(X, known)
    np.testing.assert_allclose(model.trace_[-1].primal, whole.trace_[-1].primal, rtol=2e-5)


def test_the_width_of_a_kernel_is_that_of_all_rows():
    X, Y = _data()
    options = {"kernel": "rbf", "label_covariance": R, "tol": 1e-5}
    model = lw.MaxMarginClassifier(**options).partial_fit(X[:90], Y[:90]).partial_fit(X[90:], Y[90:])
    whole = lw.MaxMarginClassifier(**options).fit(X, Y)
    assert model.kernel_.gamma == whole.kernel_.gamma
    np.testing.assert_allclose(model.trace_[-1].primal, whole.trace_[-1].primal, rtol=2e-5)


def test_what_partial_fit_cannot_do_is_said():
    X, Y = _data()
    with pytest.raises(AttributeError, match="partial_fit"):
        lw.MaxMarginClassifier(kernel="precomputed").partial_fit(X @ X.T, Y)
    with pytest.warns(UserWarning, match="only these rows"):
        lw.MaxMarginClassifier().fit(X, Y).partial_fit(X, Y)
    model = lw.MaxMarginClassifier(warm_start=True).fit(X[:80], Y[:80])
    model.partial_fit(X[80:], Y[80:])
    np.testing.assert_allclose(
        model.trace_[-1].primal, lw.MaxMarginClassifier().fit(X, Y).trace_[-1].primal, rtol=2e-3
    )


def test_the_second_fit_of_thresholds_starts_from_the_first():
    X, Y = _data(600)
    plain = lw.MaxMarginClassifier(tol=1e-2, solver="coordinate_ascent").fit(X, Y)
    margins = lw.MaxMarginClassifier(tol=1e-2, solver="coordinate_ascent")
    tuned = lw.TunedThresholdClassifier(margins, "macro_f1").fit(X, Y).estimator_
    assert tuned.converged_
    assert tuned.n_iter_ < plain.n_iter_


@pytest.mark.parametrize("average", ["micro", "macro", "example"])
@pytest.mark.parametrize("folds", [False, True])
def test_thresholds_take_less_than_one_more_fit_but_for_folds(average, folds, monkeypatch):
    data = lw.datasets.make_text_like(1500, 500, 20)
    rounds, solve = [], DualCoordinateAscent.solve

    def counted(*given):
        result = solve(*given)
        rounds.append(result[0].n_iter)
        return result

    monkeypatch.setattr(DualCoordinateAscent, "solve", counted)
    lw.MaxMarginClassifier().fit(data.X, data.Y)
    share = "auto" if folds else 0.2
    tuned = lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), f"{average}_f1", validation_fraction=share)
    tuned.fit(data.X, data.Y)
    plain, part, *others, whole = rounds
    assert part < plain
    assert whole < plain
    assert part + whole < 1.7 * plain
    assert len(others) == 4 * folds
    assert all(other <= part for other in others)  # each starts where the one before ended


def test_global_steps_from_far_away_take_about_as_many_rounds_as_from_nothing():
    X, Y = draw_labels(120, 8, above=0.5)
    model = lw.MaxMarginClassifier(kernel="rbf", solver="alternating_directions", warm_start=True).fit(X, Y)
    model.set_params(C=10.0).fit(X, Y)
    fresh = lw.MaxMarginClassifier(10.0, kernel="rbf", solver="alternating_directions").fit(X, Y)
    assert model.converged_
    assert model.n_iter_ <= 1.2 * fresh.n_iter_


def _objective(model, X, Y, C, R=None):
    """Compute the documented objective at the weights, in extended precision."""
    W = np.column_stack([model.coef_, model.intercept_]).astype(np.longdouble)
    Z = np.column_stack([X, np.ones(len(X))]).astype(np.longdouble)
    inverse = np.eye(len(W)) if R is None else np.linalg.inv(R)
    loss = np.maximum(0, 1 - np.where(Y > 0, 1, -1) * (Z @ W.T)).sum()
    return float((W * (inverse @ W)).sum() / 2 + 2 * C * loss)


def _rows(n, d, n_labels, offset=0.0, scale=1.0, seed=0):
    X, Y = draw_labels(n, d, n_labels, seed=seed, noise=3.0, above=0)
    return (X + offset) * scale, Y


def _with_a_time():
    X, Y = _rows(500, 4, 1)
    return np.column_stack([X, 1.7e9 + 3e7 * np.random.default_rng(1).random(500)]), Y


FITS = {
    "one column in units of 1e5": (*_rows(300, 1, 2, 12.0, 1e5), {}),
    "one column in units of 1e7": (*_rows(300, 1, 2, 12.0, 1e7), {}),
    "offset 1e5, a large cost": (*_rows(3000, 5, 2, 1e5), {"C": 100.0}),
    "a column of times": (*_with_a_time(), {}),
    "fewer rows than columns": (*_rows(40, 100, 2, 1e5), {"C": 100.0}),
    "as many rows as columns": (*_rows(5, 5, 1, 3e5, seed=80), {"C": 100.0, "tol": 1e-6}),
    "many rows, more columns": (*_rows(520, 600, 2, 1e3), {}),
    "sparse form of few rows": (sp.csr_array(_rows(40, 100, 2, 1e5)[0]), _rows(40, 100, 2, 1e5)[1], {}),
    "sparse form of many rows": (sp.csr_array(_rows(520, 600, 2, 1e3)[0]), _rows(520, 600, 2, 1e3)[1], {}),
    "sparse form of dense rows": (sp.csr_array(_rows(300, 5, 2, 100.0)[0]), _rows(300, 5, 2, 100.0)[1], {}),
}


@pytest.mark.parametrize("name", FITS)
def test_features_far_from_0_converge_and_the_gap_is_that_of_the_weights(name):
    X, Y, options = FITS[name]
    model = lw.MaxMarginClassifier(**options).fit(X, Y)
    assert model.converged_
    primal = _objective(model, X.toarray() if sp.issparse(X) else X, Y, model.C)
    assert primal == pytest.approx(model.trace_[-1].primal, rel=1e-6)
    assert (primal - model.trace_[-1].dual) / primal <= 1.01 * model.tol


def test_dense_rows_are_walked_until_global_steps_are_expected_to_be_faster():
    X, Y = _rows(400, 30, 3)
    walked = lw.MaxMarginClassifier(C=0.01, solver="coordinate_ascent").fit(X, Y)
    same = lw.MaxMarginClassifier(C=0.01).fit(X, Y)
    np.testing.assert_array_equal(same.coef_, walked.coef_)
    assert same.n_iter_ == walked.n_iter_
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        late = lw.MaxMarginClassifier(solver="coordinate_ascent", max_iter=300).fit(X + 10.0, Y)
    model = lw.MaxMarginClassifier(n_jobs=2, max_iter=3000).fit(X + 10.0, Y)
    assert model.converged_
    assert [record.iteration for record in model.trace_] == sorted({r.iteration for r in model.trace_})
    assert model.trace_[0][2:5] == late.trace_[0][2:5]  # it began with visits to rows
    again = lw.MaxMarginClassifier(max_iter=3000).fit(X + 10.0, Y)
    np.testing.assert_array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize("solver", ["alternating_directions", "block_ascent", "working_set"])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("coupling", [0.0, 0.5])
def test_gaps_are_those_of_the_weights_where_fits_do_not_converge_too(solver, offset, coupling):
    X, Y = _rows(30, 5, 2, offset)
    R = None if coupling == 0 else np.array([[1.0, coupling], [coupling, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = lw.MaxMarginClassifier(C=10.0, solver=solver, label_covariance=R, max_iter=200).fit(X, Y)
    last = model.trace_[-1]
    assert last.primal == pytest.approx(_objective(model, X, Y, 10.0, R), rel=1e-5)
    assert model.duality_gap_ == pytest.approx((last.primal - last.dual) / last.primal, abs=1e-12)
    assert last.primal <= 2 * 10.0 * Y.size
    assert model.converged_ == (abs(model.duality_gap_) <= model.tol)


@pytest.mark.parametrize("seed", [80, 86, 123, 143])
def test_a_linear_kernel_is_never_called_indefinite(monkeypatch, seed):
    monkeypatch.setattr(feature_weights, "_FEW_WIDE_ROWS", 0)
    monkeypatch.setattr(feature_weights, "_FAR", np.inf)  # dot products, which lose digits
    random = np.random.default_rng(seed)
    X = random.normal(size=(5, 5)) + 3e5
    Y = (random.random((5, 1)) < 0.5).astype(int)
    # the order of sums, which processors choose, decides whether a run sees that rounding holds it
    with pytest.warns(ConvergenceWarning, match="Rounding kept|The iteration limit"):
        model = lw.MaxMarginClassifier(C=100.0, tol=1e-6, solver="alternating_directions").fit(X, Y)
    primal = _objective(model, X, Y, 100.0)
    assert model.duality_gap_ == pytest.approx((primal - model.trace_[-1].dual) / primal, abs=1e-5)


@pytest.mark.parametrize("shape", [(1200, 5), (30, 40)])
def test_single_precision_is_not_used_beyond_its_range(shape):
    X, Y = _rows(*shape, 2, scale=1e20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # no other warning, as of overflow
        model = lw.MaxMarginClassifier(dtype="float32").fit(X, Y)
    assert _objective(model, X, Y, 1.0) <= 2 * Y.size


def table(n=150, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    Y = (np.sin(2 * X[:, :3]) + 0.3 * random.normal(size=(n, 3)) > 0.2).astype(float)
    Y[::7, 1] = np.nan
    return X, Y


@pytest.mark.parametrize("solver", ["auto", "coordinate_ascent", "block_ascent"])
def test_as_many_columns_as_rows_are_the_kernel(solver):
    X, Y = table()
    whole = lw.MaxMarginClassifier(kernel="rbf", tol=1e-7).fit(X, Y)
    model = lw.MaxMarginClassifier(kernel="rbf", kernel_rank=150, solver=solver, tol=1e-7).fit(X, Y)
    new = np.random.default_rng(1).normal(size=(20, 4))
    np.testing.assert_allclose(model.decision_function(new), whole.decision_function(new), atol=2e-3)
    assert model.trace_[-1].primal == pytest.approx(whole.trace_[-1].primal, rel=1e-6)


def test_few_columns_are_the_linear_model_of_a_factor():
    X, Y = table()
    kernel = RBFKernel(0.4)
    model = lw.MaxMarginClassifier(kernel=kernel, kernel_rank=20, tol=1e-6).fit(X, Y)
    assert model.support_vectors_.shape == (20, 4)
    found = incomplete_cholesky(KernelSource(kernel, FeatureMatrix(X)), 20, Workers(), _seed())
    np.testing.assert_array_equal(found.active_rows, model.support_)
    linear = lw.MaxMarginClassifier(tol=1e-6).fit(found.factor, Y)
    np.testing.assert_allclose(model.decision_function(X), linear.decision_function(found.factor), atol=1e-6)


def _seed():
    return int(np.random.RandomState(0).randint(2**31 - 1))


def test_a_given_matrix_learned_parameters_and_more_rows():
    X, Y = table(60)
    kernel = RBFKernel(0.4)
    K = kernel.block(FeatureMatrix(X), FeatureMatrix(X))
    given = {"kernel_rank": 15, "tol": 1e-5}
    model = lw.MaxMarginClassifier(kernel="precomputed", **given).fit(K, Y)
    same = lw.MaxMarginClassifier(kernel=kernel, **given).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(K), same.decision_function(X), atol=1e-6)
    more = (
        lw.MaxMarginClassifier(kernel=kernel, **given).partial_fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])
    )
    np.testing.assert_allclose(more.decision_function(X), same.decision_function(X), atol=0.02)
