"""TableModel with texts as words, and as words and vectors of an encoder: micro-F1 on test rows.

Three tables with one column of text: the bundled Debian packages with their one-line description ("packages",
test rows are packages of other sources); the terms of the Free On-line Dictionary of Computing with their
subjects ("terms"); the glosses of WordNet's nouns, labeled with their hypernyms ("glosses").  The last two
keep labels of at least 1 % of the rows.  3,000 test rows are scored, and nothing is chosen on them: the
weight of the vectors is chosen on training rows.  Both models of a draw have the same rows.

Dictionaries are Debian's packages ``dict-foldoc`` and ``wordnet-base``.

    OMP_NUM_THREADS=1 python -m benchmarks.row_encoders --sizes 300 1000
    OMP_NUM_THREADS=1 python -m benchmarks.row_encoders --sets terms glosses --sizes 300 1000
"""

import gzip
import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import labelweave as lw
from benchmarks.frame import RESULTS, command, flag, markdown, mean_and_error, read_json, save, several, timed
from benchmarks.wordnet import read_nouns
from labelweave.datasets import load_debtags
from labelweave.metrics import f1_score

_TEST_ROWS = 3000
_MODELS = {
    "thresholds": lambda: lw.TunedThresholdClassifier(lw.MaxMarginClassifier()),
    "auto": lambda: lw.AutoLabelClassifier(random_state=0),
}


def _measured(model: Any, rows: Any, test: Any) -> dict[str, float]:
    """Fit a model to rows and their labels; return micro-F1 of test rows, seconds and the weight."""
    _, seconds = timed(model.fit, *rows)
    vectorizer = model.vectorizer_
    weight = 0.0 if vectorizer.encoder_ is None else vectorizer.encoder_weight
    score = f1_score(test[1], model.predict(test[0]), average="micro")
    return {"micro-F1": float(score), "seconds": seconds, "weight": weight}


Rows = tuple[Any, Any]  # texts, and their labels


def _packages(options: Any) -> tuple[Rows, Rows]:
    tags = load_debtags()
    return (tags.descriptions, tags.Y), (tags.descriptions_test, tags.Y_test)


def _terms(options: Any) -> tuple[Rows, Rows]:
    """Read FOLDOC's terms: a headword at the margin, then ``<subject, subject> text``, indented."""
    texts, subjects = [], []
    words = gzip.decompress(options.terms.read_bytes()).decode("utf-8", errors="replace")
    for entry in re.split(r"\n(?=\S)", words):
        found = re.search(r"\n\s+<([a-z][^<>]*)>\s+(\S.*)", entry, flags=re.DOTALL)
        if found:
            texts.append(re.sub(r"[{}]|\(\d{4}-\d\d-\d\d\)", "", " ".join(found[2].split())))
            subjects.append(re.split(r",\s*", " ".join(found[1].split())))
    return _halves(texts, subjects)


def _glosses(options: Any) -> tuple[Rows, Rows]:
    _, glosses, above = read_nouns(options.nouns)
    kinds: dict[str, set[str]] = {}

    def all_above(name: str) -> set[str]:
        if name not in kinds:
            kinds[name] = set(above[name]).union(*map(all_above, above[name]))
        return kinds[name]

    return _halves([glosses[name] for name in above], [sorted(all_above(name)) for name in above])


def _halves(texts: list[str], tags: list[list[str]]) -> tuple[Rows, Rows]:
    """Keep the labels of 1 % of the rows or more, but not of all, and the rows that have one."""
    counts = Counter(tag for row in tags for tag in row)
    kept = {tag for tag, count in counts.items() if 0.01 * len(tags) <= count < 0.9 * len(tags)}
    tags = [[tag for tag in row if tag in kept] for row in tags]
    order = [k for k in np.random.default_rng(0).permutation(len(texts)) if tags[k]]
    Y = lw.LabelMatrix.from_any([tags[k] for k in order]).positives
    column, half = np.array([texts[k] for k in order], dtype=object), len(order) // 2
    return (column[:half], Y[:half]), (column[half:], Y[half:])


SETS: dict[str, Callable[[Any], tuple[Rows, Rows]]] = {
    "packages": _packages,
    "terms": _terms,
    "glosses": _glosses,
}


def _draw(train: Rows, test: Rows, size: int, seed: int) -> tuple[Any, Any]:
    rows = np.sort(np.random.default_rng(seed).permutation(len(train[0]))[:size])
    held = np.sort(np.random.default_rng(0).permutation(len(test[0]))[:_TEST_ROWS])
    return tuple((pd.DataFrame({"text": X[k]}), Y[k]) for (X, Y), k in ((train, rows), (test, held)))


def _line(name: str, size: int, draws: list[dict[str, dict[str, float]]]) -> list[str]:
    words, both = ([draw[kind] for draw in draws] for kind in ("words", "static"))
    scores = [[one["micro-F1"] for one in kind] for kind in (words, both)]
    cost = [np.mean([one["seconds"] for one in kind]) for kind in (words, both)]
    weights = sorted({f"{one['weight']:g}" for one in both})
    gain = mean_and_error(np.subtract(*scores[::-1]), 3, "+")
    means = [f"{np.mean(kind):.3f}" for kind in scores]
    return [name, f"{size:,}", *means, gain, ", ".join(weights), *(f"{one:.1f}" for one in cost)]


@command(
    sets=several(SETS),
    sizes=[300, 1000, 20000],
    models=several(_MODELS),
    draws=3,
    terms=flag(Path("/usr/share/dictd/foldoc.dict.dz"), "FOLDOC's file"),
    nouns=flag(Path("/usr/share/wordnet/data.noun"), "WordNet's file of nouns"),
    out=RESULTS / "row_encoders.json",
)
def main(chosen: Any) -> None:
    """Measure every model at every size; keep earlier measurements."""
    found, lines = read_json(chosen.out), []
    for of in chosen.sets:
        train, test = SETS[of](chosen)
        for name, size in product(chosen.models, chosen.sizes):
            if size > len(train[0]):
                continue
            draws = []
            for seed in range(chosen.draws):
                rows, held = _draw(train, test, size, seed)
                encoders = {"words": None, "static": "static"}
                made = {
                    k: lw.TableModel(_MODELS[name](), text="text", encoder=e) for k, e in encoders.items()
                }
                draws.append({kind: _measured(model, rows, held) for kind, model in made.items()})
                print(of, name, size, seed, draws[-1], flush=True)
            found[f"{of}, {name}, {size}"] = draws
            lines.append(_line(f"{of}, {name}", size, draws))
            save(chosen.out, found)
    columns = ["model", "rows", "words", "and vectors", "gain", "weights", "s, words", "s, and vectors"]
    print("\n".join(markdown(columns, lines)))
