"""Label names: validation and matching, numbers per label or entry, and the distinct classes of rows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any
from unicodedata import combining, normalize

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array, PerLabel, PerRow, RowsByLabels
from labelweave.foundation.arrays import checked_csr, numbers_of
from labelweave.foundation.frames import TRUTH, column_labels
from labelweave.labels.class_probabilities import is_missing

if TYPE_CHECKING:
    from labelweave.labels.label_matrix import LabelMatrix

_MOST_ALIKE = 5  # groups of names in the message
_LEAST_PLURAL = 6  # letters of a word whose plural ending is ignored
_NAMED_BY = ("name", "label", "title", "tag", "value", "text", "id")  # the first key all objects have
_PLAIN = (str, int, float)
_AMOUNTS = ("value", "score", "probability", "confidence", "weight", "present")


def as_text(name: Any) -> str:
    """Convert a name to text, 1.0 as 1, because a missing value in a column makes integers floats."""
    is_whole = isinstance(name, (float, np.floating)) and float(name).is_integer()
    return str(int(name)) if is_whole else str(name)


def as_given(names: list[str], known: Array) -> Array:
    """Convert classes to the type of those of y, where their names allow it."""
    if known.dtype.kind in "OU":
        return np.array(names, dtype=object if known.dtype.kind == "O" else None)
    values = {as_text(entry): entry for entry in np.unique(known).tolist()}
    try:
        typed = np.array([values[name] if name in values else int(name) for name in names], known.dtype)
    except (ValueError, OverflowError):
        return np.array(names)
    return typed if [as_text(entry) for entry in typed] == names else np.array(names)


def names_of(value: Any) -> list[str]:
    """Return the label names in a list or an object of JSON or Python.

    For an object they are its values, or its keys if the values are numbers or yes and no.
    Raises ValueError if the names are ambiguous.
    """
    given = [*value.values()] if isinstance(value, Mapping) else [*value]
    are_shares = all(isinstance(one, (int, float)) and 0 <= one <= 1 for one in given)
    if are_shares and any(one % 1 for one in given):
        raise ValueError("names, or 0 and 1 for each; for probabilities use one column per label")
    if given and all(isinstance(one, (list, tuple)) and [*map(type, one)] == [str, int] for one in given):
        value = dict(given)  # as the items of an object
    entries = _entries_of(value) if isinstance(value, Mapping) else given
    if any(isinstance(entry, Mapping) for entry in entries):
        fields = [*map(_lower, entries)]
        texts = [key for key in fields[0] if all(isinstance(one.get(key), str) for one in fields)]
        named = (key for key in _NAMED_BY if all(type(one.get(key)) in _PLAIN for one in fields))
        key = next(named, texts[0] if len(texts) == 1 else "")
        entries = [one.get(key) for one in fields]
        numbers = ([one.get(amount) for one in fields] for amount in _AMOUNTS if amount != key)
        found = next((some for some in numbers if all(isinstance(one, (int, float)) for one in some)), None)
        if found is not None and all(isinstance(entry, str) for entry in entries):
            return names_of(dict(zip(entries, found, strict=True)))
    if not all(type(entry) in _PLAIN and not is_missing(entry) for entry in entries):
        raise ValueError("a list of names, or of objects with a name, label, title or id")
    return [*map(as_text, entries)]


def _lower(entry: Any) -> dict[str, Any]:
    return {str(key).lower(): value for key, value in entry.items()} if isinstance(entry, Mapping) else {}


def _entries_of(value: Mapping[Any, Any]) -> list[Any]:
    """Return the label entries of an object: itself if it has a name, its values or its keys."""
    values, lower = [*value.values()], _lower(value)
    if any(type(lower.get(key)) in _PLAIN[:2] for key in _NAMED_BY[:3]) or [*lower] == ["id"]:
        return [value]
    signs: list[Any] = [TRUTH.get(str(one).strip().lower(), one) for one in values]
    if all(isinstance(one, (int, float)) for one in signs):
        return [key for key, sign in zip(value, signs, strict=True) if sign > 0]
    if {*map(type, values)} == {type(None)}:
        return [*value]
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values


def words_on_alike(names: Iterable[str]) -> str | None:
    """Describe names that differ only in case, accents, spaces, hyphens or a plural; None without any."""
    groups = defaultdict[str, list[str]](list)
    for name in names:
        groups[_folded(str(name))].append(repr(str(name)[:40]))
    found = [" and ".join(group) for group in groups.values() if len(group) > 1]
    more = f"; and {len(found) - _MOST_ALIKE} more" if len(found) > _MOST_ALIKE else ""
    said = f"some labels differ only in spelling: {'; '.join(found[:_MOST_ALIKE])}{more}"
    return f"{said}; if they are one label, use one spelling." if found else None


def _folded(name: str) -> str:
    plain = "".join(sign for sign in normalize("NFKD", name.casefold()) if not combining(sign))
    plain = re.sub(r"[\u200b-\u200d\ufeff]", "", plain).replace("&", "and").strip(" .")
    word = re.sub(r"(?<=[^\W\d_])[-\s_.'’]+(?=[^\W\d_])", "", plain)
    is_long = len(word) >= _LEAST_PLURAL and word.isalpha()
    return re.sub(r"(?<=[^s])s$", "", re.sub("ies$", "ys", word)) if is_long else word


def checked_names(names: Sequence[Any] | Array | None, n_labels: int | None) -> Array | None:
    """Check that there is one name per label, if their number is known, and no duplicates as text."""
    if names is None:
        return None
    if not isinstance(names, Iterable) or getattr(names, "ndim", 1) != 1:
        raise ValueError(f"The label names are {names!r}; pass a list of names, one per label.")
    array = np.asarray([str(name) for name in names], dtype=np.str_)
    if n_labels is not None and len(array) != n_labels:
        raise ValueError(f"{len(array)} label names were given for {n_labels} labels; pass one per label.")
    unique, counts = np.unique(array, return_counts=True)
    if len(unique) < len(array):
        raise ValueError(
            f"The label name {str(unique[counts > 1][0])!r} occurs more than once; use distinct names."
        )
    return array


def places_by_name(
    given: Sequence[str], names: Sequence[str], what: str, kind: str = "label"
) -> Array | None:
    """Find the labels of y by name among those of the argument ``what``; None if they match by position.

    They do if no name is one of y, or one side has the numbers 0, 1, ... as names.
    Raises ValueError if only some have names of y.
    """
    theirs, ours = set(given), set(names)
    if list(given) == list(names) or not len(given) == len(names) == len(ours):
        return None
    if theirs == ours:
        place_of = {name: place for place, name in enumerate(given)}
        return np.array([place_of[name] for name in names])
    if theirs & ours and {str(number) for number in range(len(names))} not in (theirs, ours):
        strange = next(name for name in given if name not in ours)
        lacking = next(name for name in names if name not in theirs)
        raise ValueError(
            f"{what} has {strange!r}, which is not a {kind}, and lacks the {kind} {lacking!r}; name all "
            f"{kind}s, or none."
        )
    return None


def rows_by_name(given: Any, names: Sequence[str], what: str, kind: str = "label") -> Any:
    """Reorder a Series or frame with labels in its index to the order of the labels; see places_by_name.

    Anything else is returned unchanged.
    """
    if not hasattr(given, "iloc"):
        return given
    places = places_by_name([str(name) for name in given.index], names, what, kind)
    return given if places is None else given.iloc[places]


def columns_by_name(given: Any, names: Sequence[str], what: str, kind: str = "label") -> Any:
    """Reorder the columns of a frame to the order of the labels or other kind; see rows_by_name."""
    columns = column_labels(given)
    places = None if columns is None else places_by_name([str(name) for name in columns], names, what, kind)
    return given if places is None else np.asarray(given)[:, places]


def labels_of_columns(given: Array | None, names: Array | None, n_labels: int, what: str) -> Array:
    """Match the columns of ``what`` to labels by name; the names of unnamed labels are numbers.

    Unnamed columns match by position, and so do columns named 0, 1, ... if no label is, and vice versa.
    Raises ValueError if a name matches no label.
    """
    numbers = [str(number) for number in range(n_labels)]
    own = numbers if names is None else [str(name) for name in names]
    columns = None if given is None else [str(name) for name in given]
    if columns is None or (numbers in (own, columns) and not set(own) & set(columns)):
        return np.arange(n_labels)
    place = {name: label for label, name in enumerate(own)}
    unknown = next((name for name in columns if name not in place), None)
    if unknown is not None:
        raise ValueError(
            f"{what} has a column {unknown!r}, which is not a label of the model; leave it out, or rename it."
        )
    return np.array([place[name] for name in columns], np.intp)


def unknown_entries(y: Array) -> Array:
    """Return whether each class or label is missing, None or NaN."""
    if y.dtype.kind == "O":
        return np.array([is_missing(entry) for entry in y.ravel()], bool).reshape(y.shape)
    return np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, bool)


def typed(known: Array) -> Array:
    """Convert an array of objects that are all numbers, such as those passed with None, to a numeric type."""
    if known.dtype.kind == "O" and all(isinstance(entry, (Real, np.bool_)) for entry in known):
        return np.array(known.tolist())
    return known


def distinct_classes(known: Array) -> tuple[Array, Array]:
    """Return the sorted classes of rows, and each row's class number.

    Raises ValueError if some are text and some numbers.
    """
    try:
        classes, found = np.unique(known, return_inverse=True)
    except TypeError:
        kinds = sorted({type(entry).__name__ for entry in known})
        raise ValueError(
            f"y mixes entries of the types {', '.join(kinds)}; pass all classes as text or all as numbers."
        ) from None
    return classes, found


def costs_by_label(name: str, cost: Any, labels: Iterable[Any]) -> PerLabel:
    """Check the cost of a kind of mistake: one for all labels, or one per label, a Series by their names.

    labels: their names.
    Raises ValueError unless there is one finite non-negative number, or one per label; it names the label.
    """
    names = [str(label) for label in labels]
    n_labels, cost = len(names), rows_by_name(cost, names, name)
    try:
        costs = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} has a non-numeric entry; pass one number, or one per label.") from None
    if costs.shape not in ((), (n_labels,)):
        raise ValueError(
            f"{name} has shape {costs.shape}; pass one number, or one for each of the {n_labels} labels."
        )
    bad = np.flatnonzero(~np.isfinite(costs) | (costs < 0))
    if len(bad):
        where = f" at label {bad[0]}" if costs.ndim else ""
        raise ValueError(f"{name} is {costs.flat[bad[0]]:g}{where}; costs must be finite and >= 0.")
    return np.broadcast_to(costs, (n_labels,)).astype(np.float64)


def read_entry_weights(
    entry_weight: Any, labels: LabelMatrix, names: Iterable[Any] | None = None, what: str = "entry_weight"
) -> RowsByLabels | sp.coo_array | None:
    """Check weights of entries: dense, or sparse, where an entry that is not stored has weight 1.

    names: of the labels, to match columns of a frame; by default those of ``labels``.
    what: the user's name for them.
    Raises ValueError if the shape is not that of the labels, or a weight is negative or not finite.
    """
    if entry_weight is None:
        return None
    sparse = sp.issparse(entry_weight)
    if sparse:
        entry_weight = sp.coo_array(checked_csr(entry_weight, what))
    else:
        names = labels.words if names is None else [str(name) for name in names]
        entry_weight = columns_by_name(entry_weight, names, what)
    weights: Any = (entry_weight if sparse else numbers_of(entry_weight, what)).astype(np.float64)
    if weights.shape != labels.shape:
        raise ValueError(
            f"{what} has shape {weights.shape}, but there are {labels.shape[0]} rows and "
            f"{labels.shape[1]} labels; pass one number per entry."
        )
    values = weights.data if sparse else weights.ravel()
    bad = np.flatnonzero(~np.isfinite(values) | (values < 0))
    if len(bad):
        first = int(bad[0])
        row, label = (part[first] for part in weights.coords) if sparse else divmod(first, weights.shape[1])
        raise ValueError(f"{what} at row {row}, label {label} is {values[first]}; it must be finite, >= 0.")
    return weights


def weights_of_entries(weights: PerRow, entries: RowsByLabels | sp.coo_array | None) -> PerRow | RowsByLabels:
    """Multiply row weights by entry weights; without these return the row weights."""
    if entries is None:
        return weights
    if not isinstance(entries, sp.coo_array):
        return weights[:, None] * entries
    table = np.repeat(weights[:, None], entries.shape[1], axis=1)
    entries.sum_duplicates()
    table[entries.coords] *= entries.data
    return table
