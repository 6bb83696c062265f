"""Families of priors: names, values, and the priors that they stand for."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.features import LinearKernel, PolynomialKernel, RBFKernel
from labelweave.problems.hyperparameters.priors import LearnedIntercepts, _by_variance
from reference.cross_validation_twin import CLASSES, FAMILIES, family, tree

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
