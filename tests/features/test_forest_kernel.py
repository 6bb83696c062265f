"""Forests as arrays find the same leaves as scikit-learn, and define a kernel."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import ensemble
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from drawn import draw_own
from labelweave import MaxMarginClassifier
from labelweave.features import FeatureMatrix, ForestKernel, LinearKernel, RBFKernel
from labelweave.features.forest import Forest
from labelweave.foundation.loops.tables import find_leaves
from labelweave.model_files import ModelFileError, load_object, save_object
from labelweave.model_files.storable import made_of_state


@pytest.fixture(scope="module")
def data():
    return draw_own(120, 6)


GROWN = {
    "classifier": lambda X, Y: ensemble.RandomForestClassifier(12, random_state=0).fit(X, Y),
    "regressor": lambda X, Y: ensemble.ExtraTreesRegressor(9, max_leaf_nodes=17, random_state=0).fit(X, Y),
    "unsupervised": lambda X, Y: ensemble.RandomTreesEmbedding(8, random_state=0).fit(X),
    "one tree": lambda X, Y: DecisionTreeClassifier(random_state=0).fit(X, Y),
    "stump": lambda X, Y: DecisionTreeClassifier(random_state=0).fit(X, np.zeros(len(X))),
}


@pytest.mark.parametrize("kind", GROWN)
def test_rows_end_where_scikit_learn_has_them_end(data, kind):
    X, Y = data
    forest = GROWN[kind](X, Y)
    kernel, rows = ForestKernel.of(forest), FeatureMatrix(X)
    theirs = forest.apply(X).reshape(len(X), -1)
    shares = (theirs[:, None, :] == theirs[None, :, :]).mean(axis=2)
    np.testing.assert_allclose(kernel.block(rows, rows), shares, rtol=1e-14)
    sparse = FeatureMatrix(sp.csr_array(X))
    np.testing.assert_array_equal(kernel.block(sparse, rows), kernel.block(rows, rows))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_rows_that_a_model_keeps_are_sent_down_the_trees_once(data, make, monkeypatch):
    X, Y = data
    kernel = ForestKernel.of(ensemble.RandomForestClassifier(5, random_state=0).fit(X, Y))
    rows, kept = FeatureMatrix(make(X[:7])), FeatureMatrix.of_model(make(X))
    expected, sent, leaves = kernel.block(rows, FeatureMatrix(make(X))), [], Forest.leaves
    monkeypatch.setattr(
        Forest, "leaves", lambda forest, rows: sent.append(rows.shape[0]) or leaves(forest, rows)
    )
    for _ in range(2):
        np.testing.assert_array_equal(kernel.block(rows, kept), expected)
    assert sent == [7, 120, 7]


def test_arrays_of_other_types_walk_the_same_and_compile_nothing(data):
    X, Y = data
    forest = Forest.of_trees(
        [tree.tree_ for tree in ensemble.RandomForestClassifier(5, random_state=0).fit(X, Y)]
    )
    leaves, compiled = forest.leaves(X), len(find_leaves.signatures)
    for integers in np.uint16, np.int64:
        roots, children = forest.roots.astype(integers), forest.children.astype(np.int64)
        other = replace(forest, roots=roots, feature=forest.feature.astype(np.int16), children=children)
        np.testing.assert_array_equal(other.leaves(X), leaves)
    read_only = forest.threshold.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(replace(forest, threshold=read_only).leaves(X), leaves)
    assert len(find_leaves.signatures) == compiled


def test_missing_features_go_where_the_trees_have_learned_to_send_them(data):
    X, Y = data[0].copy(), data[1]
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    forest = ensemble.RandomForestClassifier(10, random_state=0).fit(X, Y)
    found = Forest.of_trees([tree.tree_ for tree in forest.estimators_]).leaves(X)
    theirs = forest.apply(X)
    for ours, node in zip(found.T, theirs.T, strict=True):
        assert (
            len(np.unique(np.stack([ours, node]), axis=1).T) == len(np.unique(ours)) == len(np.unique(node))
        )


def test_explicit_features_have_the_kernel_as_dot_products(data):
    kernel, rows = ForestKernel.of(GROWN["classifier"](*data)), FeatureMatrix(data[0])
    explicit = kernel.explicit_features(rows)
    assert explicit.is_sparse
    assert explicit.shape == (120, kernel.forest.n_leaves)
    products = LinearKernel().block(explicit, explicit)
    np.testing.assert_allclose(products, kernel.block(rows, rows), rtol=1e-12)


def test_random_trees_are_grown_without_labels_and_with_the_same_bits():
    rows = FeatureMatrix(np.random.default_rng(0).normal(size=(60, 4)))
    kernel = ForestKernel(n_trees=15, random_state=3)
    with pytest.raises(ValueError, match="no trees yet"):
        kernel.block(rows, rows)
    one, other = kernel.resolved(rows), kernel.resolved(rows)
    np.testing.assert_array_equal(one.block(rows, rows), other.block(rows, rows))
    assert one.forest.n_trees == 15
    assert one.resolved(rows).forest is one.forest
    assert np.linalg.eigvalsh(one.block(rows, rows)).min() > -1e-10


def _equal(one, other):
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in one.to_state())


@pytest.mark.parametrize(
    "draw", [lambda rng, size: rng.normal(size=size), lambda rng, size: rng.integers(0, 3, size)]
)
@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_random_trees_of_sparse_rows_are_those_of_the_rows_written_out(draw, share):
    rng = np.random.default_rng(0)
    sparse = sp.random_array((150, 20), density=share, rng=rng).tocsr()
    sparse.data = draw(rng, sparse.nnz) * 1.0  # some of them stored zeros
    sparse.data[0] = 1e300
    wide = sparse.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    dense, *others = (
        ForestKernel(n_trees=10).resolved(FeatureMatrix(held)).forest
        for held in (sparse.toarray(), sparse, wide)
    )
    assert all(_equal(other, dense) for other in others)


def test_random_trees_of_sparse_rows_do_not_write_them_out():
    rows = FeatureMatrix(sp.random_array((500, 20_000), density=1e-3, rng=np.random.default_rng(0)).tocsr())
    ForestKernel(n_trees=1).resolved(FeatureMatrix(np.eye(5)))  # imports what it needs
    tracemalloc.start()
    ForestKernel(n_trees=3).resolved(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500 * 20_000


def test_every_estimator_of_kernels_takes_it(data, reloaded):
    X, Y = data
    forest = ForestKernel.of(GROWN["classifier"](X[:60], Y[:60]))
    for kernel in (forest, 0.5 * RBFKernel(0.2) + 0.5 * forest, ForestKernel(n_trees=20)):
        model = MaxMarginClassifier(kernel=kernel, tol=1e-2).fit(X, Y)
        again = reloaded(model)
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_features_of_another_width_are_refused(data):
    kernel = ForestKernel.of(GROWN["classifier"](*data))
    rows = FeatureMatrix(data[0][:, :4])
    with pytest.raises(ValueError, match="rows have 4 features; pass the forest's 6"):
        kernel.block(rows, rows)


def test_trees_that_see_features_of_their_own_are_refused():
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 2
    bagged = ensemble.BaggingClassifier(DecisionTreeClassifier(), 5, random_state=0)
    rows = FeatureMatrix(X)
    assert ForestKernel.of(bagged.fit(X, y)).block(rows, rows).shape == (30, 30)
    for changed in ({"bootstrap_features": True}, {"max_features": 2}):
        with pytest.raises(ValueError, match="The trees of forest differ in features"):
            ForestKernel.of(clone(bagged).set_params(**changed).fit(X, y))


def test_it_survives_a_model_file(data, tmp_path):
    kernel, rows = ForestKernel.of(GROWN["regressor"](*data)), FeatureMatrix(data[0])
    save_object(tmp_path / "kernel.lw", kernel)
    again = load_object(tmp_path / "kernel.lw")
    np.testing.assert_array_equal(again.block(rows, rows), kernel.block(rows, rows))


EDITS = {
    "a circle": lambda s: s["children"].__setitem__((3, 0), 0),
    "a child of itself": lambda s: s["children"].__setitem__((0, 0), 0),
    "a way into another tree": lambda s: s["children"].__setitem__((0, 1), s["roots"][1] + 1),
    "a child that is none": lambda s: s["children"].__setitem__((0, 1), 2**30),
    "a feature that is none": lambda s: s["feature"].__setitem__(0, 6),
    "a threshold that is none": lambda s: s["threshold"].__setitem__(0, np.nan),
    "roots that fall": lambda s: s["roots"].__setitem__(1, 0),
    "a root that is no node": lambda s: s["roots"].__setitem__(-1, 10**6),
    "no first tree": lambda s: s["roots"].__setitem__(0, 1),
    "no roots": lambda s: s.__setitem__("roots", s["roots"][:0]),
    "children of others": lambda s: s.__setitem__("children", s["children"][:-1]),
    "no nodes": lambda s: s.update(
        {k: s[k][:0] for k in ("feature", "threshold", "children", "missing_left")}
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_forests_are_refused(data, edit):
    forest = ForestKernel.of(GROWN["classifier"](*data)).forest
    state = {
        name: np.copy(value) if isinstance(value, np.ndarray) else value
        for name, value in forest.to_state().items()
    }
    made_of_state("Forest", Forest, dict(state))
    while state["feature"][3] < 0:  # an inner node to edit
        pytest.skip("the fourth node is a leaf")
    EDITS[edit](state)
    with pytest.raises(ModelFileError):
        made_of_state("Forest", Forest, state)


def test_forests_that_point_elsewhere_or_ask_for_memory_are_refused(data):
    state = ForestKernel.of(GROWN["classifier"](*data)).forest.to_state()
    roots = state["roots"].astype(np.uint64)
    roots[1] = 2**40  # in unsigned numbers no step is below 0
    for edits in ({"roots": roots}, {"n_features": 2**30}):
        with pytest.raises(ModelFileError):
            made_of_state("Forest", Forest, state | edits)
