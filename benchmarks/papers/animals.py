"""Animals with Attributes as the zero-shot experiment of the M3L paper uses it (section 7.2.1)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import DEFAULT_DATA


@dataclass(frozen=True)
class Animals:
    """Images of 40 training and 10 test classes; rows of X have unit length, attributes are -1/1."""

    X: Any
    classes: Any
    X_test: Any
    classes_test: Any
    signatures: Any
    class_names: Any
    attribute_names: Any


@dataclass(frozen=True)
class Held:
    """Classes treated as unseen: their signatures, their shares, and their rows."""

    rows: Any
    signatures: Any
    prior: Any


def read_animals(folder: Path = DEFAULT_DATA) -> Animals:
    """Read the PHOG features and scale each row to unit length."""
    with np.load(folder / "awa" / "awa-phog.npz") as file:
        X, classes = file["X"].astype(np.float64), file["class_index"].astype(np.intp)
        names, attributes = file["classes"], file["predicates"]
        signatures = 2.0 * file["class_predicate_binary"] - 1.0
        test = np.isin(classes, np.flatnonzero(np.isin(names, file["test_classes"])))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)
    return Animals(X[~test], classes[~test], X[test], classes[test], signatures, names, attributes)


def sample_training_rows(animals: Animals, seed: int, size: int = 200) -> Any:
    return np.random.default_rng(seed).choice(len(animals.X), size, replace=False)


def unseen(animals: Animals, classes: Any, kept: Any) -> Held:
    """Describe some classes by what zero-shot learning may use."""
    present, counts = np.unique(classes[np.isin(classes, kept)], return_counts=True)
    return Held(np.isin(classes, present), animals.signatures[present], counts / counts.sum())


def held_out_classes(animals: Animals, classes: Any, seed: int, repeats: int = 3) -> Iterator[Held]:
    """Hold out the training classes in four random parts, a few times."""
    rng = np.random.default_rng(seed + 1000)
    for _ in range(repeats):
        for part in np.array_split(rng.permutation(np.unique(classes)), 4):
            yield unseen(animals, classes, part)
