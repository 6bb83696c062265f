"""Newton's method: optima, certificates, groups, the ways a fit ends, and its line search."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from labelweave.features.gram import StoredGram
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance
from labelweave.labels.covariance import FactorCovariance
from labelweave.problems.coupled_gram import CoupledGram, GramTerm
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.problems.losses import EntrywiseLoss, SoftmaxLoss
from labelweave.solvers import Status, newton_system
from labelweave.solvers.newton import NewtonConjugateGradient, NewtonState, search_along
from labelweave.solvers.symmetrized_gradients import SymmetrizedGradients
from reference.newton_twins import LogisticTwin, SoftmaxTwin, objective, optimum, prior

N, C = 30, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
CODES = np.argmax(X @ RNG.normal(size=(3, C)) + 0.7 * RNG.normal(size=(N, C)), axis=1)
SIGNS = RNG.integers(-1, 2, (N, C)).astype(np.int8)
FACTOR = np.array([[1.0, 0.5], [1.0, 0.5], [1.0, -0.5], [0.0, 1.0]])
COVARIANCES = {
    "identity": LabelCovariance.identity(C),
    "variances": FactorCovariance(np.zeros((C, 0)), np.array([1.0, 0.3, 2.0, 0.0])),
    "dense": LabelCovariance.dense(FACTOR @ FACTOR.T + 0.2 * np.eye(C)),
    "thin": LabelCovariance.low_rank(FACTOR),
}
DIRECTIONS = {
    "function": newton_system.FunctionGradients(),
    "symmetrized": SymmetrizedGradients(),
    "without a diagonal": SymmetrizedGradients(diagonal=False),
    "exact": newton_system.ExactDirections(),
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread_a_product():
    with Workers().running():
        yield


def _kernel(width=2.0, rows=X):
    return np.exp(-((rows[:, None] - rows[None]) ** 2).sum(axis=2) / width)


def _softmax(weights):
    return SoftmaxLoss(CODES[: len(weights)], C, weights)


def _problem(loss, K, covariance, intercept_variance=0.5, workers=None, rank=0, is_separate=False):
    workers = workers or Workers()
    gram = CoupledGram([GramTerm(StoredGram(K, workers), covariance)], intercept_variance, workers,
                       is_separate=is_separate)  # fmt: skip
    return KernelLikelihood(gram, loss, rank, 0)


def _simple(weights=None, covariance="dense", scale=5.0, **options):
    weights = np.ones((N, 1)) if weights is None else weights
    return _problem(_softmax(weights), _kernel(), COVARIANCES[covariance].scaled(scale), **options)


def _twin(loss, weights):
    allowed = np.eye(C, dtype=bool)[CODES]
    return SoftmaxTwin(allowed, weights) if loss == "softmax" else LogisticTwin(SIGNS, weights)


def _loss(loss, weights):
    return (
        _softmax(weights)
        if loss == "softmax"
        else EntrywiseLoss("log_loss", SIGNS, weights, is_separate=False)
    )


def test_a_start_that_is_worse_than_zero_is_not_used():
    """As that of a far smaller K, from which line searches end in rounding."""
    problem = _simple(scale=1e7)
    bad = NewtonState.at(np.full(problem.shape, 1.0) * np.array([3.0, -1.0, -1.0, -1.0])[None, None])
    result, _ = NewtonConjugateGradient(1e-6, 200).solve(problem, bad)
    twin, _ = NewtonConjugateGradient(1e-6, 200).solve(problem)
    assert result.converged
    assert result.trace[-1].primal == pytest.approx(twin.trace[-1].primal, rel=1e-5)
    assert result.trace[0].primal == pytest.approx(N * np.log(C))


@pytest.mark.parametrize("loss", ["softmax", "log_loss"])
@pytest.mark.parametrize("name", COVARIANCES)
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_optima_are_those_of_the_twin(loss, name, directions):
    if directions == "exact" and name in ("dense", "thin"):
        pytest.skip("exact directions are for labels that nothing ties together")
    weights = RNG.uniform(0.5, 1.5, (N, 1))
    problem = _problem(_loss(loss, weights), _kernel(), COVARIANCES[name].scaled(5.0))
    result, state = NewtonConjugateGradient(1e-12, 50, directions=DIRECTIONS[directions]).solve(problem)
    K = prior([_kernel()], [5.0 * COVARIANCES[name].to_dense()], 0.5)
    twin = _twin(loss, weights[:, 0])
    least, scores = optimum(twin, K, (N, C))
    assert result.converged
    assert np.isclose(result.trace[-1].primal, least, rtol=1e-9)
    assert np.allclose(state.scores[:, 0], scores, atol=1e-4)
    assert np.isclose(objective(twin, K, state.dual[:, 0]), result.trace[-1].primal, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("loss", ["log_loss", "squared_error", "squared_hinge"])
def test_separate_labels_are_scikit_learns_models(loss, scale):
    signs = np.where(RNG.random((N, 2)) < 0.5, 1, -1).astype(np.int8)
    factor = np.linalg.cholesky(scale * (_kernel() + 1e-6 * np.eye(N)))
    entries = EntrywiseLoss(loss, signs, np.ones((N, 1)), is_separate=True)
    covariance = FactorCovariance(np.zeros((2, 0)), scale)
    problem = _problem(entries, _kernel() + 1e-6 * np.eye(N), covariance, 0.0, is_separate=True)
    result, state = NewtonConjugateGradient(1e-13, 100).solve(problem)
    assert result.converged
    for label in range(2):
        if loss == "squared_error":
            peer = Ridge(1.0, fit_intercept=False).fit(factor, signs[:, label] > 0)
            scores = peer.predict(factor)
        elif loss == "log_loss":
            peer = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=100_000)
            scores = peer.fit(factor, signs[:, label]).decision_function(factor)
        else:
            peer = LinearSVC(C=0.5, fit_intercept=False, dual=False, tol=1e-10, max_iter=100_000)
            scores = peer.fit(factor, signs[:, label]).decision_function(factor)
        assert np.allclose(state.scores[:, label, 0], scores, atol=1e-4)


@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-6, 1e-2, 1.0, 30.0]),
    max_iter=st.integers(0, 4),
    name=st.sampled_from(list(COVARIANCES)),
)
@settings(max_examples=25)
def test_the_gap_bounds_how_far_the_objective_is_from_the_least(seed, scale, max_iter, name):
    rng = np.random.default_rng(seed)
    problem = _simple(covariance=name, scale=scale)
    start = 0.3 * rng.normal(size=(N, 1, C))
    state = NewtonState.at(start)
    result, state = NewtonConjugateGradient(1e-14, max_iter).solve(problem, state)
    best, _ = NewtonConjugateGradient(1e-12, 60).solve(problem)
    rounding = 1e-11 * max(1.0, best.trace[-1].primal)
    last = result.trace[-1]
    assert last.primal - last.dual + rounding >= last.primal - best.trace[-1].primal >= -rounding
    assert last.primal - last.dual >= -rounding
    assert last.dual <= best.trace[-1].primal + rounding


def test_directions_agree_with_each_other():
    found = []
    for directions in DIRECTIONS.values():
        solver = NewtonConjugateGradient(1e-12, 60, directions=directions)
        found.append(solver.solve(_simple(covariance="variances"))[1].scores)
    for scores in found[1:]:
        assert np.allclose(scores, found[0], atol=1e-4)


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_folds_solved_together_are_folds_solved_alone(directions):
    weights = np.ones((N, 3))
    weights[np.arange(N), np.arange(N) % 3] = 0.0
    solver = NewtonConjugateGradient(1e-12, 60, directions=DIRECTIONS[directions])
    _, state = solver.solve(_simple(weights, "variances"))
    for fold in range(3):
        kept = weights[:, fold] > 0
        _, one = solver.solve(_simple(np.ascontiguousarray(weights[:, [fold]]), "variances"))
        assert np.isclose(one.values[0], state.values[fold], rtol=1e-10)
        assert np.allclose(one.scores[:, 0], state.scores[:, fold], atol=1e-4)
        assert not state.dual[~kept, fold].any()
        # the held-out rows are predicted: their scores are those of a model that never saw them
        inner = SoftmaxLoss(CODES[kept], C, np.ones((kept.sum(), 1)))
        small = _problem(inner, _kernel(rows=X[kept]), COVARIANCES["variances"].scaled(5.0))
        _, least = solver.solve(small)
        assert np.allclose(least.scores[:, 0], state.scores[kept, fold], atol=1e-4)


def test_groups_stop_when_they_are_done():
    weights = np.ones((N, 3))
    weights[:, 1] = 1e-6
    weights[:, 2] = 0.0
    result, state = NewtonConjugateGradient(1e-10, 50).solve(_simple(weights))
    assert result.converged
    assert state.values[2] == 0.0
    assert not state.dual[:, 2].any()
    assert min(record.active_share for record in result.trace) < 1.0


def test_a_fit_goes_on_from_where_it_stood():
    problem = _simple()
    _, state = NewtonConjugateGradient(1e-12, 50).solve(problem)
    again, _ = NewtonConjugateGradient(1e-8, 50).solve(problem, NewtonState.at(state.dual))
    assert again.converged
    assert again.n_iter == 0
    cut, half = NewtonConjugateGradient(1e-12, 2).solve(_simple())
    assert cut.status is Status.ITERATION_LIMIT
    rest, _ = NewtonConjugateGradient(1e-12, 50).solve(_simple(), half)
    assert rest.converged
    assert rest.trace[-1].primal <= cut.trace[-1].primal


def test_a_start_far_away_is_left_behind():
    for directions in DIRECTIONS.values():
        state = NewtonState.at(50.0 * RNG.normal(size=(N, 1, C)))
        problem = _simple(covariance="variances")
        result, _ = NewtonConjugateGradient(1e-8, 100, directions=directions).solve(problem, state)
        least, _ = NewtonConjugateGradient(1e-10, 100).solve(_simple(covariance="variances"))
        assert result.converged
        assert np.isclose(result.trace[-1].primal, least.trace[-1].primal, rtol=1e-7)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_interrupt_keeps_the_best_point_and_its_certificate(at):
    def stop(record, _):
        if record.iteration == at and not stop.done:
            stop.done = True
            raise KeyboardInterrupt
        return False

    stop.done = False
    problem = _simple()
    result, state = NewtonConjugateGradient(1e-12, 50).solve(problem, on_check=stop)
    assert result.status is Status.INTERRUPTED
    assert result.n_iter == at
    assert np.allclose(state.scores, problem.product(state.dual, np.array([0])), atol=1e-12)
    assert np.isfinite(result.gap)
    assert result.trace[-1].primal == pytest.approx(state.values.sum())


@pytest.mark.parametrize("call", range(1, 15))
def test_an_interrupt_in_a_product_leaves_whole_steps_only(monkeypatch, call):
    problem, calls = _simple(), []
    product = problem.product

    def interrupted(vectors, groups):
        calls.append(None)
        if len(calls) == call:
            raise KeyboardInterrupt
        return product(vectors, groups)

    monkeypatch.setattr(problem, "product", interrupted)
    result, state = NewtonConjugateGradient(1e-12, 50).solve(problem)
    assert result.status is Status.INTERRUPTED
    assert np.allclose(state.scores, product(state.dual, np.array([0])), atol=1e-12)
    assert np.isfinite(result.gap)


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_the_number_of_threads_changes_no_bit(directions):
    n = 540  # more rows than a panel
    rows = np.random.default_rng(1).normal(size=(n, 3))
    codes = np.random.default_rng(2).integers(0, C, n)
    found = []
    for threads in (1, 2):
        workers = Workers(threads)
        with workers.running():
            loss = SoftmaxLoss(codes, C, np.ones((n, 2)))
            problem = _problem(loss, _kernel(rows=rows), COVARIANCES["variances"], workers=workers)
            solver = NewtonConjugateGradient(1e-6, 3, directions=DIRECTIONS[directions])
            found.append(solver.solve(problem)[1])
    assert np.array_equal(found[0].dual, found[1].dual)
    assert np.array_equal(found[0].scores, found[1].scores)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("width", [1e-4, 1.0, 1e6])
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_extreme_hyperparameters_are_fitted(scale, width, directions):
    """Scales from next to nothing to all but separating, kernel matrices from the identity to all ones."""
    rows = np.vstack([X, X[:6]])  # duplicates make the matrix singular
    loss = SoftmaxLoss(np.concatenate([CODES, CODES[:5], [(CODES[5] + 1) % C]]), C, np.ones((len(rows), 1)))
    covariance = FactorCovariance(np.zeros((C, 0)), scale)
    problem = _problem(loss, _kernel(width, rows), covariance)
    solver = NewtonConjugateGradient(1e-6, 200, directions=DIRECTIONS[directions])
    result, state = solver.solve(problem)
    assert result.status is Status.CONVERGED
    assert np.isfinite(state.scores).all()
    rounding = 1e-9 + np.finfo(float).eps * scale * np.abs(state.dual).sum() ** 2  # of the penalty's sums
    assert (np.diff([record.primal for record in result.trace]) <= rounding).all()


@pytest.mark.parametrize("intercept_variance", [0.0, 1e-6, 1e6])
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_extreme_intercept_variances_are_fitted(intercept_variance, directions):
    problem = _simple(covariance="variances", intercept_variance=intercept_variance)
    result, _ = NewtonConjugateGradient(1e-6, 100, directions=DIRECTIONS[directions]).solve(problem)
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_one_row_one_class_and_no_weight_are_fitted(directions):
    solver = NewtonConjugateGradient(1e-10, 50, directions=DIRECTIONS[directions])
    identity = LabelCovariance.identity(C)
    result, state = solver.solve(_problem(_softmax(np.ones((1, 1))), np.ones((1, 1)), identity))
    assert result.converged
    assert state.scores[0, 0].argmax() == CODES[0]
    one_class = SoftmaxLoss(np.zeros(N, int), 1, np.ones((N, 1)))
    result, _ = solver.solve(_problem(one_class, _kernel(), LabelCovariance.identity(1)))
    assert result.trace[-1].primal == 0.0
    result, _ = solver.solve(_problem(_softmax(np.zeros((N, 1))), _kernel(), identity))
    assert result.converged
    assert result.trace[-1].primal == 0.0


def test_rows_of_the_same_features_and_unlike_classes_are_fitted():
    rows, codes = np.ones((12, 2)), np.arange(12) % C
    problem = _problem(
        SoftmaxLoss(codes, C, np.ones((12, 1))), _kernel(rows=rows), LabelCovariance.identity(C)
    )
    result, _ = NewtonConjugateGradient(1e-12, 50).solve(problem)
    assert np.isclose(result.trace[-1].primal, 12 * np.log(C))  # nothing distinguishes the classes


def test_rows_known_in_part_lower_the_objective():
    allowed = np.eye(C, dtype=bool)[CODES]
    partial = np.arange(0, N, 5)
    allowed[partial] |= np.array([True, True, False, False])
    loss = SoftmaxLoss(CODES, C, np.ones((N, 1)), partial, allowed[partial])
    problem = _problem(loss, _kernel(), COVARIANCES["dense"])
    result, state = NewtonConjugateGradient(1e-10, 100).solve(problem)
    K = prior([_kernel()], [COVARIANCES["dense"].to_dense()], 0.5)
    twin = SoftmaxTwin(allowed, np.ones(N))
    assert np.isclose(objective(twin, K, state.dual[:, 0]), result.trace[-1].primal)
    slope = twin.slope(state.scores[:, 0]) + state.dual[:, 0]
    assert np.abs(K @ slope.ravel()).max() < 1e-3
    assert (np.diff([record.primal for record in result.trace]) <= 1e-9).all()


def test_a_preconditioner_changes_the_way_and_not_the_end():
    labels = 24
    codes = np.random.default_rng(4).integers(0, labels, N)
    covariance = LabelCovariance.dense(20.0 * np.eye(labels))
    found = []
    for rank in (0, 10):
        problem = _problem(SoftmaxLoss(codes, labels, np.ones((N, 2))), _kernel(), covariance, rank=rank)
        result, state = NewtonConjugateGradient(1e-12, 60).solve(problem)
        assert result.converged
        found.append(state.scores)
    assert np.allclose(found[0], found[1], atol=1e-4)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("intercept_variance", [0.0, 1e4])
@pytest.mark.parametrize("kernel", ["smooth", "rough", "linear"])
def test_preconditioned_fits_converge_at_extremes(scale, intercept_variance, kernel):
    """Large intercepts with a kernel matrix of low rank can mislead a preconditioner."""
    K = {"smooth": _kernel(1e3), "rough": _kernel(1e-2), "linear": X @ X.T}[kernel]
    codes = np.random.default_rng(4).integers(0, 24, N)
    factor = np.random.default_rng(5).normal(size=(24, 6)) * np.sqrt(scale)
    problem = _problem(SoftmaxLoss(codes, 24, np.ones((N, 2))), K, LabelCovariance.low_rank(factor),
                       intercept_variance, rank=10)  # fmt: skip
    result, _ = NewtonConjugateGradient(1e-6, 100).solve(problem)
    assert result.status is Status.CONVERGED
    assert problem._leading is not None


@pytest.mark.parametrize("values", [[3.0], [1.0, 2.0, 5.0], [4.0, -1.0]])
def test_what_is_allowed_of_all_groups_is_the_tolerance(values):
    """Of their sum, for each at least half of an even share."""
    state = SimpleNamespace(values=np.array(values))
    allowed = NewtonConjugateGradient(1e-3, 10)._targets(state)
    assert allowed.sum() == pytest.approx(1e-3 * abs(sum(values)))
    assert (allowed >= allowed.sum() / len(values) / 2).all()


def test_a_preconditioner_is_used_from_the_first_direction():
    codes = np.random.default_rng(4).integers(0, 24, N)
    covariance = LabelCovariance.dense(20.0 * np.eye(24))
    problem = _problem(SoftmaxLoss(codes, 24, np.ones((N, 2))), _kernel(), covariance, rank=10)
    every = np.arange(2)
    _, residual, curvature = problem.evaluate(np.zeros(problem.shape), every)
    system = newton_system.NewtonSystem(problem, curvature, every)
    gradients = newton_system._Iteration(system, residual, problem.product(residual, every))
    plain = gradients.direction.copy()
    gradients.precondition()
    expected = problem.preconditioner(curvature, every).apply(residual, problem.product(residual, every))
    np.testing.assert_allclose(gradients.direction, expected[0], atol=1e-12)
    np.testing.assert_allclose(gradients.along, expected[1], atol=1e-12)
    assert np.abs(gradients.direction - plain).max() > 1e-3


ROWS, CLASSES, FITS = 20, 3, 3
RANDOM = np.random.default_rng(0)
EVERY = np.arange(FITS)


def _searched(scale, intercept_variance=0.1):
    factor = RANDOM.normal(size=(ROWS, ROWS))
    K = scale * factor @ factor.T / ROWS
    terms = [GramTerm(StoredGram(K, Workers()), LabelCovariance.identity(CLASSES))]
    gram = CoupledGram(terms, intercept_variance, Workers(), is_separate=False)
    problem = KernelLikelihood(
        gram, SoftmaxLoss(RANDOM.integers(0, CLASSES, ROWS), CLASSES, np.ones((ROWS, FITS))), 0, 0
    )
    dual = 0.1 * RANDOM.normal(size=problem.shape)
    scores = problem.product(dual, EVERY)
    losses, residual, curvature = problem.evaluate(scores, EVERY)
    residual -= dual
    values = losses + np.einsum("ngc,ngc->g", dual, scores) / 2
    point = newton_system.NewtonPoint(dual, scores, residual, problem.product(residual, EVERY), values)
    return newton_system.NewtonSystem(problem, curvature, EVERY), point


def _objective(system, point, direction, along, lengths):
    """Return values and derivatives at some lengths, from the definition."""
    t = np.asarray(lengths)[:, None]
    dual, scores = point.dual + t * direction, point.scores + t * along
    losses, residual, _ = system.problem.evaluate(scores, EVERY)
    values = losses + np.einsum("ngc,ngc->g", dual, scores) / 2
    return values, -np.einsum("ngc,ngc->g", residual - dual, along)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3, 1e6])
def test_lengths_come_close_to_the_least_value(scale, factor):
    system, point = _searched(scale)
    direction = factor * point.residual
    along = factor * point.image
    lengths = search_along(system, point, direction, along)
    values, slopes = _objective(system, point, direction, along, lengths)
    before = np.einsum("ngc,ngc->g", point.residual, along)
    assert (lengths > 0).all()
    assert (values < point.values).all()
    assert ((np.abs(slopes) <= 0.25 * before + 1e-9) | (lengths >= 16)).all()


def test_groups_have_lengths_of_their_own():
    system, point = _searched(1.0)
    factors = np.array([1e-2, 1.0, 1e2])[:, None]
    lengths = search_along(system, point, factors * point.residual, factors * point.image)
    assert lengths[0] > lengths[1] > lengths[2] > 0


def test_directions_that_do_not_descend_have_no_length():
    system, point = _searched(1.0)
    signs = np.array([1.0, -1.0, 0.0])[:, None]
    lengths = search_along(system, point, signs * point.residual, signs * point.image)
    assert lengths[0] > 0
    assert list(lengths[1:]) == [0.0, 0.0]


def test_whole_steps_are_kept_where_they_are_good():
    system, point = _searched(1e-4, 0.0)  # the penalty rules, and the objective is all but quadratic
    assert list(search_along(system, point, point.residual, point.image)) == [1.0] * FITS


def test_directions_too_long_for_numbers_are_cut():
    system, point = _searched(1.0)
    lengths = search_along(system, point, 1e8 * point.residual, 1e8 * point.image)
    values, _ = _objective(system, point, 1e8 * point.residual, 1e8 * point.image, lengths)
    assert (lengths > 0).all()
    assert (values < point.values).all()
