"""Debian packages and their faceted tags, a bundled multi-label data set.

The file is built by ``scripts/build_debtags.py``; its ``README.md`` states source and counts.
"""

from __future__ import annotations

import json
from importlib import resources
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils import Bunch

from labelweave.datasets.csr_parts import csr_from_counts
from labelweave.foundation.arguments import checked

Arrays = dict[str, npt.NDArray[Any]]
SUFFIXES = ("", "_test", "_untagged")


@checked
def load_debtags(return_X_y: bool = False) -> Any:
    """Load the bundled data set of Debian packages and their tags.

    Features are counts of words, dependencies and sections, weighted by ``(1 + log count) * idf`` with the
    idf of the training rows, in rows of unit length.  Packages of one source are all in the training or all
    in the test rows.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(X, Y, X_test, Y_test)`` instead of a Bunch.

    Returns
    -------
    Bunch or tuple of four csr_array
        For ``n`` training rows, and with the suffixes ``_test`` and ``_untagged`` for others:
        ``X`` (n, d) float64, ``Y`` (n, L) of 0 and 1 (not for ``_untagged``), ``names`` and ``descriptions``
        (n,) str, ``source_ids`` (n,) int64 for cross-validation by groups.  ``feature_names`` (d,), such as
        ``word:game`` or ``depends:libc6``; ``label_names`` (L,), such as ``role::program``; ``parents`` (L,
        2), a row (facet, label) per label; ``archive``, the source; ``DESCR``, how the data were made.

    Examples
    --------
    >>> from labelweave.datasets import load_debtags
    >>> X, Y, X_test, Y_test = load_debtags(return_X_y=True)
    >>> X.shape[1] == X_test.shape[1], Y.shape[1]
    (True, 366)
    """
    path = resources.files("labelweave.datasets") / "debtags" / "debtags.npz"
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        arrays: Arrays = dict(archive)
    starts = np.concatenate([[0], np.cumsum(arrays["row_counts"])])
    parts = [slice(first, last) for first, last in pairwise(starts)]
    counts = _csr(arrays, "features", len(_lines(arrays["feature_names"])), arrays["features_counts"])
    weighting = TfidfTransformer(sublinear_tf=True).fit(counts[parts[0]])
    X, X_test, X_untagged = (sp.csr_array(weighting.transform(counts[part])) for part in parts)
    labels = _csr(arrays, "labels", len(_lines(arrays["label_names"])))
    # scikit-learn numbers the labels in Y's own type, so 8-bit entries would overflow above 127
    Y, Y_test = labels[parts[0]], labels[parts[1]]
    if return_X_y:
        return X, Y, X_test, Y_test
    features = Bunch(X=X, Y=Y, X_test=X_test, Y_test=Y_test, X_untagged=X_untagged)
    return Bunch(**features, **_row_columns(arrays, parts), **_descriptions_of_columns(arrays))


def _csr(arrays: Arrays, prefix: str, n_columns: int, data: npt.NDArray[Any] | None = None) -> sp.csr_array:
    """Rebuild a matrix from its row lengths and column indices; by default its entries are integer ones."""
    indices = arrays[f"{prefix}_indices"].astype(np.int32)
    entries = np.ones(len(indices), np.int64) if data is None else data.astype(np.float64)
    return csr_from_counts(entries, indices, arrays[f"{prefix}_lengths"], n_columns)


def _row_columns(arrays: Arrays, parts: list[slice]) -> dict[str, npt.NDArray[Any]]:
    """Return the metadata of the rows of each part: package names, descriptions, source numbers."""
    columns = {
        "names": _lines(arrays["names"]),
        "descriptions": _lines(arrays["descriptions"]),
        "source_ids": arrays["source_ids"].astype(np.int64),
    }
    return {
        f"{name}{suffix}": values[part]
        for name, values in columns.items()
        for suffix, part in zip(SUFFIXES, parts, strict=True)
    }


def _descriptions_of_columns(arrays: Arrays) -> dict[str, Any]:
    pairs = [line.split(" ") for line in _lines(arrays["parents"])]
    readme = resources.files("labelweave.datasets") / "debtags" / "README.md"
    return {
        "feature_names": _lines(arrays["feature_names"]),
        "label_names": _lines(arrays["label_names"]),
        "parents": np.array(pairs, dtype=object),
        "archive": json.loads(arrays["archive"].tobytes()),
        "DESCR": readme.read_text(encoding="utf-8"),
    }


def _lines(text: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # Python strings: fixed-width ones would all be as wide as the longest description
    return np.array(text.tobytes().decode("utf-8").split("\n"), dtype=object)
