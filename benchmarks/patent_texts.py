"""Synthetic patents: sparse rows of words with classes in a tree like the paper's.

Seeger (2008, section 6.1) classifies patents below a section of the International Patent Classification: a
root, its children, subclasses and, as leaves, main groups.  The collection is not available.  Here the trees
have the same numbers of nodes on every level and uneven numbers of children; every leaf has rows, some many
more than others.  A row's words are drawn from those of the three nodes on its path and from general
language, such that about 40 % of new rows of section D are classified correctly, as in the paper; rows are
word counts of unit length.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

_WORDS_OF_NODE = (400, 120, 40)  # keywords of a child of the root, of a subclass and of a leaf
_SHARES = (0.08, 0.07, 0.06)  # of a row's words, from each of them; the rest is general language
_LANGUAGE_OFFSET = 30.0  # of Zipf's law: the most frequent words are omitted, as in the paper
_DRAWS = 1.18  # for each distinct word


@dataclass(frozen=True)
class Section:
    """The size of a section, and the paper's seconds (its table 2).

    rows, words: patents, and words of the dictionary.
    levels: nodes on each level below the root; the last ones are leaves.
    seconds: of the final fit, "flat" and "tree".
    fold_seconds: of one fold while hyperparameters are learned.
    """

    rows: int
    words: int
    levels: tuple[int, int, int]
    seconds: dict[str, float]
    fold_seconds: dict[str, float]


SECTIONS = {
    "D": Section(1_140, 20_000, (7, 20, 160), {"flat": 56.3, "tree": 118.5}, {"flat": 9.32, "tree": 20.2}),
    "B": Section(
        9_794, 60_000, (34, 113, 1_172), {"flat": 3751.0, "tree": 8657.0}, {"flat": 873.0, "tree": 1720.0}
    ),
}


@dataclass(frozen=True)
class PatentTexts:
    """Rows and their classes.

    X: words, in rows of unit length.
    leaves: the leaf of each row.
    names: the leaves' names.
    pairs: parent and child, below the root.
    """

    X: sp.csr_array
    leaves: Any
    names: list[str]
    pairs: list[tuple[str, str]]


def make_patent_texts(section: Section, words_per_row: float = 100.0, seed: int = 0) -> PatentTexts:
    rng = np.random.default_rng(seed)
    parents = [_uneven(below, above, rng) for above, below in pairwise(section.levels)]
    leaves = _uneven(section.rows, section.levels[-1], rng)
    rng.shuffle(leaves)
    paths = [leaves]
    for parent in reversed(parents):
        paths.insert(0, parent[paths[0]])
    X = _drawn_words(section, paths, words_per_row, rng)
    names = [[f"{level}-{number}" for number in range(size)] for level, size in enumerate(section.levels)]
    pairs = [
        (names[level][above], names[level + 1][number])
        for level, parent in enumerate(parents)
        for number, above in enumerate(parent)
    ]
    return PatentTexts(X, leaves, names[-1], pairs)


def _uneven(items: int, bins: int, rng: np.random.Generator) -> Any:
    """Distribute items over bins, at least two into each, the rest unevenly."""
    odds = rng.dirichlet(np.full(bins, 0.8))
    rest = rng.choice(bins, items - 2 * bins, p=odds)
    return np.sort(np.concatenate([np.repeat(np.arange(bins), 2), rest]))


def _drawn_words(
    section: Section, paths: list[Any], words_per_row: float, rng: np.random.Generator
) -> sp.csr_array:
    lengths = np.maximum(5, rng.poisson(_DRAWS * words_per_row, section.rows))
    rows = np.repeat(np.arange(section.rows), lengths)
    odds = 1.0 / (np.arange(section.words) + _LANGUAGE_OFFSET)
    words = np.searchsorted(np.cumsum(odds / odds.sum()), rng.random(len(rows))).clip(max=section.words - 1)
    source, place = rng.random((2, len(rows)))
    begin = 0.0
    for path, size, share, n_words in zip(paths, section.levels, _SHARES, _WORDS_OF_NODE, strict=True):
        own = rng.choice(section.words, (size, n_words))
        drawn = np.flatnonzero((source >= begin) & (source < begin + share))
        begin += share
        # squaring prefers the first of a node's words
        words[drawn] = own[path[rows[drawn]], (place[drawn] ** 2 * n_words).astype(np.int64)]
    counts = sp.csr_array(
        sp.coo_array((np.ones(len(rows)), (rows, words)), shape=(section.rows, section.words))
    )
    lengths = np.sqrt(counts.multiply(counts).sum(axis=1))
    return sp.csr_array(sp.diags_array(1.0 / lengths) @ counts)
