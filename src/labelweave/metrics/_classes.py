"""The rows that a class metric counts: those with an observed class and a positive weight.

Classes are names or numbers as users pass them, with None or NaN where not observed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.frames import column_labels
from labelweave.labels import Taxonomy, label_names
from labelweave.labels.class_probabilities import is_missing, probability_blocks, read_class_probabilities
from labelweave.metrics._inputs import read_weights

Classes: TypeAlias = Sequence[Any] | Array | None
Codes: TypeAlias = npt.NDArray[np.intp]

UNOBSERVED = -1
NOT_A_CLASS = -2


@dataclass(frozen=True)
class ClassRows:
    """The counted rows of a table of probabilities, with their true classes.

    ``numbers`` are the positions of the rows in the table.  The code ``NOT_A_CLASS`` marks a truth
    at an inner node of a taxonomy.
    """

    table: Array
    classes: Sequence[Any]
    numbers: Codes
    values: Array
    codes: Codes
    weights: Floats

    def where(self, kept: npt.NDArray[np.bool_]) -> ClassRows:
        columns = {name: getattr(self, name)[kept] for name in ("numbers", "values", "codes", "weights")}
        return replace(self, **columns)

    def per_row(self, statistic: Callable[[Array, Codes], Array]) -> Array:
        blocks = [rows for rows, _ in probability_blocks(self.table)]
        return np.concatenate([statistic(self.table[self.numbers[b]], self.codes[b]) for b in blocks])


def read_class_rows(
    y_true: Any, probabilities: Any, classes: Classes, sample_weight: Any, taxonomy: Taxonomy | None = None
) -> ClassRows:
    """Read truths, probabilities, classes and weights; inner nodes as truths require a taxonomy."""
    table = read_class_probabilities(probabilities)
    names = _read_classes(classes, column_labels(probabilities), table.shape[1])
    values = read_values(y_true, "y_true")
    if len(values) != len(table):
        raise ValueError(
            f"y_true has {len(values)} rows but the probabilities have {len(table)}; pass one row of "
            "probabilities per row of y_true."
        )
    weights = read_weights(sample_weight, values)
    codes = class_codes(values, names)
    _refuse_other_values(values, codes, names, taxonomy)
    everything = ClassRows(table, names, np.arange(len(values)), values, codes, weights)
    return everything.where(observed_rows(codes != UNOBSERVED, weights))


def observed_rows(is_observed: Array, weights: Floats) -> Array:
    counted = is_observed & (weights > 0)
    if not counted.any():
        raise ValueError(
            f"y_true of {len(weights)} rows has no observed class in a row with a positive weight, so there "
            "is nothing to score; pass at least one."
        )
    return np.asarray(counted)


def _read_classes(classes: Classes, labels: list[Any] | None, n_classes: int) -> list[Any]:
    columns = None if labels is None else [str(as_text(label)) for label in labels]
    if classes is None:
        return columns or list(range(n_classes))
    names: list[Any] = read_values(classes, "classes").tolist()
    if len(names) != n_classes or len(set(names)) != n_classes:
        raise ValueError(
            f"classes has {len(names)} entries, {len(set(names))} of them distinct, but the probabilities "
            f"have {n_classes} columns; pass one class per column, each once."
        )
    texts = [as_text(name) for name in names]
    if columns is not None and texts != columns and set(texts) & set(columns):
        k = next(k for k in range(n_classes) if texts[k] != columns[k])
        raise ValueError(
            f"The probabilities have class {columns[k]!r} in column {k} where classes has {texts[k]!r}; pass "
            "both with the same classes in the same order."
        )
    return names


def _refuse_other_values(values: Array, codes: Codes, classes: list[Any], taxonomy: Taxonomy | None) -> None:
    for row in np.flatnonzero(codes == NOT_A_CLASS):
        if taxonomy is None or as_text(values[row]) not in taxonomy:
            shown = ", ".join(map(repr, classes[:3])) + (", ..." if len(classes) > 3 else "")
            also = "" if taxonomy is None else " or the name of a node of the taxonomy"
            raise ValueError(
                f"y_true at row {row} is {values[row]!r}, which is not among the {len(classes)} classes "
                f"({shown}); pass one of them{also}, or None where the class is unobserved."
            )


def read_values(values: Any, given: str) -> Array:
    """Read one value per row as an array of objects, None where it was not observed."""
    # NumPy would turn a list of text and NaN into text, with NaN as "nan"
    array = np.asanyarray(values, dtype=None if hasattr(values, "dtype") else object)
    if array.ndim != 1:
        raise ValueError(f"{given} has shape {array.shape}; pass one class per row, as a vector.")
    read = np.empty(len(array), object)
    read[:] = [None if is_missing(value) else value for value in array.tolist()]
    for row in np.flatnonzero([value.__hash__ is None for value in read]):
        raise ValueError(f"{given} at row {row} is {read[row]!r}; pass one class, a name or a number.")
    return read


def read_predicted(values: Any, n_rows: int) -> Array:
    read = read_values(values, "y_pred")
    if len(read) != n_rows:
        raise ValueError(f"y_pred has {len(read)} rows but y_true has {n_rows}; pass one prediction per row.")
    missing = np.flatnonzero(read == None)  # noqa: E711
    if len(missing):
        raise ValueError(
            f"y_pred at row {missing[0]} is missing; only y_true may have missing entries. Pass a "
            "prediction for every row, and drop rejected rows from both."
        )
    return read


def class_codes(values: Array, classes: Sequence[Any] | Array) -> Codes:
    """Return the position of each value among the classes, -1 where missing and -2 if it is no class.

    Numbers and text are compared as text, so that the nodes of a taxonomy match numeric classes.
    """
    names = [name.item() if isinstance(name, np.generic) else name for name in classes]
    if _are_texts(names) != _are_texts(values):
        names, values = [as_text(name) for name in names], np.asarray([as_text(v) for v in values], object)
    number = {name: k for k, name in enumerate(names)} | {None: UNOBSERVED}
    return np.asarray([number.get(value, NOT_A_CLASS) for value in values], np.intp)


def one_column(y: Any) -> Any:
    return y[:, 0] if isinstance(y, np.ndarray) and y.shape[1:] == (1,) else y


def right_rows(y: Any, predicted: Array, classes: Array, sample_weight: Any) -> tuple[Array, Floats]:
    """Return which rows are predicted correctly and the row weights, 0 where no class is observed."""
    codes = _codes_of(one_column(y), "y", classes)
    if len(predicted) != len(codes):
        raise ValueError(f"X has {len(predicted)} rows but y has {len(codes)}; pass one class per row of X.")
    weights = np.where(codes == UNOBSERVED, 0.0, read_weights(sample_weight, codes))
    return codes == _codes_of(predicted, "y_pred", classes), weights


def _codes_of(values: Any, given: str, classes: Array) -> Codes:
    """Return the codes of :func:`class_codes`, comparing each distinct value of an array once."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biufUS":
        kinds, places = np.unique(values, return_inverse=True)
        return class_codes(read_values(kinds, given), classes)[places]
    return class_codes(read_values(values, given), classes)


def as_text(value: Any) -> str | None:
    """Return a class as text, whole numbers without a decimal point; None stays None."""
    return None if value is None else label_names.as_text(value)


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values if value is not None)
