"""Further names of nodes: alternative spellings and identifiers, and labels that are no nodes."""

import numpy as np
import pandas as pd
import pytest

from labelweave import HierarchicalClassifier, LabelMatrix, MaxMarginClassifier, Taxonomy

GO = Taxonomy([("GO:1", "GO:3"), ("GO:3", "GO:4")])._with_aliases({"GO:19": "GO:3", "GO:5": "GO:4"})
SKOS = Taxonomy([("p1", "p2")])._with_aliases({f"http://a.org/y/{end}": end for end in ("p1", "p2")})


@pytest.mark.parametrize(
    ("taxonomy", "name", "node"),
    [
        (GO, "GO:3", "GO:3"),
        (GO, "GO_3", "GO:3"),
        (GO, "GO:19", "GO:3"),
        (GO, "GO_19", "GO:3"),
        (GO, "http://purl.obolibrary.org/obo/GO_4", "GO:4"),
        (GO, "<http://purl.obolibrary.org/obo/GO_5>", "GO:4"),
        (GO, "https://identifiers.org/GO:1", "GO:1"),
        (GO, "HP:3", None),
        (GO, "a/GO_3", None),
        (GO, "3", None),
        (SKOS, "p2", "p2"),
        (SKOS, "http://a.org/y/p2", "p2"),
        (SKOS, "https://a.org/y/p2", "p2"),
        (SKOS, "<http://a.org/y/p2>", "p2"),
        (SKOS, "http://b.org/y/p2", None),
        (SKOS, "", None),
    ],
)
def test_a_name_stands_for_a_node(taxonomy, name, node):
    assert taxonomy._node_of(name) == node
    assert (name in taxonomy) == (node is not None)


def test_labels_by_other_names_are_completed_and_have_covariances():
    y = pd.DataFrame({"GO:1": [0, 0], "GO_19": [0, 1], "GO:5": [1, 0]})
    assert GO.with_ancestors(y).to_dense().tolist() == [[1, 1, 1], [1, 1, 0]]
    assert GO.membership(["GO:19"]).toarray().tolist() == [[1, 1, 0]]
    assert GO.restricted(["GO:5"])._node_of("GO:19") == "GO:3"


def test_aliases_that_are_nodes_or_stand_for_none_are_omitted():
    assert dict(Taxonomy([("a", "b")])._with_aliases({"a": "b", "x": "y", "c": "b"}).aliases) == {"c": "b"}


def test_replaced_labels_get_the_name_of_the_term_and_addresses_stay():
    found = GO.matched([["GO:19"], ["GO:3", "http://x.org/GO_4"], None])
    assert found.labels.names.tolist() == ["GO:3", "http://x.org/GO_4"]
    assert found.renamed == {"GO:19": "GO:3"}
    np.testing.assert_array_equal(found.labels.to_dense(), [[1, 0], [1, 1], [np.nan, np.nan]])
    both = SKOS.matched([["http://a.org/y/p2"], ["p2"]])
    assert both.labels.to_dense().tolist() == [[1], [1]]


def test_merged_labels_are_unknown_where_nothing_says_they_are_there():
    nan = np.nan
    y = LabelMatrix.from_any(np.array([[1, nan], [nan, 0], [0, 0], [nan, nan]]), ["GO:3", "GO:19"])
    np.testing.assert_array_equal(GO.matched(y).labels.to_dense()[:, 0], [1, nan, 0, nan])


def test_labels_outside_are_refused_dropped_or_roots():
    y = [["GO:4", "x"], ["y"]]
    with pytest.raises(ValueError, match=r"'x' is not in the taxonomy \(2 of 3 are not\).*outside='drop'"):
        GO.matched(y)
    dropped, kept = GO.matched(y, "drop"), GO.matched(y, outside="root")
    assert dropped.labels.names.tolist() == ["GO:4"]
    assert dropped.outside == kept.outside == ["x", "y"]
    assert kept.labels.names.tolist() == ["GO:4", "x", "y"]
    assert kept.taxonomy.roots == ["GO:1", "x", "y"]
    assert kept.taxonomy._node_of("GO:5") == "GO:4"
    with pytest.raises(ValueError, match="outside"):
        GO.matched(y, outside="keep")
    with pytest.raises(ValueError, match="have no names"):
        GO.matched(np.eye(2))


def test_models_and_their_files_know_other_names(reloaded):
    X = np.array([[0.0, 1], [1, 0], [1, 1], [0, 0]])
    y = pd.DataFrame({"GO:1": [1, 0, 1, 0], "GO:19": [1, 0, 1, 0]})
    model = HierarchicalClassifier(MaxMarginClassifier(), GO).fit(X, y)
    loaded = reloaded(model)
    assert loaded.taxonomy_._node_of("GO:5") == "GO:4"
    assert loaded.score(X, y) == model.score(X, y)
