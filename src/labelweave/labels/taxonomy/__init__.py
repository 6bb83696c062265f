"""A tree over the labels: where it comes from, what is above and below, what models need of it."""

from labelweave.labels.taxonomy.taxonomy import Taxonomy

__all__ = ["Taxonomy"]
