"""Kernel problems by name: ``awa-<n>``, n images of Animals with Attributes; ``rcv1``, subset 1; ``tmc2007``.

``rcv1-<n>`` and ``tmc2007-<n>`` are the first n rows.

The images are drawn at random, seed 0, from those of the 40 training classes.  The
PHOG features are dense, the labels are the 85 attributes.  The kernel is RBF with
scikit-learn's "scale" width, 1 / (d var X).
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.exchange import PeerProblem
from benchmarks.problems import DEFAULT_DATA, load_problem


def load_kernel_problem(
    name: str, C: float = 1.0, kernel_megabytes: float = 2000.0, data: Path = DEFAULT_DATA, threads: int = 1
) -> PeerProblem:
    kind, _, size = name.partition("-")
    if kind == "awa" and size.isdigit():
        X, Y = load_animals(int(size), data)
    elif kind in ("rcv1", "tmc2007") and (size.isdigit() or not size):
        X, Y = load_problem("rcv1-subset1" if kind == "rcv1" else kind, data, int(size) if size else None)
    else:
        raise ValueError(
            f"The problem {name!r} is not known; use awa-<number of images>, rcv1 or tmc2007, "
            "or these with a number of rows, as rcv1-2000."
        )
    return PeerProblem(X, Y, 2.0 * C, threads, scale_gamma(X), kernel_megabytes)


def load_animals(n_images: int, data: Path = DEFAULT_DATA) -> tuple[Any, sp.csr_array]:
    with np.load(data / "awa" / "awa-phog.npz") as file:
        features, classes, names = file["X"], file["class_index"], file["classes"]
        attributes, test_classes = file["class_predicate_binary"], file["test_classes"]
    rows = np.flatnonzero(~np.isin(names[classes], test_classes))
    if n_images > len(rows):
        raise ValueError(f"awa-{n_images} asks for more images than the {len(rows)} there are.")
    rows = np.random.default_rng(0).permutation(rows)[:n_images]
    return features[rows].astype(np.float64), sp.csr_array(attributes[classes[rows]].astype(np.int8))


def scale_gamma(X: Any) -> float:
    """Compute 1 / (d var X), scikit-learn's ``gamma="scale"``."""
    squares = (X.multiply(X) if sp.issparse(X) else X * X).mean()
    return float(1.0 / (X.shape[1] * (squares - X.mean() ** 2)))


def with_labels(problem: PeerProblem, labels: Any) -> PeerProblem:
    return replace(problem, Y=sp.csr_array(problem.Y)[:, labels])
