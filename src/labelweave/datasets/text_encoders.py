"""Embeddings of texts by an encoder, in addition to words; what is stored of an encoder without its code."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from labelweave.foundation.arguments import shown
from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.sklearn_compat import _clone_parametrized
from labelweave.labels.text.static_embeddings import digest_of_vectors, static_embeddings
from labelweave.model_files.schema import TEXT, Maybe, Numbers, Record, count

Encoder = Callable[[list[str]], npt.ArrayLike] | Literal["static"]

_PROBES = ["a red rose", "How do I install the driver?", "Die Katze schläft.", "12.5 % of 3,000"]
_DIRECTIONS = 4  # along which the embeddings of probes are compared
LARGEST_WEIGHT, _LARGEST_SIZE = 1e6, 2**16
KNOWN_ENCODER = Record(
    {
        "name": TEXT,
        "size": count(least=1, most=_LARGEST_SIZE),
        "digest": Maybe(TEXT, Numbers("_ _"), none=False),
    }
)
"""What a model file may hold of a :class:`KnownEncoder`."""

_NEAR = 0.02  # tolerance for differences between machines, of vectors of length 1


def refuse_encoder(encoder: Any, weight: float, *, has_text: bool) -> None:
    """Raise an error for an invalid encoder, one without text columns, or a weight out of range."""
    if not 0 <= weight <= LARGEST_WEIGHT:
        raise ValueError(f"encoder_weight is {weight!r}; it must be between 0 and {LARGEST_WEIGHT:g}.")
    if encoder is None:
        return
    is_function = callable(encoder) and not isinstance(encoder, type)
    if not (is_function or (isinstance(encoder, str) and encoder == "static")):
        said = "it must be 'static', a callable from a list of texts to an array (n, k), or None"
        raise ValueError(f"encoder is {shown(encoder)}; {said}.")
    if not has_text:
        raise ValueError("encoder is set, but no column is text; name one as text, or leave encoder out.")


def encoded(encoder: Encoder, texts: list[str], size: int | None = None) -> Floats:
    """Encode texts as rows of length 1, shape (n, k); a row of zeros stays.

    size: k, if known.  Raises ValueError unless the encoder returns n finite rows.
    """
    if not texts:
        return np.zeros((0, size or 0))
    returned = static_embeddings(texts) if isinstance(encoder, str) else encoder(texts)
    try:
        found = np.asarray(returned)
    except (ValueError, TypeError, RuntimeError) as error:  # as of tensors on a GPU
        raise ValueError(
            f"The encoder returned no array ({error}); it must return one row per text."
        ) from error
    is_table = found.dtype.kind in "fiu" and found.ndim == 2 and 0 < found.shape[1] <= _LARGEST_SIZE
    if not is_table or found.shape != (len(texts), size or found.shape[1]):
        what = f"{found.dtype} of shape {found.shape}"
        wanted = f"numbers of shape ({len(texts)}, {size or 'k'}), one row per text"
        raise ValueError(f"The encoder returned {what} for {len(texts)} text(s); it must return {wanted}.")
    if not np.isfinite(found).all():
        row = int(np.argmin(np.isfinite(found).all(axis=1)))
        raise ValueError(
            f"The encoder returned NaN or infinity for {shown(texts[row])}; it must return finite numbers."
        )
    unit: Floats = normalize(normalize(found.astype(np.float64), "max"))  # squares of the largest overflow
    return unit


@dataclass(frozen=True)
class KnownEncoder:
    """What a fit stores of an encoder, without its code.

    name: "static", or the origin of the callable.
    size: the dimension of its embeddings.
    digest: of the file of static vectors; of a callable, projected embeddings of some texts, shape (p, q).
    """

    name: str
    size: int
    digest: str | Array

    @classmethod
    def of(cls, encoder: Encoder) -> Self:
        """Encode some probe texts, and record the result."""
        vectors = encoded(encoder, _PROBES)
        size = vectors.shape[1]
        if isinstance(encoder, str):
            return cls(encoder, size, digest_of_vectors())
        source = encoder if hasattr(encoder, "__qualname__") else type(encoder)
        directions = np.cos(np.outer(np.arange(size), np.arange(1, _DIRECTIONS + 1)))
        return cls(f"{source.__module__}.{source.__qualname__}", size, vectors @ directions)

    def refuse_another(self, encoder: Encoder | None) -> None:
        """Raise an error if the encoder is missing or returns other embeddings."""
        if encoder is None:
            said = f"it was fitted with the encoder {self.name}, which model files cannot hold"
            raise ValueError(f"The model needs its encoder: {said}; call set_params(encoder=...).")
        found = KnownEncoder.of(encoder)
        if isinstance(self.digest, str) or isinstance(found.digest, str):
            is_same = np.array_equal(found.digest, self.digest)
        else:
            is_same = found.size == self.size and bool(np.abs(found.digest - self.digest).max() < _NEAR)
        if not is_same:
            raise ValueError(
                f"The encoder {found.name} returns other vectors than {self.name}, which the model was "
                "fitted with; set that one, in the same version, or fit again."
            )


@dataclass(frozen=True)
class TextParts:
    """Which features belong to which text column: words first, embeddings after all other features.

    columns (d,): the number of each feature's text column, from 1; 0 for others.
    first: the index of the first embedding feature.
    """

    columns: Array
    first: int

    @classmethod
    def of(cls, n_words: Sequence[int], n_others: int, size: int) -> Self:
        """Lay out the features: words per text column, others, and embeddings of one size."""
        numbers = np.arange(1, len(n_words) + 1)
        parts = [np.repeat(numbers, n_words), np.zeros(n_others, np.int64), np.repeat(numbers, size)]
        return cls(np.concatenate(parts), int(sum(n_words)) + n_others)

    def weighed(self, X: sp.csr_array, weight: float) -> sp.csr_array:
        """Weight embeddings relative to words, and normalize both together; 0 keeps only words."""
        wide = int(self.columns.max()) + 1
        cells = np.repeat(np.arange(X.shape[0]) * wide, np.diff(X.indptr)) + self.columns[X.indices]
        data = X.data * np.where(X.indices >= self.first, weight, 1.0)
        lengths = np.sqrt(np.bincount(cells, np.square(data), X.shape[0] * wide))
        lengths[::wide] = 1.0  # features of no text column
        data /= np.where(lengths > 0, lengths, 1.0)[cells]
        found = sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
        return found if weight > 0 else found[:, : self.first]


class KeepsEncoder:
    """Mixin for estimators with an encoder: their clones share it without a copy."""

    encoder: Any

    def __sklearn_clone__(self) -> Self:
        bare = copy.copy(self)
        bare.encoder = None
        made: Self = _clone_parametrized(bare)
        made.encoder = self.encoder
        return made
