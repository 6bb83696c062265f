"""Problems by name: ``rcv1``, ``rcv1-subset1``, ``tmc2007``, ``debtags``, or ``synthetic:n,d,L``.

The three RCV1 subsets number their labels differently: column 20 of one is not column 20 of the next, though
the features agree.  A label of the stack ``rcv1`` is therefore the union of up to three topics, one for each
third of the rows, which is harder to separate than a topic.  It measures speed, never accuracy.
``rcv1-subset1`` is a clean problem of a third of the size.
"""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.needed_data import first_file
from labelweave import LabelMatrix
from labelweave.datasets import LabeledData, load_debtags, make_text_like, read_mulan

DEFAULT_DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


def read_part(name: str, part: str, data: Path = DEFAULT_DATA) -> LabeledData:
    """Read the "train" or the "test" rows of one of Mulan's sets, by the name of its folder."""
    folder = data / "mulan" / name
    return read_mulan(first_file(folder, f"*-{part}.arff"), first_file(folder, "*.xml"))


def read_parts(name: str, data: Path = DEFAULT_DATA) -> tuple[LabeledData, LabeledData]:
    """Read the training and the test rows of debtags or of one of Mulan's sets."""
    if name == "debtags":
        X, Y, X_test, Y_test = load_debtags(return_X_y=True)
        return LabeledData(X, LabelMatrix.from_any(Y)), LabeledData(X_test, LabelMatrix.from_any(Y_test))
    return read_part(name, "train", data), read_part(name, "test", data)


def load_problem(
    name: str, data: Path = DEFAULT_DATA, n_rows: int | None = None
) -> tuple[sp.csr_array, sp.csr_array]:
    """Load features and labels by the problem's name, with a number of rows.

    Labels that no row or every row has are dropped: there is nothing to separate.
    """
    kind, _, sizes = name.partition(":")
    if kind == "rcv1":
        X, Y = _load_rcv1(data, ("1", "2", "3"))
    elif kind in ("rcv1-subset1", "rcv1-subset2", "rcv1-subset3"):
        X, Y = _load_rcv1(data, (kind[-1],))
    elif kind == "tmc2007":
        read = read_part(kind, "train", data)
        X, Y = read.X, read.Y.positives
    elif kind == "debtags":
        parts = read_parts(kind)
        X, Y = sp.vstack([part.X for part in parts]), sp.vstack([part.Y.positives for part in parts])
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


def _load_rcv1(data: Path, numbers: tuple[str, ...]) -> tuple[Any, Any]:
    files = [data / "rcv1" / f"rcv1-subset{number}.npz" for number in numbers]
    missing = [file.name for file in files if not file.exists()]
    if missing:
        raise FileNotFoundError(f"{data / 'rcv1'} lacks {', '.join(missing)}.")
    parts = [np.load(file) for file in files]
    return _stack(parts, "X", 47_236), _stack(parts, "Y", 101)


def _stack(parts: list[Any], name: str, n_columns: int) -> Any:
    """Stack the subsets vertically; a stored width ends at the subset's last used column."""
    return sp.vstack(
        [
            sp.csr_array(
                (part[f"{name}_data"], part[f"{name}_indices"], part[f"{name}_indptr"]),
                shape=(int(part[f"{name}_shape"][0]), n_columns),
            )
            for part in parts
        ],
        format="csr",
    )


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
