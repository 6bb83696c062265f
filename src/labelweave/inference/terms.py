"""Label sets as lists of terms of a hierarchy: as predicted, with all above, or the most specific only."""

from __future__ import annotations

from typing import Any, Literal, get_args, overload

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.arrays import numbers_of
from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.labels.label_names import checked_names, columns_by_name, places_by_name

Terms = Literal["predicted", "closed", "specific"]


@overload
def term_lists(
    labels: Any, taxonomy: Taxonomy, label_names: Any = None, terms: Terms = "predicted",
) -> list[list[str]]: ...  # fmt: skip
@overload
def term_lists(
    labels: Any, taxonomy: Taxonomy, label_names: Any = None, terms: Terms = "predicted", *,
    probabilities: Any,
) -> list[list[tuple[str, float]]]: ...  # fmt: skip
@checked
def term_lists(
    labels: Any, taxonomy: Taxonomy, label_names: Any = None, terms: Terms = "predicted", *,
    probabilities: Any = None,
) -> Any:  # fmt: skip
    """Write label sets as lists of terms, one a row.

    Parameters
    ----------
    labels : LabelMatrix, DataFrame or array-like of shape (n, L)
        The label sets, such as what ``predict`` gives.
    taxonomy : Taxonomy
        What is above what; nodes may have several parents.
    label_names : sequence of str or None, default=None
        The labels, each the name of a node; None where ``labels`` has names.  Columns that have the same
        names are put into this order.
    terms : {"predicted", "closed", "specific"}, default="predicted"
        Which of them: the sets as they are; with all labels above them; or those without another of the set
        below them.
    probabilities : DataFrame or array-like of shape (n, L), or None, default=None
        Probabilities or scores of the labels, listed with them.

    Returns
    -------
    list of n lists
        The names, in the order of the labels; with ``probabilities`` pairs of a name and its number, the
        greatest first.

    Raises
    ------
    ValueError
        If labels have no names, one is no node of the taxonomy, shapes disagree, or a number is not finite.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.inference import term_lists
    >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    >>> names = ["animal", "dog", "cat"]
    >>> term_lists([[1, 1, 0], [0, 0, 1]], tree, names, "specific")
    [['dog'], ['cat']]
    >>> term_lists([[0, 0, 1]], tree, names, "closed", probabilities=[[0.9, 0.1, 0.6]])
    [[('animal', 0.9), ('cat', 0.6)]]
    """
    sets = LabelMatrix.from_any(labels)
    names = checked_names(label_names, sets.n_labels) if label_names is not None else sets.names
    if names is None:
        raise ValueError("labels has no names, by which they are found in the taxonomy; give label_names.")
    words = [str(name) for name in names]
    taxonomy._numbers(words, "label")
    places = None if sets.names is None else places_by_name(sets.words, words, "labels")
    sets = sets if places is None else sets.select_labels(places)
    if terms not in get_args(Terms):
        raise ValueError(f"terms={terms!r}; give 'predicted', 'closed' or 'specific'.")
    chosen = sp.csr_array(chosen_terms(sets.positives, taxonomy, names, terms))
    rows = [chosen.indices[a:b] for a, b in zip(chosen.indptr, chosen.indptr[1:], strict=False)]
    if probabilities is None:
        return [[str(names[k]) for k in np.sort(row)] for row in rows]
    own = words if sets.names is None else sets.words
    numbers = numbers_of(columns_by_name(probabilities, own, "probabilities"), "probabilities")
    if numbers.shape != sets.shape:
        raise ValueError(
            f"probabilities has shape {numbers.shape}, but labels {sets.shape}; give one a label."
        )
    if not np.isfinite(numbers).all():
        row, label = np.argwhere(~np.isfinite(numbers))[0]
        raise ValueError(
            f"probabilities at row {row}, label {label} is {numbers[row, label]}; give finite ones."
        )
    lists = []
    for row, values in zip(map(np.sort, rows), numbers, strict=True):
        order = row[np.argsort(-values[row], kind="stable")]
        lists.append([(str(names[k]), float(values[k])) for k in order])
    return lists


def chosen_terms(sets: sp.csr_array, taxonomy: Taxonomy, names: Any, terms: Terms) -> sp.csr_array:
    """Change label sets (n, L) to those with all that is above, or to the most specific labels."""
    if terms == "predicted":
        return sets
    above = taxonomy.at_or_above([str(name) for name in names])
    sets = sp.csr_array(sets).astype(np.int32)
    times = sp.csr_array(sets @ above)  # how many of the set are at or below a label
    found = times > 0 if terms == "closed" else sets.multiply(times == 1)
    found = sp.csr_array(found, dtype=np.int8)
    found.eliminate_zeros()
    return found
