"""Structured margins: cliques of labels with their own weights, learned by the structured hinge loss."""

from labelweave.problems.structured_margin.clique_features import Blocks as Blocks
from labelweave.problems.structured_margin.clique_features import CliqueFeatures as CliqueFeatures
from labelweave.problems.structured_margin.clique_features import features_of_cliques as features_of_cliques
from labelweave.problems.structured_margin.clique_features import joined_features as joined_features
from labelweave.problems.structured_margin.growth import MOST_CANDIDATES as MOST_CANDIDATES
from labelweave.problems.structured_margin.growth import GrowingMargin as GrowingMargin
from labelweave.problems.structured_margin.growth import all_cliques as all_cliques
from labelweave.problems.structured_margin.growth import n_cliques as n_cliques
from labelweave.problems.structured_margin.growth import round_graph as round_graph
from labelweave.problems.structured_margin.label_sets import LARGEST_WIDTH as LARGEST_WIDTH
from labelweave.problems.structured_margin.label_sets import SET_LOSSES as SET_LOSSES
from labelweave.problems.structured_margin.label_sets import set_losses as set_losses
from labelweave.problems.structured_margin.label_sets import set_steps as set_steps
from labelweave.problems.structured_margin.margin_model import CliquePenalty as CliquePenalty
from labelweave.problems.structured_margin.margin_model import RidgePenalty as RidgePenalty
from labelweave.problems.structured_margin.margin_model import RoundPenalty as RoundPenalty
from labelweave.problems.structured_margin.margin_model import StructuredRows as StructuredRows
from labelweave.problems.structured_margin.structured_margin import StructuredMargin as StructuredMargin
