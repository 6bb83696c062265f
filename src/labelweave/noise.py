"""Noisy labels: find and rank probable errors, and combine the answers of several annotators."""

from labelweave.app.noise import *  # noqa: F403
from labelweave.app.noise import __all__  # noqa: F401
