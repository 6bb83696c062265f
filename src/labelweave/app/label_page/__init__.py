"""A labeling page with the most useful questions, served to this machine only."""

from labelweave.app.label_page.server import label_app
from labelweave.app.label_page.session import LabelSession

__all__ = ["LabelSession", "label_app"]
