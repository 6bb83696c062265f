"""Searches in random trees with random weights: proven results equal those of brute force, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave import LabelTreeClassifier
from labelweave.datasets import make_text_like
from labelweave.estimators.label_tree.scorer import LabelTreeScorer
from labelweave.estimators.label_tree.weighted_tree import WeightedTree
from labelweave.features import FeatureMatrix
from labelweave.foundation.loops.label_tree import bound_nodes, joined, search_by_beam
from labelweave.labels.label_tree import LabelTree

N_FEATURES = 12


def _nested(random, labels, depth):
    """Put labels into nodes of nodes, with some labels beside nodes."""
    if depth == 0 or len(labels) < 3:
        return labels
    parts = [part for part in np.array_split(labels, random.integers(2, 5)) if len(part)]
    return [
        int(part[0]) if len(part) == 1 else _nested(random, part.tolist(), depth - random.integers(1, 3))
        for part in parts
    ]


def _weighted(random, n_labels=None):
    n_labels = n_labels or int(random.integers(1, 40))
    tree = LabelTree.from_nested(_nested(random, random.permutation(n_labels).tolist(), 4))
    features, counts, columns, pair_ends = [], [], [], [0]
    for node in range(tree.n_nodes):
        width = tree.ends[node + 1] - tree.ends[node]
        for feature in np.flatnonzero(random.random(N_FEATURES) < 0.6):
            own = np.flatnonzero(random.random(width) < 0.5)
            features.append(feature)
            counts.append(len(own))
            columns.extend(own)
        pair_ends.append(len(features))
    return WeightedTree(
        tree=tree,
        pair_ends=np.array(pair_ends),
        features=np.array(features, np.int32),
        starts=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64),
        columns=np.array(columns, np.uint8),
        values=random.integers(-30000, 30000, len(columns)).astype(np.int16),
        scales=random.exponential(1e-4, len(tree.targets)),
        intercepts=random.normal(size=len(tree.targets)).round(1),  # some are equal
    )


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_what_is_proven_is_what_brute_force_finds(seed, by_margin, has_negatives):
    random = np.random.default_rng(seed)
    weighted = _weighted(random)
    table = random.normal(size=(6, N_FEATURES)) * (random.random((6, N_FEATURES)) < random.random())
    rows = FeatureMatrix(sp.csr_array(table if has_negatives else np.abs(table)))
    scores = weighted.scores(rows, by_margin=by_margin)
    k = int(random.integers(1, weighted.n_labels + 1))
    order = np.lexsort((np.broadcast_to(np.arange(scores.shape[1]), scores.shape), -scores), axis=1)[:, :k]
    whole = weighted.by_bound(rows, k, 2**40, by_margin=by_margin)
    assert whole.proven.all()
    np.testing.assert_array_equal(whole.labels, order)
    np.testing.assert_array_equal(whole.scores, np.take_along_axis(scores, order, axis=1))
    some = weighted.by_bound(rows, k, int(random.integers(1, 6)), by_margin=by_margin)
    np.testing.assert_array_equal(some.labels[some.proven], order[some.proven])
    above = weighted.by_bound(rows, weighted.n_labels, 2**40, by_margin=by_margin, above=0.0)
    np.testing.assert_array_equal((above.labels >= 0).sum(axis=1), (scores > 0).sum(axis=1))
    beam = weighted.by_beam(rows, k, weighted.tree.n_nodes, by_margin=by_margin)
    np.testing.assert_array_equal(beam[0], order)


def test_loops_are_compiled_once_whatever_types_a_file_has():
    random = np.random.default_rng(3)
    weighted = _weighted(random, 20)
    rows = FeatureMatrix(sp.csr_array(random.normal(size=(3, N_FEATURES))))
    expected = weighted.by_beam(rows, 4, 5, by_margin=True)
    compiled = len(search_by_beam.signatures)
    types = {
        "columns": np.int64,
        "features": np.uint16,
        "values": np.int32,
        "starts": np.int32,
        "pair_ends": np.uint8,
    }
    for name, kind in types.items():
        other = replace(weighted, **{name: getattr(weighted, name).astype(kind)})
        for found, same in zip(other.by_beam(rows, 4, 5, by_margin=True), expected, strict=True):
            np.testing.assert_array_equal(found, same)
    # values of another type are floats, which are compiled for anyway
    assert len(search_by_beam.signatures) <= compiled + 1


def _beamed(weighted, row, beam):
    """List the labels below the best nodes of each level, by a slow reference."""
    tree, level, found = weighted.tree, [(np.inf, 0)], []
    while level:
        below = []
        for above, node in level:
            margins = weighted.intercepts[tree.columns(node)].copy()
            for pair in range(weighted.pair_ends[node], weighted.pair_ends[node + 1]):
                places = slice(weighted.starts[pair], weighted.starts[pair + 1])
                columns = weighted.columns[places]
                scales = weighted.scales[tree.columns(node)][columns]
                margins[columns] += row[weighted.features[pair]] * weighted.values[places] * scales
            for target, margin in zip(tree.targets[tree.columns(node)], margins, strict=True):
                if target >= 0:
                    found.append(target)
                else:
                    below.append((joined(above, margin, 3.0), -target))
        level = sorted(below, key=lambda one: (-one[0], one[1]))[:beam]
    return found


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1))
def test_a_beam_looks_below_the_best_nodes_whatever_other_rows_there_are(seed):
    random = np.random.default_rng(seed)
    weighted = _weighted(random)
    table = random.normal(size=(70, N_FEATURES)) * (random.random((70, N_FEATURES)) < random.random())
    table[random.random(70) < 0.2] = 0
    rows, beam = FeatureMatrix(sp.csr_array(table)), int(random.integers(1, 4))
    scores = weighted.scores(rows, by_margin=False)
    k = int(random.integers(1, weighted.n_labels + 1))
    labels, found, _ = weighted.by_beam(rows, k, beam, by_margin=False)
    for row in range(0, 70, 10):
        own = np.array(_beamed(weighted, table[row], beam))
        order = own[np.lexsort((own, -scores[row, own]))][:k]
        np.testing.assert_array_equal(labels[row, : len(order)], order)
        np.testing.assert_array_equal(found[row, : len(order)], scores[row, order])
        assert (labels[row, len(order) :] == -1).all()
        alone = weighted.by_beam(rows.rows([row]), k, beam, by_margin=False)
        np.testing.assert_array_equal(alone[0][0], labels[row])
    which, of_rows = random.integers(0, weighted.n_labels, 200), np.sort(random.integers(0, 70, 200))
    for known in (None, (labels, found)):
        pairs = weighted.of_pairs(rows, of_rows, which, known)
        np.testing.assert_array_equal(pairs, scores[of_rows, which])


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_what_is_proven_of_several_trees_is_what_brute_force_finds(seed):
    random = np.random.default_rng(seed)
    n_labels = int(random.choice([1, 7, 40, 300]))
    scorer = LabelTreeScorer.of(
        tuple(_weighted(random, n_labels) for _ in range(3)), N_FEATURES, by_margin=False
    )
    rows = FeatureMatrix(sp.csr_array(random.normal(size=(6, N_FEATURES)) * (random.random((6, 1)) < 0.9)))
    scores, k = scorer.scores(rows), int(random.integers(1, min(n_labels, 20) + 1))
    order = np.lexsort((np.broadcast_to(np.arange(n_labels), scores.shape), -scores), axis=1)[:, :k]
    whole = scorer.proven_top(rows, k, 2**63 - 1)
    assert whole.proven.all()
    np.testing.assert_array_equal(whole.labels, order)
    np.testing.assert_array_equal(whole.scores, np.take_along_axis(scores, order, axis=1))
    some = scorer.proven_top(rows, k, int(random.integers(1, 40)))
    np.testing.assert_array_equal(some.labels[some.proven], order[some.proven])
    found = np.zeros(scores.shape, bool)
    found[scorer.positive(rows)] = True
    np.testing.assert_array_equal(found, scores > 0)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_a_search_with_proof_skips_most_nodes_of_rows_that_are_clear(seed):
    """A row at the words of one label needs the path to it, and few others."""
    random = np.random.default_rng(seed)
    labels = np.arange(64)
    tree = LabelTree.from_nested([list(part) for part in np.split(labels, 16)])
    home = int(random.integers(64))
    n_pairs = 64 * np.arange(18)
    columns = np.concatenate([np.repeat(np.arange(16), 4), np.tile(np.arange(64) % 4, 16)])
    own = np.concatenate([np.arange(64), np.tile(labels, 16)])
    values = np.where(
        np.concatenate([np.ones(64, bool), np.repeat(np.arange(16), 64) == own[64:] // 4]), 5, 0
    )
    weighted = WeightedTree(
        tree, n_pairs, own.astype(np.int32), np.arange(len(own) + 1), columns.astype(np.uint8),
        values.astype(np.int16), np.ones(80), np.full(80, -1.0),
    )  # fmt: skip
    row = FeatureMatrix(np.eye(64)[[home]])
    for by_margin in (False, True):
        found = weighted.by_bound(row, 1, 2**40, by_margin=by_margin)
        assert found.proven.all()
        assert found.labels[0, 0] == home
        assert found.opened[0] <= 2


def test_rows_times_labels_may_pass_two_to_the_31():
    """Every tenth row has the word of the last label, in both of two trees over 50,000 labels."""
    n_labels = n_rows = 50_000
    nodes = np.split(np.arange(n_labels), 250)
    tree = LabelTree.from_nested([part.tolist() for part in nodes])
    n_nodes, n_columns = tree.n_nodes, len(tree.targets)
    one = WeightedTree(
        tree=tree,
        pair_ends=np.concatenate([[0], np.ones(n_nodes - 1, np.int64), [2]]),
        features=np.array([9, 9], np.int32),
        starts=np.arange(3),
        columns=np.array([249, 199], np.uint8),
        values=np.array([4, 4], np.int16),
        scales=np.ones(n_columns),
        intercepts=np.full(n_columns, -1.0),
    )
    scorer = LabelTreeScorer.of((one, one), 10, by_margin=False)
    words = np.arange(n_rows) % 10
    entries = np.ones(n_rows), words, np.arange(n_rows + 1)
    rows, labels = scorer.positive(FeatureMatrix(sp.csr_array(entries, shape=(n_rows, 10))))
    np.testing.assert_array_equal(rows, np.flatnonzero(words == 9))
    assert (labels == n_labels - 1).all()


TEXTS = make_text_like(120, 160, 20, labels_per_row=3, random_state=0)


@pytest.fixture(scope="module")
def weighted():
    model = LabelTreeClassifier(leaf_size=6, branching=4, n_trees=1, tol=0.1).fit(TEXTS.X, TEXTS.Y)
    return model.scorer_.trees[0]


def test_nodes_are_bounded_by_their_labels(weighted):
    tree = weighted.tree
    above, below, centers = np.empty((3, len(weighted.features)))
    largest, radii = np.empty((2, tree.n_nodes))
    bound_nodes(weighted._walked[0], above, below, centers, largest, radii)
    for node in range(tree.n_nodes):
        first, last = tree.ends[node], tree.ends[node + 1]
        pairs = np.arange(weighted.pair_ends[node], weighted.pair_ends[node + 1])
        table = np.zeros((len(pairs), last - first))
        for place, pair in enumerate(pairs):
            own = slice(weighted.starts[pair], weighted.starts[pair + 1])
            columns = weighted.columns[own]
            table[place, columns] = weighted.values[own] * weighted.scales[first + columns]
        are_labels = tree.targets[first:last] >= 0
        if not are_labels.any():
            assert largest[node] == -np.inf
            assert radii[node] == 0
            continue
        labels = table[:, are_labels]
        np.testing.assert_allclose(above[pairs], labels.max(axis=1))
        np.testing.assert_allclose(below[pairs], labels.min(axis=1))
        center = labels.mean(axis=1)
        np.testing.assert_allclose(centers[pairs], center, atol=1e-15)
        farthest = np.linalg.norm(labels - center[:, None], axis=0).max()
        np.testing.assert_allclose(radii[node], farthest, rtol=1e-9)
        assert largest[node] == weighted.intercepts[first:last][are_labels].max()
