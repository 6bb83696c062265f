"""The public checks find and name the faults of a loss, a kernel, a covariance or a solver."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from attacks.own_solver import Fista

import labelweave as lw
from drawn import draw_labels
from labelweave import testing
from labelweave.features import ForestKernel, make_kernel
from labelweave.kernels import RBFKernel
from labelweave.labels.covariance import DenseCovariance
from labelweave.model_files import ModelFileError, storable
from labelweave.model_files.storable import _CLASSES as storable_classes
from labelweave.problems.losses.entry_losses import ENTRY_LOSSES, LogisticEntryLoss, SquaredEntryLoss
from labelweave.solvers import AlternatingDirections, Status


@storable("tests.PlainLogistic", {})
class PlainLogistic(LogisticEntryLoss):
    """The logistic loss as a custom one."""


class PlainSquared(SquaredEntryLoss):
    """The squared loss as a custom one that is not registered for model files."""


@pytest.mark.parametrize("name", ENTRY_LOSSES)
def test_our_losses_pass(name):
    testing.check_loss(ENTRY_LOSSES[name]())


def test_kernels_that_are_found_from_data_pass():
    testing.check_kernel(make_kernel("rbf"), np.random.default_rng(1).normal(size=(8, 3)))
    testing.check_kernel(make_kernel("laplacian"), sp.random_array((8, 3), density=0.5, rng=1).tocsr())


def test_kernels_of_forests_pass():
    testing.check_kernel(2.0 * ForestKernel(n_trees=5) + make_kernel("rbf"))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
def test_covariances_of_any_size_pass(scale):
    graph = lw.Taxonomy([("a", "c"), ("b", "c"), ("a", "d"), ("b", "e")])
    testing.check_covariance(lw.LabelCovariance.from_taxonomy(graph, ["c", "d", "e", "a"]).scaled(scale))


def _changed(kind, **methods):
    return type("Own", (kind,), methods)()


def _doubled(name, kind=LogisticEntryLoss):
    return lambda self, signs, numbers: 2 * getattr(kind, name)(self, signs, numbers)


BROKEN_LOSSES = [
    ({"gradient": _doubled("gradient")}, r"the gradient of Own.evaluate is"),
    (
        {"gradient": _doubled("gradient"), "evaluate": testing.EntryLoss.evaluate},
        r"Own.gradient at sign -1 and score .* but finite differences give",
    ),
    (
        {"curvature": _doubled("curvature"), "evaluate": testing.EntryLoss.evaluate},
        r"Own.curvature at sign -1 and score .* but finite differences give",
    ),
    ({"value": lambda self, signs, scores: float(scores.sum())}, r"Own.value returned a float"),
    (
        {"value": lambda self, signs, scores: scores[:1]},
        r"Own.value returned shape \(1,\); it must return \(40,\)",
    ),
    (
        {"value": lambda self, signs, scores: scores - scores.mean()},
        r"Own.value of a matrix is .* of a vector",
    ),
    (
        {"value": lambda self, signs, scores: LogisticEntryLoss.value(self, signs, scores.astype(float))},
        "Own.value returned float64 for scores in single precision",
    ),
    ({"conjugate": _doubled("conjugate")}, r"Own.conjugate at sign -1 and gradient .* reaches"),
    ({"conjugate": lambda self, signs, numbers: numbers + 9}, "reaches .* at most"),
    ({"threshold": np.nan}, "Own.threshold is nan"),
    (
        {"value": lambda self, signs, scores: np.log1p(np.exp(-signs * scores))},
        r"Own.value returned inf at \(\d+\); it must be finite",
    ),
]


@pytest.mark.parametrize(("methods", "message"), BROKEN_LOSSES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_loss_is_found(methods, message):
    with pytest.raises(testing.ContractError, match=message):
        testing.check_loss(_changed(LogisticEntryLoss, **methods))


def test_a_loss_that_bends_down_is_found():
    def turned(name):
        return lambda self, signs, scores: -getattr(SquaredEntryLoss, name)(self, signs, scores)

    bent = {name: turned(name) for name in ("value", "gradient", "curvature")}
    with pytest.raises(testing.ContractError, match="the curvature of a convex loss is at least 0"):
        testing.check_loss(_changed(SquaredEntryLoss, **bent))


def test_derivatives_by_parameters_rather_than_their_logarithms_are_found():
    class Plain(RBFKernel):
        def _derivatives(self, rows, columns):
            return {name: slope / self.gamma for name, slope in super()._derivatives(rows, columns).items()}

    message = "Plain's derivative by gamma at 0.4 is .* finite differences give .* the logarithm of the param"
    with pytest.raises(testing.ContractError, match=message):
        testing.check_kernel(Plain(gamma=0.4))


BROKEN_KERNELS = [
    (lambda values: -values, "Own.block is not positive semi-definite: its smallest eigenvalue is -"),
    (np.triu, r"Own.block is 0.98\d* at \(0, 6\), but its transpose is 0"),
    (lambda values: 2 * values, "Own.diagonal is 1 at .* the block's diagonal is 2"),
    (lambda values: values.astype(float), "Own.block returned float64 for features in single precision"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN_KERNELS)
def test_a_broken_kernel_is_found(change, message):
    class Own(RBFKernel):
        def _block(self, rows, columns):
            return change(super()._block(rows, columns))

    with pytest.raises(testing.ContractError, match=message):
        testing.check_kernel(Own(gamma=0.4))


def test_a_kernel_that_gives_one_array_twice_is_found():
    class Kept(RBFKernel):
        def _block(self, rows, columns):
            key = f"{rows.data.shape} {columns.data.shape}"
            return vars(self).setdefault(key, super()._block(rows, columns))

    with pytest.raises(testing.ContractError, match=r"once its last result is overwritten, returned nan"):
        testing.check_kernel(Kept(gamma=0.4))


BROKEN_COVARIANCES = [
    ({"diagonal": lambda self: 2 * self.matrix.diagonal()}, r"Own.diagonal is 4 at \(0\), the matrix has"),
    ({"is_diagonal": True}, "Own.is_diagonal is true, but labels are correlated"),
    ({"matmul": lambda self, vectors, workers=None: vectors @ np.triu(self.matrix)}, "Own.matmul is"),
    (
        {"matmul": lambda self, vectors, workers=None: vectors.astype(float) @ self.matrix},
        "Own.matmul returned float64 for vectors in single precision",
    ),
    ({"scaled": lambda self, scale: self}, r"Own.scaled\(2.5\) is .* it must be"),
    ({"spectrum": lambda self: (np.ones(3), np.eye(3))}, r"V diag\(e\) V\^T of Own.spectrum is"),
    ({"columns": lambda self, labels: self}, "Own.columns has n_labels=3; it must be 2"),
]  # fmt: skip


@pytest.mark.parametrize(("methods", "message"), BROKEN_COVARIANCES)
def test_a_broken_covariance_is_found(methods, message):
    own = type("Own", (DenseCovariance,), methods)
    with pytest.raises(testing.ContractError, match=message):
        testing.check_covariance(own([[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]]))


def test_what_would_be_too_large_to_write_out_is_refused():
    for count in (0, 1001):
        with pytest.raises(ValueError, match=f"has {count} labels; pass 1 to 1000"):
            testing.check_covariance(lw.LabelCovariance.identity(count))
    with pytest.raises(ValueError, match="X has 1001 rows; pass 1 to 1000"):
        testing.check_kernel(RBFKernel(1.0), np.zeros((1001, 1)))
    with pytest.raises(ValueError, match="kernel is 'rbf'; pass"):
        testing.check_kernel("rbf")


_problem = partial(draw_labels, n_labels=6, above=0, missing=0.3)


@pytest.mark.parametrize(("own", "name"), [(PlainLogistic, "log_loss"), (PlainSquared, "squared_error")])
def test_an_own_loss_is_fitted_as_the_same_one_by_name(own, name):
    X, Y = _problem()
    for table in (Y, np.nan_to_num(Y)):
        found = lw.LowRankClassifier(rank=2, loss=own(), tol=1e-7).fit(X, table)
        known = lw.LowRankClassifier(rank=2, loss=name, tol=1e-7).fit(X, table)
        np.testing.assert_allclose(found.objective_, known.objective_, rtol=1e-5)
        np.testing.assert_allclose(found.thresholds_, known.thresholds_)
        np.testing.assert_array_equal(found.predict(X), known.predict(X))
    searched = lw.LowRankClassifier(lw.RankSearch((2,), scoring="loss"), loss=own()).fit(X, Y)
    again = lw.LowRankClassifier(lw.RankSearch((2,), scoring="loss"), loss=name).fit(X, Y)
    np.testing.assert_allclose(searched.best_score_, again.best_score_, rtol=1e-3)


def test_a_quadratic_loss_that_is_not_the_squared_one_is_not_taken_for_it():
    class Doubled(SquaredEntryLoss):
        threshold = 0.0

        def value(self, signs, scores):
            return (scores - signs) ** 2

        def gradient(self, signs, scores):
            return 2 * (scores - signs)

        def curvature(self, signs, scores):
            return np.full_like(scores, 2.0)

        def conjugate(self, signs, gradients):
            return gradients * (gradients / 4 + signs)

    testing.check_loss(Doubled())
    X, Y = _problem()
    full = np.nan_to_num(Y)
    found = lw.LowRankClassifier(rank=6, loss=Doubled(), alpha=2.0, penalty="ridge", tol=1e-12)
    found.fit(X, full)
    signs = 2 * full - 1
    with_one = np.column_stack([X, np.ones(len(X))])
    ridge = np.linalg.solve(with_one.T @ with_one + np.eye(6), with_one.T @ signs)
    np.testing.assert_allclose(found.decision_function(X), with_one @ ridge, atol=1e-3)


def test_model_files_hold_registered_losses_alone(tmp_path):
    X, Y = _problem()
    path = tmp_path / "own.lw"
    model = lw.LowRankClassifier(rank=2, loss=PlainLogistic()).fit(X, Y)
    model.save(path)
    again = lw.load(path)
    assert type(again.loss) is PlainLogistic
    assert "loss=PlainLogistic()" in repr(again)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    unknown = lw.LowRankClassifier(rank=2, loss=PlainSquared()).fit(X, Y)
    with pytest.raises(
        TypeError, match=r"PlainSquared cannot be stored; register the class with @storable[.]"
    ):
        unknown.save(tmp_path / "unknown.lw")
    assert not (tmp_path / "unknown.lw").exists()


def test_a_file_with_a_loss_that_is_not_known_here_is_refused(tmp_path):
    X, Y = _problem()
    path = tmp_path / "own.lw"
    lw.LowRankClassifier(rank=2, loss=PlainLogistic()).fit(X, Y).save(path)
    known = storable_classes.pop("tests.PlainLogistic")
    try:
        with pytest.raises(ModelFileError, match=r"tests\.PlainLogistic"):
            lw.load(path)
    finally:
        storable_classes["tests.PlainLogistic"] = known


class _OnACircle(lw.LabelCovariance):
    """``1 + cos(2 pi (k - l) / L)``, by its two methods."""

    def __init__(self, n_labels):
        self.n_labels = n_labels
        self.factor = np.array([np.ones(n_labels), *(wave(self._angles()) for wave in (np.cos, np.sin))]).T

    def _angles(self):
        return 2.0 * np.pi * np.arange(self.n_labels) / self.n_labels

    def diagonal(self):
        return np.full(self.n_labels, 2.0)

    def matmul(self, vectors, workers=None):
        factor = self.factor.astype(np.result_type(vectors, np.float32))
        return vectors @ factor @ factor.T


def test_a_covariance_of_two_methods_does_all_that_the_same_matrix_does():
    own = _OnACircle(7)
    testing.check_covariance(own)
    matrix = lw.LabelCovariance.dense(2.0 * np.cos((own._angles()[:, None] - own._angles()) / 2.0) ** 2)
    np.testing.assert_allclose(own.to_dense(), matrix.to_dense(), atol=1e-12)
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(60, 5)), (random.normal(size=(60, 7)) > 0.5).astype(float)
    found, due = (
        lw.MaxMarginClassifier(label_covariance=covariance, tol=1e-6).fit(X, Y)
        for covariance in (own, matrix)
    )
    np.testing.assert_allclose(found.coef_, due.coef_, atol=1e-3)


def test_a_covariance_of_two_methods_is_not_written_out_for_too_many_labels():
    with pytest.raises(ValueError, match="spectrum of this covariance needs a matrix over 20001 x 20001"):
        _OnACircle(20_001).spectrum()


def test_a_solver_of_a_users_passes():
    testing.check_solver(Fista())


class NoRound(Fista):
    def round(self, problem, state):
        return state


class Elsewhere(Fista):
    def round(self, problem, state):
        found = super().round(problem, state)
        return found._replace(answer=problem.targets.T, status=Status.CONVERGED)


class PlainCovariance(lw.LabelCovariance):
    def __init__(self, n_labels):
        self.n_labels = n_labels

    def diagonal(self):
        return np.ones(self.n_labels)

    def matmul(self, vectors, workers=None):
        return vectors


class Indefinite(PlainCovariance):
    def matmul(self, vectors, workers=None):
        return -vectors


class NoWorkers(PlainCovariance):
    def matmul(self, vectors):
        return vectors


class TooFew(PlainCovariance):
    def matmul(self, vectors, workers=None):
        return vectors[..., 1:]


@pytest.mark.parametrize("n_labels", [3, 400])
@pytest.mark.parametrize(
    ("part", "message"),
    [
        (Indefinite, "Indefinite is not positive semi-definite"),
        (NoWorkers, "NoWorkers.matmul failed: .* takes 2 positional arguments but 3 were given"),
        (TooFew, r"TooFew.matmul returned shape \(3, \d+\); it must return \(3, \d+\)"),
    ],
)
def test_fits_check_own_covariances(part, message, n_labels):
    X, Y = draw_labels(40, 5, n_labels)
    for model in (lw.MaxMarginClassifier, lw.KernelLogisticClassifier, lw.LowRankClassifier):
        with pytest.raises(testing.ContractError, match=message):
            model(label_covariance=part(n_labels)).fit(X, Y)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            _changed(PlainLogistic, gradient=_doubled("gradient")),
            "of Own.evaluate is .*, Own.gradient returns",
        ),
        (
            _changed(PlainLogistic, value=lambda self, signs, scores: scores * np.nan),
            "Own.value returned nan",
        ),
    ],
)
def test_fits_check_own_losses(loss, message):
    X, Y = draw_labels(40, 5, 3)
    for model in (lw.LowRankClassifier(3, loss), lw.KernelLogisticClassifier(loss=loss)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y)


@pytest.mark.parametrize("values", [None, np.ones((2, 2))])
def test_fits_name_a_kernel_whose_values_have_another_shape(values):
    X, Y = draw_labels(40, 5, 3)
    kernel = type("Own", (RBFKernel,), {"_block": lambda self, rows, columns: values})
    for model in (lw.MaxMarginClassifier, lw.KernelLogisticClassifier, lw.LowRankClassifier):
        with pytest.raises(ValueError, match=r"Own returned .*; it must return an array \(\d+, \d+\)"):
            model(kernel=kernel(1.0)).fit(X, Y)


class NoState(Fista):
    def start(self, problem, dual=None):
        return np.zeros(3)


class NoAnswer(Fista):
    def certify(self, problem, state, status):
        return None, status


class Idle(Fista):
    def round(self, problem, state):
        return super().round(problem, state)._replace(state=state)


class TooSure(Fista):
    def round(self, problem, state):
        found = super().round(problem, state)
        return found._replace(status=Status.CONVERGED, answer=found.state.dual)


class Remembers(Fista):
    """Stores in itself what belongs in the state."""

    done = 0

    def round(self, problem, state):
        self.done += 1
        found = super().round(problem, state)
        return found._replace(answer=found.state.dual * (1 - 1e-9 * self.done))


class NoNumber(Fista):
    def round(self, problem, state):
        found = super().round(problem, state)
        return found._replace(status=Status.CONVERGED, answer=np.full((30, 3), np.nan))


class Doubled(Fista):
    def start(self, problem, dual=None):
        problem.targets *= 2
        return super().start(problem, dual)


class ColdOnly(Fista):
    def start(self, problem):
        return super().start(problem)


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (NoRound(), "NoRound.round returned a FistaState; it must return"),
        (
            Elsewhere(),
            r"float64 \(3, 30\) as answer; it must be the dual variables, a float array \(30, 3\)",
        ),
        (Doubled(), "is read-only"),
        (NoAnswer(), r"NoAnswer.certify must return \(record, status, answer\)"),
        (NoState(), "NoState.start returned a ndarray; it must return a State"),
        (Idle(), "a state with rounds=0 after 0; add one per"),
        (ColdOnly(), "takes 2 positional arguments but 3 were given"),
        (Remembers(), "returns another result when resumed from a stored state"),
        (NoNumber(), "an answer that is not finite"),
        (AlternatingDirections(1e-3, 10), "failed: 'SmallDual' object has no attribute 'first_penalty'"),
    ],
)
def test_what_a_solver_gives_wrong_is_said(solver, message):
    with pytest.raises(testing.ContractError, match=message):
        testing.check_solver(solver)


@pytest.mark.parametrize("status", [Status.CONVERGED, Status.SETTLED])
def test_rounds_may_leave_the_answer_to_certify(status):
    class Ends(Fista):
        def round(self, problem, state):
            found = super().round(problem, state)
            return found._replace(status=found.status and status, answer=None)

    testing.check_solver(Ends())


def test_a_solver_that_is_too_sure_goes_on_until_the_gap_is_small():
    testing.check_solver(TooSure())
