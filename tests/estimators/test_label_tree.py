"""Label trees: scores by a slow reference, searches with proofs, the rows that a node learns from, errors."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import LinearSVC

from labelweave import LabelMatrix, LabelTreeClassifier, MaxMarginClassifier, Taxonomy
from labelweave.datasets import make_text_like
from labelweave.estimators.label_tree.weighted_tree import WeightedTree
from labelweave.features import FeatureMatrix
from labelweave.foundation.arrays import Workers
from labelweave.labels.label_tree import LabelTree
from labelweave.model_files import ModelFileError
from labelweave.model_files.storable import made_of_state
from labelweave.problems.tree_blocks import TreeBlocks, _ends, margin_data

TEXTS = make_text_like(200, 300, 40, labels_per_row=3, random_state=0)
X, Y = TEXTS.X, TEXTS.Y
SMALL = {"leaf_size": 6, "branching": 4, "n_trees": 1, "prune": "certified", "tol": 0.05}


@pytest.fixture(scope="module")
def model():
    return LabelTreeClassifier(**SMALL).fit(X, Y)


@pytest.fixture(scope="module")
def one_vs_rest():
    return LabelTreeClassifier(**SMALL, negatives="all").fit(X, Y)


def _sorted(scores, k):
    order = np.lexsort((np.broadcast_to(np.arange(scores.shape[1]), scores.shape), -scores), axis=1)[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def _margins(weighted, rows):
    """Compute the margins of all columns, one node after the other."""
    tree, margins = weighted.tree, np.tile(weighted.intercepts, (len(rows), 1))
    for node in range(tree.n_nodes):
        for pair in range(weighted.pair_ends[node], weighted.pair_ends[node + 1]):
            for place in range(weighted.starts[pair], weighted.starts[pair + 1]):
                column = tree.ends[node] + weighted.columns[place]
                weight = weighted.values[place] * weighted.scales[column]
                margins[:, column] += rows[:, weighted.features[pair]] * weight
    return margins


def test_scores_are_log_odds_of_the_product_of_probabilities_on_a_path(model):
    rows = X[:20].toarray()
    (weighted,) = model.scorer_.trees
    tree, chances = weighted.tree, 1 / (1 + np.exp(-3 * _margins(weighted, rows)))
    for label in range(Y.n_labels):
        column, product = tree.columns_of_labels[label], np.ones(len(rows))
        while column >= 0:
            product = product * chances[:, column]
            column = tree.columns_above[tree.owners[column]]
        expected = np.log(product / (1 - product)) / 3
        np.testing.assert_allclose(model.decision_function(rows)[:, label], expected, atol=1e-9)


def test_a_row_learns_at_the_nodes_above_its_labels(model):
    """The column of a node is a support vector machine on the rows that reach the node."""
    (weighted,) = (
        LabelTreeClassifier(**{**SMALL, "prune": "off", "tol": 1e-4}, loss="hinge").fit(X, Y).scorer_.trees
    )
    tree, table = weighted.tree, Y.positives.toarray()
    margins = _margins(weighted, X.toarray())
    for node in (1, tree.n_nodes - 1):
        columns = np.arange(tree.ends[node], tree.ends[node + 1])
        reaches = table[:, tree.labels_below[tree.columns_above[node]]].any(axis=1)
        targets = np.stack([table[:, tree.labels_below[column]].any(axis=1) for column in columns], axis=1)
        alone = MaxMarginClassifier(tol=1e-4).fit(X[reaches], targets[reaches].astype(int))
        np.testing.assert_allclose(margins[:, columns], alone.decision_function(X), atol=0.05)


def test_few_labels_are_one_node_and_a_max_margin_model():
    model = LabelTreeClassifier(loss="hinge", tol=1e-4, prune="off").fit(X, Y)
    assert model.label_trees_[0].n_nodes == 1
    dense = MaxMarginClassifier(tol=1e-4).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), dense.decision_function(X), atol=0.02)
    np.testing.assert_allclose(model.coef_.toarray(), dense.coef_, atol=0.02)


@pytest.mark.parametrize("weights", ["rows", "entries"])
def test_squared_losses_are_those_of_liblinear(weights):
    random, table = np.random.default_rng(0), Y.to_dense()
    table[random.random(table.shape) < 0.2] = np.nan
    own = random.exponential(size=len(table) if weights == "rows" else table.shape)
    given = {"sample_weight": own} if weights == "rows" else {"entry_weight": own}
    model = LabelTreeClassifier(0.7, tol=1e-8, prune="off").fit(X, table, **given)
    for label in (0, 7, 23):
        kept = ~np.isnan(table[:, label])
        peer = LinearSVC(C=0.7, loss="squared_hinge", dual=True, tol=1e-7, max_iter=100_000, random_state=0)
        peer.fit(X[kept], table[kept, label], (own if own.ndim == 1 else own[:, label])[kept])
        np.testing.assert_allclose(model.coef_[[label]].toarray(), peer.coef_, atol=2e-3)
        np.testing.assert_allclose(model.intercept_[label], peer.intercept_[0], atol=2e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_gap_is_that_of_all_nodes(loss):
    model = LabelTreeClassifier(**SMALL, loss=loss).fit(X, Y)
    cost = model.pruning_
    assert cost["gap_before"] < cost["gap"] == model.duality_gap_ <= cost["largest_gap"] <= 0.05
    assert model.converged_
    (weighted,) = model.scorer_.trees
    tree, table = weighted.tree, Y.positives.toarray()
    margins, primal = _margins(weighted, X.toarray()), 0.0
    for column, node in enumerate(tree.owners):
        above = tree.columns_above[node]
        reaches = np.ones(len(table), bool) if above < 0 else table[:, tree.labels_below[above]].any(axis=1)
        signs = np.where(table[:, tree.labels_below[column]].any(axis=1), 1, -1)
        hinge = np.maximum(0, 1 - signs * margins[:, column])[reaches]
        primal += (hinge**2 if loss == "squared_hinge" else 2 * hinge).sum()
    primal += ((weighted.values * weighted.scales[_columns(weighted)]) ** 2).sum() / 2
    primal += (weighted.intercepts**2).sum() / 2
    np.testing.assert_allclose(model.trace_[-1].primal, primal, rtol=1e-6)


def _columns(weighted):
    of_node = np.repeat(np.arange(weighted.tree.n_nodes), np.diff(weighted.pair_ends))
    return np.repeat(weighted.tree.ends[:-1][of_node], np.diff(weighted.starts)) + weighted.columns


@pytest.mark.parametrize("kind", ["model", "one_vs_rest"])
def test_what_is_proven_is_the_best_of_all_labels_to_the_last_bit(kind, request):
    fitted = request.getfixturevalue(kind)
    labels, scores = _sorted(fitted.decision_function(X), 4)
    found = fitted.predict_top(X, 4, exact=True)
    assert found.proven.all()
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_array_equal(found.scores, scores)
    some = fitted.predict_top(X, 4, exact=True, budget=4)
    assert (some.opened <= 4).all()
    assert not some.proven.all()
    np.testing.assert_array_equal(some.labels[some.proven], labels[some.proven])


@pytest.mark.parametrize("kind", ["model", "one_vs_rest"])
def test_label_sets_are_the_positive_scores_whatever_the_beam_is(kind, request):
    fitted = copy.copy(request.getfixturevalue(kind)).set_params(beam=1)
    expected = fitted.decision_function(X) > 0
    assert expected.any()
    np.testing.assert_array_equal(fitted.predict(X).toarray(), expected)


def test_a_wide_beam_finds_the_best_and_a_narrow_one_says_what_it_misses(model):
    labels, scores = _sorted(model.decision_function(X), 5)
    wide = copy.copy(model).set_params(beam=100)
    np.testing.assert_array_equal(wide.predict_top(X, 5)[0], labels)
    np.testing.assert_array_equal(wide.predict_top(X, 5)[1], scores)
    np.testing.assert_array_equal(model.predict_top(X, 5)[1], scores)
    assert wide.shortlist_recall(X, Y, beam=100)[:3] == (1.0, 1.0, 1.0)
    narrow = copy.copy(model).set_params(beam=1)
    found, _ = narrow.predict_top(X, 5)
    recall = narrow.shortlist_recall(X, Y, 5, beam=1)
    pairs = [len(set(a) & set(b)) / 5 for a, b in zip(found, labels, strict=True)]
    np.testing.assert_allclose(recall.kept, np.mean(pairs))
    assert 0 < recall.reached < 1
    assert np.isnan(narrow.shortlist_recall(X).reached)


def test_all_negatives_are_the_one_vs_rest_model_of_max_margin(one_vs_rest):
    settings = {"leaf_size": 6, "branching": 4, "negatives": "all", "loss": "hinge"}
    tight = LabelTreeClassifier(**settings, tol=1e-4, prune="off").fit(X, Y)
    dense = MaxMarginClassifier(tol=1e-4).fit(X, Y)
    np.testing.assert_allclose(tight.coef_.toarray(), dense.coef_, atol=0.02)
    np.testing.assert_allclose(tight.decision_function(X), dense.decision_function(X), atol=0.02)
    scores = X @ one_vs_rest.coef_.toarray().T + one_vs_rest.intercept_
    np.testing.assert_allclose(one_vs_rest.decision_function(X), scores, atol=1e-12)


def test_dense_rows_with_negative_features_are_proven_too():
    random = np.random.default_rng(0)
    rows, labels = random.normal(size=(120, 5)), random.random((120, 30)) < 0.1
    for negatives in ("reached", "all"):
        fitted = LabelTreeClassifier(**SMALL, negatives=negatives).fit(rows, labels.astype(int))
        found = fitted.predict_top(rows, 3, exact=True)
        assert found.proven.all()
        np.testing.assert_array_equal(found.labels, _sorted(fitted.decision_function(rows), 3)[0])
        np.testing.assert_array_equal(fitted.predict(rows), fitted.decision_function(rows) > 0)


def test_several_trees_average_their_probabilities(reloaded):
    trees = LabelTreeClassifier(**{**SMALL, "n_trees": 3}, beam=100).fit(X, Y)
    assert len(trees.label_trees_) == 3
    chances = [
        1 / (1 + np.exp(-3 * one.scores(_features(trees, X), by_margin=False))) for one in trees.scorer_.trees
    ]
    mean = np.mean(chances, axis=0)
    np.testing.assert_allclose(trees.decision_function(X), np.log(mean / (1 - mean)) / 3, atol=1e-8)
    labels, scores = trees.predict_top(X, 5)
    best, top = _sorted(trees.decision_function(X), 5)
    np.testing.assert_array_equal(labels, best)
    np.testing.assert_allclose(scores, top)
    np.testing.assert_array_equal(reloaded(trees).predict_top(X, 5)[1], scores)
    found = trees.shortlist_recall(X, Y, beam=100)
    assert found[:3] == (1.0, 1.0, 1.0)
    assert trees.shortlist_recall(X, Y, beam=1).reached < 1.0
    assert trees.shortlist_recall(X, Y, beam=2**70, budget=2**70)[:3] == (1.0, 1.0, 1.0)


def test_what_comes_with_no_parameters():
    """Three trees, or one where labels learn from all rows, a taxonomy is given, or a tree is one node."""
    fitted = LabelTreeClassifier(leaf_size=6, branching=4).fit(X, Y)
    assert len(fitted.label_trees_) == 3
    assert fitted.converged_
    assert fitted.pruning_["gap_before"] <= 0.1
    assert fitted.predict_top(X, 3, exact=True).proven.all()
    np.testing.assert_array_equal(fitted.predict(X).toarray(), fitted.decision_function(X) > 0)
    for tree in fitted.scorer_.trees:
        sizes, counts = np.abs(tree.values * 1.0), np.diff(tree.tree.ends)
        of_node = np.repeat(np.arange(len(counts)), np.diff(tree.starts[tree.pair_ends]))
        columns = tree.tree.ends[of_node] + tree.columns
        largest = np.zeros(len(tree.tree.targets))
        np.maximum.at(largest, columns, sizes)
        assert (sizes >= 0.0199 * largest[columns]).all()
    names = [str(label) for label in range(40)]
    taxonomy = Taxonomy([(f"part {label // 8}", name) for label, name in enumerate(names)])
    for single in (
        LabelTreeClassifier(leaf_size=6, negatives="all"),
        LabelTreeClassifier(leaf_size=6, tree=taxonomy),
        LabelTreeClassifier(n_trees=5),
    ):
        assert len(single.fit(X, Y).label_trees_) == 1


def _features(model, X):
    return model._read_features(X, reset=False)


@pytest.mark.parametrize("negatives", ["reached", "all"])
def test_unobserved_entries_add_no_loss(negatives):
    """Hidden labels do not matter: completely hidden rows could as well be absent."""
    table = Y.to_dense()
    table[150:] = np.nan
    hidden = LabelTreeClassifier(**SMALL, negatives=negatives).fit(X, table)
    short = LabelTreeClassifier(**SMALL, negatives=negatives).fit(X[:150], Y[:150])
    assert hidden.label_trees_[0].ends.tolist() == short.label_trees_[0].ends.tolist()
    np.testing.assert_allclose(hidden.trace_[-1].primal, short.trace_[-1].primal, rtol=0.05)
    some = Y.to_dense()
    some[np.random.default_rng(0).random(some.shape) < 0.3] = np.nan
    whole = LabelTreeClassifier(loss="hinge", tol=1e-4, prune="off").fit(X, some)
    dense = MaxMarginClassifier(tol=1e-4).fit(X, some)
    np.testing.assert_allclose(whole.decision_function(X), dense.decision_function(X), atol=0.02)
    assert LabelTreeClassifier(**SMALL).fit(X, some).converged_


def test_a_row_that_may_have_a_label_below_is_unobserved_at_the_node():
    labels = LabelMatrix.from_any([[1, 0, 0, 0], [0, 0, 0, 1], [0, np.nan, 0, 0], [np.nan, 1, 0, 0]])
    tree = LabelTree.from_nested([[0, 1], [2, 3]])
    rows = FeatureMatrix(np.eye(4))
    data = margin_data(rows, labels, np.ones(4), intercept=True)
    blocks = TreeBlocks(tree, data, Workers(), dtype=float, is_short=False)
    targets = blocks._targets(np.array([0, 1]), None)
    np.testing.assert_array_equal(targets.to_signs(), [[1, -1], [-1, 1], [0, -1], [1, -1]])
    reached = blocks.rows_of(np.array([2, 3]))
    np.testing.assert_array_equal(reached, [0, 3])
    np.testing.assert_array_equal(blocks._targets(np.array([2, 3]), reached).to_signs(), [[1, -1], [0, 1]])


def test_the_tree_sees_a_row_of_weight_2_as_two_rows():
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 8))
    labels, weights = rows @ random.normal(size=(8, 12)) > 1.5, random.choice([1, 5], 60)
    kept, how = np.repeat(np.arange(60), weights), {**SMALL, "leaf_size": 2, "branching": 2}
    weighted = LabelTreeClassifier(**how).fit(rows, labels, weights).label_trees_[0]
    repeated = LabelTreeClassifier(**how).fit(rows[kept], labels[kept]).label_trees_[0]
    np.testing.assert_array_equal(weighted.targets, repeated.targets)
    heavy = LabelTreeClassifier(**how).fit(rows, labels, 0.3 * weights).label_trees_[0]
    np.testing.assert_array_equal(weighted.targets, heavy.targets)


def test_a_taxonomy_is_the_tree():
    names = [f"l{k}" for k in range(6)]
    labels = LabelMatrix(sp.csr_array(Y.positives[:, :6]), None, names)
    tree = Taxonomy(
        [("a", "l0"), ("a", "l1"), ("a", "l2"), ("b", "l3"), ("l3", "l4"), ("l3", "l5"), ("b", "x")]
    )
    fitted = LabelTreeClassifier(tree=tree, leaf_size=2, tol=0.05).fit(X, labels)
    (found,) = fitted.label_trees_
    nested = [[found.targets[found.columns(node)].tolist()] for node in range(found.n_nodes)]
    assert nested == [[[-1, -2]], [[0, 1, 2]], [[3, 4, 5]]] or nested == [
        [[-1, -2]],
        [[0, 1, 2]],
        [[3, -3]],
        [[4, 5]],
    ]
    assert fitted.predict_top(X, 6, exact=True).proven.all()
    with pytest.raises(ValueError, match="no node 'l5'"):
        LabelTreeClassifier(tree=Taxonomy([("a", n) for n in names[:5]])).fit(X, labels)
    with pytest.raises(ValueError, match="two parents"):
        LabelTreeClassifier(tree=Taxonomy([("a", "l0"), ("b", "l0")])).fit(X, labels)
    with pytest.raises(ValueError, match="different starts"):
        LabelTreeClassifier(tree=tree, n_trees=2).fit(X, labels)


def test_vectors_of_labels_make_the_tree(reloaded):
    angles = np.arange(40) * np.pi / 80
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for given in (vectors, sp.csr_array(vectors), vectors.tolist()):
        fitted = LabelTreeClassifier(tree=given, leaf_size=10, branching=4, n_trees=1).fit(X, Y)
        (tree,) = fitted.label_trees_
        for node in range(1, tree.n_nodes):  # neighbors on the circle are together
            assert np.ptp(tree.targets[tree.columns(node)]) == 9
    assert reloaded(fitted).tree is None
    with pytest.raises(ValueError, match="pass one per label"):
        LabelTreeClassifier(tree=vectors[:3]).fit(X, Y)


def test_classes_are_leaves_and_one_row_makes_a_tree():
    classes = np.array(list("abcdefg"))[np.arange(200) % 7]
    fitted = LabelTreeClassifier(C=100.0, leaf_size=1, branching=2, tol=0.05).fit(X, classes)
    best = fitted.classes_[fitted.decision_function(X).argmax(axis=1)]
    np.testing.assert_array_equal(fitted.predict(X), best)
    assert (fitted.predict(X) == classes).mean() > 0.9
    one_row = LabelTreeClassifier(leaf_size=2, branching=2).fit(X[[0]], Y.positives[[0]])
    assert one_row.predict_top(X[[0]], 3, exact=True).proven.all()


def test_a_beam_too_narrow_for_k_still_gives_k_labels(model):
    narrow = copy.copy(model).set_params(beam=1)
    labels, scores = narrow.predict_top(X, 40)
    assert (np.sort(labels, axis=1) == np.arange(40)).all()
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("features", lambda array: array[::-1].copy()),
        ("columns", lambda array: np.full_like(array, 200)),
        ("starts", lambda array: array + 1),
        ("pair_ends", lambda array: array[:-1]),
        ("scales", lambda array: array[:-1]),
    ],
)
def test_damaged_weights_are_refused(model, name, damage):
    state = model.scorer_.trees[0].to_state()
    state[name] = damage(state[name])
    with pytest.raises(ModelFileError):
        made_of_state("WeightedTree", WeightedTree, state)


@pytest.mark.parametrize(
    "targets", [[-1, -2, 0, 1, 2, 2], [-1, -1, 0, 1, 2, 3], [-2, -1, 0, 1, 2, 9], [-1, 5, 0, 1, -2, 3]]
)
def test_damaged_trees_are_refused(targets):
    good = {"ends": np.array([0, 2, 4, 6]), "targets": np.array([-1, -2, 0, 1, 2, 3])}
    made_of_state("LabelTree", LabelTree, good)
    with pytest.raises(ModelFileError):
        made_of_state("LabelTree", LabelTree, good | {"targets": np.array(targets)})


def test_places_of_weights_pass_two_to_the_31():
    ends = _ends([2**31 - 1, 2**31, 5])
    assert ends.dtype == np.int64
    assert ends.tolist() == [0, 2**31 - 1, 2**32 - 1, 2**32 + 4]


@pytest.mark.parametrize("negatives", ["reached", "all"])
def test_weights_of_entries(negatives):
    """A weight of 0 is an entry that is not observed; sparse weights are 1 where they are not stored."""
    random, table = np.random.default_rng(0), Y.to_dense()
    hidden = random.random(table.shape) < 0.2
    settings = {**SMALL, "tol": 1e-4, "tree": random.normal(size=(Y.n_labels, 3))}
    model = LabelTreeClassifier(**settings, negatives=negatives)
    unseen = clone(model).fit(X, np.where(hidden, np.nan, table))
    zero = clone(model).fit(X, table, entry_weight=np.where(hidden, 0.0, 1.0))
    np.testing.assert_allclose(zero.trace_[-1].primal, unseen.trace_[-1].primal, rtol=1e-3)
    np.testing.assert_allclose(zero.decision_function(X), unseen.decision_function(X), atol=0.05)
    weights = np.where(hidden, random.exponential(2.0, table.shape), 1.0)
    dense = clone(model).fit(X, table, entry_weight=weights)
    rows, labels = np.nonzero(weights != 1)
    sparse = sp.coo_array((weights[rows, labels], (rows, labels)), shape=table.shape)
    same = clone(model).fit(X, table, entry_weight=sparse)
    np.testing.assert_allclose(same.decision_function(X), dense.decision_function(X), atol=1e-6)
    assert np.abs(dense.decision_function(X) - unseen.decision_function(X)).max() > 0.1


# scores at a gap may differ by its root: 0.044 with Numba's code for any processor, 0.02 elsewhere
@pytest.mark.parametrize(("tol", "apart"), [(1e-3, 0.06), (1e-5, 2e-4)])
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e10])
def test_entries_without_weight_are_unobserved_whatever_the_size_of_the_others(scale, tol, apart):
    """Both precisions; the certificate holds, so that the gap is not below 0."""
    table, hidden = Y.to_dense(), np.random.default_rng(0).random((200, 40)) < 0.2
    model = LabelTreeClassifier(C=1 / scale**2, tol=tol, prune="off", n_trees=1)
    unseen = clone(model).fit(scale * X, np.where(hidden, np.nan, table)).decision_function(scale * X)
    model.fit(scale * X, table, entry_weight=np.where(hidden, 0.0, 1.0))
    assert model.converged_
    assert 0 <= model.duality_gap_ <= tol
    np.testing.assert_allclose(model.decision_function(scale * X), unseen, atol=apart)


def test_a_node_weighs_a_row_by_the_labels_below():
    """The greatest weight of the labels that the row has there, or the least of all."""
    tree = LabelTree.from_nested([[0, 1], [2, 3]])
    table = LabelMatrix(sp.csr_array([[1, 1, 0, 0], [0, 1, 0, 0]]))
    weights = np.array([[2.0, 3.0, 0.5, 4.0], [5.0, 0.25, 1.5, 1.25]])
    data = margin_data(FeatureMatrix(np.eye(2)), table, np.array([1.0, 10.0]), intercept=True)
    for given in (weights, sp.csr_array(weights)):
        blocks = TreeBlocks(tree, data, Workers(1), dtype=np.float64, is_short=False, entries=given)
        root = blocks._upper_of(np.arange(2), None)
        np.testing.assert_allclose(root, [[3.0, 0.5], [2.5, 12.5]])
        np.testing.assert_allclose(blocks._upper_of(np.arange(2, 4), np.arange(2)), [[2, 3], [50, 2.5]])


def test_classes_are_found_whatever_number_type_they_have():
    y = Y.to_dense().argmax(axis=1)
    fitted = LabelTreeClassifier(leaf_size=6, branching=4).fit(X, y)
    for same in (y, y.astype(float), y.astype(str)):
        assert fitted.shortlist_recall(X, same, beam=100).reached == 1.0


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_only_directions_of_label_vectors_count(make):
    random = np.random.default_rng(0)
    vectors = random.normal(size=(40, 6)) * (random.random((40, 6)) < 0.7)
    sizes = 10.0 ** random.integers(-200, 200, (40, 1))
    model = LabelTreeClassifier(leaf_size=4, branching=2, n_trees=1)
    rows, labels = random.normal(size=(60, 3)), random.random((60, 40)) < 0.2
    trees = [
        model.set_params(tree=make(given)).fit(rows, labels).label_trees_[0]
        for given in (vectors, sizes * vectors)
    ]
    np.testing.assert_array_equal(*[tree.columns_of_labels for tree in trees])
    np.testing.assert_array_equal(*[tree.owners for tree in trees])
