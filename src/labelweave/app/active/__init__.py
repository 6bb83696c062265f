"""Active learning: which entries of (row, label) to annotate next."""

from labelweave.app.active.queries import Queries, next_queries

__all__ = ["Queries", "next_queries"]
