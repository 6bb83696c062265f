"""Names of classes and attributes as model files keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array
from labelweave.model_files.schema import FLAG, Maybe, Numbers, Sizes, Texts, refuse


@dataclass(frozen=True)
class StoredNames:
    """The field of names: an array, and whether they were objects."""

    letter: str

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not tuple or len(value) != 2:
            refuse(where, "names")
        Maybe(Texts(self.letter), Numbers(self.letter, "iufb"), none=False).check(value[0], where, sizes)
        FLAG.check(value[1], where, sizes)


def storable_names(names: Array) -> tuple[Array, bool]:
    """Give names as text where they are objects, and whether they were."""
    is_object = names.dtype == object
    return (names.astype(np.str_) if is_object else names), is_object


def names_again(stored: tuple[Array, bool]) -> Array:
    """Undo :func:`storable_names`."""
    names, is_object = stored
    return names.astype(object) if is_object else names
