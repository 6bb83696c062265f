"""Synthetic problems: tagged text of any size, classes in a taxonomy, and a toy problem with cliques.

Each row of text draws a topic, then correlated labels of this topic, then words: some are characteristic of
its labels, some of the topic, most are background.  Words and labels follow power laws.  Rows are drawn in
blocks of fixed size, each with its own random stream.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.csr_parts import csr_from_counts, joined, ones_from_counts
from labelweave.datasets.labeled_data import LabeledData
from labelweave.foundation.arguments import checked
from labelweave.labels import LabelMatrix

_BLOCK_ROWS = 4096
_PILOT_ROWS = 512
_KEYWORDS = 12
_TOPIC_WORDS = 60
_MOST_TOPICS = 64
_OWN_TOPIC = 0.85  # share of a row's labels that belong to its topic
_LABEL_WORDS, _TOPIC_SHARE = 0.16, 0.2  # shares of a row's words; the rest is background
_SWAPPED = 0.15  # share of labels replaced after the words were drawn

Ints = npt.NDArray[np.int64]
_N_LABELS, _N_FEATURES = 10, 10
_EDGES = ((0, 1), (0, 2), (0, 3), (0, 4))

_MOST = 1e6  # the largest decay or spread of a problem


@checked
def make_text_like(
    n_rows: int,
    n_features: int,
    n_labels: int,
    *,
    labels_per_row: float = 3.0,
    words_per_row: float = 75,
    random_state: int | None = 0,
) -> LabeledData:
    """Make a multi-label problem that looks like tagged text.

    Linear classifiers reach a micro-averaged F1 of about 0.5 to 0.8 once
    labels have tens of examples.  The same arguments give the same data.

    Parameters
    ----------
    n_rows : int
        Rows ``n``; split them into training and test rows.
    n_features : int
        Words ``d``, at least twice ``words_per_row``.
    n_labels : int
        Labels ``L``.
    labels_per_row : float, default=3.0
        Mean number of positive labels, at least 1.
    words_per_row : float, default=75
        Mean number of distinct words.
    random_state : int or None, default=0
        The seed.

    Returns
    -------
    LabeledData
        X is CSR of float32 with tf-idf weights in rows of unit length.

    Raises
    ------
    ValueError
        If a size is too small for the others.
    """
    _check_seed(random_state)
    if n_rows < 1 or n_labels < 2 or not words_per_row >= 1:
        raise ValueError(
            f"n_rows={n_rows}, n_labels={n_labels}, words_per_row={words_per_row}; "
            "pass at least 1 row, 2 labels and 1 word per row."
        )
    if n_features < 2 * words_per_row:
        raise ValueError(f"n_features is {n_features}; it must be at least 2 * words_per_row.")
    if not 1 <= labels_per_row <= n_labels / 2:
        raise ValueError(f"labels_per_row is {labels_per_row}; it must be between 1 and n_labels / 2.")
    seed = np.random.SeedSequence(random_state)
    model = _TextModel.drawn(seed, n_features, n_labels, labels_per_row)
    model, n_tokens = _calibrated(model, words_per_row)
    X, positives = _filled(model, n_rows, n_tokens)
    _weigh(X)
    return LabeledData(X, LabelMatrix(positives))


@dataclass(frozen=True)
class _TextModel:
    """The parameters shared by all rows: the labels of topics, and the words of labels and topics."""

    seed: np.random.SeedSequence
    n_features: int
    n_labels: int
    labels_per_row: float
    topics: Ints
    labels_of_topic: Ints
    words: Ints
    label_words: Ints
    topic_words: Ints

    @classmethod
    def drawn(
        cls, seed: np.random.SeedSequence, n_features: int, n_labels: int, labels_per_row: float
    ) -> _TextModel:
        rng = np.random.default_rng(seed)
        n_topics = min(_MOST_TOPICS, max(2, n_labels // 5))
        popularity = rng.permutation(_power_law(n_labels, 2.0))
        topic = rng.integers(n_topics, size=n_labels)
        mass = np.bincount(topic, popularity, minlength=n_topics).astype(np.float64)
        resolution = 1 << int(np.clip(np.ceil(np.log2(4 * n_labels)), 12, 18))
        labels = np.empty((n_topics, resolution), np.int64)
        for index in range(n_topics):
            own = np.where(topic == index, popularity / max(mass[index], 1e-300), 0)
            labels[index] = _quantiles(_OWN_TOPIC * own + (1 - _OWN_TOPIC) * popularity, resolution)
        names = rng.permutation(n_features)
        words = names[_quantiles(_power_law(n_features, 2.7), 1 << 22)]
        rare = names[n_features // 50 :]
        label_words = rng.choice(rare, (n_labels, _KEYWORDS))
        topic_words = rng.choice(rare, (n_topics, _TOPIC_WORDS))
        sizes, topics = (n_features, n_labels, labels_per_row), _quantiles(mass, 1 << 16)
        return cls(seed, *sizes, topics, labels, words, label_words, topic_words)

    def block(self, number: int, n_rows: int, n_tokens: float) -> _Block:
        key = (*self.seed.spawn_key, number)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed.entropy, spawn_key=key))
        topic = _picked(self.topics, rng.random(n_rows))
        quota = 1 + rng.poisson(self.labels_per_row - 1, n_rows)
        candidates = np.repeat(np.arange(n_rows), 2 * quota + 3)  # a few more than needed
        drawn = self._topic_labels(rng, topic[candidates])
        rows, labels = _first_distinct(candidates, drawn, quota, self.n_labels)
        n_labels = np.bincount(rows, minlength=n_rows)
        word_rows, words, counts = self._words(rng, topic, n_labels, labels, n_tokens)
        rows, labels = self._swapped(rng, topic, rows, labels)
        return _Block(word_rows, words, 1 + np.log(counts), rows, labels)

    def _topic_labels(self, rng: np.random.Generator, topic: Ints) -> Ints:
        resolution = self.labels_of_topic.shape[1]
        place = (rng.random(len(topic)) * resolution).astype(np.int64)
        return np.asarray(self.labels_of_topic[topic, place])

    def _swapped(self, rng: np.random.Generator, topic: Ints, rows: Ints, labels: Ints) -> tuple[Ints, Ints]:
        """Replace a share of the labels at random, which no classifier can predict."""
        swap = rng.random(len(rows)) < _SWAPPED
        labels = np.where(swap, self._topic_labels(rng, topic[rows]), labels)
        keys = np.unique(rows * self.n_labels + labels)
        return keys // self.n_labels, keys % self.n_labels

    def _words(
        self, rng: np.random.Generator, topic: Ints, n_labels: Ints, labels: Ints, n_tokens: float
    ) -> tuple[Ints, Ints, Ints]:
        """Draw the words of each row, from its labels, its topic and the background."""
        rows = np.repeat(np.arange(len(topic)), np.maximum(rng.poisson(n_tokens, len(topic)), 1))
        source, where, which = rng.random((3, len(rows)))
        words = _picked(self.words, where)
        of_label = np.flatnonzero(source < _LABEL_WORDS)
        first_label = np.cumsum(n_labels) - n_labels
        row = rows[of_label]
        label = labels[first_label[row] + (which[of_label] * n_labels[row]).astype(np.int64)]
        # squaring prefers the first of a label's words
        words[of_label] = self.label_words[label, (where[of_label] ** 2 * _KEYWORDS).astype(np.int64)]
        of_topic = np.flatnonzero((source >= _LABEL_WORDS) & (source < _LABEL_WORDS + _TOPIC_SHARE))
        place = (where[of_topic] ** 2 * _TOPIC_WORDS).astype(np.int64)
        words[of_topic] = self.topic_words[topic[rows[of_topic]], place]
        keys, counts = np.unique(rows * self.n_features + words, return_counts=True)
        return keys // self.n_features, keys % self.n_features, counts


class _Block(NamedTuple):
    """Some rows as coordinates, sorted by row and column."""

    word_rows: Ints
    words: Ints
    weights: npt.NDArray[np.float64]
    label_rows: Ints
    labels: Ints


def _power_law(size: int, offset: float) -> npt.NDArray[np.float64]:
    """Return probabilities proportional to 1 / (rank + offset), Zipf's law with Mandelbrot's offset."""
    weights = 1 / (np.arange(size) + offset)
    return np.asarray(weights / weights.sum())


def _quantiles(weights: npt.NDArray[np.float64], resolution: int) -> Ints:
    """Tabulate the inverse of a distribution function, so that a draw is one look-up."""
    ends = np.cumsum(weights)
    grid = (np.arange(resolution) + 0.5) / resolution * ends[-1]
    return np.asarray(np.searchsorted(ends, grid), np.int64)


def _picked(table: Ints, uniform: npt.NDArray[np.float64]) -> Ints:
    return np.asarray(table[(uniform * len(table)).astype(np.int64)])


def _first_distinct(rows: Ints, items: Ints, quota: Ints, n_items: int) -> tuple[Ints, Ints]:
    """Keep the first distinct items of each row, up to its quota."""
    _, first = np.unique(rows * n_items + items, return_index=True)
    first.sort()
    rows, items = rows[first], items[first]
    n_each = np.bincount(rows, minlength=len(quota))
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(n_each) - n_each, n_each)
    keep = rank < quota[rows]
    return rows[keep], items[keep]


def _calibrated(model: _TextModel, words_per_row: float) -> tuple[_TextModel, float]:
    """Find the number of draws, including repetitions, that yields the required distinct labels and words."""
    labels_per_row, n_tokens = model.labels_per_row, float(words_per_row)
    for _ in range(6):
        block = model.block(0, _PILOT_ROWS, n_tokens)
        n_tokens *= words_per_row * _PILOT_ROWS / len(block.words)
        rate = model.labels_per_row * labels_per_row * _PILOT_ROWS / len(block.labels)
        model = replace(model, labels_per_row=float(np.clip(rate, 1, model.n_labels)))
    return model, n_tokens


def _filled(model: _TextModel, n_rows: int, n_tokens: float) -> tuple[sp.csr_array, sp.csr_array]:
    """Draw all blocks, and keep only the first rows of the last one."""
    parts: list[list[npt.NDArray[Any]]] = [[], [], [], [], []]
    for number, start in enumerate(range(0, n_rows, _BLOCK_ROWS)):
        size = min(_BLOCK_ROWS, n_rows - start)
        block = model.block(number, _BLOCK_ROWS, n_tokens)
        n_words, n_labels = np.searchsorted(block.word_rows, size), np.searchsorted(block.label_rows, size)
        found: tuple[npt.NDArray[Any], ...] = (
            block.weights[:n_words].astype(np.float32),
            block.words[:n_words].astype(np.int32),
            np.bincount(block.word_rows[:n_words], minlength=size),
            block.labels[:n_labels].astype(np.int32),
            np.bincount(block.label_rows[:n_labels], minlength=size),
        )
        for part, items in zip(parts, found, strict=True):
            part.append(items)
    weights, words, word_counts, labels, label_counts = map(joined, parts)
    X = csr_from_counts(weights, words, word_counts, model.n_features)
    return X, ones_from_counts(labels, label_counts, model.n_labels)


def _weigh(X: sp.csr_array) -> None:
    """Multiply by the inverse document frequency and scale rows to unit length, in place."""
    frequency = np.bincount(X.indices, minlength=X.shape[1])
    idf = (np.log((1 + X.shape[0]) / (1 + frequency)) + 1).astype(np.float32)
    for start in range(0, X.shape[0], _BLOCK_ROWS):
        ends = X.indptr[start : start + _BLOCK_ROWS + 1]
        span = slice(int(ends[0]), int(ends[-1]))
        weights = X.data[span] * idf[X.indices[span]]
        lengths = np.sqrt(np.add.reduceat(weights.astype(np.float64) ** 2, ends[:-1] - ends[0]))
        X.data[span] = weights / np.repeat(lengths, np.diff(ends))


@checked
def make_taxonomy(
    n_rows: int,
    n_features: int,
    *,
    depth: int = 3,
    branching: int = 3,
    decay: float = 0.7,
    noise: float = 1.0,
    random_state: int | None = 0,
) -> LabeledData:
    """Make rows that each belong to one leaf of a regular tree.

    The means of the classes diffuse down the tree: a node's mean is its
    parent's plus a Gaussian step, and steps shrink from level to level.

    Parameters
    ----------
    n_rows : int
        Rows ``n``.
    n_features : int
        Features ``d``.
    depth : int, default=3
        Levels below the root.
    branching : int, default=3
        Children of each inner node.
    decay : float, default=0.7
        Steps at level ``k`` below the root have standard deviation ``decay ** (k - 1)``; from 0 to
        1e6, so that powers do not overflow.
    noise : float, default=1.0
        Standard deviation of a row's features around the mean of its leaf.
    random_state : int or None, default=0
        The seed.

    Returns
    -------
    LabeledData
        Dense X; the labels are all nodes below the root, named by their paths such as ``1/2/1``, positive on
        the path to the row's leaf; ``parents`` holds the tree.

    Raises
    ------
    ValueError
        If a size is too small.
    """
    _check_seed(random_state)
    if not (0 <= decay <= _MOST and 0 <= noise <= _MOST):
        raise ValueError(f"decay is {decay} and noise is {noise}; both must be between 0 and 1e6.")
    if min(n_rows, n_features, depth) < 1 or branching < 2:
        raise ValueError(
            f"n_rows={n_rows}, n_features={n_features}, depth={depth}, branching={branching}; "
            "branching must be at least 2, the others at least 1."
        )
    rng = np.random.default_rng(random_state)
    means = np.zeros((1, n_features))
    for level in range(depth):
        means = np.repeat(means, branching, axis=0)
        means += rng.normal(scale=decay**level, size=means.shape)
    leaf = rng.integers(len(means), size=n_rows)
    X = means[leaf] + rng.normal(scale=noise, size=(n_rows, n_features))
    digits = [str(k + 1) for k in range(branching)]
    names = ["/".join(path) for level in range(depth) for path in product(digits, repeat=level + 1)]
    parents = tuple((name.rpartition("/")[0], name) for name in names if "/" in name)
    return LabeledData(X, LabelMatrix(_path_nodes(leaf, depth, branching), None, names), parents=parents)


def _path_nodes(leaf: npt.NDArray[np.int64], depth: int, branching: int) -> sp.csr_array:
    """Mark the nodes above each leaf, and the leaf."""
    sizes = branching ** np.arange(1, depth + 1)
    offsets = np.cumsum(sizes) - sizes
    columns = offsets + leaf[:, None] // (sizes[-1] // sizes)
    return ones_from_counts(columns.ravel(), np.full(len(leaf), depth), int(sizes.sum()))


@checked
def make_clique_toy(
    n_rows: int = 3000, random_state: int | None = 0
) -> tuple[LabeledData, tuple[tuple[int, int], ...]]:
    """Make ten labels of which four pairs depend on each other given the features.

    The labels maximize ``sum_i y_i u_i . x + sum_j v_(j, y_0, y_j) . x`` over the four pairs (0, j), exactly,
    which the star shape of the graph allows.

    Parameters
    ----------
    n_rows : int, default=3000
        Rows; the paper trains on 2000 and tests on 1000.
    random_state : int or None, default=0
        The seed of parameters and rows; more rows continue the same problem.

    Returns
    -------
    data : LabeledData
        Features of shape (n, 10) and 10 labels.
    edges : tuple of (int, int)
        The true edges, the label 0 with the labels 1 to 4.

    Notes
    -----
    As in section 5.2 of Tan et al., "Learning graph structure for multi-label image classification via clique
    generation", CVPR 2015: features and weights from N(0, 1), one weight vector per label and per state of an
    edge, no noise.  The paper has 10 features and 5 weights, which are inconsistent; all have 10 here.
    """
    _check_seed(random_state)
    if n_rows < 1:
        raise ValueError(f"n_rows is {n_rows}; it must be at least 1.")
    rng = np.random.default_rng(random_state)
    node_weights = rng.normal(size=(_N_LABELS, _N_FEATURES))
    edge_weights = rng.normal(size=(len(_EDGES), 2, 2, _N_FEATURES))
    X = rng.normal(size=(n_rows, _N_FEATURES))
    Y = _best_labels(X @ node_weights.T, np.einsum("nd,ehbd->nehb", X, edge_weights))
    return LabeledData(X, LabelMatrix.from_any(Y)), _EDGES


def _best_labels(
    node_scores: npt.NDArray[np.float64], edge_scores: npt.NDArray[np.float64]
) -> npt.NDArray[np.int8]:
    """Maximize over the labels: fix the hub to 0 and to 1, choose each leaf separately, compare."""
    labels = (node_scores > 0).astype(np.int8)
    leaves = [leaf for _, leaf in _EDGES]
    # scores of the leaves' states for both values of the hub: (rows, leaves, hub, leaf)
    states = edge_scores.copy()
    states[..., 1] += node_scores[:, leaves, None]
    totals = states.max(axis=3).sum(axis=1)
    hub = (totals[:, 1] + node_scores[:, 0] > totals[:, 0]).astype(np.int8)
    labels[:, 0] = hub
    labels[:, leaves] = states.argmax(axis=3)[np.arange(len(hub)), :, hub]
    return labels


def _check_seed(random_state: int | None) -> None:
    if random_state is not None and random_state < 0:
        raise ValueError(f"random_state is {random_state}; it must be an integer >= 0, or None.")
