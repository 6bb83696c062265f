"""Convert the columns of a table to one feature matrix, sparse unless most are vectors.

scikit-learn converts each; the fitted state is plain data and arrays, for model files without pickle.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from labelweave.datasets import text_encoders
from labelweave.datasets.columns import as_list, words_in
from labelweave.datasets.csr_parts import ones_from_counts, with_narrow_indices
from labelweave.datasets.raw_table import RawTable
from labelweave.datasets.table_columns import KINDS, column_names, listed_columns
from labelweave.datasets.text_encoders import KeepsEncoder, KnownEncoder, TextParts
from labelweave.datasets.vector_files import DenseBlock
from labelweave.features.feature_matrix import LARGEST_FEATURE
from labelweave.foundation.arguments import ParameterError, ParameterMessage, checked
from labelweave.foundation.array_types import Array
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


_NAMES = Items(TEXT, least=1)
_WHOLE_NUMBER = re.compile(r"-?\d+(\.0)?", re.ASCII)
_FEWEST_STRANGE = 10  # rows without a known value, too many to be chance
_NO_WORDS = "it has no words; name it in `categorical` or `drop`"


@storable(
    "TableVectorizer",
    {
        **{kind: Items(TEXT, kind) for kind in KINDS},
        "ngram_range": Items(count(least=1), "2"),
        "min_df": Number(0),
        "sublinear_tf": FLAG,
        "missing_numeric": OneOf(("error", "mean")),
        "words": Items(Numbers("_", "u"), "text"),
        "idf": Items(Numbers("_"), "text"),
        "categories": Items(_NAMES, "categorical"),
        "means": Numbers("numeric"),
        "scales": Numbers("numeric", least=1e-100),
        "vector_means": Items(Numbers("_"), "vectors"),
        "decimal_marks": Named(OneOf((".", ","))),
        "encoder_weight": Number(0, text_encoders.LARGEST_WEIGHT),
        "known_encoder": Optional(text_encoders.KNOWN_ENCODER),
    },
    {
        "words and values of a column are distinct, and words have a weight each": _has_own_words,
        "an encoder has texts and a weight": lambda state: (
            "known_encoder" not in state or bool(state["text"] and state["encoder_weight"])
        ),
        "ngram_range rises": lambda state: state["ngram_range"][0] <= state["ngram_range"][1],
    },
)
class TableVectorizer(KeepsEncoder, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features from text, categorical and numeric columns, and from vectors such as embeddings.

    Parameters
    ----------
    text : str, sequence of str or None, default=None
        Columns converted to tf-idf weights, by one scikit-learn ``TfidfVectorizer`` each.
    categorical : str, sequence of str or None, default=None
        Columns converted to one 0/1 feature per value seen in training; other values are zeros, with a
        warning if ten rows or more have no others.  ``1`` and ``1.0`` are one value unless training had both.
    numeric : str, sequence of str or None, default=None
        Columns standardized to mean 0 and variance 1 over the training rows.
    vectors : str, sequence of str or None, default=None
        Columns of lists or arrays of numbers, all of one length, used as features without change.
    min_df : int or float, default=1
        The minimum number (int) or share (float) of rows in which a word must occur.
    ngram_range : (int, int), default=(1, 1)
        The shortest and the longest n-gram of words that is a feature.
    sublinear_tf : bool, default=False
        Whether to weigh counts by ``1 + log(count)``.
    missing_numeric : {"error", "mean"}, default="error"
        What to do with a missing number, also in a vector, and a missing vector: raise an error, or impute
        the training mean.
    encoder : callable, "static" or None, default=None
        Encodes a list of texts as an array (n, k), such as ``encode`` of sentence-transformers: text columns
        become embeddings too, normalized to length 1.  "static" is the mean of the static token embeddings of
        the package wordllama (``labelweave[text]``).  Model files store its name and a digest.
    encoder_weight : float, default=1.0
        The weight of an embedding relative to the words of its text; 0 uses only words.  Both together have
        length 1.

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
    encoder_ : KnownEncoder or None
        The ``name`` and ``digest`` of the encoder, and the ``size`` of its vectors; None where none is used.
    decimal_marks_ : dict of str to {".", ","}
        The decimal marks of numeric columns in a CSV file with semicolons as delimiters; :func:`read_table`
        stores them here and applies them to later files.
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
        encoder: Any = None,
        encoder_weight: float = 1.0,
    ) -> None:
        self._name_columns(text, categorical, numeric, vectors)
        self.min_df = min_df
        self.ngram_range = tuple(ngram_range)
        self.sublinear_tf = sublinear_tf
        self.missing_numeric = missing_numeric
        self.encoder, self.encoder_weight = encoder, encoder_weight
        text_encoders.refuse_encoder(encoder, encoder_weight, has_text=bool(self.text))
        if not self.column_names:
            raise ValueError("No column is named; pass text, categorical, numeric or vectors columns.")
        if missing_numeric not in ("error", "mean"):
            raise ValueError(f"missing_numeric is {missing_numeric!r}; it must be 'error' or 'mean'.")
        if not min_df >= 0:
            raise ValueError(f"min_df is {min_df!r}; it must be a number of rows, or a share from 0 to 1.")
        if len(self.ngram_range) != 2 or not 1 <= self.ngram_range[0] <= self.ngram_range[1]:
            raise ValueError(f"ngram_range is {ngram_range!r}; pass two sizes of n-grams, such as (1, 2).")

    def _name_columns(self, *kinds: Any) -> None:
        self.text, self.categorical, self.numeric, self.vectors = (
            column_names(names) or () for names in kinds
        )

    @property
    def kinds(self) -> dict[str, Any]:
        """The columns of each kind: text, categorical, numeric and vectors."""
        return {kind: getattr(self, kind) for kind in KINDS}

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns used for features."""
        return (*self.text, *self.categorical, *self.numeric, *self.vectors)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; see :meth:`sklearn.base.BaseEstimator.set_params`."""
        super().set_params(**params)
        type(self)(**self.get_params(deep=False))  # raises for invalid values
        self._name_columns(self.text, self.categorical, self.numeric, self.vectors)
        return self

    @property
    def makes_dense(self) -> bool:
        """Whether the features are a dense array: vectors, and no more values of categories than numbers."""
        n_values, n_numbers = (sum(map(len, found)) for found in (self.categories_, self.vector_blocks_))
        return bool(self.vectors) and not self.text and n_values <= n_numbers

    @property
    def is_fitted(self) -> bool:
        """Whether :meth:`fit` was called."""
        return hasattr(self, "means_")

    def fit(self, frame: Any, y: Any = None) -> Self:
        """Learn words, categories, means, scales and vector lengths.

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
        """Fit from blocks of rows, with one block in memory at a time; see :meth:`fit`.

        Parameters
        ----------
        frames : iterable of DataFrame
            The training rows.
        """
        words, values, n_rows = self._nothing_seen()
        numbers, nothing = [np.empty((0, len(self.numeric)))], np.empty((0, 0))
        blocks = [DenseBlock.of(name, nothing) for name in self.vectors]
        for table in map(self._table, frames):
            n_rows += len(table)
            self._see(table, words, values)
            numbers.append(self._numbers(table))
            blocks = [block + more for block, more in zip(blocks, self._blocks(table), strict=True)]
        if not self.numeric:
            return self._keep(words, values, n_rows, np.zeros(0), np.ones(0), blocks)
        found = np.concatenate(numbers)
        with np.errstate(over="ignore", invalid="ignore"):
            scaler = StandardScaler().fit(found)  # it ignores NaN
        refuse_no_scale(self.numeric, (~np.isnan(found)).sum(axis=0), scaler.var_)
        return self._keep(words, values, n_rows, scaler.mean_, scaler.scale_, blocks)

    def _nothing_seen(self) -> tuple[list[Counter[str]], list[set[str]], int]:
        """Return empty counts: rows per word of each text column, values of categories, rows."""
        return [Counter() for _ in self.text], [set() for _ in self.categorical], 0

    def _see(self, table: RawTable, words: list[Counter[str]], values: list[set[str]]) -> None:
        words_of = self._text_vectorizer().build_analyzer()
        for name, counts in zip(self.text, words, strict=True):
            for cell in as_list(table.texts(name, joins=True)):
                counts.update(set(words_of(cell)))
        for name, seen in zip(self.categorical, values, strict=True):
            seen.update(as_list(table.texts(name, joins=False)))

    def _blocks(self, table: RawTable) -> list[DenseBlock]:
        """Sum the vectors of some rows."""
        return [DenseBlock.of(name, self._vectors(table, name)) for name in self.vectors]

    def _keep(
        self, words: list[Counter[str]], values: list[set[str]], n_rows: int, means: Any, scales: Any,
        blocks: list[DenseBlock],
    ) -> Self:  # fmt: skip
        """Set the fitted attributes from the counted rows.

        Raises ParameterError if a text column has no sufficiently frequent word.
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
        is_used = self.encoder is not None and self.encoder_weight > 0
        self.encoder_ = KnownEncoder.of(self.encoder) if is_used else None
        self._agreed = self.encoder
        return self

    def transform(self, frame: Any) -> sp.csr_array | Array:
        """Transform rows to features.

        Parameters
        ----------
        frame : DataFrame of shape (n, columns)
            Rows with the columns of the training rows.

        Returns
        -------
        csr_array of float64 or ndarray, shape (n, d)
            The features: text, then categories, numbers, vectors.  Vectors make them dense, without text and
            with at most as many values of categories as numbers in vectors; in float32 if all vectors are
            and no column is numeric.

        Raises
        ------
        ValueError
            If a column is absent, a number is missing or a vector has another length, naming row and column.
        """
        check_is_fitted(self)
        table = self._table(frame)
        dense = [self._scaled(table)] if self.numeric else []
        dense += [block.filled(self._vectors(table, block.name, len(block))) for block in self.vector_blocks_]
        values = [
            one_hot(name, as_list(table.texts(name, joins=False)), places)
            for name, places in zip(self.categorical, self._category_places, strict=True)
        ]
        if self.makes_dense:
            return np.hstack([*(one.toarray() for one in values), *dense])
        texts = [as_list(table.texts(name, joins=True)) for name in self.text]
        words = [made.transform(cells) for made, cells in zip(self.text_vectorizers_, texts, strict=True)]
        blocks = [*words, *values, *map(sp.csr_array, dense), *self._encoded(texts)]
        found = with_narrow_indices(sp.hstack(blocks, format="csr")).astype(np.float64)
        return found if self.encoder_ is None else self.text_parts.weighed(found, self.encoder_weight)

    def _encoded(self, texts: list[list[str]]) -> list[sp.csr_array]:
        """Encode the text columns, if there is an encoder; raise an error if it is not that of the fit."""
        if self.encoder_ is None:
            return []
        if self._agreed is None or self._agreed is not self.encoder:
            self.encoder_.refuse_another(self.encoder)
            self._agreed = self.encoder
        size = self.encoder_.size
        return [sp.csr_array(text_encoders.encoded(self.encoder, cells, size)) for cells in texts]

    @property
    def text_parts(self) -> TextParts:
        """Return which features are words and which are embeddings, if there is an encoder."""
        n_words = [len(words.vocabulary) for words in self.text_vectorizers_]
        others: tuple[Sized, ...] = (*self.categories_, self.numeric, *self.vector_blocks_)
        n_others = sum(len(part) for part in others)
        return TextParts.of(n_words, n_others, 0 if self.encoder_ is None else self.encoder_.size)

    def _weigh(self, X: sp.csr_array, weight: float) -> sp.csr_array:
        """Change the weight of the encoder, also in existing features (n, d); 0 disables it."""
        found = self.text_parts.weighed(X, weight / self.encoder_weight)
        self.encoder_weight = weight
        self.encoder_ = self.encoder_ if weight > 0 else None
        return found

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : object, default=None
            Not used.

        Returns
        -------
        ndarray of str, shape (d,)
            ``column:word``, ``column=value``, ``column`` for a number, ``column[place]`` in a vector, also in
            the embedding of a text.
        """
        check_is_fitted(self)
        texts = zip(self.text, self.text_vectorizers_, strict=True)
        names = [f"{name}:{word}" for name, words in texts for word in words.get_feature_names_out()]
        categories = zip(self.categorical, self.categories_, strict=True)
        names += [f"{name}={value}" for name, values in categories for value in values]
        names += self.numeric
        names += [name for block in self.vector_blocks_ for name in block.feature_names]
        places = range(0 if self.encoder_ is None else self.encoder_.size)
        names += [f"{name}[{place}]" for name in self.text for place in places]
        return np.array(names, dtype=object)  # objects, not all as wide as the longest

    def to_state(self) -> dict[str, Any]:
        """Return what a model file stores; see :meth:`labelweave.model_files.Storable.to_state`."""
        check_is_fitted(self)
        return {
            **{name: list(names) for name, names in (self.kinds | {"ngram_range": self.ngram_range}).items()},
            **{name: getattr(self, name) for name in ("min_df", "sublinear_tf", "missing_numeric")},
            # a list of a million would not fit into the header of a file
            "words": [
                np.frombuffer("\n".join([*words.get_feature_names_out(), ""]).encode(), np.uint8)
                for words in self.text_vectorizers_
            ],
            "idf": [words.idf_ for words in self.text_vectorizers_],
            "categories": self.categories_,
            "means": self.means_,
            "scales": self.scales_,
            "vector_means": [block.means for block in self.vector_blocks_],
            "decimal_marks": self.decimal_marks_,
            "encoder_weight": self.encoder_weight,
            **({} if self.encoder_ is None else {"known_encoder": vars(self.encoder_)}),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the object; see :meth:`labelweave.model_files.Storable.from_state`."""
        made = cls(**{name: state[name] for name in inspect.signature(cls).parameters if name in state})
        means = zip(made.vectors, state["vector_means"], strict=True)
        made.vector_blocks_ = [DenseBlock(name, np.ones(found.shape), found) for name, found in means]
        made.text_vectorizers_ = [made._text_vectorizer(words) for words in map(_words_in, state["words"])]
        for vectorizer, idf in zip(made.text_vectorizers_, state["idf"], strict=True):
            vectorizer.idf_ = np.array(idf)
        made.categories_ = [list(values) for values in state["categories"]]
        made.decimal_marks_ = dict(state["decimal_marks"])
        known = state.get("known_encoder")
        made.encoder_ = None if known is None else KnownEncoder(**known)
        made.encoder, made._agreed = ("static" if known and known["name"] == "static" else None), None
        made.means_, made.scales_ = np.array(state["means"]), np.array(state["scales"])
        return made

    def _text_vectorizer(self, words: list[str] | None = None) -> TfidfVectorizer:
        return TfidfVectorizer(
            min_df=self.min_df,
            ngram_range=self.ngram_range,
            sublinear_tf=self.sublinear_tf,
            tokenizer=words_in,
            token_pattern=None,
            vocabulary=None if words is None else {word: place for place, word in enumerate(words)},
        )

    def _fitted_text(self, name: str, counts: Counter[str], n_rows: int) -> TfidfVectorizer:
        """Make the vectorizer of words from their document frequencies."""
        least = self.min_df if not isinstance(self.min_df, float) else self.min_df * n_rows
        words = sorted(word for word, count in counts.items() if count >= least)
        if not words:
            why = f"no word occurs in {self.min_df!r} rows or more (`min_df`)" if counts else _NO_WORDS
            raise ParameterError(f"The text column {name!r} cannot be used: {why}.")
        made = self._text_vectorizer(words)
        # smoothed as in scikit-learn, in the same order of operations
        made.idf_ = np.log((n_rows + 1) / (np.array([counts[word] for word in words], float) + 1)) + 1
        return made

    @cached_property
    def _category_places(self) -> list[dict[str, int]]:
        return [{value: place for place, value in enumerate(values)} for values in self.categories_]

    def _scaled(self, table: RawTable) -> npt.NDArray[np.float64]:
        numbers = self._numbers(table)
        with np.errstate(over="ignore"):
            scaled: npt.NDArray[np.float64] = np.where(np.isnan(numbers), self.means_, numbers) - self.means_
            scaled /= self.scales_
        far = np.argwhere(np.abs(scaled) > LARGEST_FEATURE)
        if len(far):
            row, column = far[0]
            apart = f"{abs(scaled[row, column]):.1g} standard deviations from the training mean"
            found = f"{numbers[row, column]:g}, which is {apart}"
            expected = f"at most {LARGEST_FEATURE:g} of them away; fit to rows of the same scale"
            raise table.error(int(row), self.numeric[column], found, expected)
        return scaled

    def _numbers(self, table: RawTable) -> npt.NDArray[np.float64]:
        numbers = np.empty((len(table), len(self.numeric)))
        for place, name in enumerate(self.numeric):
            numbers[:, place] = table.numbers(name)
            self._refuse_missing(table, name, numbers[:, [place]])
        return numbers

    def _vectors(self, table: RawTable, name: str, length: int | None = None) -> Array:
        """Read a column of vectors (n, k), and check their length if it is known."""
        vectors = table.vectors(name, length)
        self._refuse_missing(table, name, vectors)
        return vectors

    def _refuse_missing(self, table: RawTable, name: str, numbers: Array) -> None:
        """Raise an error for missing numbers (n, k) of a column, unless means are imputed."""
        if self.missing_numeric == "error" and (missing := np.isnan(numbers).any(axis=1)).any():
            expected = ParameterMessage("a number; `missing_numeric='mean'` fills it in")
            raise table.error(int(np.argmax(missing)), name, "no number", expected)

    def _table(self, rows: Any) -> RawTable:
        table = rows if isinstance(rows, RawTable) else RawTable.of_frame(rows)
        absent = next((name for name in self.column_names if name not in table.columns), None)
        if absent is not None:
            has = listed_columns(str(absent), table.columns)
            raise ValueError(f"The table has no column {absent!r}; use one of its columns{has}.")
        return table


def refuse_no_scale(names: Sequence[str], counts: Any, variances: Any) -> None:
    """Raise an error for numeric columns without numbers, or whose variance overflows."""
    for name, n_numbers, variance in zip(names, counts, variances, strict=True):
        if not n_numbers:
            raise ValueError(f"The numeric column {name!r} has no number in any row; leave it out.")
        if not np.isfinite(variance):
            raise ValueError(
                f"The numeric column {name!r} has numbers so large that their variance overflows; change its "
                "unit, or leave it out."
            )


def one_hot(name: str, cells: list[str], places: Mapping[str, int]) -> sp.csr_array:
    """One-hot encode the cells of a column; unknown values have no entry.  Warn if no cell is known."""
    known = {cell: places.get(cell, places.get(_other_spelling(cell), -1)) for cell in set(cells)}
    if len(cells) >= _FEWEST_STRANGE and max(known.values()) < 0:
        said = f"none of {len(cells)} rows has a value of column {name!r} that occurs in training rows"
        shown = f"here {min(known)[:40]!r}, in training {min(places)[:40]!r}"
        warnings.warn(f"{said}, so the column has no effect: {shown}", UserWarning, stacklevel=2)
    found = np.array([known[cell] for cell in cells], np.int64)
    return ones_from_counts(found[found >= 0], found >= 0, len(places))


def _other_spelling(text: str) -> str:
    """Return 1.0 for 1 and 1 for 1.0: pandas writes integers as floats if one cell is missing."""
    found = _WHOLE_NUMBER.fullmatch(text)
    if found is None:
        return text
    return text.removesuffix(".0") if found[1] else f"{text}.0"
