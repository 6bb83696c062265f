"""Families of priors and kernel widths per feature: names, values, gradients, and their meaning."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import HyperparameterSearch, KernelLogisticClassifier, LowRankClassifier
from labelweave.features import ARDKernel, FeatureMatrix, LinearKernel, PolynomialKernel, RBFKernel
from labelweave.model_files import load_object, save_object
from labelweave.problems.hyperparameters.cross_validation import MeanCriterion
from labelweave.problems.hyperparameters.priors import FeatureWidths, LearnedIntercepts, _by_variance
from labelweave.testing import check_kernel
from reference.cross_validation_twin import CLASSES, FAMILIES, Problem, family, slope_along, tree

KERNELS = [
    None,
    LinearKernel(),
    RBFKernel(0.3),
    PolynomialKernel(2, 0.4, 0.5),
    RBFKernel(0.2) + LinearKernel(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_values_name_the_entries_of_theta(name, kernel):
    priors = family(name, kernel)
    assert len(priors.names) == len(set(priors.names)) == len(priors.start) == len(priors.bounds)
    theta = priors.start + np.linspace(-0.5, 0.5, len(priors.start))
    values = priors.values(theta)
    assert list(values) == priors.names
    for entry, label in zip(theta, priors.names, strict=True):
        expected = entry if label.startswith("coupling") else np.exp(entry)
        assert values[label] == pytest.approx(expected)
    for value, (low, high) in zip(priors.start, priors.bounds, strict=True):
        assert low is None or low < value < high


@pytest.mark.parametrize("name", FAMILIES)
def test_the_prior_has_the_values(name):
    priors = family(name, RBFKernel(0.3))
    theta = priors.start + np.linspace(-0.5, 0.5, len(priors.start))
    values, prior = priors.values(theta), priors.prior(theta)
    assert prior.intercept_variance == 0.7
    if name != "sum":
        gammas = {value for label, value in values.items() if label.startswith("gamma")}
        assert {term.kernel.gamma for term in prior.terms} == gammas
    total = sum(term.covariance.to_dense() for term in prior.terms)
    np.testing.assert_allclose(total, expected_covariance(name, priors, values), atol=1e-12)


def expected_covariance(name, priors, values):
    L = len(CLASSES)
    if name == "given":
        return values["scale"] * priors.covariance.to_dense()
    if name == "weighted":
        parts = zip(priors.covariance.part_names, priors.parts, strict=True)
        return sum(values[f"scale[{part}]"] * one.to_dense() for part, one in parts)
    if name == "root":
        root = priors.membership.toarray()
        return root @ np.diag([values[f"scale[{label}]"] for label in CLASSES]) @ root.T
    if name == "sum":
        names = "shared", "loadings", "scale"
        total = 0.0
        for place, (other, one) in enumerate(zip(names, priors.families, strict=True)):
            own = {
                label.removesuffix(f"[{place}]"): value
                for label, value in values.items()
                if label.endswith(f"[{place}]")
            }
            total = total + expected_covariance(other, one, own)
        return total
    if name in ("square", "loadings", "factors"):
        B = np.array([value for label, value in values.items() if label.startswith("coupling")]).reshape(
            L, -1
        )
        return B @ B.T
    if name in ("level", "subtree"):
        total = np.zeros((L, L))
        groups, names = tree().groups(name)
        for node, group in zip(tree().nodes, groups, strict=True):
            under = np.array([node in tree().path(leaf) for leaf in CLASSES], float)
            total += values[f"scale[{names[group]}]"] * np.outer(under, under)
        return total
    if name == "shared":
        return values["scale"] * np.eye(L)
    return np.diag([values[f"scale[{label}]"] for label in CLASSES])


@pytest.mark.parametrize("name", FAMILIES)
def test_learned_intercepts(name):
    plain = family(name, RBFKernel(0.3))
    priors = LearnedIntercepts(plain)
    assert priors.names == [*plain.names, "intercept_variance"]
    theta = np.append(plain.start, np.log(4.0))
    assert priors.values(theta) == pytest.approx(plain.values(plain.start) | {"intercept_variance": 4.0})
    assert priors.prior(theta).intercept_variance == pytest.approx(4.0)
    assert priors.prior(priors.start).intercept_variance == pytest.approx(0.7)
    assert (priors.ties_labels, priors.learns_covariance) == (plain.ties_labels, plain.learns_covariance)


@pytest.mark.parametrize("name", FAMILIES)
def test_retreating_lowers_all_variances_tenfold(name):
    priors = family(name, RBFKernel(0.3))
    before, after = (priors.prior(theta) for theta in (priors.start, priors.retreated(priors.start)))
    for left, right in zip(before.terms, after.terms, strict=True):
        assert str(left.kernel) == str(right.kernel)
        np.testing.assert_allclose(right.covariance.to_dense(), left.covariance.to_dense() / 10, atol=1e-12)


@pytest.mark.parametrize("kernel", [None, LinearKernel()])
def test_kernels_without_parameters_make_one_term(kernel):
    priors = family("class", kernel)
    assert priors.names == [f"scale[{label}]" for label in CLASSES]
    assert len(priors.prior(priors.start).terms) == 1


def test_gradients_of_variances_take_a_diagonal_for_a_matrix():
    random = np.random.default_rng(0)
    membership, diagonal = sp.csr_array(random.integers(0, 2, (5, 7)).astype(float)), random.normal(size=5)
    expected = np.einsum("ip,ij,jp->p", *[membership.toarray(), np.diag(diagonal), membership.toarray()])
    np.testing.assert_allclose(_by_variance(membership, diagonal), expected)
    np.testing.assert_allclose(_by_variance(membership, np.diag(diagonal)), expected, atol=1e-12)


@pytest.mark.parametrize(("name", "expected"), [("shared", False), ("class", False), ("subtree", True)])
def test_labels_under_one_node_are_tied(name, expected):
    assert family(name, None).ties_labels is expected


pytestmark = pytest.mark.usefixtures("workers")
NAMES = ["x0", "x1", "x2"]


def _pair(is_sparse):
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    left[rng.random(left.shape) < 0.3] = 0.0
    kind = sp.csr_array if is_sparse else np.asarray
    return FeatureMatrix(kind(left)), FeatureMatrix(kind(right)), left, right


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("gamma", [1e-4, 0.3, 1e2])
def test_the_kernel_and_its_derivatives(gamma, is_sparse):
    rows, columns, left, right = _pair(is_sparse)
    weights = np.array([2.0, 1e-3, 0.7])
    kernel = ARDKernel(gamma, weights)
    squares = (weights * (left[:, None] - right[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(kernel.block(rows, columns), np.exp(-gamma * squares), rtol=1e-9)
    factors = np.random.default_rng(1).normal(size=(7, 5))
    found = kernel.gradient(rows, columns, factors)
    listed = kernel.derivatives(rows, columns)
    np.testing.assert_allclose(found, [np.vdot(d, factors) for d in listed.values()], rtol=1e-8, atol=1e-14)
    theta = kernel.log_parameters()
    for position in range(4):
        step = 1e-5 * np.eye(4)[position]
        ahead, behind = (kernel.with_log_parameters(theta + s).block(rows, columns) for s in (step, -step))
        expected = np.vdot((ahead - behind) / 2e-5, factors)
        assert found[position] == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_without_weights_it_is_the_rbf_kernel():
    rows, columns, _, _ = _pair(False)
    for kernel in (ARDKernel(0.3), ARDKernel(0.3, np.ones(3))):
        np.testing.assert_array_equal(kernel.block(rows, columns), RBFKernel(0.3).block(rows, columns))


def test_a_resolved_kernel_has_weights_of_its_own():
    rows, columns, _, _ = _pair(False)
    weights = np.ones(3)
    found = ARDKernel(0.3, weights).resolved(rows)
    before = found.block(rows, columns)
    weights[:] = 50.0
    np.testing.assert_array_equal(found.block(rows, columns), before)


@pytest.mark.parametrize("weights", [[1.0, -1.0, 1.0], [1.0, np.inf, 1.0], [[1.0]], [1.0]])
def test_weights_that_make_no_kernel_are_refused(weights):
    rows, columns, _, _ = _pair(False)
    with pytest.raises(ValueError, match="weights"):
        ARDKernel(0.3, weights).block(rows, columns)


@pytest.mark.parametrize("is_softmax", [True, False], ids=["softmax", "log_loss"])
@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "sum"])  # widths are of RBF kernels
def test_the_gradient_of_the_criterion(name, is_softmax, workers):
    problem = Problem.drawn(is_softmax=is_softmax, n=14)
    priors = LearnedIntercepts(FeatureWidths(family(name, RBFKernel(0.3)), NAMES))
    criterion = MeanCriterion([problem.criterion(priors, workers=workers)])
    rng = np.random.default_rng(1)
    theta = priors.start + rng.normal(0.0, 0.3, len(priors.start))
    direction = rng.normal(size=len(theta))
    direction /= np.linalg.norm(direction)
    expected = slope_along(criterion, theta, direction)
    assert criterion(theta).gradient @ direction == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("gamma", 10.0 ** np.arange(-3, 4))
@pytest.mark.parametrize("away", [-6.0, 0.0, 4.0])
def test_the_gradient_over_scales(gamma, away, workers):
    problem = Problem.drawn(is_softmax=True, n=12)
    priors = FeatureWidths(family("shared", RBFKernel(0.3 * gamma)), NAMES)
    criterion = MeanCriterion([problem.criterion(priors, workers=workers)])
    theta = priors.start + np.array([0, 0, away, 0.0, -away / 2])
    found = criterion(theta).gradient
    for position in range(len(theta)):
        expected = slope_along(criterion, theta, np.eye(len(theta))[position])
        assert found[position] == pytest.approx(expected, rel=1e-4, abs=1e-7)


def test_the_coarser_family_has_one_width(workers):
    priors = FeatureWidths(family("class", RBFKernel(0.3)), NAMES)
    coarse = priors.coarser()
    theta = coarse.start + 0.1
    fine = priors.prior(priors.from_coarser(theta))
    for one, other in zip(fine.terms, coarse.prior(theta).terms, strict=True):
        assert one.kernel.gamma == other.kernel.gamma
        assert (one.kernel.weights == 1).all()
    assert priors.penalty(priors.start)[0] == 0.0
    assert list(priors.values(priors.start)) == priors.names


@pytest.mark.parametrize("weights", [None, np.array([2.0, 1e-2, 0.7, 1.0])])
def test_sums_products_and_multiples_of_it_are_kernels(weights):
    ard = ARDKernel(0.3, weights)
    for kernel in (2.0 * ard, ard + RBFKernel(0.5), RBFKernel(0.5) * ard, 1.5 * (ard + 2.0 * ard)):
        check_kernel(kernel)


@pytest.mark.parametrize("make", [LowRankClassifier, KernelLogisticClassifier])
def test_fits_with_multiples_of_it(make):
    X = np.random.default_rng(0).normal(size=(40, 3))
    Y = (X[:, :2] > 0).astype(int)
    kernel = 2.0 * ARDKernel(0.3, np.ones(3))
    model = make(kernel=kernel, hyperparameters="fixed").fit(X, Y)
    other = make(kernel=2.0 * RBFKernel(0.3), hyperparameters="fixed").fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), rtol=1e-9)
    shape = {"penalty": "ridge"} if make is LowRankClassifier else {}
    learned = make(kernel=kernel, hyperparameters=HyperparameterSearch(max_learning_iter=2), **shape).fit(
        X, Y
    )
    assert learned.hyperparameters_["kernel__weights[2]"] > 0


@pytest.mark.parametrize("weights", [[1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3], np.float32)])
def test_weights_of_any_kind_survive_a_model_file(weights, tmp_path):
    rows, columns, _, _ = _pair(False)
    kernel = ARDKernel(0.5, weights)
    save_object(tmp_path / "kernel.lw", kernel)
    again = load_object(tmp_path / "kernel.lw")
    np.testing.assert_array_equal(again.block(rows, columns), kernel.block(rows, columns))
