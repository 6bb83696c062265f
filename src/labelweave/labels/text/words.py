"""Names of labels and features as the words that they are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable

_JOINS = re.compile(r"[^\w+#]+|_+|(?<=[a-z])(?=[A-Z][a-z])")
_PREFIX = re.compile(r"^[^:=]*(?:__|[:=])(?=.)", re.DOTALL)


def label_words(name: str) -> str:
    """Split a name into its words, such as ``role::shared-lib`` or ``sharedLib``.

    Returns what is left of it in lower case, the name itself if that is nothing.
    """
    return " ".join(part for part in _JOINS.split(name) if part).lower() or name


def feature_words(names: Iterable[str]) -> list[str]:
    """Split names of features, without what says where the word was found: ``title:game`` is ``game``."""
    return [label_words(_PREFIX.sub("", str(name))) for name in names]
