"""The solvers on arrays of a library with only the array API standard: NumPy's results."""

import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.factor_maps import DenseMap, KernelMap
from labelweave.features.gram import StoredGram
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.arrays import Workers, namespace
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.problems import MarginBox, Resources, kernel_margins
from labelweave.problems.coupled_gram import CoupledGram, GramTerm
from labelweave.problems.hyperparameters import ridge_cross_validation
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.problems.label_entries import DenseEntries, EntryTable
from labelweave.problems.losses import EntrywiseLoss, SoftmaxLoss
from labelweave.problems.losses.entry_losses import ENTRY_LOSSES
from labelweave.problems.low_rank_factors import LowRankFactors
from labelweave.problems.reduced_rank_ridge import ReducedRankRidge
from labelweave.solvers import AlternatingDirections, Status
from labelweave.solvers.alternating_minimization import AlternatingMinimization
from labelweave.solvers.newton import NewtonConjugateGradient, NewtonState

N, L = 40, 3
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 4))
RANDOM_AXES = RANDOM.normal(size=(4, L))
Y = (X @ RANDOM_AXES + 0.3 * RANDOM.normal(size=(N, L)) > 0).astype(int)
ROOT = RANDOM.normal(size=(L, 2))
COVARIANCES = {
    "independent": LabelCovariance.identity(L),
    "dense": LabelCovariance.dense(ROOT @ ROOT.T + 0.5 * np.eye(L)),
    "low rank": LabelCovariance.low_rank(ROOT, 0.0),
    "diagonal": LabelCovariance.low_rank(np.empty((L, 0)), np.array([1.0, 0.5, 2.0])),
}
LIBRARIES = (np.asarray, strict.asarray)


def test_arrays_that_do_not_name_their_library_have_one():
    table = pytest.importorskip("dask.array").ones(3)  # as CuPy's and PyTorch's arrays
    assert not hasattr(table, "__array_namespace__")
    assert float(namespace(table).sum(table)) == 3.0


def _near(found, expected, tol=1e-10):
    """Whether an array stayed in its library, with NumPy's entries."""
    assert isinstance(found, type(strict.asarray(0.0)))
    np.testing.assert_allclose(np.from_dlpack(found), expected, rtol=tol, atol=tol * abs(expected).max())


def _gram(make):
    table = StoredGram.from_source(KernelSource(RBFKernel(0.2), FeatureMatrix(X)), 0.5, float, Workers())
    return StoredGram(make(table.table), Workers())


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_alternating_directions(covariance):
    def fit(make):
        gram = _gram(make)
        box = MarginBox.make(LabelMatrix(Y), np.full(N, 2.0), np.ones((2, L)))
        box = MarginBox(make(box.targets), make(box.lower), make(box.upper))
        source = KernelSource(RBFKernel(0.2), FeatureMatrix(X))
        resources = Resources(Workers(), np.float64, 1e9)
        problem = kernel_margins(box, source, 0.5, COVARIANCES[covariance], resources, gram)
        return AlternatingDirections(1e-5, 2000).solve(problem)

    (expected, _), (found, _) = map(fit, LIBRARIES)
    assert found.status is expected.status is Status.CONVERGED
    assert (found.gap, found.n_iter) == (pytest.approx(expected.gap, rel=1e-6), expected.n_iter)
    for name in ("kept", "kept_scores", "boxed", "boxed_scores"):
        _near(getattr(found.answer, name), getattr(expected.answer, name))


def _fit_likelihood(make, loss, covariance, *, is_separate):
    operator = CoupledGram([GramTerm(_gram(make), covariance)], 0.3, Workers(), is_separate=is_separate)
    problem = KernelLikelihood(operator, loss, 0, 0)
    solver = NewtonConjugateGradient(1e-8, 50)
    return solver.solve(problem, NewtonState.at(make(np.zeros(loss.shape))))


def _assert_both_fit(loss, covariance, *, is_separate):
    (expected, at), (found, state) = (
        _fit_likelihood(make, loss, covariance, is_separate=is_separate) for make in LIBRARIES
    )
    assert found.status is expected.status is Status.CONVERGED
    assert found.n_iter == expected.n_iter
    _near(state.dual, at.dual)
    _near(state.scores, at.scores)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_newtons_method_for_one_class_a_row(covariance):
    weights = np.ones((N, 2))
    weights[:5, 0] = weights[5:9, 1] = 0.0
    loss = SoftmaxLoss((X @ RANDOM_AXES).argmax(axis=1), L, weights)
    _assert_both_fit(loss, COVARIANCES[covariance], is_separate=False)


@pytest.mark.parametrize("name", ["log_loss", "squared_error", "squared_hinge"])
@pytest.mark.parametrize("is_separate", [False, True])
def test_newtons_method_for_many_labels(name, is_separate):
    signs = (2 * Y - 1).astype(np.int8)
    signs[3, 1] = 0
    loss = EntrywiseLoss(name, signs, np.ones((N, 1)) * [1.0, 0.1], is_separate=is_separate)
    covariance = COVARIANCES["diagonal" if is_separate else "dense"]
    _assert_both_fit(loss, covariance, is_separate=is_separate)


@pytest.mark.parametrize("by_rows", [False, True])
def test_ridge_regression_of_reduced_rank(by_rows):
    def fit(make):
        normal, right = (_gram(np.asarray).table, Y.astype(float)) if by_rows else (X.T @ X, X.T @ Y)
        problem = ReducedRankRidge(
            make(normal), make(right), float(Y.sum()), Workers(), by_rows=by_rows, is_kept=True
        )
        return problem.fit(0.3, 2)

    expected, found = map(fit, LIBRARIES)
    assert found.objective == pytest.approx(expected.objective, rel=1e-10)
    _near(found.features @ found.labels.T, expected.features @ expected.labels.T)


def test_the_out_of_fold_error_of_ridge_regression():
    def evaluate(make):
        kernel, held_out = RBFKernel(0.2), np.arange(N)[:, None] % 4 == np.arange(4)
        data = ridge_cross_validation.FoldedRidge(
            FeatureMatrix(X), Y.astype(float), np.linspace(0.5, 2, N), held_out, lambda _: _gram(make)
        )
        priors = ridge_cross_validation.RidgePriors(kernel, 0.5, 0.1, L, ties_labels=False)
        return ridge_cross_validation.RidgeCrossValidation(priors, data, Workers())(priors.start)

    expected, found = map(evaluate, LIBRARIES)
    assert found.value == pytest.approx(expected.value, rel=1e-10)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-9)


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
@pytest.mark.parametrize("by", ["features", "kernel"])
def test_half_steps_of_low_rank_learning(loss, penalty, by):
    def fit(make):
        table = EntryTable(sp.csr_array(Y), False, np.linspace(0.5, 2, N), np.ones(L), 0.7)
        wide = np.c_[X, np.full(len(X), 0.5)]  # with a constant feature
        factor_map = DenseMap(make(wide), Workers()) if by == "features" else KernelMap(_gram(make))
        entries = DenseEntries(ENTRY_LOSSES[loss](), table, Workers())
        problem = LowRankFactors(entries, factor_map, penalty, 0.3, make(ROOT), Workers())
        return AlternatingMinimization(1e-9, 6, 30, 10).solve(problem)

    (expected, at), (found, state) = map(fit, LIBRARIES)
    assert found.n_iter == expected.n_iter
    is_single = loss != "squared_error"  # its steps are solved for in single precision, whose sums differ
    assert found.trace[-1].primal == pytest.approx(
        expected.trace[-1].primal, rel=1e-8 if is_single else 1e-10
    )
    tol = 1e-4 if is_single else 1e-8
    _near(state.pair.image @ state.pair.labels.T, at.pair.image @ at.pair.labels.T, tol)
