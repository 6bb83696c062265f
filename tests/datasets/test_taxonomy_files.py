"""Taxonomies in files of any format, and thesauri in RDF."""

import sys
import time

import numpy as np
import pytest

from labelweave.datasets import read_taxonomy
from labelweave.labels import Taxonomy

_OBO = """format-version: 1.2
ontology: go

[Term]
id: GO:1
name: part ! of a name

[Term]
id: GO:2
is_a: GO:1 {source="x"} ! part
relationship: part_of GO:4 ! whole
relationship: regulates GO:1

! a remark
[Term]
id: GO:3
is_a: GO:2
is_a: GO:1
[Term]
id: GO:4
[Term]
id: GO:5
is_a: GO:1
is_obsolete: true

[Typedef]
id: part_of
no colon here, in what is passed over
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("t.csv", "parent,child\na,b\nc,b\n", [("a", "b"), ("c", "b")]),
        ("t.csv", "a,b\n\nc,b\n", [("a", "b"), ("c", "b")]),
        ("t.csv", 'Child,Parent\nb,"a, 1"\nb,c\n', [("a, 1", "b"), ("c", "b")]),
        ("t.tsv", "child\tparent\nb\ta\n", [("a", "b")]),
        ("t.csv", "child;parent\nb;a, 1\n", [("a, 1", "b")]),
        ("t.csv", "a;b\nc;b\n", [("a", "b"), ("c", "b")]),
        ("t.csv", ",child,depth,Parent\n0,b,2,a\n1,b,2,c\n", [("a", "b"), ("c", "b")]),
        ("t.csv", "child,parent\na,\nb,a\nc,\n", {"a": {"b": None}, "c": None}),
        ("t.txt", "path\na/b\na/c\n", ["a/b", "a/c"]),
        ("t.json", '{"a": {"b": ["c"]}}', {"a": {"b": ["c"]}}),
        ("t.json", '[["a", "b"], ["c", "b"]]', [("a", "b"), ("c", "b")]),
    ],
)
def test_tables_paths_and_json(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text)
    assert read_taxonomy(tmp_path / name) == Taxonomy.from_any(expected)


def test_ontologies(tmp_path):
    path = tmp_path / "go.obo"
    path.write_text(_OBO)
    graph = read_taxonomy(path)
    assert graph == Taxonomy([("GO:1", "GO:2"), ("GO:1", "GO:3"), ("GO:2", "GO:3")], ["GO:4"])
    assert read_taxonomy(path, ["is_a", "part_of"]).parents["GO:2"] == ("GO:1", "GO:4")


def _ontology(path, size):
    rng = np.random.default_rng(0)
    terms = ["format-version: 1.2\n"]
    for k in range(size):
        above = {int(rng.integers(0, k)) for _ in range(1 + k % 3)} if k else set()
        ups = "".join(f"is_a: GO:{up:07d} ! term {up}\n" for up in sorted(above))
        part = f"relationship: part_of GO:{k // 2:07d}\n" if k > 1 and k // 2 not in above else ""
        text = f'def: "What term {k} says." [GOC:x]\nsynonym: "{k}" EXACT []\n'
        terms.append(f"[Term]\nid: GO:{k:07d}\nname: term {k}\nnamespace: x\n{text}{ups}{part}\n")
    path.write_text("".join(terms))


def test_an_ontology_takes_time_in_proportion_to_its_terms(tmp_path):
    """40,000 terms took 2 s."""

    def seconds(path):
        clock = time.process_time()
        read_taxonomy(path, ["is_a", "part_of"])
        return time.process_time() - clock

    small, large = tmp_path / "small.obo", tmp_path / "large.obo"
    _ontology(small, 5000)
    _ontology(large, 40_000)
    assert min(seconds(large) for _ in range(2)) < 4 * 8 * min(seconds(small) for _ in range(3))
    found = read_taxonomy(large, ["is_a", "part_of"])
    assert len(found) == 40_000
    assert found.roots == ["GO:0000000"]


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


def test_what_is_missing_is_named_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdflib", None)
    (tmp_path / "t.ttl").write_text(_TURTLE)
    with pytest.raises(ImportError, match=r"is a thesaurus, which needs rdflib; install labelweave\[app\]"):
        read_taxonomy(tmp_path / "t.ttl")
