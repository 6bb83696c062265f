"""Taxonomies over labels: constructors, queries for nodes, and the arrays that models need."""

from labelweave.labels.taxonomy.taxonomy import Taxonomy

__all__ = ["Taxonomy"]
