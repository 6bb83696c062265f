"""Mercer kernels: the usual ones, sums, products and multiples of them, and functions as kernels."""

from labelweave.features.kernels import *  # noqa: F403
from labelweave.features.kernels import __all__  # noqa: F401
