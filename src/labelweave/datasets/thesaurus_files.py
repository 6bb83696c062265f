"""Thesauri in RDF: concepts of SKOS and classes of RDF Schema, under broader ones.

SKOS is https://www.w3.org/TR/skos-reference/; rdflib reads Turtle, N-Triples and RDF/XML.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from labelweave.datasets.data_file import DataFileError, PathLike, numbered_lines

FORMATS = {".ttl": "turtle", ".nt": "nt", ".rdf": "xml"}
_SKOS, _RDFS = "http://www.w3.org/2004/02/skos/core#", "http://www.w3.org/2000/01/rdf-schema#"
_UP = (f"{_SKOS}broader", f"{_SKOS}broaderTransitive", f"{_RDFS}subClassOf")
_DOWN = (f"{_SKOS}narrower", f"{_SKOS}narrowerTransitive")
_KINDS = (f"{_SKOS}Concept", f"{_RDFS}Class", "http://www.w3.org/2002/07/owl#Class")


def thesaurus_terms(path: PathLike, suffix: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Read the concepts of a thesaurus, and the pairs of a broader one and one below it.

    Concepts are called by the end of their address, after the last # or /, where that is distinct in the
    file, else by the whole.
    Raises DataFileError if the file is malformed or has no concept.
    """
    graph = _graph(path, FORMATS[suffix])
    from rdflib import RDF, URIRef

    edges = {(up, below) for name in _UP for below, up in graph.subject_objects(URIRef(name))}
    edges |= {(up, below) for name in _DOWN for up, below in graph.subject_objects(URIRef(name))}
    edges = {edge for edge in edges if all(isinstance(end, URIRef) for end in edge)}  # no unnamed classes
    found = {node for name in _KINDS for node in graph.subjects(RDF.type, URIRef(name))}
    found = {node for node in found if isinstance(node, URIRef)} | {node for edge in edges for node in edge}
    if not found:
        raise DataFileError(path, None, "no concept", "skos:Concept, skos:broader or rdfs:subClassOf")
    names = _short_names(sorted(map(str, found)))
    pairs = sorted((names[str(up)], names[str(below)]) for up, below in edges)
    return list(names.values()), pairs


def _graph(path: PathLike, format: str) -> Any:
    try:
        import rdflib
    except ImportError:
        raise ImportError(f"{path} is a thesaurus, which needs rdflib: install labelweave[app].") from None
    text = "\n".join(line for _, line in numbered_lines(path))
    log = logging.getLogger("rdflib.term")
    level = log.level
    log.setLevel(logging.ERROR)  # it warns of literals, none of which is used
    try:
        return rdflib.Graph().parse(data=text, format=format, publicID="http://labelweave.invalid/")
    except Exception as error:  # a parser a format, each with errors of its own
        words = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataFileError(path, None, f"no RDF ({words})", f"{format} as its name says") from None
    finally:
        log.setLevel(level)


def _short_names(addresses: list[str]) -> dict[str, str]:
    ends = {address: address.rstrip("#/").replace("#", "/").rpartition("/")[2] for address in addresses}
    counts = Counter(ends.values())
    return {address: end if end and counts[end] == 1 else address for address, end in ends.items()}
