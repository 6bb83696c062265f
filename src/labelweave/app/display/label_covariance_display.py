"""Heat map of a label covariance, with related labels next to each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from labelweave.app.display.figures import Display, settle_layout, short_text, size_in_points, wrapped_text
from labelweave.app.display.given_labels import Names, fitted_model, one_name_a_label
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels
from labelweave.labels import LabelCovariance

Quantity: TypeAlias = Literal["correlation", "covariance"]

_POINTS_A_NAME = 6.5  # the smallest readable height of a line of text
_FONT_SIZES = (5.0, 10.0)
_NAMES_ON_BOTH_SIDES = 60
_CELLS_WITH_LINES = 40
_LEAST_SQUARE = 1.8  # points; smaller ones are invisible
_LETTER = 0.6  # width in font sizes
_VALUE_LETTERS = 5.5  # "−0.17" and some space
_VALUE_FONTS = (4.5, 8.5)
_WEAK = 0.25  # if all correlations are below, the color scale adapts to them
_MOST_WRITTEN = 12  # largest number of labels for numbers in the cells
_ROWS_AT_ONCE = 500
_MOST_TO_SEARCH = 20_000  # labels whose pairs are all compared
_MOST_TO_FLIP = 500  # largest number of labels for optimal leaf ordering, which is slow
_DECIMALS = 9  # rounding must not decide between equal pairs
_MOSTLY = 0.5  # median absolute correlation from which labels have a dominant common factor
_MOST_STEPS = 100
_SETTLED = 1e-8
_MEDIAN_STEPS = 3
_ENOUGH_FOR_MEDIANS = 20  # labels
_LEAST_LOADING = 0.1  # labels with a smaller loading on the common factor do not inform that of others
_LEAST_OWN = 1e-6  # variance; a label with less of its own counts as uncorrelated with others


def _cell_size(ax: Any, n_labels: int) -> float:
    """Return the side of a label's cell in points, or slightly more before the figure is laid out."""
    return max(1.0, min(size_in_points(ax))) / max(1, n_labels)


def draw_heat_map(ax: Any, matrix: Array, limit: float, cmap: Any, together: int = 1) -> Any:
    """Color the cells, up to a limit; a square of several labels has their strongest value."""
    squares = matrix if together == 1 else _strongest(matrix, together)
    end = len(squares) * together - 0.5
    image = ax.imshow(
        squares, cmap=cmap, vmin=-limit, vmax=limit, interpolation_stage="data", extent=(-0.5, end, end, -0.5)
    )
    ax.set(xlim=(-0.5, len(matrix) - 0.5), ylim=(len(matrix) - 0.5, -0.5))
    if len(matrix) <= _CELLS_WITH_LINES:
        borders = np.arange(len(matrix) + 1) - 0.5
        ax.set_xticks(borders, minor=True)
        ax.set_yticks(borders, minor=True)
        ax.grid(which="minor", color="white", linewidth=1)
        ax.tick_params(which="minor", length=0)
        ax.spines[:].set_visible(False)
    return image


def _strongest(matrix: Array, together: int) -> Array:
    """Return the entry of the largest absolute value in every square block, without the diagonal."""
    count = math.ceil(len(matrix) / together)
    padded = np.pad(matrix, (0, count * together - len(matrix)))
    np.fill_diagonal(padded, 0.0)
    blocks = padded.reshape(count, together, count, together)
    high, low = blocks.max(axis=(1, 3)), blocks.min(axis=(1, 3))
    return np.asarray(np.where(high >= -low, high, low))


def write_values(ax: Any, matrix: Array, limit: float) -> None:
    """Write the values into the cells, as large as they fit, white on dark colors."""
    size = float(np.clip(_cell_size(ax, len(matrix)) / (_VALUE_LETTERS * _LETTER), *_VALUE_FONTS))
    options = {"ha": "center", "va": "center", "fontsize": size}
    for (row, column), value in np.ndenumerate(matrix):
        color = "white" if abs(value) > 0.6 * limit else "black"
        text = f"{value:z.2g}" if limit > 1 else f"{value:z.2f}"
        ax.text(column, row, text.replace("-", "\N{MINUS SIGN}"), color=color, **options)


def name_rows_and_columns(ax: Any, names: Sequence[str] | Array, owned: bool) -> None:
    """Name as many rows as are readable, and columns if they are few; lay out a new figure for it."""
    short = [short_text(name) for name in names]
    _set_names(ax, short)
    if owned or ax.figure.canvas.figure.get_layout_engine() is not None:
        # names shrink the cells, which determines how many fit
        settle_layout(ax)
        _set_names(ax, short)


def _set_names(ax: Any, names: list[str]) -> None:
    n_labels = len(names)
    height = size_in_points(ax)[1] / max(1, n_labels)
    step = max(1, math.ceil(_POINTS_A_NAME / height))
    size = float(np.clip(0.85 * step * height, *_FONT_SIZES))
    ax.set_yticks(range(0, n_labels, step), names[::step], fontsize=size)
    if n_labels <= _NAMES_ON_BOTH_SIDES:
        ax.set_xticks(range(0, n_labels, step), names[::step], fontsize=size, rotation=90)
    else:
        ax.set_xticks([])


class LabelCovarianceDisplay(Display):
    """Heat map of the correlations, or covariances, between labels.

    If there are too many labels for visible cells, several share a square, which has the color of its
    strongest value.  The colored cells are ``image_``, in the axes ``ax_`` of ``figure_``.

    Parameters
    ----------
    matrix : ndarray of shape (k, k)
        The values, rows and columns in the order of the plot.
    label_names : sequence of str
        The names of the labels, in this order.
    quantity : {"correlation", "covariance"}, default="correlation"
        The kind of the values.
    note : str, default=""
        A note below the plot.

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
        self, matrix: Array, label_names: Names, quantity: Quantity = "correlation", note: str = ""
    ) -> None:
        self.matrix = np.asarray(matrix, dtype=np.float64)
        self.label_names = label_names
        self.quantity = quantity
        self.note = note

    @classmethod
    @checked
    def from_covariance(
        cls, covariance: LabelCovariance, label_names: Names | None = None, *, correlations: bool = True,
        centered: bool | None = None, order: Literal["cluster", "given"] = "cluster",
        max_labels: int = 1000, **options: Any,
    ) -> Self:  # fmt: skip
        """Plot a covariance.

        Parameters
        ----------
        covariance : LabelCovariance
            The covariance.
        label_names : sequence of str or None, default=None
            One name per label; by default those of the covariance, else the labels' numbers.
        correlations : bool, default=True
            Whether to show correlations, which are comparable between labels, or covariances.
        centered : bool or None, default=None
            Whether to remove the common factor of all labels, which leaves about the correlations of centered
            0/1 labels.  None does so only for more than 12 labels whose correlations are mostly above one
            half, such as those of rare labels, and notes it below the plot.
        order : {"cluster", "given"}, default="cluster"
            Whether to cluster related labels, or to keep their order.
        max_labels : int, default=1000
            Maximum number of labels to show; of more, those with the strongest correlations.
        **options : dict
            Further options: see :meth:`plot`.

        Raises
        ------
        ValueError
            If there are no labels, there is not one name per label, covariances are to be centered, or the
            order or number of labels is invalid.
        """
        if covariance.n_labels == 0:
            raise ValueError("The covariance has no labels to plot.")
        if order not in ("cluster", "given"):
            raise ValueError(f"order is {order!r}; it must be 'cluster' or 'given'.")
        if max_labels < 1:
            raise ValueError(f"max_labels is {max_labels}; it must be at least 1.")
        if centered and not correlations:
            raise ValueError("centered=True needs correlations; leave correlations=False out.")
        names = covariance.label_names if label_names is None else label_names
        names = one_name_a_label(
            range(covariance.n_labels) if names is None else names, covariance.n_labels, "covariance"
        )
        shown, notes = np.arange(covariance.n_labels), list[str]()
        if len(shown) > max_labels:
            shown = most_related(covariance, max_labels)
            notes = [f"{max_labels} of {covariance.n_labels} labels: those with the strongest correlations"]
        part = covariance.columns(shown)
        related = part.correlations()
        if centered is None:
            centered = len(related) > _MOST_WRITTEN and is_mostly_common(related)
        if correlations and centered and len(related) > 1:
            typical = np.median(related[np.triu_indices(len(related), 1)])
            notes.append(f"without the common factor: correlations around {typical:+.2f}")
            related = beyond_common_share(related)
        places = cluster_order(related) if order == "cluster" else np.arange(len(shown))
        matrix = related if correlations else part.to_dense()
        quantity: Quantity = "correlation" if correlations else "covariance"
        display = cls(matrix[np.ix_(places, places)], names[shown[places]], quantity, "; ".join(notes))
        return display.plot(**options)

    @classmethod
    @checked
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """Plot the ``label_covariance_`` of a fitted model; TypeError if it has none.

        For the model see :meth:`LabelQualityDisplay.from_estimator`; the options are those of
        :meth:`from_covariance`.
        """
        model = fitted_model(estimator)
        covariance = getattr(model, "label_covariance_", None)
        if not isinstance(covariance, LabelCovariance):
            raise TypeError(
                f"{type(model).__name__} has no label_covariance_ to plot; pass a fitted model that has one, "
                "or plot a covariance with from_covariance."
            )
        names = model.label_names_
        if len(names) == covariance.n_labels:  # two classes are one label
            options.setdefault("label_names", names)
        return cls.from_covariance(covariance, **options)

    @checked
    def plot(
        self, ax: Any = None, *, cmap: Any = "RdBu_r", limit: float | None = None, colorbar: bool = True
    ) -> Self:
        """Plot the heat map; for ``ax`` see :meth:`LabelQualityDisplay.plot`.

        Parameters
        ----------
        cmap : str or Colormap, default="RdBu_r"
            Colors from the most negative value to the most positive one.
        limit : float or None, default=None
            The value with the strongest color; 0 is always in the middle.  By default
            1 for correlations, less if all are weak, and the largest covariance.
        colorbar : bool, default=True
            Whether to show a color bar.
        """
        owned = ax is None
        side = min(max(4.5, 3.0 + 0.11 * len(self.matrix)), 10.0)  # inches
        self._begin(ax, side * 1.15, side)
        limit = self._limit() if limit is None else limit
        together = max(1, math.ceil(_LEAST_SQUARE / _cell_size(self.ax_, len(self.matrix))))
        self.image_ = draw_heat_map(self.ax_, self.matrix, limit, cmap, together)
        if colorbar:
            self._explain_colors(limit, owned, together)
        self.ax_.set_xlabel(wrapped_text(self.note, size_in_points(self.ax_)[0]), fontsize="small")
        name_rows_and_columns(self.ax_, self.label_names, owned)
        if len(self.matrix) <= _MOST_WRITTEN:
            write_values(self.ax_, self.matrix, limit)
        return self

    def _explain_colors(self, limit: float, owned: bool, together: int) -> None:
        room = {"fraction": 0.046, "pad": 0.03} if owned else {}
        extend = "both" if np.abs(self.matrix).max(initial=0.0) > limit else "neither"
        of_many = f", the strongest of {together} × {together}" if together > 1 else ""
        self.figure_.colorbar(self.image_, ax=self.ax_, label=self.quantity + of_many, extend=extend, **room)

    def _limit(self) -> float:
        sizes = np.abs(self.matrix)
        strongest = float(sizes.max(initial=0.0))
        if self.quantity == "correlation":
            between = float((sizes - np.diag(sizes.diagonal())).max(initial=0.0))
            strongest = between if 0.0 < between < _WEAK else 1.0
        return strongest if strongest > 0 else 1.0


def cluster_order(correlations: Array) -> Array:
    """Order labels by average-linkage clustering at the distance 1 - correlation."""
    n_labels = len(correlations)
    if n_labels < 3:
        return np.arange(n_labels)
    distances = np.round(1.0 - correlations, _DECIMALS)
    np.fill_diagonal(distances, 0.0)
    pairs = squareform(distances, checks=False)
    tree = linkage(pairs, method="average", optimal_ordering=n_labels <= _MOST_TO_FLIP)
    return np.asarray(leaves_list(tree))


def most_related(covariance: LabelCovariance, count: int) -> Array:
    """Return the labels with the largest sum of squared correlations with others."""
    n_labels = covariance.n_labels
    if covariance.is_diagonal:
        return np.arange(count)
    if n_labels > _MOST_TO_SEARCH:
        raise ValueError(
            f"The covariance has {n_labels} labels, too many to find the {count} most related ones; "
            "choose labels with covariance.columns(labels) and plot these."
        )
    variances, every = np.maximum(covariance.diagonal(), 0.0), np.arange(n_labels)
    precisions = np.divide(1.0, variances, out=np.zeros(n_labels), where=variances > 0)
    related = np.empty(n_labels)
    for part in panels(n_labels, _ROWS_AT_ONCE):
        rows = every[part]
        related[rows] = precisions[rows] * (covariance.block(rows, every) ** 2 @ precisions)
    return np.sort(np.argsort(-np.round(related, _DECIMALS), kind="stable")[:count])


def is_mostly_common(correlations: Array) -> bool:
    """Whether the median absolute correlation of different labels is above one half."""
    between = correlations[np.triu_indices(len(correlations), 1)]
    return bool(len(between) and np.median(np.abs(between)) > _MOSTLY)


def beyond_common_share(correlations: Array) -> Array:
    """Remove the common factor of all labels: return correlations given this factor."""
    shared = _loadings(np.asarray(correlations, dtype=np.float64))
    own = 1.0 - shared**2
    scales = np.divide(1.0, np.sqrt(own), out=np.zeros_like(own), where=own > _LEAST_OWN)
    found = (correlations - np.outer(shared, shared)) * np.outer(scales, scales)
    np.fill_diagonal(found, 1.0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _loadings(correlations: Array) -> Array:
    """Fit the off-diagonal entries by products of one number per label."""
    between = correlations.copy()
    np.fill_diagonal(between, 0.0)
    sums = between.sum(axis=1)
    shared = np.where(sums < 0, -1.0, 1.0) * np.sqrt(np.abs(between).mean(axis=1))
    for _ in range(_MOST_STEPS):
        others = shared @ shared - shared**2
        wanted = np.divide(between @ shared, others, out=np.zeros_like(shared), where=others > 0)
        step = np.clip(wanted, -1.0, 1.0) - shared
        shared = shared + step / 2  # full steps oscillate
        if np.abs(step).max(initial=0.0) < _SETTLED:
            break
    return _by_medians(correlations, shared)


def _by_medians(correlations: Array, shared: Array) -> Array:
    for _ in range(_MEDIAN_STEPS):
        telling = np.abs(shared) > _LEAST_LOADING
        if telling.sum() < _ENOUGH_FOR_MEDIANS:
            break
        consistent = correlations.copy()
        np.fill_diagonal(consistent, shared**2)
        shared = np.clip(np.median(consistent[:, telling] / shared[telling], axis=1), -1.0, 1.0)
    return shared
