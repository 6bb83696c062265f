"""A taxonomy with the errors of a model at every node."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from labelweave.app.display.figures import Display, settle_layout, size_in_points
from labelweave.app.display.given_labels import fitted_model, model_truth, named_labels, predicted_labels
from labelweave.app.display.icicle import Icicle, NodeTexts, icicle_of, rarest_parents, tail_names
from labelweave.decisions.layers import taxonomy_of
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Floats
from labelweave.labels import Taxonomy
from labelweave.labels.targets import has_many_labels
from labelweave.metrics._classes import read_predicted, read_values
from labelweave.metrics._inputs import read_predictions
from labelweave.metrics.class_metrics import as_nodes

_LEAF_HEIGHT = 0.19  # inches
_HEIGHTS = (2.4, 10.0)
_COLUMN_WIDTH = 1.9
_WIDTHS = (5.0, 14.0)
_LEAST_LIMIT = 0.1
_NARROWEST_COLUMN, _COLUMN_OF_LARGE = 28.0, 90.0  # points; the second fits names and numbers of a large tree
_SHARE_OF_TREE = 0.6  # of the width; the rest is for names next to it
_FEWEST_LEVELS = 2
_MOST_EQUAL_LEAVES = 150  # so that they stay visible


def node_errors(taxonomy: Taxonomy, y_true: Any, y_pred: Any) -> tuple[Floats, Floats]:
    """Count the rows with true labels at or below each node, and those of them predicted elsewhere."""
    read = _of_labels if has_many_labels(y_true) else _of_classes
    below, found = read(taxonomy, y_true, y_pred)
    rows = np.asarray(below.sum(axis=0), np.float64)
    return rows, rows - np.asarray(below.multiply(found).sum(axis=0), np.float64)


def _of_labels(taxonomy: Taxonomy, y_true: Any, y_pred: Any) -> tuple[sp.csr_array, sp.csr_array]:
    labels = named_labels(y_true, y_pred)
    above = taxonomy.membership(labels.words)
    return labels.positives @ above != 0, read_predictions(y_pred, labels) @ above != 0


def _of_classes(taxonomy: Taxonomy, y_true: Any, y_pred: Any) -> tuple[sp.csr_array, sp.csr_array]:
    truths = read_values(y_true, "y_true")
    seen = truths != None  # noqa: E711
    if not seen.any():
        raise ValueError(
            f"y_true of {len(truths)} rows has no observed class, so there are no errors to show; pass at "
            "least one."
        )
    predictions = read_predicted(y_pred, len(truths))
    predictions[~seen] = None  # they are not compared
    true, predicted = as_nodes(truths, "y_true", taxonomy), as_nodes(predictions, "y_pred", taxonomy)
    return taxonomy.membership(true[seen]), taxonomy.membership(predicted[seen])


class TaxonomyDisplay(Display):
    """Icicle plot of a hierarchy, with every node colored by the share of its rows predicted outside it.

    A row belongs to a node if its true label is the node or a descendant, and is wrong there if no predicted
    label is.  Errors grow from left to right.  A node's text is its name, the share and its number of rows.
    If leaves are too thin for text, those with the most wrong rows are named on the right.  A node of several
    parents is placed under the one with the fewest rows.

    Parameters
    ----------
    taxonomy : Taxonomy
        The hierarchy.
    rows : array-like of shape (nodes,)
        Rows of each node, in the order of ``taxonomy.nodes``.
    wrong : array-like of shape (nodes,)
        Those of them that are predicted elsewhere.

    Attributes
    ----------
    errors_ : dict of str to float
        The share of wrong rows of every node that has rows.

    See Also
    --------
    labelweave.metrics.taxonomic_loss : Distance of predictions from the truth in the tree.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.display import TaxonomyDisplay
    >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"], "plant": None})
    >>> display = TaxonomyDisplay.from_predictions(tree, ["dog", "dog", "cat"], ["dog", "cat", "plant"])
    >>> {name: round(share, 2) for name, share in display.errors_.items()}
    {'animal': 0.33, 'dog': 0.5, 'cat': 1.0}
    """

    def __init__(self, taxonomy: Taxonomy, rows: Any, wrong: Any) -> None:
        self.taxonomy = taxonomy
        self.rows = np.asarray(rows, dtype=np.float64)
        self.wrong = np.asarray(wrong, dtype=np.float64)
        shares = self.wrong / np.where(self.rows > 0, self.rows, np.nan)
        pairs = zip(taxonomy.nodes, shares.tolist(), strict=True)
        self.errors_ = {name: share for name, share in pairs if not np.isnan(share)}

    @classmethod
    @checked
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, taxonomy: Any = None, **options: Any) -> Self:
        """Plot the errors of a fitted model on some rows, whose classes or labels are nodes.

        For model, rows and errors see :meth:`LabelQualityDisplay.from_estimator`.

        Parameters
        ----------
        taxonomy : Taxonomy, or what ``Taxonomy.from_any`` reads, or None, default=None
            The tree, by default that of the model.
        **options : dict
            Further options: see :meth:`plot`.
        """
        tree = taxonomy_of_model(fitted_model(estimator), taxonomy)
        if not has_many_labels(y):
            return cls.from_predictions(tree, y, estimator.predict(X), **options)
        truth = model_truth(estimator, y)
        return cls.from_predictions(tree, truth, predicted_labels(estimator, X, truth), **options)

    @classmethod
    @checked
    def from_predictions(cls, taxonomy: Any, y_true: Any, y_pred: Any, **options: Any) -> Self:
        """Plot the errors of given predictions.

        Parameters
        ----------
        taxonomy : Taxonomy, or what ``Taxonomy.from_any`` reads
            The tree.
        y_true : array-like of shape (n,) or (n, L), sparse matrix, DataFrame or LabelMatrix
            Names of nodes, None or NaN where not observed; or labels that are named by nodes.
        y_pred : array-like of shape (n,) or (n, L), sparse matrix, DataFrame or LabelMatrix
            The predictions, of the same kind.
        **options : dict
            Further options: see :meth:`plot`.

        Raises
        ------
        ValueError
            If a name is no node, shapes disagree or nothing was observed.
        """
        graph = Taxonomy.from_any(taxonomy)
        return cls(graph, *node_errors(graph, y_true, y_pred)).plot(**options)

    @checked
    def plot(
        self, ax: Any = None, *, leaf_height: Literal["auto", "equal", "rows"] = "auto",
        max_levels: int | None = None, cmap: Any = "YlOrRd", limit: float | None = None,
        colorbar: bool = True,
    ) -> Self:  # fmt: skip
        """Plot the tree; for ``ax`` see :meth:`LabelQualityDisplay.plot`.

        Parameters
        ----------
        leaf_height : {"auto", "equal", "rows"}, default="auto"
            Whether all leaves are equally tall, or proportional to their rows, which keeps frequent ones
            readable in a large tree; "auto" is "equal" up to 150 leaves.
        max_levels : int or None, default=None
            Maximum number of levels to show, by default as many as fit with text.
        cmap : str or Colormap, default="YlOrRd"
            Colors from no error to the largest.
        limit : float or None, default=None
            The error with the strongest color, by default the largest one and at least 0.1.
        colorbar : bool, default=True
            Whether to show a color bar.
        """
        if leaf_height not in ("auto", "equal", "rows"):
            raise ValueError(f"leaf_height is {leaf_height!r}; it must be 'auto', 'equal' or 'rows'.")
        tree = rarest_parents(self.taxonomy, self.rows)
        order = self.taxonomy._numbers(tree.nodes)
        counts = self.rows[order], self.wrong[order]
        is_large = len(tree.leaves) > _MOST_EQUAL_LEAVES and counts[0][tree.is_leaf(tree.nodes)].any()
        by_rows = leaf_height == "rows" or (leaf_height == "auto" and is_large)
        whole = icicle_of(tree, counts[0] if by_rows else None)
        self._begin(ax, *_size(whole))
        narrowest = _COLUMN_OF_LARGE if is_large else _NARROWEST_COLUMN
        layout = whole.upper(self._shown_levels(whole.n_columns, max_levels, narrowest))
        cells = self._draw_cells(layout, counts, cmap, limit)
        if colorbar:
            from matplotlib.ticker import PercentFormatter

            room = {"label": "Rows predicted outside the node", "fraction": 0.04, "pad": 0.02}
            self.figure_.colorbar(cells, ax=self.ax_, format=PercentFormatter(1.0, decimals=0), **room)
        self._write(layout, cells, whole.n_columns, tree, counts)
        return self

    def _shown_levels(self, n_levels: int, most: int | None, narrowest: float) -> int:
        if most is not None:
            if most < 1:
                raise ValueError(f"max_levels is {most}; it must be at least 1, or None for as many as fit.")
            return min(most, n_levels)
        settle_layout(self.ax_)
        fitting = int(_SHARE_OF_TREE * size_in_points(self.ax_)[0] / narrowest)
        return min(n_levels, max(_FEWEST_LEVELS, fitting))

    def _draw_cells(
        self, layout: Icicle, counts: tuple[Floats, Floats], cmap: Any, limit: float | None
    ) -> Any:
        from matplotlib import colormaps
        from matplotlib.collections import PolyCollection

        rows, wrong = (part[layout.nodes] for part in counts)
        shares = wrong / np.where(rows > 0, rows, np.nan)
        largest = max(float(np.nanmax(shares, initial=0.0)), _LEAST_LIMIT)
        colors = (colormaps[cmap] if isinstance(cmap, str) else cmap).with_extremes(bad="0.88")
        cells = PolyCollection(list(layout.corners()), cmap=colors, edgecolors="white")
        cells.set_array(np.ma.masked_invalid(shares))
        cells.set_clim(0.0, largest if limit is None else limit)
        self.ax_.add_collection(cells)
        self.ax_.set(xlim=(0, layout.n_columns), ylim=(1, 0), yticks=[], xticks=[])
        self.ax_.spines[:].set_visible(False)
        return cells

    def _write(
        self, layout: Icicle, cells: Any, n_levels: int, tree: Taxonomy, counts: tuple[Floats, Floats]
    ) -> None:
        rows, wrong = (part[layout.nodes] for part in counts)
        unseen = int((rows == 0).sum())
        levels = f"{layout.n_columns} of {n_levels} levels: " if layout.n_columns < n_levels else ""
        absent = f"; {unseen} without rows (gray)" if unseen else ""
        several = sum(len(above) > 1 for above in self.taxonomy.parents.values())
        once = f"; {several} with several parents, under the rarest" if several else ""
        self.ax_.set_title(f"{levels}{len(layout.nodes)} nodes{absent}{once}", fontsize="medium")
        settle_layout(self.ax_)  # determines the size of the axes
        names, short = ([source[k] for k in layout.nodes] for source in (tree.nodes, tail_names(tree)))
        texts = NodeTexts(self.ax_, layout, names, short, rows, wrong)
        heights = texts.heights()
        cells.set_linewidth(np.where(heights > 4.0, 0.8, np.where(heights > 1.5, 0.2, 0.0)))
        texts.write_beside()
        texts.write_inside(cells.to_rgba(cells.get_array()))


def _size(layout: Icicle) -> tuple[float, float]:
    leaves = int(layout.is_end.sum())
    height = float(np.clip(1.0 + _LEAF_HEIGHT * leaves, *_HEIGHTS))
    width = float(np.clip(1.5 + _COLUMN_WIDTH * layout.n_columns, *_WIDTHS))
    return width, height


def taxonomy_of_model(model: Any, given: Any) -> Taxonomy:
    """Return the hierarchy of a model, also inside a wrapper, unless one is given."""
    found = taxonomy_of(getattr(model, "classifier_", model)) if given is None else Taxonomy.from_any(given)
    if found is None:
        raise TypeError(f"The {type(model).__name__} was fitted without a taxonomy; pass taxonomy=...")
    return found
