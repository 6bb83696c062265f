"""The same task with hiclass and with labelweave: one path per row, on data of the shapes of hiclass's
examples.

hiclass's example of parallel training has 40,000 product titles with a path of three levels, 6, 64 and 510
classes; its example of empty levels has five rows of paths that end at different depths. The titles are
synthetic, made of words of the classes on the path and of general words; a tenth of them are fitted. hiclass
fits one logistic regression per parent node (``LocalClassifierPerParentNode``), labelweave a linear
max-margin model of the leaf classes, which determine the path, to the titles, and a kernel logistic model
with the tree as its prior to the five rows. Both have their defaults, except that hiclass's example sets
``max_iter=1000``. hiclass needs a separate environment::

    OMP_NUM_THREADS=1 OTHER/bin/python benchmarks/hiclass_peers.py --system hiclass
"""

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.frame import command, flag, timed

_LEVELS = (6, 64, 510)
_WORDS, _LENGTH = 20_000, 9  # of the vocabulary, and of a title
_SHARES = (0.25, 0.2, 0.25)  # of a title's words: those of each class on its path; the rest are of all


def titles(n_rows: int, seed: int = 0) -> tuple[sp.csr_array, list[list[str]]]:
    """Make rows of word weights (n, words) and a path of three classes each."""
    rng = np.random.default_rng(seed)
    parents = [np.sort(rng.integers(0, above, below)) for above, below in pairwise(_LEVELS)]
    last = rng.choice(_LEVELS[2], n_rows, p=_frequencies(_LEVELS[2]))
    of_row = [parents[0][parents[1][last]], parents[1][last], last]
    own = [rng.integers(0, _WORDS, (level, 40)) for level in _LEVELS]
    source = rng.choice(4, (n_rows, _LENGTH), p=[*_SHARES, 1 - sum(_SHARES)])
    words = rng.choice(_WORDS, (n_rows, _LENGTH), p=_frequencies(_WORDS))
    for level in range(3):
        drawn = own[level][of_row[level][:, None], rng.integers(0, 40, (n_rows, _LENGTH))]
        words = np.where(source == level, drawn, words)
    counts = sp.csr_array(
        (np.ones(words.size), words.ravel(), np.arange(n_rows + 1) * _LENGTH), (n_rows, _WORDS)
    )
    counts.sum_duplicates()
    rarity = np.log(n_rows / (1.0 + np.bincount(counts.indices, minlength=_WORDS)))
    weighted = counts @ sp.diags_array(rarity)
    lengths = np.sqrt(np.asarray((weighted * weighted).sum(axis=1)).ravel())
    X = sp.csr_array(sp.diags_array(1 / lengths) @ weighted)
    names = zip(*of_row, strict=True)
    return X, [[f"a{first}", f"b{second}", f"c{third}"] for first, second, third in names]


def _frequencies(n: int) -> Any:
    shares = 1.0 / np.arange(1, n + 1)
    return shares / shares.sum()


def _report(name: str, fit: Any, X: Any, paths: list[list[str]], X_test: Any, test: list[list[str]]) -> None:
    predict, fitting = timed(fit, X, paths)
    found, predicting = timed(predict, X_test)
    pairs = list(zip(found, test, strict=True))
    right = [np.mean([row[at : at + 1] == path[at : at + 1] for row, path in pairs]) for at in range(3)]
    words = ", ".join(f"{share:.3f}" for share in right)
    spent = f"fit {fitting:.3f} s, predict {predicting:.3f} s"
    print(f"{name}: {spent}, right at each level {words}", flush=True)


def _labelweave(X: Any, paths: list[list[str]]) -> Any:
    from labelweave import KernelLogisticClassifier, MaxMarginClassifier, Taxonomy

    pairs = {pair for path in paths for pair in pairwise(path)}
    tree = Taxonomy(sorted(pairs), sorted({path[0] for path in paths}))
    model = MaxMarginClassifier() if sp.issparse(X) else KernelLogisticClassifier(taxonomy=tree)
    model.fit(X, np.array([path[-1] for path in paths]))
    return lambda rows: [tree.path(str(name)) for name in model.predict(rows)]


def _hiclass(X: Any, paths: list[list[str]]) -> Any:
    try:
        from hiclass import LocalClassifierPerParentNode
    except ModuleNotFoundError:
        print("hiclass is not at hand: install it into an environment of its own.", file=sys.stderr)
        raise SystemExit(2) from None
    from sklearn.linear_model import LogisticRegression

    local = LogisticRegression(max_iter=1000)
    table = np.array([[*path, *[""] * (len(_LEVELS) - len(path))] for path in paths])
    model = LocalClassifierPerParentNode(local_classifier=local).fit(X, table)
    return lambda rows: [[str(name) for name in row if name] for row in model.predict(rows)]


@command(system=flag(choices=["labelweave", "hiclass"], required=True), rows=4_000)
def main(chosen: Any) -> None:
    fit = {"labelweave": _labelweave, "hiclass": _hiclass}[chosen.system]
    depths = [
        ["Bird"],
        ["Reptile", "Snake"],
        ["Reptile", "Lizard"],
        ["Mammal", "Cat"],
        ["Mammal", "Wolf", "Dog"],
    ]
    X = np.arange(1.0, 6)[:, None]
    fit(X, depths)  # compiles, imports
    _report("five animals", fit, X, depths, X, depths)
    X, paths = titles(chosen.rows + 10_000)
    n = chosen.rows
    _report(f"{n:,} titles", fit, X[:n], paths[:n], X[n:], paths[n:])
