"""A large real hierarchy: the hypernyms of 82,115 nouns of WordNet, predicted from their glosses.

Every noun synset of WordNet 3.0 is a node and a row; its labels are its parent synsets, completed by all
ancestors, including several parents.  Features are tf-idf weights of the words of its gloss; one row in ten
is held out.  Labels are nodes with at least 20 training rows, without the root.  Measured: reading
the hierarchy, completing labels, a fit with and without it in turn, and consistent predictions.

The data are Debian's package ``wordnet-base``, or the folder ``dict`` of WordNet's own archive.
"""

import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.frame import RESULTS, command, flag, save, timed
from benchmarks.hierarchies import edges
from labelweave import HierarchicalClassifier, LabelMatrix, LowRankClassifier, Taxonomy
from labelweave.metrics import average_precision_score, f1_score, fmax_score, hierarchical_f1_score

_LEAST = 20  # rows of a label, before some are held out
_ABOVE = ("@", "@i")  # kinds of, and instances of


def read_nouns(path: Path) -> tuple[list[tuple[str, str]], dict[str, str], dict[str, list[str]]]:
    """Read a file ``data.noun``: pairs of a node and a child, glosses, and the parents of each node."""
    names, raw_above, glosses = {}, {}, {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):  # the license
            continue
        fields, _, gloss = line.partition(" | ")
        parts = fields.split()
        number, n_words = parts[0], int(parts[3], 16)
        pointers = parts[4 + 2 * n_words + 1 :]
        names[number] = f"{parts[4].lower()} {number}"
        glosses[number] = gloss.strip()
        raw_above[number] = [pointers[k + 1] for k in range(0, len(pointers) - 3, 4) if pointers[k] in _ABOVE]
    above = {names[number]: [names[up] for up in ups] for number, ups in raw_above.items()}
    pairs = [(up, name) for name, ups in above.items() for up in ups]
    return pairs, {names[number]: gloss for number, gloss in glosses.items()}, above


def parts_of(glosses: dict[str, str], Y: LabelMatrix) -> Any:
    """Return tf-idf weights and labels of the training rows, and of one row in ten that is held out."""
    is_test = np.random.default_rng(0).random(len(Y)) < 0.1
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    texts, words = np.array(list(glosses.values()), object), TfidfVectorizer(min_df=2, sublinear_tf=True)
    return (words.fit_transform(texts[train]), Y[train]), (words.transform(texts[test]), Y[test])


def _inner(tags: list[list[str]], taxonomy: Taxonomy) -> LabelMatrix:
    leaves = set(taxonomy.leaves)
    names = [name for name in taxonomy.nodes if name not in leaves]
    place = {name: k for k, name in enumerate(names)}
    entries = [(row, place[name]) for row, ups in enumerate(tags) for name in ups]
    table = sp.csr_array((np.ones(len(entries)), np.array(entries).T), shape=(len(tags), len(names)))
    return LabelMatrix.from_any(table, names)


def _broken(predicted: LabelMatrix, taxonomy: Taxonomy) -> int:
    """Count predicted labels without a predicted parent among the labels."""
    table, names = predicted.to_dense(), [str(name) for name in np.asarray(predicted.names)]
    above, below = edges(taxonomy, names)
    return int((table[:, below] > table[:, above]).sum())


@command(
    dict=flag(Path("/usr/share/wordnet"), "has data.noun"),
    rounds=flag(3, "fits with and without the hierarchy, in turn"),
    out=RESULTS / "wordnet.json",
)
def main(chosen: Any) -> None:
    warnings.simplefilter("ignore")
    pairs, glosses, above = read_nouns(chosen.dict / "data.noun")
    results: dict[str, Any] = {}
    taxonomy, results["load seconds"] = timed(Taxonomy.from_any, pairs)
    results |= {"nodes": len(taxonomy), "pairs": len(pairs)}
    tags = [above[name] for name in glosses]
    closed, results["completion seconds"] = timed(lambda: taxonomy.with_ancestors(_inner(tags, taxonomy)))
    counts = closed.positive_counts()
    frequent = np.flatnonzero((counts >= _LEAST) & (counts < 0.99 * len(closed)))
    Y = closed.select_labels(frequent)
    (X, Y_train), (X_test, truth) = parts_of(glosses, Y)
    results |= {
        "rows": len(Y_train),
        "features": X.shape[1],
        "labels": Y.n_labels,
        "labels a row": float(Y.positive_counts().sum() / len(Y)),
        "several parents": sum(len(ups) > 1 for ups in above.values()),
    }
    print(results, flush=True)
    model = LowRankClassifier(rank=200)
    seconds: dict[str, list[float]] = {"alone": [], "with the hierarchy": []}
    for _ in range(chosen.rounds):
        seconds["alone"].append(timed(clone(model).fit, X, Y_train)[1])
        fitted, spent = timed(HierarchicalClassifier(model, taxonomy).fit, X, Y_train)
        seconds["with the hierarchy"].append(spent)
    results["fit seconds"] = {key: median(values) for key, values in seconds.items()}
    for enforce in ("none", "max", "projection"):
        one = HierarchicalClassifier(fitted.estimator_, taxonomy, enforce, cv="prefit")
        one.fit(X[:50], Y_train[:50])
        one.predict(X_test[:2])  # compiles
        scores, spent = timed(one.decision_function, X_test)
        predicted = LabelMatrix.from_any(one.predict(X_test), truth.names)
        found = {
            "predict seconds": spent,
            "average precision": float(average_precision_score(truth, scores)),
            "micro F1": float(f1_score(truth, predicted, average="micro")),
            "hierarchical F1": float(hierarchical_f1_score(truth, predicted, taxonomy)),
            "Fmax": float(fmax_score(truth, scores, taxonomy)),
            "broken pairs": _broken(predicted, taxonomy),
        }
        results[enforce] = found
        print(enforce, found, flush=True)
    save(chosen.out, results)
