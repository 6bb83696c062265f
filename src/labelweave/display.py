"""Plots of models, labels and metrics."""

from labelweave.app.display import *  # noqa: F403
from labelweave.app.display import __all__  # noqa: F401
