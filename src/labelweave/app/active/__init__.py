"""Active learning: which entries of (row, label) to annotate next."""

from labelweave.app.active.queries import Queries, suggest_queries

__all__ = ["Queries", "suggest_queries"]
