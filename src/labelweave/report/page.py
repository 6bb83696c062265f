"""One HTML page from what a report found, with nothing outside it.

Jinja escapes every name, text and number.  The page's policy forbids all requests, and all scripts
but its own, whose digest it names; without scripts only sorting and filtering are gone.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["rendered"]


def rendered(content: Mapping[str, Any]) -> str:
    """Write the page."""
    script = (resources.files(__package__) / "templates" / "report.js").read_text(encoding="utf-8")
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _environment().get_template("report.html").render(content, script=script, digest=digest)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("labelweave.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"share": _share, "decimal": _decimal, "signed": _signed, "whole": _whole}
    return environment


def _share(value: float, digits: int = 2) -> str:
    """Write a number from 0 to 1; a dash where it is not defined."""
    return "–" if np.isnan(value) else f"{value:.{digits}f}"


def _decimal(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.4f}"


def _signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _whole(value: int) -> str:
    return f"{int(value):,}"
