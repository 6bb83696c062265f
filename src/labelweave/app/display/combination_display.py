"""Members of an ensemble: the out-of-fold loss of each, and of their combination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from labelweave.app.display.figures import Display, settle_layout
from labelweave.app.display.given_labels import fitted_model
from labelweave.decisions.automatic import AutoLabelClassifier
from labelweave.decisions.layers import innermost

_WIDTH, _HEIGHT_A_BAR, _HEIGHT_OF_REST = 6.4, 0.42, 1.1  # inches
_MEMBER, _UNUSED, _COMBINATION = "#14538f", "#a9bdd2", "#c0392b"
_ROOM = 1.02  # of the axis, after the longest bar with its text
_MOST_WORDS = 0.45  # largest share of the axis for texts after the bars
_GAP = 8.0  # pixels between bars and texts


class CombinationDisplay(Display):
    """Bar chart of the members of an ensemble: their out-of-fold losses and weights; the combination is last.

    The loss is the squared error of out-of-fold probabilities, relative to predicting each label's mean
    (1.0). Members of weight 0 are pale.  The bars, of the members from the top, then of the combination, are
    ``bars_``, in the axes ``ax_`` of ``figure_``.

    Parameters
    ----------
    members : sequence of dict
        The members, as in ``members_`` of :class:`labelweave.AutoLabelClassifier`.
    combined_loss : float
        The out-of-fold loss of the combination.

    Examples
    --------
    >>> from labelweave import AutoLabelClassifier, datasets
    >>> from labelweave.display import CombinationDisplay
    >>> data = datasets.make_text_like(200, 200, 8)
    >>> model = AutoLabelClassifier(members=["linear", "rbf"], time_budget=1).fit(data.X, data.Y)
    >>> display = CombinationDisplay.from_estimator(model)
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['linear', 'rbf', 'combination']
    """

    def __init__(self, members: Sequence[Mapping[str, Any]], combined_loss: float) -> None:
        self.members, self.combined_loss = members, combined_loss

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """Plot the members of a fitted model; for errors see :meth:`LabelQualityDisplay.from_estimator`.

        Parameters
        ----------
        estimator : estimator or Pipeline
            A fitted :class:`labelweave.AutoLabelClassifier`, alone, in a table model or in a meta-classifier.
        **options : dict
            Further options: see :meth:`plot`.
        """
        model = fitted_model(estimator)
        found: Any = innermost(getattr(model, "classifier_", model))
        if not isinstance(found, AutoLabelClassifier):
            raise TypeError(
                f"{type(found).__name__} is not an ensemble, so it has no members to plot; pass "
                "an AutoLabelClassifier."
            )
        return cls(found.members_, found.oof_loss_).plot(**options)

    def plot(self, ax: Any = None) -> Self:
        """Plot the bars; see :meth:`LabelQualityDisplay.plot`."""
        self._begin(ax, _WIDTH, _HEIGHT_OF_REST + _HEIGHT_A_BAR * (len(self.members) + 1))
        names = [str(member["name"]) for member in self.members]
        weights = [float(member["weight"]) for member in self.members]
        losses = [*(float(member["oof_loss"]) for member in self.members), float(self.combined_loss)]
        colors = [_MEMBER if weight > 0 else _UNUSED for weight in weights]
        places = range(len(losses))
        self.bars_ = self.ax_.barh(places, losses, 0.7, color=[*colors, _COMBINATION])
        self.ax_.set_yticks(places, [*names, "combination"])
        self.ax_.invert_yaxis()
        self.ax_.axvline(losses[-1], color=_COMBINATION, linestyle=":", linewidth=1, zorder=0)
        words = [
            *(f"{loss:.3f}, weight {w:.2f}" for loss, w in zip(losses, weights, strict=False)),
            f"{losses[-1]:.3f}",
        ]
        texts = self.ax_.bar_label(self.bars_, words, padding=4, fontsize="small")
        self.ax_.set_xlabel("Out-of-fold loss")
        self.ax_.spines[["top", "right"]].set_visible(False)
        self._make_room(texts, max(losses))
        return self

    def _make_room(self, texts: Sequence[Any], longest: float) -> None:
        """End the axis at the texts after the bars; if bars become short, write only losses."""
        settle_layout(self.ax_)
        if self._share(texts) > _MOST_WORDS:
            for text in texts:
                text.set_text(text.get_text().split(",")[0])
        share = min(_MOST_WORDS, self._share(texts))
        self.ax_.set_xlim(0.0, (longest or 1.0) / (1.0 - share) * _ROOM)

    def _share(self, texts: Sequence[Any]) -> float:
        wide = max(text.get_window_extent().width for text in texts) + _GAP
        return float(wide / max(1.0, self.ax_.get_window_extent().width))
