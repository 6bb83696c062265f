"""Data, loss and structure put together: objectives with the methods their solvers ask for."""

from labelweave.problems.margin_dual import MarginData, MarginDual, make_margin_dual

__all__ = ["MarginData", "MarginDual", "make_margin_dual"]
