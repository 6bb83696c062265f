"""Structured margins: cliques of labels with their own weights, learned by the structured hinge loss."""

from labelweave.problems.structured_margin.clique_features import (
    Blocks,
    CliqueFeatures,
    features_of_cliques,
    joined_features,
)
from labelweave.problems.structured_margin.growth import (
    MOST_CANDIDATES,
    GrowingMargin,
    all_cliques,
    grown_cliques,
    n_cliques,
    pair_scores,
    round_graph,
    violations,
)
from labelweave.problems.structured_margin.label_sets import LARGEST_WIDTH, SET_LOSSES, set_losses, set_steps
from labelweave.problems.structured_margin.margin_model import (
    CliquePenalty,
    RidgePenalty,
    RoundPenalty,
    StructuredRows,
)
from labelweave.problems.structured_margin.structured_margin import StructuredMargin

__all__ = [
    "LARGEST_WIDTH", "MOST_CANDIDATES", "SET_LOSSES", "Blocks", "CliqueFeatures", "CliquePenalty",
    "GrowingMargin", "RidgePenalty", "RoundPenalty", "StructuredMargin", "StructuredRows", "all_cliques",
    "features_of_cliques", "grown_cliques", "joined_features", "n_cliques", "pair_scores", "round_graph",
    "set_losses", "set_steps", "violations",
]  # fmt: skip
