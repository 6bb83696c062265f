"""From probabilities to decisions: which class to predict, and which rows to leave to a person."""

from labelweave.inference.decisions import best_parent, least_expected_loss, most_probable, rejected

__all__ = ["best_parent", "least_expected_loss", "most_probable", "rejected"]
