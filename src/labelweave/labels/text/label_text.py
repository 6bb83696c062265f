"""Embeddings of label names and descriptions, and the priors that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import checked_csr, numbers_of
from labelweave.foundation.frames import as_pandas, is_frame
from labelweave.labels.covariance import DenseCovariance
from labelweave.labels.covariance.sources import check_writable
from labelweave.labels.label_mean import LabelMean
from labelweave.labels.label_names import checked_names
from labelweave.labels.text.static_embeddings import feature_words, label_words, static_embeddings
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import TEXT, Items, Names, Number, Numbers

_LARGEST = 1e6  # bound of strengths and levels
Embedding = Callable[[list[str]], npt.ArrayLike]


@storable(
    "LabelText",
    {"names": Names("L"), "texts": Items(TEXT, "L"), "embeddings": Numbers("L k"), "center": Numbers("k")},
)
class LabelText:
    """Labels with names and descriptions, embedded as vectors.

    Parameters
    ----------
    descriptions : dict of str to str, DataFrame, Series, or sequence of str
        The description of each label by its name; a frame has names in its first column and descriptions in
        the second; a sequence has only names.  Without a description the text is the name, split into words.
    embedding : callable, array-like of shape (L, k) or None, default=None
        Encodes texts as an array, one row per text, or the rows themselves.  None is the mean of the static
        token embeddings of the package wordllama (``labelweave[text]``).

    Attributes
    ----------
    names : ndarray of str, shape (L,)
        The labels.
    texts : list of str
        The name of each label in words, and its description.
    embeddings : ndarray of shape (L, k)
        One row per label.
    center : ndarray of shape (k,)
        Their mean, the origin of directions; 0 for one label.

    Raises
    ------
    ValueError
        If a label is duplicate, a description is no text, or the embeddings are no finite rows.
    ImportError
        If no embedding is given and wordllama is not installed.

    Examples
    --------
    >>> from labelweave import LabelText
    >>> text = LabelText(["game::chess", "game::cards", "mail::spam"], [[1, 0], [1, 0.1], [0, 1]])
    >>> text.covariance(share=0.5, width=1.0).to_dense().round(2)
    array([[1.  , 0.49, 0.07],
           [0.49, 1.  , 0.07],
           [0.07, 0.07, 1.  ]])
    """

    def __init__(self, descriptions: Any, embedding: Embedding | npt.ArrayLike | None = None) -> None:
        given = described(descriptions)
        self.names: Array = _checked(list(given))
        self.texts = [" ".join([label_words(name), text]).strip() for name, text in given.items()]
        self.embeddings = _embedded(self.texts, embedding)
        several = len(self.names) > 1
        self.center = self.embeddings.mean(axis=0) if several else np.zeros(self.embeddings.shape[1])

    def __repr__(self) -> str:
        return f"LabelText({len(self.names)} labels, {self.embeddings.shape[1]} dimensions)"

    def __len__(self) -> int:
        return len(self.names)

    def directions(self) -> Array:
        """Return the centered embeddings, normalized to length 1.

        Returns
        -------
        ndarray of shape (L, k)
            One row per label; 0 at the center.
        """
        power = _power_of(np.vstack([self.embeddings, self.center]))
        return _unit(np.ldexp(self.embeddings, -power) - np.ldexp(self.center, -power))

    @checked
    def covariance(self, share: float = 0.6, width: float = 0.7) -> DenseCovariance:
        """Make labels of similar texts covary: ``(1 - share) I + share exp(-d^2 / (2 width^2))``.

        d is the distance of directions, from 0 to 2.  It combines with other covariances by ``+``, ``*`` (the
        product of entries), ``scaled`` and ``shrink``.

        Parameters
        ----------
        share : float, default=0.6
            The shared part of a label's variance, from 0 to 1.
        width : float, default=0.7
            The length scale of the kernel, above 0.

        Returns
        -------
        LabelCovariance
            The covariance, with variances 1.

        Raises
        ------
        ValueError
            If the share or the width is out of range, or there are more than 20,000 labels.
        """
        if not (0.0 <= share <= 1.0 and 1e-6 <= width <= 1e6):
            raise ValueError(
                f"share is {share} and width is {width}; share must be between 0 and 1, width between 1e-6 "
                "and 1e6."
            )
        check_writable(len(self), "A covariance of label texts")
        directions = self.directions()
        lengths = np.einsum("ij,ij->i", directions, directions)
        distances = np.maximum(lengths[:, None] + lengths - 2.0 * directions @ directions.T, 0.0)
        near = share * np.exp(-distances / (2.0 * width**2))
        near[np.diag_indices_from(near)] = 1.0
        return DenseCovariance.from_semidefinite(near, self.names)

    @checked
    def mean(
        self, features: Any, X: Any, strength: float = 1.0, level: float = 0.0,
        embedding: Embedding | None = None,
    ) -> LabelMean:  # fmt: skip
        """Compute prior scores from the similarity of words and label texts, linear in the features.

        Parameters
        ----------
        features : sequence of str or array-like of shape (d, k)
            The names of the features, such as words, or embeddings of them.
        X : {array-like, sparse matrix} of shape (n, d)
            Rows, over which the scores of every label have mean ``level``, and all together standard
            deviation ``strength``.
        strength : float, default=1.0
            The weight of the texts.
        level : float, default=0.0
            The mean score of a label.
        embedding : callable or None, default=None
            Embeds the names of features; None is the static embedding.

        Returns
        -------
        LabelMean
            The prior mean of scores.

        Raises
        ------
        ValueError
            If the number of features is not that of the columns of X, or their dimension is not that of the
            labels.
        """
        if not (0 <= strength <= _LARGEST and abs(level) <= _LARGEST):
            raise ValueError(
                f"strength is {strength} and level is {level}; both must be finite, strength >= 0."
            )
        rows = checked_csr(X, "X") if sp.issparse(X) else numbers_of(X, "X")
        if rows.ndim != 2 or not np.isfinite(rows.data if sp.issparse(rows) else rows).all():
            raise ValueError(
                f"X of shape {rows.shape} is invalid; pass finite numbers, of shape (rows, features)."
            )
        return TextScores.of(self, features, rows, embedding).mean(self, strength, level)

    def columns(self, labels: Array) -> Self:
        """Select labels, with the same center; see :meth:`labelweave.LabelCovariance.columns`."""
        texts = [self.texts[label] for label in labels]
        return self._made(self.names[labels], texts, self.embeddings[labels], self.center)

    def with_labels(self, descriptions: Any, embedding: Embedding | npt.ArrayLike | None = None) -> Self:
        """Append labels, with the same center.

        Parameters
        ----------
        descriptions : dict of str to str, DataFrame, Series, or sequence of str
            The new labels.
        embedding : callable, array-like or None, default=None
            Embeds them.

        Returns
        -------
        LabelText
            All labels.

        Raises
        ------
        ValueError
            If a label already exists, or has an embedding of another dimension.
        """
        new = type(self)(descriptions, embedding)
        if new.embeddings.shape[1] != len(self.center):
            raise ValueError(
                f"Embeddings of new labels have {new.embeddings.shape[1]} dimensions, but those of existing "
                f"labels have {len(self.center)}; use the same embedding."
            )
        names = _checked([*self.names, *new.names])
        return self._made(
            names, self.texts + new.texts, np.vstack([self.embeddings, new.embeddings]), self.center
        )

    @classmethod
    def _made(cls, names: Array, texts: list[str], embeddings: Array, center: Array) -> Self:
        made = cls.__new__(cls)
        made.names, made.texts, made.embeddings, made.center = names, texts, embeddings, center
        return made

    def to_state(self) -> dict[str, Any]:
        """Return what a model file stores; see :meth:`labelweave.model_files.Storable.to_state`."""
        return {
            "names": self.names.tolist(),
            "texts": list(self.texts),
            "embeddings": self.embeddings,
            "center": self.center,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the object; see :meth:`labelweave.model_files.Storable.from_state`."""
        parts = list(state["texts"]), state["embeddings"], state["center"]
        return cls._made(_checked(list(state["names"])), *parts)


@storable("TextScores", {"factors": Numbers("d k"), "middle": Numbers("k"), "spread": Number(0)})
class TextScores(StoredParameters):
    """Similarities of rows and texts: factors of the features, and statistics of training scores.

    factors (d, k): the centered embeddings of the features.
    middle (k,): the mean of the rows' embeddings.
    spread: the standard deviation of the scores of all labels, each minus its mean.
    """

    def __init__(self, factors: Array, middle: Array, spread: Any) -> None:
        self.factors, self.middle, self.spread = factors, middle, float(spread)

    @classmethod
    def of(cls, text: LabelText, features: Any, X: Any, embedding: Embedding | None = None) -> Self:
        """Compute the statistics of rows X (n, d); see :meth:`LabelText.mean`."""
        factors = _feature_embeddings(features, embedding)
        if factors.shape != (X.shape[1], len(text.center)):
            raise ValueError(
                f"features has shape {factors.shape}; it must be ({X.shape[1]}, {len(text.center)}), columns "
                "of X by dimensions of labels."
            )
        factors = factors - factors.mean(axis=0)
        latent = np.asarray(X @ factors, dtype=np.float64)
        middle, directions = latent.mean(axis=0), text.directions()
        power = _power_of(latent - middle)
        moved = np.ldexp(latent - middle, -power)
        moments = np.einsum("ij,ij->", (moved.T @ moved) / max(1, len(latent)), directions.T @ directions)
        return cls(factors, middle, np.ldexp(np.sqrt(max(0.0, float(moments)) / max(1, len(text))), power))

    def mean(self, text: LabelText, strength: float, level: float) -> LabelMean:
        """Return the prior mean of the scores of labels; see :meth:`LabelText.mean`."""
        factors = text.directions() * (strength / self.spread if self.spread > 0 else 0.0)
        return LabelMean(factors, self.factors, level - factors @ self.middle, text.names)


def described(given: Any) -> dict[str, str]:
    if isinstance(given, str | bytes):
        raise ValueError(
            f"descriptions is the text {given!r}; pass label names, or a dict of descriptions by name."
        )
    if is_frame(given):
        table = as_pandas(given)
        if table.shape[1] not in (1, 2):
            raise ValueError(f"descriptions has {table.shape[1]} columns; pass two, names and descriptions.")
        columns = [table.iloc[:, place].tolist() for place in range(table.shape[1])]
        pairs = list(zip(columns[0], columns[1] if len(columns) > 1 else [""] * len(table), strict=True))
    elif isinstance(given, Mapping) or hasattr(given, "items"):
        pairs = list(given.items())
    else:
        if not isinstance(given, Iterable) or getattr(given, "ndim", 1) != 1:
            raise ValueError(
                f"descriptions is of type {type(given).__name__}; pass a list of names, or a dict of texts "
                "by name."
            )
        pairs = [(name, "") for name in given]
    for name, text in pairs:
        if not isinstance(name, str | int | np.integer | tuple) or isinstance(name, bool):
            raise ValueError(f"A label name is of type {type(name).__name__}; use text or a number.")
        is_missing = text is None or (isinstance(text, float) and np.isnan(text))
        if not (isinstance(text, str) or is_missing):
            raise ValueError(f"The description of label {str(name)!r} is {text!r}; it must be text.")
    _checked([name for name, _ in pairs])
    return {str(name): text if isinstance(text, str) else "" for name, text in pairs}


def _checked(names: Sequence[Any]) -> Array:
    if not len(names):
        raise ValueError("descriptions is empty; pass at least one label.")
    found = checked_names([str(name) for name in names], len(names))
    assert found is not None, "names were given"
    return found


def _embedded(texts: list[str], embedding: Any) -> Array:
    if embedding is None:
        return static_embeddings(texts)
    is_own = callable(embedding) and not isinstance(embedding, type)
    found = numbers_of(embedding(texts) if is_own else embedding, "embedding")
    found = np.array(found, dtype=np.float64)
    if found.ndim != 2 or len(found) != len(texts) or not found.shape[1] or not np.isfinite(found).all():
        raise ValueError(
            f"embedding returned an invalid array of shape {found.shape} for {len(texts)} texts; it must "
            "return one finite row per text."
        )
    return found


def _feature_embeddings(features: Any, embedding: Embedding | None) -> Array:
    is_list = isinstance(features, list | tuple) or getattr(features, "ndim", 0) == 1
    if is_list and not sp.issparse(features) and not len(features):
        raise ValueError("features is empty; pass one name per feature.")
    if is_list and not sp.issparse(features) and all(isinstance(name, str) for name in features):
        return _embedded(feature_words(features), embedding)
    given = numbers_of(features, "features")
    if given.ndim != 2:
        raise ValueError(
            f"features has shape {given.shape}; pass one name, or one row of numbers, per feature."
        )
    return _embedded([""] * len(given), given)


def _power_of(table: Array) -> int:
    """Return the power of two that scales numbers to finite squares, without rounding."""
    return int(np.frexp(np.abs(table).max(initial=0.0))[1])


def _unit(table: Array) -> Array:
    """Normalize rows to length 1; 0 where a row, with entries of at most 1, is only rounding."""
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    return np.asarray(table / np.where(lengths > 1e-12, lengths, 1.0))
