"""Labels completed by what a taxonomy says of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.labels import LabelMatrix, Taxonomy
from reference.random_graphs import taxonomies

_TREE = Taxonomy.from_nested({"animal": {"dog": ["poodle", "terrier"], "cat": None}, "plant": None})


def _slow(graph, names, row, incomplete):
    """Close one row, entry by entry, in dicts."""
    above = {name: set(graph.ancestors(name)) for name in names}
    has = {name for name in names if row[name] == 1}
    has |= {name for name in names if any(name in above[other] for other in has)}
    specific = {name for name in has if not any(name in above[other] for other in has)}
    lacks = {name for name in names if row[name] == 0 and name not in has}
    if incomplete:
        lacks -= {name for name in lacks if above[name] & specific}
    lacks |= {name for name in names if above[name] & lacks}
    return [1.0 if name in has else 0.0 if name in lacks else np.nan for name in names]


@settings(max_examples=150)
@given(graph=taxonomies(), incomplete=st.booleans(), seed=st.integers(0, 999), share=st.floats(0, 1))
def test_closure_against_a_slow_one(graph, incomplete, seed, share):
    rng = np.random.default_rng(seed)
    names = rng.permutation(graph.nodes)[: 1 + rng.integers(len(graph))]
    table = (rng.random((4, len(names))) < 0.3).astype(float)
    table[rng.random(table.shape) < share] = np.nan
    closed = graph.with_ancestors(LabelMatrix.from_any(table, names), incomplete=incomplete)
    expected = [_slow(graph, names, dict(zip(names, row, strict=True)), incomplete) for row in table]
    np.testing.assert_array_equal(closed.to_dense(), expected)
    again = graph.with_ancestors(closed, incomplete=incomplete)
    np.testing.assert_array_equal(again.to_dense(), expected)


def test_labels_that_are_known_stay_complete_and_sparse():
    rng = np.random.default_rng(0)
    Y = LabelMatrix(sp.random_array((500, 6), density=0.2, rng=rng) > 0, None, _TREE.nodes)
    closed = _TREE.with_ancestors(Y)
    assert closed.observed is None
    assert (closed.positives > Y.positives).nnz > 0
    assert (closed.positives < Y.positives).nnz == 0


def test_a_class_with_hundreds_below_it_counts_once():
    names = ["top", *map(str, range(600))]
    tree = Taxonomy([("top", name) for name in names[1:]])
    closed = tree.with_ancestors(
        LabelMatrix(np.eye(601, dtype=int)[1:].sum(axis=0, keepdims=True), None, names)
    )
    assert closed.positives.toarray().all()


def test_rows_are_closed_some_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    table = rng.choice([0.0, 1.0, np.nan], size=(50, 6), p=[0.6, 0.1, 0.3])
    Y = LabelMatrix.from_any(table, _TREE.nodes)
    whole = _TREE.with_ancestors(Y, incomplete=True).to_dense()
    monkeypatch.setattr("labelweave.labels.taxonomy.node_matrices._ENTRIES_AT_ONCE", 20)
    np.testing.assert_array_equal(_TREE.with_ancestors(Y, incomplete=True).to_dense(), whole)
    assert _TREE.with_ancestors(Y[:0], incomplete=True).shape == (0, 6)


def test_labels_without_names_or_with_other_names_are_refused():
    with pytest.raises(ValueError, match=r"labels have no names; name them: LabelMatrix\.from_any"):
        _TREE.with_ancestors(LabelMatrix.from_any([[1, 0]]))
    with pytest.raises(ValueError, match="label 'bee' is not in the taxonomy"):
        _TREE.with_ancestors(LabelMatrix.from_any([[1]], ["bee"]))


def test_pairs_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr("labelweave.labels.taxonomy.node_matrices._MOST_PAIRS", 10)
    graph = Taxonomy([(f"r{k}", "m") for k in range(5)] + [("m", f"l{k}") for k in range(5)])
    with pytest.raises(ValueError, match="more than 10 pairs of a node and an"):
        graph.membership(["l0"])
