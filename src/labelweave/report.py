"""One HTML page about a model."""

from labelweave.app.report import *  # noqa: F403
from labelweave.app.report import __all__  # noqa: F401
