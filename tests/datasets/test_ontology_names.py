"""Ontologies and thesauri: alternative and obsolete identifiers, full URIs, relations."""

import pytest

from labelweave.datasets import DataFileError, read_taxonomy

_OBO = """format-version: 1.2

[Term]
id: GO:1

[Term]
id: GO:3
alt_id: GO:19
alt_id: GO:20
alt_id: GO:1
is_a: GO:1 ! root

[Term]
id: GO:4
is_a: GO:19
relationship: part_of GO:1

[Term]
id: GO:5
is_obsolete: true
replaced_by: GO:4

[Term]
id: GO:6
is_obsolete: true
replaced_by: GO:5

[Term]
id: GO:7
is_obsolete: true
replaced_by: GO:19

[Term]
id: GO:8
is_obsolete: true
consider: GO:4

[Term]
id: GO:9
is_obsolete: true
replaced_by: GO:4
replaced_by: GO:3

[Term]
id: GO:10
is_obsolete: true
replaced_by: GO:99

[Term]
id: GO:11
is_obsolete: true
replaced_by: GO:12

[Term]
id: GO:12
is_obsolete: true
replaced_by: GO:11
"""
_TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix y: <http://a.org/y#> .
@prefix z: <http://a.org/z/> .
y:p1 a skos:Concept ; skos:notation "001" .
y:p2 a skos:Concept ; skos:broader y:p1 ; skos:notation "002" , "2" .
y:p3 a skos:Concept ; skos:broader y:old ; skos:notation "2" .
y:old a skos:Concept ; skos:broader y:p1 ; dct:isReplacedBy y:p2 .
y:same skos:broader y:p1 .
z:same skos:broader y:p1 .
"""


@pytest.fixture
def ontology(tmp_path):
    (tmp_path / "t.obo").write_text(_OBO)
    return read_taxonomy(tmp_path / "t.obo")


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("GO:1", "GO:1"), ("GO:19", "GO:3"), ("GO:20", "GO:3"), ("GO:5", "GO:4"), ("GO:6", "GO:4"),
        ("GO:7", "GO:3"), ("GO:8", None), ("GO:9", None), ("GO:10", None), ("GO:11", None), ("GO:12", None),
        ("GO_6", "GO:4"), ("http://purl.obolibrary.org/obo/GO_20", "GO:3"), ("GO:99", None),
    ],
)  # fmt: skip
def test_identifiers_of_an_ontology(ontology, name, node):
    assert ontology._node_of(name) == node


def test_parents_by_other_names_are_the_terms(ontology):
    assert ontology.pairs() == [("GO:1", "GO:3"), ("GO:3", "GO:4")]
    assert len(ontology) == 3


def test_relations_are_those_asked_for(tmp_path, ontology):
    graph = read_taxonomy(tmp_path / "t.obo", relations=["is_a", "part_of"])
    assert graph.parents["GO:4"] == ("GO:1", "GO:3")
    assert read_taxonomy(tmp_path / "t.obo", relations=["part_of"]).parents == {"GO:4": ("GO:1",)}
    with pytest.raises(DataFileError, match="no relation 'partof'; expected relations such as is_a"):
        read_taxonomy(tmp_path / "t.obo", relations=["is_a", "partof"])


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("p1", "p1"), ("http://a.org/y#p1", "p1"), ("<http://a.org/y#p3>", "p3"),
        ("https://a.org/y#p2", "p2"),
        ("old", "p2"), ("http://a.org/y#old", "p2"), ("001", "p1"), ("002", "p2"), ("2", None),
        ("same", None), ("http://a.org/y#same", "http://a.org/y#same"), ("http://b.org/p1", None),
    ],
)  # fmt: skip
def test_addresses_of_a_thesaurus(tmp_path, name, node):
    pytest.importorskip("rdflib")
    (tmp_path / "t.ttl").write_text(_TURTLE)
    found = read_taxonomy(tmp_path / "t.ttl")
    assert found._node_of(name) == node
    assert found.parents["p3"] == ("p2",)
    assert "old" not in found.nodes
