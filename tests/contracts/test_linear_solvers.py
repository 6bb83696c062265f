"""Requirements of every solver of Newton's systems.  A new one needs one more entry in ``SOLVERS``."""

import numpy as np
import pytest

from labelweave.features.gram import StoredGram
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance
from labelweave.labels.covariance import FactorCovariance
from labelweave.problems.coupled_gram import CoupledGram, GramTerm
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.problems.losses import EntrywiseLoss, SoftmaxLoss
from labelweave.solvers import symmetrized_gradients
from labelweave.solvers.newton_system import ExactDirections, FunctionGradients, NewtonPoint, NewtonSystem
from labelweave.solvers.symmetrized_gradients import SymmetrizedGradients
from reference.newton_twins import block_diagonal

N, C, FITS = 14, 3, 2
SOLVERS = {
    "function": FunctionGradients(),
    "symmetrized": SymmetrizedGradients(limit=1000),
    "without a diagonal": SymmetrizedGradients(limit=1000, diagonal=False),
    "few iterations": SymmetrizedGradients(limit=3),
    "exact": ExactDirections(),
}
FACTOR = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
FLAT = {
    "shared": [LabelCovariance.identity(C)],
    "scaled": [FactorCovariance(np.zeros((C, 0)), np.array([0.3, 2.0, 0.0]))],
    "own kernels": [FactorCovariance(np.diag([1.0, 0.0, 0.0])), FactorCovariance(np.diag([0.0, 2.0, 3.0]))],
}
TIED = {
    "tree": [LabelCovariance.low_rank(FACTOR)],
    "dense": [LabelCovariance.dense(FACTOR @ FACTOR.T + np.eye(C))],
}
COVARIANCES = {**FLAT, **TIED}
PAIRS = [(s, c) for s in SOLVERS for c in COVARIANCES if s != "exact" or c in FLAT]


@pytest.fixture(autouse=True, scope="module")
def _one_thread_a_product():
    with Workers().running():
        yield


def _gram(covariances, scale, **options):
    X = np.random.default_rng(0).normal(size=(N, 2))
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    terms = [
        GramTerm(StoredGram(np.exp(-squares / (2 + k)), Workers()), covariance.scaled(scale))
        for k, covariance in enumerate(covariances)
    ]
    return CoupledGram(terms, 0.5, Workers(), **{"is_separate": False, **options})


def _weights():
    weights = np.random.default_rng(1).uniform(0.5, 2.0, (N, FITS))
    weights[::4, 0], weights[1::4, 1] = 0.0, 0.0
    return weights


def _problem(name, scale, loss="softmax"):
    rng = np.random.default_rng(2)
    if loss == "softmax":
        made = SoftmaxLoss(rng.integers(0, C, N), C, _weights())
    else:
        signs = rng.integers(-1, 2, (N, C)).astype(np.int8)
        made = EntrywiseLoss("log_loss", signs, _weights(), is_separate=loss == "separate")
    return KernelLikelihood(_gram(COVARIANCES[name], scale, is_separate=loss == "separate"), made, 0, 0)


def _system(problem, size):
    """Make a Newton system at a point of scores of about a size, its dual variables those of a fit."""
    every = np.arange(problem.shape[1])
    dual = np.random.default_rng(3).normal(size=problem.shape)
    dual -= dual.mean(axis=2, keepdims=True) if problem.shape[2] > 1 else 0.0
    scores = problem.product(dual, every)
    factor = size / np.abs(scores).max()
    dual, scores = dual * factor, scores * factor
    losses, residual, curvature = problem.evaluate(scores, every)
    residual -= dual
    values = losses + np.einsum("ngc,ngc->g", dual, scores) / 2
    point = NewtonPoint(dual, scores, residual, problem.product(residual, every), values)
    return NewtonSystem(problem, curvature, every), point


def _dense(system, group):
    """Compute K and ``I + W K`` of a group by products with unit vectors."""
    n, _, columns = system.problem.shape
    size, which = n * columns, np.array([group])
    units = np.eye(size).reshape(size, n, columns).transpose(1, 0, 2)
    K = system.problem.product(np.ascontiguousarray(units), np.full(size, group))
    K = K.transpose(0, 2, 1).reshape(size, size)
    blocks = np.empty((n, columns, columns))
    for column in range(columns):
        unit = np.zeros((n, 1, columns))
        unit[:, :, column] = 1.0
        part = system.curvature[:, [group]]
        blocks[:, :, column] = system.problem.curve(part, unit, slice(0, n), which)[:, 0]
    return K, np.eye(size) + block_diagonal(blocks) @ K


@pytest.mark.parametrize(("solver", "name"), PAIRS)
@pytest.mark.parametrize(("size", "scale"), [(0.1, 1e-3), (3.0, 1.0), (3.0, 100.0)])
def test_any_right_hand_side_is_solved(solver, name, size, scale):
    system, _ = _system(_problem(name, scale), size)
    right = np.random.default_rng(4).normal(size=system.problem.shape)
    image = system.problem.product(right, system.groups)
    found, its_image, _ = SOLVERS[solver].solve(system, right.copy(), image, np.full(FITS, 1e-10), 2000)
    for group in range(FITS):
        _, dense = _dense(system, group)
        expected = np.linalg.solve(dense, right[:, group].ravel()).reshape(N, C)
        assert np.allclose(found[:, group], expected, atol=1e-6)
    assert np.allclose(its_image, system.problem.product(found, system.groups), atol=1e-6 * max(1.0, scale))


@pytest.mark.parametrize(("solver", "name"), PAIRS)
@pytest.mark.parametrize("loss", ["softmax", "log_loss"])
def test_tight_directions_are_those_of_newton(solver, name, loss):
    system, point = _system(_problem(name, 1.0, loss), 1.0)
    direction, along = SOLVERS[solver].direction(system, point, np.full(FITS, 1e-9), 2000)
    for group in range(FITS):
        _, dense = _dense(system, group)
        expected = np.linalg.solve(dense, point.residual[:, group].ravel()).reshape(N, C)
        if solver != "few iterations":
            assert np.allclose(direction[:, group], expected, atol=1e-6)
    assert np.allclose(along, system.problem.product(direction, system.groups), atol=1e-8)


@pytest.mark.parametrize(("solver", "name"), PAIRS)
@pytest.mark.parametrize(("size", "scale"), [(1e-3, 1.0), (1.0, 1e-6), (30.0, 1.0), (1e3, 1e4)])
def test_loose_directions_descend(solver, name, size, scale):
    system, point = _system(_problem(name, scale), size)
    _, along = SOLVERS[solver].direction(system, point, np.full(FITS, 0.5), 5000)
    slopes = np.einsum("ngc,ngc->g", point.residual, along)
    assert (slopes > 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["log_loss", "separate"])
def test_logistic_labels_are_solved_alike_tied_and_separate(solver, loss):
    system, point = _system(_problem("scaled", 1.0, loss), 1.0)
    right = point.residual
    found, _, _ = SOLVERS[solver].solve(
        system, right.copy(), point.image.copy(), np.full(system.groups.size, 1e-10), 2000
    )
    for group in range(system.groups.size):
        groups = system.groups[[group]]
        part, images = system.curvature[:, [group]], system.problem.product(found, system.groups)
        curved = system.problem.curve(part, images[:, [group]], slice(0, N), groups)
        # the label without a kernel has only an intercept: K acts on sums, and so may the solver
        rest = found[:, [group]] + curved - right[:, [group]]
        assert np.allclose(system.problem.product(rest, groups), 0.0, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_groups_are_solved_alone_as_together(solver):
    problem = _problem("own kernels", 1.0)
    system, point = _system(problem, 1.0)
    reduction = np.full(FITS, 1e-10)
    together = SOLVERS[solver].solve(system, point.residual.copy(), point.image.copy(), reduction, 2000)[0]
    for group in range(FITS):
        curvature = np.ascontiguousarray(system.curvature[:, [group]])
        one = NewtonSystem(problem, curvature, np.array([group]))
        right, image = point.residual[:, [group]].copy(), point.image[:, [group]].copy()
        alone = SOLVERS[solver].solve(one, right, image, reduction[:1], 2000)[0]
        assert np.allclose(alone, together[:, [group]], atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_point_is_left_as_it_is(solver):
    system, point = _system(_problem("shared", 1.0), 1.0)
    before = [array.copy() for array in vars(point).values()]
    SOLVERS[solver].direction(system, point, np.full(FITS, 0.1), 100)
    assert all(np.array_equal(a, b) for a, b in zip(vars(point).values(), before, strict=True))


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "exact"])
def test_nothing_is_done_where_nothing_is_allowed_or_left(solver):
    system, point = _system(_problem("shared", 1.0), 1.0)
    direction, _ = SOLVERS[solver].direction(system, point, np.full(FITS, 0.1), 0)
    assert np.isfinite(direction).all()
    zeros = np.zeros(system.problem.shape)
    found, image, _ = SOLVERS[solver].solve(system, zeros.copy(), zeros.copy(), np.full(FITS, 0.1), 100)
    assert not found.any()
    assert not image.any()


def test_an_exact_solution_is_one_step():
    system, point = _system(_problem("own kernels", 1.0), 1.0)
    right, image = point.residual.copy(), point.image.copy()
    assert ExactDirections().solve(system, right, image, np.full(FITS, 0.1), 100)[2] == 1


def test_exact_directions_refuse_tied_labels():
    system, point = _system(_problem("tree", 1.0), 1.0)
    with pytest.raises(ValueError, match=r"needs independent labels.*conjugate gradients"):
        ExactDirections().direction(system, point, np.full(FITS, 0.1), 100)


def test_exact_directions_refuse_an_indefinite_kernel():
    K = np.eye(N) - 2 * np.ones((N, N))
    gram = CoupledGram([GramTerm(StoredGram(K, Workers()), LabelCovariance.identity(C))], 0.0, Workers(),
                       is_separate=False)  # fmt: skip
    problem = KernelLikelihood(gram, SoftmaxLoss(np.zeros(N, int), C, np.ones((N, 1))), 0, 0)
    every, zeros = np.array([0]), np.zeros((N, 1, C))
    _, residual, curvature = problem.evaluate(zeros, every)
    system = NewtonSystem(problem, curvature, every)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        ExactDirections().solve(system, residual, residual, np.ones(1), 1)


def test_directions_take_no_more_iterations_than_allowed(monkeypatch):
    system, point = _system(_problem("shared", 100.0), 3.0)
    done, advance = [], symmetrized_gradients._Iteration._advance
    monkeypatch.setattr(symmetrized_gradients._Iteration, "_advance", lambda run: done.append(advance(run)))
    SymmetrizedGradients(limit=1000, reduction=1e-12).direction(system, point, np.full(FITS, 1e-12), 5)
    assert len(done) == 5


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_group_with_nothing_left_is_left_alone(solver):
    system, point = _system(_problem("shared", 2.0), 1.0)
    residual, image = point.residual.copy(), point.image.copy()
    residual[:, 0], image[:, 0] = 0.0, 0.0
    found, along, _ = SOLVERS[solver].solve(system, residual, image, np.full(FITS, 1e-10), 2000)
    assert not found[:, 0].any()
    assert not along[:, 0].any()
    assert found[:, 1].any()
