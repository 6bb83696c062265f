"""Files of taxonomies: tables of parents and children, paths, nested JSON, ontologies (OBO) and thesauri.

OBO is the format of the Gene Ontology (https://owlcollab.github.io/oboformat/doc/GO.format.obo-1_4.html);
the terms that are not obsolete are read, with the requested relations.  Alternative identifiers, and obsolete
ones that a term replaces, are aliases of terms.  Thesauri are RDF: concepts of SKOS
(https://www.w3.org/TR/skos-reference/) and classes of RDF Schema, under broader ones; rdflib reads Turtle,
N-Triples and RDF/XML.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from labelweave.datasets.csv_files import DELIMITERS, CsvForm, csv_records
from labelweave.datasets.data_file import DataFileError, PathLike, numbered_lines
from labelweave.datasets.table_files import distinct_names, json_fault
from labelweave.foundation.arguments import checked
from labelweave.labels import Taxonomy

_LONGEST_CHAIN = 20  # of replaced names
_TAB_SUFFIXES = (".tsv", ".tab")
_SEPARATOR = "/"
_WANTED = "a parent and a child, or paths such as a/b/c on all lines"
_QUOTED = re.compile(r'"[^"]*+"?+')
_HEADER = ("parent", "child")

Line = tuple[int, list[str]]
Edge = tuple[str, str]
FORMATS = {".ttl": "turtle", ".nt": "nt", ".rdf": "xml"}
_SKOS, _RDFS = "http://www.w3.org/2004/02/skos/core#", "http://www.w3.org/2000/01/rdf-schema#"
_UP = (f"{_SKOS}broader", f"{_SKOS}broaderTransitive", f"{_RDFS}subClassOf")
_DOWN = (f"{_SKOS}narrower", f"{_SKOS}narrowerTransitive")
_KINDS = (f"{_SKOS}Concept", f"{_RDFS}Class", "http://www.w3.org/2002/07/owl#Class")
_REPLACED = ("http://purl.org/dc/terms/isReplacedBy", "http://purl.obolibrary.org/obo/IAO_0100001")
_ALSO_CALLED = (f"{_SKOS}notation", "http://www.geneontology.org/formats/oboInOwl#hasAlternativeId")


@checked
def read_taxonomy(path: PathLike, relations: Sequence[str] = ("is_a",)) -> Taxonomy:
    r"""Read a taxonomy, a tree or a graph in which nodes have several parents.

    Parameters
    ----------
    path : path-like
        The file, ``.gz`` or not.  Its suffix determines the format: an ontology (``.obo``), with identifiers
        as names; a thesaurus in RDF (``.ttl``, ``.nt``, ``.rdf``; needs rdflib), with the ends of the URIs as
        names; nested objects and lists (``.json``); else lines of parent and child, separated by commas,
        semicolons or tabs, in any columns if the first line names them ``parent`` and ``child``, then with an
        empty parent for a root; or one path per line, such as ``a/b/c``, which names the nodes.
    relations : sequence of str, default=("is_a",)
        Which relations of an ontology lead from child to parent, such as "is_a" and "part_of".

    Returns
    -------
    Taxonomy
        The taxonomy.  Its ``aliases`` are further names that labels may have: full URIs and notations of
        concepts, alternative identifiers of terms, and obsolete ones that a term replaces.

    Raises
    ------
    DataFileError
        If the file is malformed, naming the line, or its edges make a cycle.
    ImportError
        If the file is a thesaurus and rdflib is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from labelweave.datasets import read_taxonomy
    >>> written = Path("animals.csv").write_text("child,parent\npoodle,dog\npoodle,pet\n")
    >>> read_taxonomy("animals.csv")
    Taxonomy(3 nodes, 2 edges, 2 roots)
    >>> Path("animals.csv").unlink()
    """
    source: Any
    make: Callable[..., Taxonomy] = Taxonomy
    nodes: Sequence[str] = ()
    aliases = dict[str, str]()
    relations = relations if isinstance(relations, str) else tuple(relations)
    if isinstance(relations, str) or not relations:
        raise ValueError(f"relations is {relations!r}; pass a list such as ['is_a', 'part_of'].")
    if suffix_of(path) != ".obo" and relations != ("is_a",):
        raise ValueError(f"relations is {list(relations)}, but {path} is not an ontology (.obo); omit it.")
    if suffix_of(path) == ".json":
        source, make = _json(path), Taxonomy.from_any
    elif suffix_of(path) == ".obo":
        nodes, source, aliases = _terms(path, frozenset(relations))
    elif suffix_of(path) in FORMATS:
        nodes, source, aliases = thesaurus_terms(path, suffix_of(path))
    else:
        lines = list(lines_of_cells(path))
        if lines and len(lines[0][1]) == 1 and _SEPARATOR not in lines[0][1][0]:
            lines = list(lines_of_cells(path, DELIMITERS))
        if all(len(cells) == 1 for _, cells in lines) and any(_SEPARATOR in cells[0] for _, cells in lines):
            source, make = [cells[0] for _, cells in lines if cells[0].lower() != "path"], Taxonomy.from_paths
        else:
            pairs = list(_pairs(path, lines))
            nodes, source = (
                [below for above, below in pairs if not above],
                [pair for pair in pairs if pair[0]],
            )
    try:
        return (make(source, nodes) if nodes else make(source))._with_aliases(aliases)
    except (TypeError, ValueError) as error:
        raise DataFileError(path, None, "no taxonomy", f"one ({str(error).rstrip('.')})") from None


def suffix_of(path: PathLike) -> str:
    """Return the suffix of a file, without that of compression."""
    return Path(str(path).lower().removesuffix(".gz")).suffix


def lines_of_cells(path: PathLike, delimiters: str = ",") -> Iterator[Line]:
    """Yield the cells of every non-empty record, with its first line.

    delimiters: the first of these in the first line is the delimiter, else a comma; tabs by the file's name.
    """
    lines = numbered_lines(path)
    first = next(lines)
    found = re.search(f"[{re.escape(delimiters)}]", _QUOTED.sub("", first[1]))
    delimiter = "\t" if suffix_of(path) in _TAB_SUFFIXES else found[0] if found else ","
    for line, record in csv_records(path, chain([first], lines), CsvForm(delimiter, 0)):
        cells = [cell.strip() for cell in record]
        if cells != [""]:
            yield line, cells


def _pairs(path: PathLike, lines: list[Line]) -> Iterator[Edge]:
    header = [cell.lower() for cell in lines[0][1]] if lines and lines[0][0] == 1 else []
    is_named = all(header.count(name) == 1 for name in _HEADER)
    names = header if is_named else _HEADER
    above, below = (names.index(name) for name in _HEADER)
    for line, cells in lines[is_named:]:
        if len(cells) != len(names) or not (cells[above] or is_named) or not cells[below]:
            raise DataFileError(path, line, f"{len(cells)} cells", _WANTED)
        yield cells[above], cells[below]


def _json(path: PathLike) -> Any:
    text, expected = "\n".join(line for _, line in numbered_lines(path)), "nested objects of names"
    try:
        found = json.loads(text, object_pairs_hook=distinct_names)
        json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise DataFileError(path, error.lineno, f"no JSON ({error.msg})", expected) from None
    except (ValueError, RecursionError) as error:
        raise DataFileError(path, None, json_fault(error), expected) from None
    if not isinstance(found, (dict, list)):
        raise DataFileError(path, None, f"the JSON value {str(found)[:40]!r}", expected)
    return found


def _terms(path: PathLike, relations: frozenset[str]) -> tuple[list[str], list[Edge], dict[str, str]]:
    """Read the terms of an ontology that are not obsolete, the edges to their parents, and the aliases."""
    found: dict[str, list[str] | None] = {}
    aliases, kinds = dict[str, str](), {"is_a"}
    for line, tags in _stanzas(path):
        names = [value for tag, value in tags if tag == "id"]
        if len(names) != 1:
            raise DataFileError(path, line, f"a term with {len(names)} lines 'id:'", "one")
        if names[0] in found:
            raise DataFileError(path, line, f"the term {names[0][:40]!r} again", "every term once")
        is_obsolete = ("is_obsolete", "true") in tags
        found[names[0]] = None if is_obsolete else [above for tag, above in tags if tag in relations]
        kinds |= {tag for tag, _ in tags}
        aliases |= {value: names[0] for tag, value in tags if tag == "alt_id"}
        instead = {value for tag, value in tags if tag == "replaced_by"}
        if is_obsolete and len(instead) == 1:
            aliases[names[0]] = instead.pop()
    if strange := sorted(relations - kinds):
        raise DataFileError(path, None, f"no relation {strange[0]!r}", "relations such as is_a and part_of")
    nodes = [name for name, above in found.items() if above is not None]
    if not nodes:
        raise DataFileError(path, None, "no term", "lines [Term], each followed by id: and is_a:")
    aliases = {name: instead for name, instead in aliases.items() if found.get(name) is None}
    edges = [(_followed(above, aliases), name) for name in nodes for above in found[name] or ()]
    return nodes, edges, {name: _followed(name, aliases) for name in aliases}


def _followed(name: str, aliases: Mapping[str, str]) -> str:
    """Follow a replaced name to its final replacement."""
    for _ in range(_LONGEST_CHAIN):
        name = aliases.get(name, name)
    return name


def _stanzas(path: PathLike) -> Iterator[tuple[int, list[Edge]]]:
    """Yield the line of every term, and its tags with the first word of their values.

    ``relationship: part_of X`` is returned as the tag part_of with the value X.
    """
    start, tags = 0, list[Edge]()
    for line, read in numbered_lines(path):
        text = read.strip()
        if text.startswith("["):
            if start:
                yield start, tags
            start, tags = (line if text == "[Term]" else 0), []
        elif start and text and not text.startswith("!"):
            tag, colon, rest = text.partition(":")
            words = rest.split("!")[0].split()
            if not colon or (not words and tag in ("id", "is_a", "relationship")):
                raise DataFileError(path, line, f"{text[:40]!r}", "tag: value")
            if tag == "relationship":
                if len(words) < 2:
                    raise DataFileError(path, line, f"{text[:40]!r}", "relationship: relation term")
                tag, words = words[0], words[1:]
            tags.append((tag, words[0] if words else ""))
    if start:
        yield start, tags


def thesaurus_terms(path: PathLike, suffix: str) -> tuple[list[str], list[Edge], dict[str, str]]:
    """Read the concepts of a thesaurus, the (broader, narrower) pairs, and the aliases.

    The name of a concept is the end of its URI, after the last # or /, if that is unique in the file, else
    the full URI.  Replaced concepts are aliases of their replacements.
    Raises DataFileError if the file is malformed or has no concept.
    """
    graph = _graph(path, FORMATS[suffix])
    from rdflib import RDF, URIRef

    def pairs(names: Sequence[str]) -> list[tuple[Any, Any]]:
        return [pair for name in names for pair in graph.subject_objects(URIRef(name))]

    edges = {(up, below) for below, up in pairs(_UP)} | set(pairs(_DOWN))
    edges = {edge for edge in edges if all(isinstance(end, URIRef) for end in edge)}  # no anonymous classes
    found = {node for name in _KINDS for node in graph.subjects(RDF.type, URIRef(name))}
    found = {node for node in found if isinstance(node, URIRef)} | {node for edge in edges for node in edge}
    if not found:
        raise DataFileError(path, None, "no concept", "skos:Concept, skos:broader or rdfs:subClassOf")
    instead = {str(old): str(new) for old, new in pairs(_REPLACED) if old != new}
    known = sorted(map(str, found))
    names = _short_names(known)
    kept = [name for name in known if names.get(_followed(name, instead), name) == names[name]]
    counts = Counter(str(called) for _, called in pairs(_ALSO_CALLED))
    aliases = {str(called): str(node) for node, called in pairs(_ALSO_CALLED) if counts[str(called)] == 1}
    aliases |= {name: name for name in {*known, *instead}} | {names[name]: name for name in known}
    places = {name: names.get(_followed(node, instead), "") for name, node in aliases.items()}
    above = {(places[str(up)], places[str(below)]) for up, below in edges}
    return [names[name] for name in kept], sorted(pair for pair in above if pair[0] != pair[1]), places


def _graph(path: PathLike, format: str) -> Any:
    try:
        import rdflib
    except ImportError:
        raise ImportError(f"{path} is a thesaurus, which needs rdflib; install labelweave[app].") from None
    text = "\n".join(line for _, line in numbered_lines(path))
    log = logging.getLogger("rdflib.term")
    level = log.level
    log.setLevel(logging.ERROR)  # it warns about literals, which are not used
    try:
        return rdflib.Graph().parse(data=text, format=format, publicID="http://labelweave.invalid/")
    except Exception as error:  # each format's parser has its own errors
        words = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataFileError(path, None, f"no RDF ({words})", f"{format}, as its suffix states") from None
    finally:
        log.setLevel(level)


def _short_names(addresses: list[str]) -> dict[str, str]:
    ends = {address: address.rstrip("#/").replace("#", "/").rpartition("/")[2] for address in addresses}
    counts = Counter(ends.values())
    return {address: end if end and counts[end] == 1 else address for address, end in ends.items()}
