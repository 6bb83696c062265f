"""Problems by name.

Of labels: ``rcv1``, ``rcv1-subset1``, ``tmc2007``, ``debtags``, or ``synthetic:n,d,L``.  With a kernel:
``awa-<n>``, n images of Animals with Attributes; ``rcv1``, subset 1; ``tmc2007``; the first n rows of the
latter as ``rcv1-<n>``.  Of one class per row: ``satimage`` (4,435 training rows, 6 classes), ``imclef-<n>``
(n training rows of ImCLEF07A, drawn at random, 63 leaves of a tree), ``patents-D`` and ``patents-B``
(synthetic text of the paper's sizes).

The three RCV1 subsets number their labels differently: column 20 of one is not column 20 of the next, though
the features agree.  A label of the stack ``rcv1`` is therefore the union of up to three topics, one for each
third of the rows, which is harder to separate than a topic.  It measures speed, never accuracy.
``rcv1-subset1`` is a clean problem of a third of the size.

Patents (Seeger 2008, section 6.1) are synthetic, as the collection is not available: classes are main groups
below a section, in a tree with the paper's numbers of nodes on every level and uneven numbers of children;
every leaf has rows, some many more than others.  A row's words are drawn from those of the three nodes on its
path and from general language, such that about 40 % of new rows of section D are classified correctly, as in
the paper; rows are word counts of unit length.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks.needed_data import first_file
from benchmarks.peers.exchange import PeerProblem
from labelweave import LabelMatrix, Taxonomy
from labelweave.datasets import LabeledData, load_debtags, make_text_like, read_hierarchical_arff, read_mulan

DEFAULT_DATA = Path(
    os.environ.get("LABELWEAVE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)


def read_part(name: str, part: str) -> LabeledData:
    """Read the "train" or the "test" rows of one of Mulan's sets, by the name of its folder."""
    folder = DEFAULT_DATA / "mulan" / name
    return read_mulan(first_file(folder, f"*-{part}.arff"), first_file(folder, "*.xml"))


def read_parts(name: str) -> tuple[LabeledData, LabeledData]:
    """Read the training and the test rows of debtags or of one of Mulan's sets."""
    if name == "debtags":
        X, Y, X_test, Y_test = load_debtags(return_X_y=True)
        return LabeledData(X, LabelMatrix.from_any(Y)), LabeledData(X_test, LabelMatrix.from_any(Y_test))
    return read_part(name, "train"), read_part(name, "test")


def read_tables(name: str, *, rows: str = "as given") -> tuple[Any, sp.csr_array, Any, sp.csr_array]:
    """Read training and test rows of debtags or of one of Mulan's sets, and their labels of 0 and 1.

    rows: "as given"; "unit", of length 1; "scaled", length 1 if sparse, otherwise standardized.
    """
    train, test = read_parts(name)
    X, X_test = train.X, test.X
    if rows == "unit" or (rows == "scaled" and sp.issparse(X)):
        X, X_test = (normalize(table) for table in (X, X_test))
    elif rows == "scaled":
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    X, X_test = (sp.csr_array(table) if sp.issparse(table) else table for table in (X, X_test))
    return X, sp.csr_array(train.Y.positives), X_test, sp.csr_array(test.Y.positives)


def read_dense(name: str, rows: str = "as given") -> tuple[Any, Any, Any, Any]:
    """Read what ``read_tables`` does, with dense labels in float64."""
    X, Y, X_test, Y_test = read_tables(name, rows=rows)
    return X, Y.toarray().astype(np.float64), X_test, Y_test.toarray().astype(np.float64)


def stacked(parts: Iterable[LabeledData]) -> tuple[Any, LabelMatrix]:
    """Stack the rows of several parts of a set."""
    parts = list(parts)
    X, Y = [part.X for part in parts], sp.vstack([part.Y.positives for part in parts], format="csr")
    rows = sp.csr_array(sp.vstack(X)) if sp.issparse(X[0]) else np.vstack(X)
    return rows, LabelMatrix(Y, None, parts[0].Y.names)


@cache
def read_vectors(columns: int) -> tuple[Any, Any, Any, Any]:
    """Read debtags by truncated SVD, in rows of unit length, with tables of tags, frequent ones first."""
    X, Y, X_test, Y_test = load_debtags(return_X_y=True)
    axes = TruncatedSVD(columns, random_state=0)
    X, X_test = (normalize(table) for table in (axes.fit_transform(X), axes.transform(X_test)))
    order = np.argsort(-np.asarray((Y > 0).sum(axis=0)).ravel(), kind="stable")
    return X, Y[:, order].toarray(), X_test, Y_test[:, order].toarray()


def load_problem(name: str, n_rows: int | None = None) -> tuple[sp.csr_array, sp.csr_array]:
    """Load features and labels by the problem's name, with a number of rows.

    Labels that no row or every row has are dropped: there is nothing to separate.
    """
    kind, _, sizes = name.partition(":")
    if kind == "rcv1":
        X, Y = load_rcv1(("1", "2", "3"))
    elif kind in ("rcv1-subset1", "rcv1-subset2", "rcv1-subset3"):
        X, Y = load_rcv1((kind[-1],))
    elif kind == "tmc2007":
        read = read_part(kind, "train")
        X, Y = read.X, read.Y.positives
    elif kind == "debtags":
        X, labels = stacked(read_parts(kind))
        Y = labels.positives
    elif kind == "synthetic":
        X, Y = _make_synthetic(sizes)
    else:
        raise ValueError(
            f"The problem {name!r} is not known; use rcv1, rcv1-subset1 to 3, tmc2007, debtags or "
            "synthetic:n,d,L."
        )
    X, Y = sp.csr_array(X, dtype=np.float64)[:n_rows], sp.csr_array(Y, dtype=np.int8)[:n_rows]
    return X, _with_both_signs(Y)


def _with_both_signs(Y: sp.csr_array) -> sp.csr_array:
    counts = np.asarray(Y.sum(axis=0, dtype=np.int64)).ravel()
    kept = np.flatnonzero((counts > 0) & (counts < Y.shape[0]))
    return sp.csr_array(Y[:, kept])


def load_rcv1(numbers: tuple[str, ...]) -> tuple[Any, Any]:
    files = [DEFAULT_DATA / "rcv1" / f"rcv1-subset{number}.npz" for number in numbers]
    missing = [file.name for file in files if not file.exists()]
    if missing:
        raise FileNotFoundError(f"{DEFAULT_DATA / 'rcv1'} lacks {', '.join(missing)}.")
    parts = [np.load(file) for file in files]
    return _stack(parts, "X", 47_236), _stack(parts, "Y", 101)


def _stack(parts: list[Any], name: str, n_columns: int) -> Any:
    """Stack the subsets vertically; a stored width ends at the subset's last used column."""
    stored = [[part[f"{name}_{of}"] for of in ("data", "indices", "indptr", "shape")] for part in parts]
    tables = [sp.csr_array(tuple(arrays), (int(shape[0]), n_columns)) for *arrays, shape in stored]
    return sp.vstack(tables, format="csr")


def _make_synthetic(sizes: str) -> tuple[Any, Any]:
    numbers = sizes.split(",")
    if len(numbers) != 3 or not all(number.strip().isdigit() for number in numbers):
        raise ValueError(
            f"The sizes {sizes!r} are not three whole numbers; write synthetic:rows,features,labels."
        )
    made = make_text_like(*map(int, numbers), random_state=0)
    return made.X, made.Y.positives


def text_pattern(rows: int, columns: int, a_row: int, dtype: Any, seed: int = 0) -> sp.csr_array:
    """Make a matrix whose columns are as frequent as words in text (Zipf): that of rank r by 1 / (r + 10)."""
    random = np.random.default_rng(seed)
    frequencies = np.cumsum(1 / (np.arange(columns) + 10))
    ranks = np.searchsorted(frequencies, random.random(rows * a_row) * frequencies[-1])
    indices = random.permutation(columns).astype(np.int32)[ranks].reshape(rows, a_row)
    indices.sort(axis=1)
    values = random.random(indices.size).astype(dtype)
    return sp.csr_array(
        (values, indices.ravel(), np.arange(0, indices.size + 1, a_row)), shape=(rows, columns)
    )


def median_distance(X: Any) -> float:
    """Compute the median squared distance of rows, the unit for widths of RBF kernels."""
    squares = (X * X).sum(axis=1)
    distances = squares[:, None] + squares - 2 * X @ X.T
    return float(np.median(distances[np.triu_indices(len(X), 1)]))


def load_kernel_problem(
    name: str, C: float = 1.0, kernel_megabytes: float = 2000.0, threads: int = 1
) -> PeerProblem:
    """Load a problem with an RBF kernel of scikit-learn's "scale" width, 1 / (d var X)."""
    kind, _, size = name.partition("-")
    if kind == "awa" and size.isdigit():
        X, Y = load_animals(int(size))
    elif kind in ("rcv1", "tmc2007") and (size.isdigit() or not size):
        X, Y = load_problem("rcv1-subset1" if kind == "rcv1" else kind, int(size) if size else None)
    else:
        raise ValueError(
            f"The problem {name!r} is not known; use awa-<number of images>, rcv1 or tmc2007, "
            "or these with a number of rows, as rcv1-2000."
        )
    return PeerProblem(X, Y, 2.0 * C, threads, scale_gamma(X), kernel_megabytes)


def scale_gamma(X: Any) -> float:
    """Compute 1 / (d var X), scikit-learn's ``gamma="scale"``."""
    squares = (X.multiply(X) if sp.issparse(X) else X * X).mean()
    return float(1.0 / (X.shape[1] * (squares - X.mean() ** 2)))


def with_labels(problem: PeerProblem, labels: Any) -> PeerProblem:
    return replace(problem, Y=sp.csr_array(problem.Y)[:, labels])


@dataclass(frozen=True)
class Animals:
    """Images of 40 training and 10 test classes (M3L, section 7.2.1); attributes are -1/1."""

    X: Any
    classes: Any
    X_test: Any
    classes_test: Any
    signatures: Any
    class_names: Any
    attribute_names: Any

    def draw(self, seed: int, size: int = 200) -> tuple[Any, Any]:
        """Draw training images and their classes."""
        rows = np.random.default_rng(seed).choice(len(self.X), size, replace=False)
        return self.X[rows], self.classes[rows]

    def unseen(self, classes: Any, kept: Any) -> Held:
        """Describe some classes by what zero-shot learning may use."""
        present, counts = np.unique(classes[np.isin(classes, kept)], return_counts=True)
        return Held(np.isin(classes, present), self.signatures[present], counts / counts.sum())

    def held_out(self, classes: Any, seed: int, repeats: int = 3) -> Iterator[Held]:
        """Hold out the training classes in four random parts, a few times."""
        rng = np.random.default_rng(seed + 1000)
        for _ in range(repeats):
            for part in np.array_split(rng.permutation(np.unique(classes)), 4):
                yield self.unseen(classes, part)


@dataclass(frozen=True)
class Held:
    """Classes treated as unseen: their rows, their signatures, and their shares."""

    rows: Any
    signatures: Any
    prior: Any


def read_animals(*, has_unit_rows: bool = True) -> Animals:
    """Read the PHOG features, each row of unit length or as it is."""
    with np.load(DEFAULT_DATA / "awa" / "awa-phog.npz") as file:
        X, classes = file["X"].astype(np.float64), file["class_index"].astype(np.intp)
        names, attributes = file["classes"], file["predicates"]
        signatures = 2.0 * file["class_predicate_binary"] - 1.0
        test = np.isin(classes, np.flatnonzero(np.isin(names, file["test_classes"])))
    if has_unit_rows:
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)
    return Animals(X[~test], classes[~test], X[test], classes[test], signatures, names, attributes)


def load_animals(n_images: int) -> tuple[Any, sp.csr_array]:
    """Draw images of the training classes, seed 0, and the 85 attributes as labels."""
    animals = read_animals(has_unit_rows=False)
    if n_images > len(animals.X):
        raise ValueError(f"awa-{n_images} asks for more images than the {len(animals.X)} there are.")
    rows = np.random.default_rng(0).permutation(len(animals.X))[:n_images]
    return animals.X[rows], sp.csr_array((animals.signatures[animals.classes[rows]] > 0).astype(np.int8))


def read_images(name: str) -> tuple[Any, Any, Any, Any]:
    """Read training and test rows with their classes: of satimage, not scaled, or of USPS, from -1 to 1."""
    with np.load(DEFAULT_DATA / name / f"{name}.npz") as file:
        if name == "usps":
            X, X_test = (file[f"X_{part}"] / 1000.0 - 1.0 for part in ("train", "test"))
            return X, file["y_train"], X_test, file["y_test"]
        X, y, n = file["X"].astype(np.float64), file["y"], 4435
        return X[:n], y[:n], X[n:], y[n:]


@dataclass(frozen=True)
class ClassProblem:
    """Rows, one class each.

    codes: the class of each row.
    classes: the classes' names.
    tree: the tree whose leaves they are; or None.
    """

    name: str
    X: Any
    codes: Any
    classes: list[str]
    tree: Any

    @property
    def labels(self) -> Any:
        return np.asarray(self.classes, dtype=object)[self.codes]

    def first(self, n_rows: int) -> ClassProblem:
        return replace(self, X=self.X[:n_rows], codes=self.codes[:n_rows])

    def paper_gamma(self) -> float:
        """Compute 1 / (2 sum of the features' variances), where the paper starts from."""
        return float(0.5 / self.X.var(axis=0).sum())


def load_class_problem(name: str) -> ClassProblem:
    kind, _, detail = name.partition("-")
    if name == "satimage":
        X, y, *_ = read_images(name)
        order = np.random.default_rng(0).permutation(len(X))  # so that the first rows are a fair sample
        classes, codes = np.unique(y[order], return_inverse=True)
        return ClassProblem(name, X[order], codes, classes.tolist(), None)
    if kind == "imclef" and detail.isdigit():
        return _load_imclef(int(detail))
    if kind == "patents" and detail in SECTIONS:
        return _make_patent_texts(name, SECTIONS[detail])
    raise ValueError(
        f"The problem {name!r} is not known; use satimage, imclef-<rows>, patents-D or patents-B."
    )


def _load_imclef(n_rows: int) -> ClassProblem:
    read = read_hierarchical_arff(DEFAULT_DATA / "imclef07a" / "ImCLEF07A_Train.arff")
    if n_rows > len(read.X):
        raise ValueError(f"imclef-{n_rows} asks for more rows than the {len(read.X)} there are.")
    tree, names = Taxonomy(read.parents), list(read.label_names)
    rows = np.random.default_rng(0).permutation(len(read.X))[:n_rows]
    positives = read.Y.positives.toarray()[rows][:, [names.index(leaf) for leaf in tree.leaves]]
    X = np.asarray(read.X, dtype=np.float64)[rows]
    return ClassProblem(f"imclef-{n_rows}", X, positives.argmax(axis=1), list(tree.leaves), tree)


_WORDS_OF_NODE = (400, 120, 40)  # keywords of a child of the root, of a subclass and of a leaf
_SHARES = (0.08, 0.07, 0.06)  # of a row's words, from each of them; the rest is general language
_LANGUAGE_OFFSET = 30.0  # of Zipf's law: the most frequent words are omitted, as in the paper
_DRAWS = 118.0  # of words for a row of 100 distinct ones


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


def _make_patent_texts(name: str, section: Section) -> ClassProblem:
    rng = np.random.default_rng(0)
    parents = [_uneven(below, above, rng) for above, below in pairwise(section.levels)]
    leaves = _uneven(section.rows, section.levels[-1], rng)
    rng.shuffle(leaves)
    paths = [leaves]
    for parent in reversed(parents):
        paths.insert(0, parent[paths[0]])
    X = _drawn_words(section, paths, rng)
    names = [[f"{level}-{number}" for number in range(size)] for level, size in enumerate(section.levels)]
    pairs = [
        (names[level][above], names[level + 1][number])
        for level, parent in enumerate(parents)
        for number, above in enumerate(parent)
    ]
    return ClassProblem(name, X, leaves, names[-1], Taxonomy(pairs))


def _uneven(items: int, bins: int, rng: np.random.Generator) -> Any:
    """Distribute items over bins, at least two into each, the rest unevenly."""
    odds = rng.dirichlet(np.full(bins, 0.8))
    rest = rng.choice(bins, items - 2 * bins, p=odds)
    return np.sort(np.concatenate([np.repeat(np.arange(bins), 2), rest]))


def _drawn_words(section: Section, paths: list[Any], rng: np.random.Generator) -> sp.csr_array:
    lengths = np.maximum(5, rng.poisson(_DRAWS, section.rows))
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
    return normalize(sp.csr_array((np.ones(len(rows)), (rows, words)), (section.rows, section.words)))
