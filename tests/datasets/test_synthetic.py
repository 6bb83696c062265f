import itertools

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import f1_score

from labelweave.datasets import make_clique_toy, make_taxonomy, make_text_like


def test_text_like_has_the_asked_sizes():
    data = make_text_like(5000, 3000, 40, labels_per_row=2.5, words_per_row=50)
    X, Y = data.X, data.Y.positives
    assert X.shape == (5000, 3000)
    assert X.dtype == np.float32
    assert X.indices.dtype == np.int32
    assert X.has_canonical_format
    assert X.nnz / 5000 == pytest.approx(50, rel=0.03)
    assert Y.nnz / 5000 == pytest.approx(2.5, rel=0.05)
    np.testing.assert_allclose(np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), 1, rtol=1e-5)
    counts = np.sort(data.Y.positive_counts())
    assert counts[-1] > 4 * counts[20] > 0
    words = np.sort(np.bincount(X.indices, minlength=3000))
    assert words[-1] > 20 * words[1500] > 0


def test_text_like_labels_are_correlated_and_predictable():
    data = make_text_like(4000, 3000, 30)
    Y = data.Y.positives.toarray()
    correlation = np.corrcoef(Y.T)[np.triu_indices(30, 1)]
    assert correlation.max() > 0.1
    model = RidgeClassifier(alpha=1.0).fit(data.X[:3000], Y[:3000])
    assert 0.5 < f1_score(Y[3000:], model.predict(data.X[3000:]), average="micro") < 0.85


def test_text_like_repeats_itself():
    left, right = (make_text_like(300, 400, 10, words_per_row=20, random_state=3) for _ in range(2))
    other = make_text_like(300, 400, 10, words_per_row=20, random_state=4)
    longer = make_text_like(4200, 400, 10, words_per_row=20, random_state=3)
    assert (left.X != right.X).nnz == 0
    assert (left.Y.positives != right.Y.positives).nnz == 0
    assert (left.X != other.X).nnz > 0
    # only the weights know how many rows there are
    np.testing.assert_array_equal(longer.X[:300].indices, left.X.indices)
    assert (longer.Y.positives[:300] != left.Y.positives).nnz == 0


def test_clique_toy_labels_maximise_the_score():
    data, edges = make_clique_toy(40, random_state=5)
    assert edges == ((0, 1), (0, 2), (0, 3), (0, 4))
    rng = np.random.default_rng(5)
    node, edge = rng.normal(size=(10, 10)), rng.normal(size=(4, 2, 2, 10))
    Y = data.Y.positives.toarray()
    states = np.array(list(itertools.product([0, 1], repeat=10)))
    for x, y in zip(data.X, Y, strict=True):
        scores = states @ (node @ x)
        for position, (hub, leaf) in enumerate(edges):
            scores = scores + (edge[position] @ x)[states[:, hub], states[:, leaf]]
        np.testing.assert_array_equal(states[scores.argmax()], y)
    longer, _ = make_clique_toy(60, random_state=5)
    np.testing.assert_array_equal(longer.X[:40], data.X)


def test_taxonomy_rows_are_paths():
    data = make_taxonomy(50, 4, depth=3, branching=2, random_state=1)
    assert data.Y.n_labels == 2 + 4 + 8
    names = list(data.label_names)
    assert set(names[:3]) == {"1", "2", "1/1"}
    assert ("1/2", "1/2/1") in data.parents
    assert len(data.parents) == 12
    for row in data.Y.positives.toarray().astype(bool):
        path = [names[node] for node in np.flatnonzero(row)]
        assert len(path) == 3
        assert all(child.rpartition("/")[0] == parent for parent, child in itertools.pairwise(path))


def test_taxonomy_siblings_are_closer_than_cousins():
    data = make_taxonomy(4000, 30, depth=2, branching=3, decay=0.5, noise=0.1)
    leaf = data.Y.positives.indices.reshape(-1, 2)[:, 1]
    means = np.array([data.X[leaf == node].mean(axis=0) for node in np.unique(leaf)])
    distance = np.linalg.norm(means[:, None] - means[None], axis=2)
    family = np.arange(9) // 3
    together = family[:, None] == family[None]
    assert distance[together & ~np.eye(9, dtype=bool)].mean() < 0.7 * distance[~together].mean()
