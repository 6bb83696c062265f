"""Thesauri in RDF."""

import sys

import pytest

from labelweave.datasets import DataFileError, read_taxonomy
from labelweave.labels import Taxonomy

_TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix x: <http://example.org/animals/> .
x:animal a skos:Concept ; skos:narrower x:dog ; skos:prefLabel "animal"@en .
x:pet a skos:Concept .
x:dog a skos:Concept ; skos:broader x:animal , x:pet .
x:poodle skos:broader x:dog .
x:plant a skos:Concept ; skos:related x:animal .
x:tree rdfs:subClassOf x:plant , [ a rdfs:Class ] .
"""
_PAIRS = [("animal", "dog"), ("pet", "dog"), ("dog", "poodle"), ("plant", "tree")]
_XML = """<?xml version="1.0"?>
<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:s="http://www.w3.org/2004/02/skos/core#">
<s:Concept r:about="http://a.org/t#dog"><s:broader r:resource="http://a.org/t#pet"/></s:Concept>
</r:RDF>
"""
_TRIPLES = """<http://a/x#dog> <http://www.w3.org/2004/02/skos/core#broader> <http://b/y#dog> .
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("t.ttl", _TURTLE, _PAIRS),
        ("t.rdf", _XML, [("pet", "dog")]),
        ("t.nt", _TRIPLES, [("http://b/y#dog", "http://a/x#dog")]),
    ],
)
def test_thesauri(tmp_path, name, text, expected):
    pytest.importorskip("rdflib")
    (tmp_path / name).write_text(text)
    found = read_taxonomy(tmp_path / name)
    assert sorted(found.pairs()) == sorted(expected)
    assert set(found.nodes) == set(Taxonomy(expected).nodes)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("t.ttl", "what is this", "no RDF"),
        ("t.rdf", "<a>", "no RDF"),
        ("t.nt", "<http://a/x> <http://a/y> <http://a/z> .\n", "no concept"),
        ("t.ttl", _TURTLE + "x:animal skos:broader x:poodle .", "cycle"),
    ],
)
def test_malformed_thesauri_are_refused_in_a_sentence(tmp_path, name, text, words):
    pytest.importorskip("rdflib")
    (tmp_path / name).write_text(text)
    with pytest.raises(DataFileError, match=words):
        read_taxonomy(tmp_path / name)


def test_what_is_missing_is_named_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdflib", None)
    (tmp_path / "t.ttl").write_text(_TURTLE)
    with pytest.raises(ImportError, match=r"is a thesaurus, which needs rdflib; install labelweave\[app\]"):
        read_taxonomy(tmp_path / "t.ttl")
