"""A page to label on: the questions that are worth most, on this machine alone."""

from labelweave.app.label_page.server import label_app
from labelweave.app.label_page.session import LabelSession

__all__ = ["LabelSession", "label_app"]
