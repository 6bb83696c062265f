"""Small problems for the cross-validation likelihood, and its value fold by fold, explicitly."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from labelweave import LabelCovariance, Taxonomy
from labelweave.features import FeatureMatrix, LinearKernel
from labelweave.features.gram import StoredGram
from labelweave.features.gram.sources import KernelSource, PrecomputedSource
from labelweave.foundation.arrays import Workers
from labelweave.problems.hyperparameters import cross_validation
from labelweave.problems.hyperparameters.priors import (
    GivenCovariance,
    LearnedCoupling,
    NodeGroups,
    SummedPriors,
    TiedPriors,
)
from labelweave.problems.losses import EntrywiseLoss, SoftmaxLoss
from reference.newton_twins import LogisticTwin, SoftmaxTwin, optimum, prior

CLASSES = ["a", "b", "c", "d", "e"]
FAMILIES = [
    "shared", "scale", "class", "level", "subtree", "given", "square", "loadings",
    "weighted", "factors", "root", "sum",
]  # fmt: skip
TIGHT = cross_validation.InnerSettings(tol=1e-20, solved=1e-10, max_iter=100, max_inner=2000)


def tree():
    return Taxonomy.from_nested({"root": {"x": ["a", "b"], "y": {"z": ["c", "d"], "e": None}}})


def covariance_of(seed):
    root = np.random.default_rng(seed).normal(size=(len(CLASSES), len(CLASSES)))
    return root @ root.T / len(CLASSES)


def loadings():
    return np.random.default_rng(4).normal(size=(len(CLASSES), 2))


def family(name, kernel, scale=3.0, intercept_variance=0.7):
    """Make a family of priors over CLASSES; the kernel is None for a kernel matrix."""
    L = len(CLASSES)
    if name == "given":
        return GivenCovariance(kernel, LabelCovariance.dense(covariance_of(4)), scale, intercept_variance)
    if name == "weighted":
        parts = {"own": np.eye(L), "dense": covariance_of(4), "factor": LabelCovariance.low_rank(loadings())}
        return GivenCovariance(
            kernel, LabelCovariance.weighted(parts, [0.5, 0.2, 0.3]), scale, intercept_variance
        )
    if name == "root":
        groups = NodeGroups(np.array([0, 1, 0, 1, 1]), ["x", "y"])
        values, vectors = np.linalg.eigh(covariance_of(4))
        root = vectors * np.sqrt(values) @ vectors.T
        each = NodeGroups(np.arange(L), CLASSES)
        return TiedPriors(kernel, root, each, groups, scale, intercept_variance)
    if name == "factors":
        groups = NodeGroups(np.array([0, 1]), ["0", "1"])
        return LearnedCoupling(kernel, np.sqrt(scale) * loadings(), CLASSES, intercept_variance, groups)
    if name == "sum":
        second = None if kernel is None else kernel + 0.5 * LinearKernel()
        families = [family("loadings", kernel, scale), family("scale", second, scale)]
        return SummedPriors([family("shared", kernel, scale, intercept_variance), *families])
    if name in ("square", "loadings"):
        start = np.eye(L) if name == "square" else loadings()
        return LearnedCoupling(kernel, np.sqrt(scale) * start, CLASSES, intercept_variance)
    if name in ("level", "subtree"):
        groups, names = tree().groups(name)
        nodes = NodeGroups(groups, names)
        return TiedPriors(kernel, tree().membership(CLASSES), nodes, nodes, scale, intercept_variance)
    one, each = NodeGroups(np.zeros(L, int), [""]), NodeGroups(np.arange(L), CLASSES)
    scales, shapes = {"shared": (one, one), "scale": (each, one), "class": (each, each)}[name]
    return TiedPriors(kernel, sp.eye_array(L), scales, shapes, scale, intercept_variance)


@dataclass
class Problem:
    X: np.ndarray
    codes: np.ndarray
    signs: np.ndarray
    weights: np.ndarray
    held_out: np.ndarray
    is_softmax: bool

    @classmethod
    def drawn(cls, *, is_softmax, n=20, folds=3, seed=0):
        random = np.random.default_rng(seed)
        X = random.normal(size=(n, 3))
        scores = np.sin(X @ random.normal(size=(3, len(CLASSES)))) * 3 + random.normal(size=(n, len(CLASSES)))
        signs = np.where(scores > 0.5, 1, -1) * (random.random(scores.shape) > 0.25)
        held_out = np.zeros((n, folds), bool)
        held_out[np.arange(n), random.integers(0, folds, n)] = True
        weights = random.uniform(0.3, 2.0, n)
        return cls(X, scores.argmax(axis=1), signs.astype(np.int8), weights, held_out, is_softmax)

    def criterion(self, family, settings=TIGHT, *, matrix=None, workers=None):
        """Make the criterion; ``matrix`` is the kernel matrix where it is given."""
        workers = workers or Workers(1)
        ties = family.ties_labels or self.is_softmax
        features = FeatureMatrix(self.X)

        def make_loss(weights):
            return self.loss(weights, ties=ties)

        def make_gram(kernel):
            source = PrecomputedSource(matrix) if kernel is None else KernelSource(kernel, features)
            return StoredGram.from_source(source, 0.0, np.float64, workers)

        data = cross_validation.FoldedData(features, make_loss, self.weights, self.held_out, make_gram, ties)
        return cross_validation.CrossValidationLikelihood(family, data, workers, settings)

    def loss(self, weights, *, ties):
        if self.is_softmax:
            return SoftmaxLoss(self.codes, len(CLASSES), weights)
        return EntrywiseLoss("log_loss", self.signs, weights, is_separate=not ties)

    def twin(self, weights):
        if self.is_softmax:
            return SoftmaxTwin(np.eye(len(CLASSES), dtype=bool)[self.codes], weights)
        return LogisticTwin(self.signs.astype(float), weights)

    def slow_value(self, score_prior):
        """Fit every fold separately and sum the held-out losses."""
        features = FeatureMatrix(self.X)
        grams = [term.kernel.block(features, features) for term in score_prior.terms]
        covariances = [term.covariance.to_dense() for term in score_prior.terms]
        K = prior(grams, covariances, score_prior.intercept_variance)
        total = mass = 0.0
        for held_out in self.held_out.T:
            training = self.twin(np.where(held_out, 0.0, self.weights))
            _, scores = optimum(training, K, self.signs.shape)
            total += self.twin(np.where(held_out, self.weights, 0.0)).value(scores)
            mass += self.weights[held_out].sum()
        return total / mass


def slope_along(criterion, theta, direction, step=1e-4):
    """Differentiate the criterion along a direction by central differences of fourth order."""
    slope = 0.0
    for factor, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
        found = criterion(theta + factor * step * direction)
        assert found.converged
        slope += weight * found.value / (12 * step)
    return slope
