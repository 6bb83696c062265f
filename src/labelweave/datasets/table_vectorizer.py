"""Turn the columns of a table into one matrix of features, sparse unless all are vectors and numbers.

scikit-learn does each; the fitted state is plain data and arrays, as a model file without pickle needs it.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from labelweave.datasets.columns import Columns, part_of_date, parts_of_dates
from labelweave.datasets.csr_parts import ones_from_counts, with_narrow_indices
from labelweave.datasets.table_columns import KINDS, column_names, listed_columns, refuse_repeated
from labelweave.datasets.vector_blocks import DenseBlock
from labelweave.features.feature_matrix import LARGEST_FEATURE
from labelweave.foundation.arguments import ParameterError, checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.frames import as_pandas
from labelweave.foundation.vectors import Refusal, stacked
from labelweave.labels.label_names import as_text
from labelweave.model_files.schema import FLAG, TEXT, Items, Named, Number, Numbers, OneOf, Optional, count
from labelweave.model_files.storable import storable


def _has_own_words(state: dict[str, Any]) -> bool:
    lists = [
        *zip(map(_words_in, state["words"]), state["idf"], strict=True),
        *((names, names) for names in state["categories"]),
    ]
    return all(0 < len(set(names)) == len(numbers) == len(names) for names, numbers in lists)


def _words_in(kept: npt.NDArray[np.uint8]) -> list[str]:
    return kept.tobytes().decode().split("\n")[:-1]


_WHOLE_NUMBER = re.compile(r"-?\d+(\.0)?", re.ASCII)
_FEWEST_STRANGE = 10  # rows without a value that is known, which are hardly there by chance
_NAMES = Items(TEXT, least=1)
_NO_WORDS = "it has no words; name the column in `categorical` or `drop`"


@storable(
    "TableVectorizer",
    {
        **{kind: Items(TEXT, kind) for kind in ("text", "categorical", "numeric")},
        "vectors": Optional(Items(TEXT, "vectors")),
        "ngram_range": Items(count(least=1), "2"),
        "min_df": Number(0),
        "sublinear_tf": FLAG,
        "missing_numeric": OneOf(("error", "mean")),
        "words": Items(Numbers("_", "u"), "text"),
        "idf": Items(Numbers("_"), "text"),
        "categories": Items(_NAMES, "categorical"),
        "means": Numbers("numeric"),
        "scales": Numbers("numeric", least=1e-100),
        "vector_means": Optional(Items(Numbers("_"), "vectors")),
        "decimal_marks": Optional(Named(OneOf((".", ",")))),
    },
    {
        "vectors have a mean for each number": lambda state: (
            ("vectors" in state) == ("vector_means" in state)
        ),
        "words and values of a column are distinct, and words have a weight each": _has_own_words,
        "ngram_range rises": lambda state: state["ngram_range"][0] <= state["ngram_range"][1],
    },
)
class TableVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features from text, categorical and numeric columns, and from vectors such as embeddings.

    Parameters
    ----------
    text : str, sequence of str or None, default=None
        Columns that become tf-idf weights, one scikit-learn ``TfidfVectorizer`` each.
    categorical : str, sequence of str or None, default=None
        Columns that become one 0/1 feature a value seen in training; other values give zeros, with a warning
        where ten rows or more have no others.  ``1`` and ``1.0`` are one value unless training had both.
    numeric : str, sequence of str or None, default=None
        Columns brought to mean 0 and variance 1 of the training rows.
    vectors : str, sequence of str or None, default=None
        Columns of lists or arrays of numbers, all of one length, whose numbers are features as they are.
    min_df : int or float, default=1
        In how many rows (int) or what share of them (float) a word must occur.
    ngram_range : (int, int), default=(1, 1)
        The shortest and the longest run of words that makes a feature.
    sublinear_tf : bool, default=False
        Whether to weigh counts by ``1 + log(count)``.
    missing_numeric : {"error", "mean"}, default="error"
        What to do with a missing number, also in a vector, and a missing vector: refuse it, or put the
        training mean.

    Attributes
    ----------
    means_, scales_ : ndarray of float64, shape (n_numeric,)
        Training means and standard deviations of the numeric columns.
    categories_ : list of list of str
        The values of each categorical column.
    text_vectorizers_ : list of TfidfVectorizer
        One for each text column.
    vector_blocks_ : list of DenseBlock
        The features of each column of vectors: their ``name``, ``feature_names`` and training ``means``.
    decimal_marks_ : dict of str to {".", ","}
        What stood before fractions in numeric columns of a CSV file whose cells semicolons part;
        :func:`read_table` keeps it here, and reads later files so.
    """

    @checked
    def __init__(
        self,
        text: str | Sequence[str] | None = None,
        categorical: str | Sequence[str] | None = None,
        numeric: str | Sequence[str] | None = None,
        vectors: str | Sequence[str] | None = None,
        *,
        min_df: int | float = 1,
        ngram_range: tuple[int, int] = (1, 1),
        sublinear_tf: bool = False,
        missing_numeric: Literal["error", "mean"] = "error",
    ) -> None:
        self._name_columns(text, categorical, numeric, vectors)
        self.min_df = min_df
        self.ngram_range = tuple(ngram_range)
        self.sublinear_tf = sublinear_tf
        self.missing_numeric = missing_numeric
        if not self.column_names:
            raise ValueError("No column is given; name text, categorical, numeric or vectors columns.")
        if missing_numeric not in ("error", "mean"):
            raise ValueError(f"missing_numeric is {missing_numeric!r}; it is 'error' or 'mean'.")
        if not min_df >= 0:
            raise ValueError(f"min_df is {min_df!r}; it is a number of rows, or a share of them.")

    def _name_columns(self, *kinds: Any) -> None:
        self.text, self.categorical, self.numeric, self.vectors = (
            column_names(names) or () for names in kinds
        )

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that features are made of."""
        return (*self.text, *self.categorical, *self.numeric, *self.vectors)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; see :meth:`sklearn.base.BaseEstimator.set_params`."""
        super().set_params(**params)
        type(self)(**self.get_params(deep=False))  # which refuses what cannot be
        self._name_columns(self.text, self.categorical, self.numeric, self.vectors)
        return self

    @property
    def makes_dense(self) -> bool:
        """Whether the features are a dense array."""
        return bool(self.vectors) and not (self.text or self.categorical)

    @property
    def is_fitted(self) -> bool:
        """Whether :meth:`fit` was called."""
        return hasattr(self, "means_")

    def fit(self, frame: Any, y: Any = None) -> Self:
        """Learn words, categories, means, scales and lengths of vectors.

        Parameters
        ----------
        frame : DataFrame of shape (n, columns)
            The training rows.
        y : object, default=None
            Not used.

        Returns
        -------
        TableVectorizer
            This object, fitted.

        Raises
        ------
        ValueError
            If a column is absent, a number is missing, or a text column has no words.
        """
        return self.fit_blocks([frame])

    def fit_blocks(self, frames: Iterable[Any]) -> Self:
        """Learn as :meth:`fit` does from rows that come in blocks, of which one at a time is held.

        Parameters
        ----------
        frames : iterable of DataFrame
            The training rows.

        Returns
        -------
        TableVectorizer
            This object, fitted.

        Raises
        ------
        ValueError
            If a column is absent, a number is missing, or a text column has no words.
        """
        words, values, n_rows = self._nothing_seen()
        numbers, nothing = [np.empty((0, len(self.numeric)))], np.empty((0, 0))
        blocks = [DenseBlock.of(name, nothing) for name in self.vectors]
        for frame in map(self._table, frames):
            n_rows += len(frame)
            self._see(frame, words, values)
            numbers.append(self._numbers(frame))
            blocks = [block + more for block, more in zip(blocks, self._blocks(frame), strict=True)]
        table = np.concatenate(numbers)
        with np.errstate(over="ignore", invalid="ignore"):
            scaler = StandardScaler().fit(table) if self.numeric else None  # it passes over NaN
        if scaler is not None:
            refuse_no_scale(self.numeric, (~np.isnan(table)).sum(axis=0), scaler.var_)
        means, scales = (np.zeros(0), np.ones(0)) if scaler is None else (scaler.mean_, scaler.scale_)
        return self._keep(words, values, n_rows, means, scales, blocks)

    def _nothing_seen(self) -> tuple[list[Counter[str]], list[set[str]], int]:
        """Begin to count: in how many rows each word of a text column is, values of categories, rows."""
        return [Counter() for _ in self.text], [set() for _ in self.categorical], 0

    def _see(self, frame: Any, words: list[Counter[str]], values: list[set[str]]) -> None:
        words_of = self._text_vectorizer().build_analyzer()
        for name, counts in zip(self.text, words, strict=True):
            for cell in cells_of(frame, name):
                counts.update(set(words_of(cell)))
        for name, seen in zip(self.categorical, values, strict=True):
            seen.update(cells_of(frame, name))

    def _blocks(self, frame: Any) -> list[DenseBlock]:
        """Add up the vectors of some rows."""
        return [DenseBlock.of(name, self._vectors(frame, name)) for name in self.vectors]

    def _keep(
        self, words: list[Counter[str]], values: list[set[str]], n_rows: int, means: Any, scales: Any,
        blocks: list[DenseBlock],
    ) -> Self:  # fmt: skip
        """Be fitted to the rows that were counted.

        Raises ParameterError if a text column has no word that is frequent enough.
        """
        self.text_vectorizers_ = [
            self._fitted_text(name, counts, n_rows) for name, counts in zip(self.text, words, strict=True)
        ]
        self.categories_ = [sorted(seen) for seen in values]
        self.__dict__.pop("_category_places", None)
        self.means_, self.scales_ = np.asarray(means), np.asarray(scales)
        for block in blocks:
            block.refuse_gaps()
        self.vector_blocks_ = blocks
        self.decimal_marks_: dict[str, str] = {}
        return self

    def transform(self, frame: Any) -> sp.csr_array | Array:
        """Make features.

        Parameters
        ----------
        frame : DataFrame of shape (n, columns)
            Rows with the columns of the training rows.

        Returns
        -------
        csr_array of float64 or ndarray, shape (n, d)
            The features: text, then categories, numbers, vectors.  Without text and categories vectors make
            them dense, in float32 where all of them are.

        Raises
        ------
        ValueError
            If a column is absent, a number is missing or a vector has another length, naming row and column.
        """
        check_is_fitted(self)
        frame = self._table(frame)
        dense = [self._scaled(frame)] if self.numeric else []
        dense += [block.filled(self._vectors(frame, block.name, len(block))) for block in self.vector_blocks_]
        if self.makes_dense:
            return np.hstack(dense)
        blocks = [
            vectorizer.transform(cells_of(frame, name))
            for vectorizer, name in zip(self.text_vectorizers_, self.text, strict=True)
        ]
        for name, places in zip(self.categorical, self._category_places, strict=True):
            blocks.append(_one_hot(_known_cells(frame, name, places), places))
        blocks += map(sp.csr_array, dense)
        return with_narrow_indices(sp.hstack(blocks, format="csr")).astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Name the features.

        Parameters
        ----------
        input_features : object, default=None
            Not used.

        Returns
        -------
        ndarray of str, shape (d,)
            ``column:word``, ``column=value``, ``column`` for a number, ``column[place]`` in a vector.
        """
        check_is_fitted(self)
        texts = zip(self.text, self.text_vectorizers_, strict=True)
        names = [f"{name}:{word}" for name, words in texts for word in words.get_feature_names_out()]
        categories = zip(self.categorical, self.categories_, strict=True)
        names += [f"{name}={value}" for name, values in categories for value in values]
        names += self.numeric
        names += [name for block in self.vector_blocks_ for name in block.feature_names]
        return np.array(names, dtype=object)  # of which none is as wide as the longest

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps; see :meth:`labelweave.model_files.Storable.to_state`."""
        check_is_fitted(self)
        return {
            **{name: list(getattr(self, name)) for name in (*KINDS, "ngram_range")},
            **{name: getattr(self, name) for name in ("min_df", "sublinear_tf", "missing_numeric")},
            # the header of a file has no room for a million of them as a list
            "words": [
                np.frombuffer(
                    "".join(f"{word}\n" for word in words.get_feature_names_out()).encode(), np.uint8
                )
                for words in self.text_vectorizers_
            ],
            "idf": [words.idf_ for words in self.text_vectorizers_],
            "categories": self.categories_,
            "means": self.means_,
            "scales": self.scales_,
            "vector_means": [block.means for block in self.vector_blocks_],
            "decimal_marks": self.decimal_marks_,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Make the object again; see :meth:`labelweave.model_files.Storable.from_state`."""
        made = cls(**{name: state[name] for name in inspect.signature(cls).parameters if name in state})
        means = zip(made.vectors, state.get("vector_means", ()), strict=True)
        made.vector_blocks_ = [DenseBlock(name, np.ones(found.shape), found) for name, found in means]
        made.text_vectorizers_ = [made._text_vectorizer(words) for words in map(_words_in, state["words"])]
        for vectorizer, idf in zip(made.text_vectorizers_, state["idf"], strict=True):
            vectorizer.idf_ = np.array(idf)
        made.categories_ = [list(values) for values in state["categories"]]
        made.decimal_marks_ = dict(state.get("decimal_marks", {}))
        made.means_, made.scales_ = np.array(state["means"]), np.array(state["scales"])
        return made

    def _text_vectorizer(self, words: list[str] | None = None) -> TfidfVectorizer:
        return TfidfVectorizer(
            min_df=self.min_df,
            ngram_range=self.ngram_range,
            sublinear_tf=self.sublinear_tf,
            vocabulary=None if words is None else {word: place for place, word in enumerate(words)},
        )

    def _fitted_text(self, name: str, counts: Counter[str], n_rows: int) -> TfidfVectorizer:
        """Make the vectorizer of words from the numbers of rows that have each."""
        least = self.min_df if not isinstance(self.min_df, float) else self.min_df * n_rows
        words = sorted(word for word, count in counts.items() if count >= least)
        if not words:
            why = f"no word is in {self.min_df!r} rows or more (`min_df`)" if counts else _NO_WORDS
            raise ParameterError(f"The text column {name!r} cannot be used: {why}.")
        made = self._text_vectorizer(words)
        # smoothed as scikit-learn does it, in the same order of operations
        made.idf_ = np.log((n_rows + 1) / (np.array([counts[word] for word in words], float) + 1)) + 1
        return made

    @cached_property
    def _category_places(self) -> list[dict[str, int]]:
        return [{value: place for place, value in enumerate(values)} for values in self.categories_]

    def _scaled(self, frame: Any) -> npt.NDArray[np.float64]:
        numbers = self._numbers(frame)
        with np.errstate(over="ignore"):
            scaled: npt.NDArray[np.float64] = np.where(np.isnan(numbers), self.means_, numbers) - self.means_
            scaled /= self.scales_
        far = np.argwhere(np.abs(scaled) > LARGEST_FEATURE)
        if len(far):
            row, column = far[0]
            raise ValueError(
                f"Row {frame.index[row]}, column {self.numeric[column]!r} is {numbers[row, column]:g}, which "
                f"is {abs(scaled[row, column]):.1g} standard deviations from the mean of the training rows; "
                f"at most {LARGEST_FEATURE:g} are allowed, so fit to rows of the same scale."
            )
        return scaled

    def _numbers(self, frame: Any) -> npt.NDArray[np.float64]:
        numbers = np.empty((len(frame), len(self.numeric)))
        for place, name in enumerate(self.numeric):
            numbers[:, place] = _numbers_of(frame, name)
        self._refuse_missing(frame, numbers, self.numeric)
        return numbers

    def _vectors(self, frame: Any, name: str, length: int | None = None) -> Array:
        """Read a column of vectors (n, k), of a length that is known if one is given."""
        vectors = stacked(frame[name], _refusal(frame, name), length)
        self._refuse_missing(frame, vectors, [name] * vectors.shape[1])
        return vectors

    def _refuse_missing(self, frame: Any, numbers: Array, names: Sequence[str]) -> None:
        """Refuse missing numbers (n, k) of columns, unless means are put in their places."""
        missing = np.isnan(numbers)
        if self.missing_numeric == "error" and missing.any():
            row, column = np.argwhere(missing)[0]
            raise ParameterError(
                f"Row {frame.index[row]}, column {names[column]!r} has no number; "
                "fill it in or use `missing_numeric='mean'`."
            )

    def _table(self, frame: Any) -> Any:
        if not hasattr(frame := as_pandas(frame), "columns"):
            raise TypeError(f"A {type(frame).__name__} was given; a TableVectorizer takes a DataFrame.")
        names = self.column_names
        parts = {name: part_of_date(name, frame.columns) for name in self.numeric}
        for name, part in parts.items():
            if part is not None:
                cells = frame[part[0]].astype(object).where(frame[part[0]].notna(), None).tolist()
                frame = frame.assign(**{name: parts_of_dates(cells, part[1])})
        absent = next((name for name in names if name not in frame.columns), None)
        if absent is not None:
            has = listed_columns(str(absent), frame.columns)
            raise ValueError(f"The table has no column {absent!r}; give one that it has{has}.")
        refuse_repeated(frame, names)
        return frame


def refuse_no_scale(names: Sequence[str], counts: Any, variances: Any) -> None:
    """Refuse numeric columns without numbers, and those whose variance overflows."""
    for name, n_numbers, variance in zip(names, counts, variances, strict=True):
        if not n_numbers:
            raise ValueError(f"The numeric column {name!r} has no number in any row; leave it out.")
        if not np.isfinite(variance):
            raise ValueError(
                f"The numeric column {name!r} has numbers so large that their variance overflows; give it "
                "in another unit, or leave it out."
            )


def _numbers_of(frame: Any, name: str) -> npt.NDArray[np.float64]:
    column = frame[name]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return np.asarray(column.to_numpy(np.float64))
    cells = column.astype(object).where(column.notna(), None).tolist()
    return Columns({name: cells}).all_numbers(name, _refusal(frame, name))


def _refusal(frame: Any, name: str) -> Refusal:
    return lambda row, found, expected: ValueError(
        f"Row {frame.index[row]}, column {name!r} is {found}; it must be {expected}."
    )


def _one_hot(cells: list[str], places: Mapping[str, int]) -> sp.csr_array:
    """Write 1 into the column of each cell's value; other values have none."""
    columns = np.array([places[cell] for cell in cells if cell in places], np.int64)
    return ones_from_counts(columns, [cell in places for cell in cells], len(places))


def _known_cells(frame: Any, name: str, known: Mapping[str, Any]) -> list[str]:
    """Give categories as the training rows spell them; warn where none of them is known."""
    cells = cells_of(frame, name)
    strange = set(cells) - known.keys()
    others = {text: other for text in strange if (other := _other_spelling(text)) in known}
    if len(cells) >= _FEWEST_STRANGE and not known.keys() & cells and not others:
        said = f"none of {len(cells)} rows has a value of column {name!r} that the training rows had"
        shown = f"{min(strange)[:40]!r} is here and {min(known)[:40]!r} was there"
        warnings.warn(f"{said}, so it tells nothing: {shown}", UserWarning, stacklevel=2)
    return [others.get(cell, cell) for cell in cells] if others else cells


def _other_spelling(text: str) -> str:
    """Write 1 as 1.0 and 1.0 as 1: one gap in a column of integers, and pandas writes all of them so."""
    found = _WHOLE_NUMBER.fullmatch(text)
    if found is None:
        return text
    return text.removesuffix(".0") if found[1] else f"{text}.0"


def cells_of(frame: Any, name: str) -> list[str]:
    """Give the cells of a column as strings, empty where missing."""
    column = frame[name]
    cells: list[Any] = column.to_numpy(object).tolist()
    if set(map(type, cells)) == {str}:
        return cells
    return [*map(as_text, column.astype(object).mask(column.isna(), "").tolist())]
