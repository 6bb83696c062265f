"""Labels that are wrong now and then: found, ranked, and what several annotators say combined."""

from labelweave.app.noise import *  # noqa: F403
from labelweave.app.noise import __all__  # noqa: F401
