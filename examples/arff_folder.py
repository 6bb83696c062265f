"""A folder of ARFF files
======================

Read the ARFF files of a folder, fit models to them and compare their scores.

The script makes the files, with a seed.  One has an identifier, features YES and NO, missing cells (``?``)
and a duplicate name in its header; the other has sparse rows, and ``pages.xml`` next to ``pages-sparse.arff``
names its labels.  Both are read without changes: the identifier is ignored, YES is 1, the duplicate gets
another name, and missing numbers are replaced by means.  Features are scaled inside the model.  Run ``python
examples/arff_folder.py [FOLDER]``; it takes some seconds.
"""

# sphinx_gallery_thumbnail_path = 'images/gallery/arff_folder.png'
from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from labelweave import MaxMarginClassifier, datasets, metrics
from labelweave.splits import IterativeStratifiedKFold

LABELS = ["a", "b", "c", "d"]


def main(folder: str | None = None) -> dict[str, dict[str, float]]:
    """Write the files, then evaluate each data set; return the scores by name."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(folder or scratch)
        write_proteins(place)
        write_pages(place)
        for path in sorted(place.glob("*.arff")):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                data = datasets.read_any(path)
            for warning in said:
                print(str(warning.message).replace(f"{place}/", ""))
            found[path.stem] = scores = measure(data)
            rows, columns = data.X.shape
            words = ", ".join(f"{name} {score:.3f}" for name, score in scores.items())
            print(f"{path.name}: {rows} rows, {columns} features, {data.Y.n_labels} labels: {words}")
    return found


def measure(data: Any) -> dict[str, float]:
    """Cross-validate on folds in which every label is about as frequent."""
    kernel = "linear" if hasattr(data.X, "indptr") else "rbf"
    model = make_pipeline(SimpleImputer(), MaxMarginClassifier(kernel=kernel, scaling="auto"))
    names = ("micro_f1", "macro_f1", "neg_hamming_loss")
    table = cross_validate(
        model, data.X, data.Y, cv=IterativeStratifiedKFold(3, shuffle=True, random_state=0),
        scoring={name: metrics.get_scorer(name) for name in names},
    )  # fmt: skip
    return {name: float(table[f"test_{name}"].mean()) for name in names}


def write_proteins(place: Path) -> None:
    """Write dense rows with an identifier, YES and NO, ``?`` and a repeated entry of the header."""
    random = np.random.default_rng(0)
    size, motifs = random.lognormal(5.0, 1.0, 200), random.random((200, 8)) < 0.3
    labels = motifs[:, :4] ^ (random.random((200, 4)) < 0.05)
    names = ",".join(f"PS{row:05d}" for row in range(200))
    lines = ["@relation proteins", "", f"@attribute protein {{{names}}}", "@attribute size numeric"]
    lines += [f"@attribute motif{number} {{YES,NO}}" for number in range(8)]
    lines += ["@attribute motif7 {YES,NO}", *(f"@attribute {name} {{0,1}}" for name in LABELS), "", "@data"]
    for row in range(200):
        cells = [f"PS{row:05d}", "?" if random.random() < 0.1 else f"{size[row]:.1f}"]
        cells += ["?" if random.random() < 0.03 else ["NO", "YES"][int(there)] for there in motifs[row]]
        lines.append(",".join([*cells, cells[-1], *(str(int(there)) for there in labels[row])]))
    (place / "proteins.arff").write_text("\n".join(lines), encoding="utf-8")
    write_labels(place / "proteins.xml")


def write_pages(place: Path) -> None:
    """Write sparse rows, whose labels are named in a file of another stem."""
    random = np.random.default_rng(1)
    lines = ["@relation pages", *(f"@attribute word{number} numeric" for number in range(60))]
    lines += [*(f"@attribute {name} {{0,1}}" for name in LABELS), "@data"]
    for _ in range(250):
        has = random.random(4) < 0.35
        words = {int(word): int(random.integers(1, 4)) for word in random.integers(35, 60, 6)}
        words |= {int(10 * label + random.integers(0, 10)): 2 for label in np.flatnonzero(has) for _ in "ab"}
        cells = [f"{word} {count}" for word, count in sorted(words.items())]
        lines.append("{" + ", ".join([*cells, *(f"{60 + label} 1" for label in np.flatnonzero(has))]) + "}")
    (place / "pages-sparse.arff").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_labels(place / "pages.xml")


def write_labels(path: Path) -> None:
    """Write the names of the labels as Mulan has them."""
    inside = "".join(f'<label name="{name}"></label>' for name in LABELS)
    path.write_text(
        f'<labels xmlns="http://mulan.sourceforge.net/labels">{inside}</labels>', encoding="utf-8"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
