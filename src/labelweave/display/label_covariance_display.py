"""A heat map of a label covariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from labelweave.array_types import Array
from labelweave.display.common_share import beyond_common_share, is_mostly_common
from labelweave.display.figures import size_in_points
from labelweave.display.heat_map import (
    draw_heat_map,
    labels_a_square,
    name_rows_and_columns,
    new_axes,
    write_values,
)
from labelweave.display.label_order import cluster_order, most_related
from labelweave.display.label_texts import wrapped_text
from labelweave.labels import LabelCovariance

__all__ = ["LabelCovarianceDisplay"]


_WEAK = 0.25  # correlations that are all below this get a scale of their own
_MOST_WRITTEN = 12  # labels up to which the numbers are written into the cells


class LabelCovarianceDisplay:
    """A heat map of the correlations, or covariances, between labels.

    Make one with :meth:`from_covariance` or :meth:`from_estimator`; both draw it.  Where labels are so many
    that single cells could not be seen, several share a square, which has the colour of its strongest value.

    Parameters
    ----------
    matrix : ndarray of shape (k, k)
        The values, rows and columns in the order of the picture.
    label_names : sequence of str
        The names of the labels, in that order.
    quantity : {"correlation", "covariance"}, default="correlation"
        What the values are.
    note : str, default=""
        A remark to stand below the picture.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes of the picture.
    figure_ : matplotlib.figure.Figure
        Its figure.
    image_ : matplotlib.image.AxesImage
        The coloured cells.

    Examples
    --------
    >>> from labelweave import LabelCovariance
    >>> from labelweave.display import LabelCovarianceDisplay
    >>> animals = LabelCovariance.from_signatures([[1, 1, 0], [1, 0, 0], [0, 0, 1]])
    >>> display = LabelCovarianceDisplay.from_covariance(animals, ["fur", "paws", "fins"])
    >>> print(*display.label_names)
    fins paws fur
    """

    def __init__(
        self,
        matrix: Array,
        label_names: Sequence[str] | Array,
        quantity: Literal["correlation", "covariance"] = "correlation",
        note: str = "",
    ) -> None:
        self.matrix = np.asarray(matrix, dtype=np.float64)
        self.label_names = label_names
        self.quantity = quantity
        self.note = note

    @classmethod
    def from_covariance(
        cls,
        covariance: LabelCovariance,
        label_names: Sequence[str] | Array | None = None,
        *,
        correlations: bool = True,
        centered: bool | None = None,
        order: Literal["cluster", "given"] = "cluster",
        max_labels: int = 1000,
        **plot_options: Any,
    ) -> LabelCovarianceDisplay:
        """Draw a covariance.

        Parameters
        ----------
        covariance : LabelCovariance
            The covariance.
        label_names : sequence of str or None, default=None
            One name a label; by default those it carries, else the labels' numbers.
        correlations : bool, default=True
            Whether to show correlations, which are comparable between labels, or covariances.
        centered : bool or None, default=None
            Whether to take away what all labels share, which leaves about the correlations of 0/1 labels
            with their means taken away.  None does so only for more than 12 labels whose correlations are
            mostly beyond one half, such as those of rare labels, and says so below the picture.
        order : {"cluster", "given"}, default="cluster"
            Whether related labels are put together, or all kept in their order.
        max_labels : int, default=1000
            The most labels to show; of more, those with the strongest correlations.
        **plot_options : dict
            What :meth:`plot` takes.

        Returns
        -------
        LabelCovarianceDisplay
            The picture.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there are no labels, the names are not one a label, covariances are to be centred, or the
            order or number of labels is not allowed.
        """
        _check_choices(covariance, order, max_labels)
        if centered and not correlations:
            raise ValueError("centered=True takes correlations; leave correlations=False out.")
        names = _names(covariance, label_names)
        shown, notes = np.arange(covariance.n_labels), list[str]()
        if len(shown) > max_labels:
            shown = most_related(covariance, max_labels)
            notes = [f"{max_labels} of {covariance.n_labels} labels: those with the strongest correlations"]
        part = covariance.columns(shown)
        related = part.correlations()
        if correlations and _is_centered(related, centered):
            notes.append(f"without what all labels share: correlations around {_typical(related):+.2f}")
            related = beyond_common_share(related)
        places = cluster_order(related) if order == "cluster" else np.arange(len(shown))
        matrix = related if correlations else part.to_dense()
        quantity: Literal["correlation", "covariance"] = "correlation" if correlations else "covariance"
        display = cls(matrix[np.ix_(places, places)], names[shown[places]], quantity, "; ".join(notes))
        return display.plot(**plot_options)

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> LabelCovarianceDisplay:
        """Draw the label covariance that a fitted model used.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted, with a ``label_covariance_``.
        **options : dict
            What :meth:`from_covariance` takes.

        Returns
        -------
        LabelCovarianceDisplay
            The picture.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        TypeError
            If such a model has no label covariance.
        """
        model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        check_is_fitted(model)
        covariance = getattr(model, "label_covariance_", None)
        if not isinstance(covariance, LabelCovariance):
            raise TypeError(
                f"{type(model).__name__} has no label_covariance_ to draw; give a fitted model that has one, "
                "or draw a covariance with from_covariance."
            )
        names = model.label_names_
        if len(names) == covariance.n_labels:  # two classes are one label
            options.setdefault("label_names", names)
        return cls.from_covariance(covariance, **options)

    def plot(
        self, ax: Any = None, *, cmap: Any = "RdBu_r", limit: float | None = None, colorbar: bool = True
    ) -> LabelCovarianceDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; by default a new figure of a size that suits the number of labels.
        cmap : str or Colormap, default="RdBu_r"
            Colours from the most negative value to the most positive one.
        limit : float or None, default=None
            The value with the strongest colour; 0 is always in the middle.  By default
            1 for correlations, less if all are weak, and the largest covariance.
        colorbar : bool, default=True
            Whether to explain the colours.

        Returns
        -------
        LabelCovarianceDisplay
            This display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        owned = ax is None
        self.ax_ = new_axes(len(self.matrix)) if ax is None else ax
        self.figure_ = self.ax_.figure
        limit = self._limit() if limit is None else limit
        together = labels_a_square(self.ax_, len(self.matrix))
        self.image_ = draw_heat_map(self.ax_, self.matrix, limit, cmap, together)
        if colorbar:
            self._explain_colors(limit, owned, together)
        self.ax_.set_xlabel(wrapped_text(self.note, size_in_points(self.ax_)[0]), fontsize="small")
        name_rows_and_columns(self.ax_, self.label_names, owned)
        if len(self.matrix) <= _MOST_WRITTEN:
            write_values(self.ax_, self.matrix, limit)
        return self

    def _explain_colors(self, limit: float, owned: bool, together: int) -> None:
        clipped = np.abs(self.matrix).max(initial=0.0) > limit
        room = {"fraction": 0.046, "pad": 0.03} if owned else {}
        extend = "both" if clipped else "neither"
        of_many = f", the strongest of {together} × {together}" if together > 1 else ""
        self.figure_.colorbar(self.image_, ax=self.ax_, label=self.quantity + of_many, extend=extend, **room)

    def _limit(self) -> float:
        sizes = np.abs(self.matrix)
        strongest = float(sizes.max(initial=0.0))
        if self.quantity == "correlation":
            between = float((sizes - np.diag(sizes.diagonal())).max(initial=0.0))
            strongest = between if 0.0 < between < _WEAK else 1.0
        return strongest if strongest > 0 else 1.0


def _is_centered(correlations: Array, centered: bool | None) -> bool:
    if centered is None:
        return len(correlations) > _MOST_WRITTEN and is_mostly_common(correlations)
    return centered and len(correlations) > 1


def _typical(correlations: Array) -> float:
    return float(np.median(correlations[np.triu_indices(len(correlations), 1)]))


def _check_choices(covariance: LabelCovariance, order: str, max_labels: int) -> None:
    if covariance.n_labels == 0:
        raise ValueError("The covariance is over no labels; there is nothing to draw.")
    if order not in ("cluster", "given"):
        raise ValueError(f"order is {order!r}; it must be 'cluster' or 'given'.")
    if max_labels < 1:
        raise ValueError(f"max_labels is {max_labels}; it must be at least 1.")


def _names(covariance: LabelCovariance, label_names: Sequence[str] | Array | None) -> Array:
    names = covariance.label_names if label_names is None else label_names
    names = np.asarray(range(covariance.n_labels) if names is None else names).astype(np.str_)
    if names.shape != (covariance.n_labels,):
        raise ValueError(
            f"{len(names)} label names were given for a covariance over {covariance.n_labels} labels; "
            "give one name a label."
        )
    return names
