"""Structured margins: cliques of labels with weights of their own, learned by the structured hinge loss."""

from labelweave.problems.structured_margin.growth import (
    GrowingMargin,
    grown_cliques,
    pair_scores,
    round_graph,
    violations,
)
from labelweave.problems.structured_margin.margin_model import (
    CliquePenalty,
    RidgePenalty,
    RoundPenalty,
    StructuredRows,
)
from labelweave.problems.structured_margin.structured_margin import StructuredMargin

__all__ = [
    "CliquePenalty", "GrowingMargin", "RidgePenalty", "RoundPenalty", "StructuredMargin", "StructuredRows",
    "grown_cliques", "pair_scores", "round_graph", "violations",
]  # fmt: skip
