"""User-defined features for each clique: optima by enumeration, learned graphs, files, and errors."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from labelweave import GraphGrowth, LabelGraphClassifier
from labelweave.model_files import storable
from labelweave.model_files.schema import Number
from labelweave.testing import CliqueFeatures

CLIQUES = [(0, 1), (0, 2), (1, 2)]


@storable("test.Products", {"power": Number(0)})
class Products(CliqueFeatures):
    """The product of two features of the clique's own, and a constant."""

    def __init__(self, power=1.0):
        self.power = power

    def of(self, X, clique):
        X = X.toarray() if sp.issparse(X) else X
        return np.column_stack([(X[:, 3 + clique[0]] * X[:, 3 + clique[-1]]) ** self.power, np.ones(len(X))])


class Same(CliqueFeatures):
    def of(self, X, clique):  # what cliques have without features of their own
        return np.column_stack([X, np.ones(len(X))])


def rows(seed=0, n=40, d=6):
    """Labels, of which two agree where a product of features says so."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    Y = (X[:, :3] + 0.5 * random.normal(size=(n, 3)) > 0).astype(int)
    Y[:, 1] = np.where(X[:, 3] * X[:, 4] > 0, Y[:, 0], 1 - Y[:, 0])
    return X, Y


def parts(X, Y, given, cliques=CLIQUES):
    """The joint features of all labelings of all rows (n, 2^L, m), one-hot, with the constant of labels."""
    labelings = np.array(list(itertools.product((0, 1), repeat=Y.shape[1])))
    wide = np.column_stack([X, np.ones(len(X))])
    nodes = [np.einsum("nd,ys->nysd", wide, np.eye(2)[labelings[:, k]]) for k in range(Y.shape[1])]
    own = [np.einsum("nd,ys->nysd", given.of(X, c), np.eye(4)[labelings[:, c] @ [1, 2]]) for c in cliques]
    flat = [part.reshape(len(X), len(labelings), -1) for part in (*nodes, *own)]
    return labelings, np.concatenate(flat, axis=2)


def loss_of(w, joint, true, cost):
    margins = cost + joint @ w - (true @ w)[:, None]
    worst = margins.argmax(axis=1)
    rows = np.arange(len(margins))
    return margins[rows, worst].mean(), (joint[rows, worst] - true).mean(axis=0)


def on_simplex(points):
    """The nearest distributions of the rows."""
    high = -np.sort(-points, axis=1)
    excess = (np.cumsum(high, axis=1) - 1) / np.arange(1, points.shape[1] + 1)
    last = (high > excess).sum(axis=1) - 1
    return np.maximum(points - excess[np.arange(len(points)), last, None], 0)


def optimum(X, Y, given, alpha):
    """Bounds of the least objective: accelerated projected gradients over all labelings of all rows."""
    labelings, joint = parts(X, Y, given)
    place = [int(np.flatnonzero((labelings == y).all(axis=1))[0]) for y in Y]
    true = joint[np.arange(len(X)), place]
    cost = (labelings[None] != Y[:, None]).sum(axis=2).astype(float)
    differences = (true[:, None] - joint) / len(X)
    step = alpha / np.linalg.norm(differences.reshape(cost.size, -1), 2) ** 2
    shares = before = np.full(cost.shape, 1 / cost.shape[1])
    for turn in range(4000):
        ahead = shares + turn / (turn + 3) * (shares - before)
        z = np.einsum("ny,nym->m", ahead, differences) / alpha
        before, shares = shares, on_simplex(ahead + step * (cost / len(X) - differences @ z))
    w = np.einsum("ny,nym->m", shares, differences) / alpha
    below = (shares * cost).sum() / len(X) - alpha / 2 * w @ w
    return below, alpha / 2 * w @ w + loss_of(w, joint, true, cost)[0]


@pytest.mark.parametrize("solver", ["frank_wolfe", "proximal"])
def test_the_optimum_is_that_of_enumeration(solver):
    X, Y = rows()
    below, above = optimum(X, Y, Products(), 0.05)
    assert above - below < 1e-3 * above
    model = LabelGraphClassifier(CLIQUES, 0.05, inputs=Products(), solver=solver, tol=1e-4)
    model.fit(X, Y)
    assert model.converged_
    assert model.objective_ == pytest.approx(below, rel=2e-3)
    assert below <= model.objective_ * (1 + 1e-6)
    assert model.trace_[-1].dual <= above


def test_scores_best_labelings_and_objective_are_those_of_the_joint_features():
    X, Y = rows()
    model = LabelGraphClassifier(CLIQUES, 0.05, inputs=Products(2.0)).fit(X, Y)
    new, _ = rows(1)
    labelings, joint = parts(new, Y, Products(2.0))
    half = np.hstack([model.coef_, model.intercept_[:, None]]) / 2
    w = np.concatenate([np.stack([-half, half], axis=1).ravel(), model.clique_coef_.ravel()])
    best = model.predict_map(new)
    values = (joint @ w).max(axis=1) + (new @ half[:, :-1].T + half[:, -1]).sum(axis=1)
    np.testing.assert_allclose(best.values, values)
    np.testing.assert_array_equal(best.labels, labelings[(joint @ w).argmax(axis=1)])
    assert (model.clique_intercept_ == 0).all()
    labelings, joint = parts(X, Y, Products(2.0))
    place = [int(np.flatnonzero((labelings == y).all(axis=1))[0]) for y in Y]
    cost = (labelings[None] != Y[:, None]).sum(axis=2)
    loss, _ = loss_of(w, joint, joint[np.arange(len(X)), place], cost)
    assert model.objective_ == pytest.approx(0.05 / 2 * w @ w + loss, rel=1e-9)


@pytest.mark.parametrize(
    "graph", [CLIQUES, GraphGrowth(), GraphGrowth(clique_size=3, cliques_per_round=2), "chow-liu"]
)
def test_the_features_of_labels_are_the_same_model(graph):
    X, Y = rows(n=60)
    usual = LabelGraphClassifier(graph, 0.05, tol=1e-4).fit(X, Y)
    found = LabelGraphClassifier(graph, 0.05, tol=1e-4, inputs=Same()).fit(X, Y)
    assert found.objective_ == pytest.approx(usual.objective_, rel=2e-4)
    assert found.label_graph_.cliques == usual.label_graph_.cliques
    np.testing.assert_allclose(found.decision_function(X), usual.decision_function(X), atol=0.1)
    if isinstance(graph, GraphGrowth):
        assert found.relaxation_gap_ == pytest.approx(usual.relaxation_gap_, abs=1e-3)
        first, own = (model.graph_trace_[1].score for model in (usual, found))
        assert own == pytest.approx(first, rel=1e-3)


def test_a_learned_graph_chooses_the_clique_whose_features_tell():
    X, Y = rows(n=300)
    model = LabelGraphClassifier(GraphGrowth(max_rounds=1), 0.01, inputs=Products()).fit(X, Y)
    assert model.label_graph_.cliques == ((0, 1),)
    new, true = rows(2, n=300)
    usual = LabelGraphClassifier(alpha=0.01).fit(X, Y)
    assert (model.predict(new) != true).mean() < (usual.predict(new) != true).mean() - 0.05
    assert model.relaxation_gap_ >= 0


@pytest.mark.parametrize(
    "more", [{}, {"kernel": "rbf"}, {"loss": "f1"}, {"graph": GraphGrowth(early_stopping=True)}]
)
def test_sparse_rows_unknown_labels_and_other_settings(more):
    X, Y = rows(n=60)
    X[np.abs(X) < 0.5] = 0
    Y = Y.astype(float)
    Y[3] = np.nan
    if "loss" not in more:
        Y[5:9, 1] = np.nan
    given = {"graph": CLIQUES, "alpha": 0.05, "inputs": Products(), **more}
    dense = LabelGraphClassifier(**given).fit(X, Y)
    sparse = LabelGraphClassifier(**given).fit(sp.csr_array(X), Y)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=2e-3)
    assert (sparse.predict(X) == dense.predict(sp.csr_array(X))).mean() > 0.97


def test_checkpoints_and_clones_and_threads(tmp_path):
    X, Y = rows()
    model = LabelGraphClassifier(CLIQUES, 0.05, inputs=Products(), checkpoint=tmp_path / "c.lwc")
    twin = clone(model).set_params(checkpoint=None, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(model.fit(X, Y).decision_function(X), twin.decision_function(X))


def test_files_hold_a_registered_class_and_never_code(tmp_path, reloaded):
    X, Y = rows()
    model = LabelGraphClassifier(CLIQUES, 0.05, inputs=Products(2.0)).fit(X, Y)
    again = reloaded(model)
    assert isinstance(again.inputs, Products)
    assert again.scorer_.clique_features.power == 2
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    model = LabelGraphClassifier(CLIQUES, 0.05, inputs=Same()).fit(X, Y)
    with pytest.raises(TypeError, match="class Same cannot be stored; register the class"):
        model.save(tmp_path / "n.lw")
    assert not (tmp_path / "n.lw").exists()


def test_features_of_a_wrong_shape_are_refused():
    X, Y = rows()
    for few, more in ((1, 0), (0, 1)):
        own = {"of": lambda _, X, clique, few=few, more=more: np.ones((len(X) - few, 2 + more * clique[0]))}
        with pytest.raises(ValueError, match="one for each of X, and 2 columns for every clique"):
            LabelGraphClassifier(CLIQUES, inputs=type("Odd", (CliqueFeatures,), own)()).fit(X, Y)
    with pytest.raises(ValueError, match="inputs"):
        LabelGraphClassifier(CLIQUES, inputs=lambda X, clique: X).fit(X, Y)


def test_too_many_candidates_are_refused():
    X, Y = rows()
    Y = np.random.default_rng(0).integers(0, 2, (len(X), 230))
    with pytest.raises(ValueError, match=r"26335 of them.*pass candidates"):
        LabelGraphClassifier(inputs=Products()).fit(X, Y)
