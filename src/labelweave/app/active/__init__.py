"""Which entries of (row, label) to ask for next, when answers cost something."""

from labelweave.app.active.queries import Queries, next_queries

__all__ = ["Queries", "next_queries"]
