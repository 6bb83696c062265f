"""Mercer kernels, by the name users know them by; see :mod:`labelweave.features.kernels`."""

from labelweave.features.kernels import *  # noqa: F403
from labelweave.features.kernels import __all__  # noqa: F401
