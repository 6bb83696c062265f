"""Data, loss and structure put together: objectives with the methods their solvers ask for."""

from labelweave.problems.make_margin_dual import make_margin_dual
from labelweave.problems.margin_dual import MarginData, MarginDual

__all__ = ["MarginData", "MarginDual", "make_margin_dual"]
