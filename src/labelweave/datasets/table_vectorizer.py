"""Convert the columns of a table to one feature matrix, sparse unless all are vectors and numbers.

scikit-learn converts each; the fitted state is plain data and arrays, for model files without pickle.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Sequence, Sized
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from labelweave.datasets import table_cells, text_encoders
from labelweave.datasets.columns import part_of_date, parts_of_dates
from labelweave.datasets.csr_parts import with_narrow_indices
from labelweave.datasets.table_columns import KINDS, column_names, listed_columns, refuse_repeated
from labelweave.datasets.text_encoders import KeepsEncoder, KnownEncoder, TextParts
from labelweave.datasets.vector_files import DenseBlock
from labelweave.features.feature_matrix import LARGEST_FEATURE
from labelweave.foundation.arguments import ParameterError, checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.frames import as_pandas
from labelweave.foundation.vectors import stacked
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
_NO_WORDS = "it has no words; name it in `categorical` or `drop`"


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
        "encoder_weight": Optional(Number(0, text_encoders.LARGEST_WEIGHT)),
        "known_encoder": Optional(text_encoders.KNOWN_ENCODER),
    },
    {
        "vectors have a mean for each number": lambda state: (
            ("vectors" in state) == ("vector_means" in state)
        ),
        "words and values of a column are distinct, and words have a weight each": _has_own_words,
        "an encoder has texts and a weight": lambda state: (
            "known_encoder" not in state or bool(state["text"] and state.get("encoder_weight"))
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
        """Whether the features are a dense array."""
        return bool(self.vectors) and not (self.text or self.categorical)

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
        for frame in map(self._table, frames):
            n_rows += len(frame)
            self._see(frame, words, values)
            numbers.append(self._numbers(frame))
            blocks = [block + more for block, more in zip(blocks, self._blocks(frame), strict=True)]
        table = np.concatenate(numbers)
        with np.errstate(over="ignore", invalid="ignore"):
            scaler = StandardScaler().fit(table) if self.numeric else None  # it ignores NaN
        if scaler is not None:
            table_cells.refuse_no_scale(self.numeric, (~np.isnan(table)).sum(axis=0), scaler.var_)
        means, scales = (np.zeros(0), np.ones(0)) if scaler is None else (scaler.mean_, scaler.scale_)
        return self._keep(words, values, n_rows, means, scales, blocks)

    def _nothing_seen(self) -> tuple[list[Counter[str]], list[set[str]], int]:
        """Return empty counts: rows per word of each text column, values of categories, rows."""
        return [Counter() for _ in self.text], [set() for _ in self.categorical], 0

    def _see(self, frame: Any, words: list[Counter[str]], values: list[set[str]]) -> None:
        words_of = self._text_vectorizer().build_analyzer()
        for name, counts in zip(self.text, words, strict=True):
            for cell in table_cells.cells_of(frame, name):
                counts.update(set(words_of(cell)))
        for name, seen in zip(self.categorical, values, strict=True):
            seen.update(table_cells.cells_of(frame, name))

    def _blocks(self, frame: Any) -> list[DenseBlock]:
        """Sum the vectors of some rows."""
        return [DenseBlock.of(name, self._vectors(frame, name)) for name in self.vectors]

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
            The features: text, then categories, numbers, vectors.  Without text and categories, vectors make
            them dense, in float32 if all vectors are.

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
            vectorizer.transform(table_cells.cells_of(frame, name))
            for vectorizer, name in zip(self.text_vectorizers_, self.text, strict=True)
        ]
        for name, places in zip(self.categorical, self._category_places, strict=True):
            blocks.append(table_cells.one_hot(table_cells.known_cells(frame, name, places), places))
        blocks += map(sp.csr_array, dense)
        blocks += self._encoded(frame)
        found = with_narrow_indices(sp.hstack(blocks, format="csr")).astype(np.float64)
        return found if self.encoder_ is None else self.text_parts.weighed(found, self.encoder_weight)

    def _encoded(self, frame: Any) -> list[sp.csr_array]:
        """Encode the text columns, if there is an encoder; raise an error if it is not that of the fit."""
        if self.encoder_ is None:
            return []
        if self._agreed is None or self._agreed is not self.encoder:
            self.encoder_.refuse_another(self.encoder)
            self._agreed = self.encoder
        size = self.encoder_.size
        return [
            sp.csr_array(text_encoders.encoded(self.encoder, table_cells.cells_of(frame, name), size))
            for name in self.text
        ]

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
            **{name: list(getattr(self, name)) for name in (*KINDS, "ngram_range")},
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
        means = zip(made.vectors, state.get("vector_means", ()), strict=True)
        made.vector_blocks_ = [DenseBlock(name, np.ones(found.shape), found) for name, found in means]
        made.text_vectorizers_ = [made._text_vectorizer(words) for words in map(_words_in, state["words"])]
        for vectorizer, idf in zip(made.text_vectorizers_, state["idf"], strict=True):
            vectorizer.idf_ = np.array(idf)
        made.categories_ = [list(values) for values in state["categories"]]
        made.decimal_marks_ = dict(state.get("decimal_marks", {}))
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
                f"is {abs(scaled[row, column]):.1g} standard deviations from the training mean, above "
                f"{LARGEST_FEATURE:g}; fit to rows of the same scale."
            )
        return scaled

    def _numbers(self, frame: Any) -> npt.NDArray[np.float64]:
        numbers = np.empty((len(frame), len(self.numeric)))
        for place, name in enumerate(self.numeric):
            numbers[:, place] = table_cells.numbers_of_cells(frame, name)
        self._refuse_missing(frame, numbers, self.numeric)
        return numbers

    def _vectors(self, frame: Any, name: str, length: int | None = None) -> Array:
        """Read a column of vectors (n, k), and check their length if it is known."""
        vectors = stacked(frame[name], table_cells.refusal_of(frame, name), length)
        self._refuse_missing(frame, vectors, [name] * vectors.shape[1])
        return vectors

    def _refuse_missing(self, frame: Any, numbers: Array, names: Sequence[str]) -> None:
        """Raise an error for missing numbers (n, k) of columns, unless means are imputed."""
        missing = np.isnan(numbers)
        if self.missing_numeric == "error" and missing.any():
            row, column = np.argwhere(missing)[0]
            raise ParameterError(
                f"Row {frame.index[row]}, column {names[column]!r} has no number; fill it in, or use "
                "`missing_numeric='mean'`."
            )

    def _table(self, frame: Any) -> Any:
        if not hasattr(frame := as_pandas(frame), "columns"):
            raise TypeError(f"X is of type {type(frame).__name__}; TableVectorizer needs a DataFrame.")
        names = self.column_names
        parts = {name: part_of_date(name, frame.columns) for name in self.numeric}
        for name, part in parts.items():
            if part is not None:
                cells = frame[part[0]].astype(object).where(frame[part[0]].notna(), None).tolist()
                frame = frame.assign(**{name: parts_of_dates(cells, part[1])})
        absent = next((name for name in names if name not in frame.columns), None)
        if absent is not None:
            has = listed_columns(str(absent), frame.columns)
            raise ValueError(f"The table has no column {absent!r}; use one of its columns{has}.")
        refuse_repeated(frame, names)
        return frame
