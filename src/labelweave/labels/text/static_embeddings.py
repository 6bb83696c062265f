"""Text embeddings as means of static token embeddings, from the files of the package wordllama.

Nothing is downloaded and the package itself is not imported: its two files, the vectors and the tokenizer,
are read where it is installed.  As a mean of token vectors, the embedding of a bag of words is linear in it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array

_VECTORS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TEXTS_AT_ONCE = 4096


def static_embeddings(texts: Sequence[str]) -> Array:
    """Embed texts by the mean vector of their tokens, one row per text: 0 for a text without tokens.

    Raises ImportError if the package wordllama, or its files, are missing.
    """
    vectors, tokenizer = _model()
    found = np.zeros((len(texts), vectors.shape[1]))
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        some = [str(text) for text in texts[start : start + _TEXTS_AT_ONCE]]
        for place, encoded in enumerate(tokenizer.encode_batch(some, add_special_tokens=False), start):
            tokens = [token for token in encoded.ids if token < len(vectors)]
            if tokens:
                found[place] = vectors[tokens].mean(axis=0, dtype=np.float64)
    return found


def _folder() -> Path:
    package = find_spec("wordllama")
    folder = None if package is None or package.origin is None else Path(package.origin).parent
    if folder is None or not ((folder / _VECTORS).is_file() and (folder / _TOKENIZER).is_file()):
        raise ImportError(
            "Static embeddings need wordllama and its files; install labelweave[text], or pass a callable "
            "from texts to an array."
        )
    return folder


@lru_cache(maxsize=1)
def digest_of_vectors() -> str:
    """Compute the SHA-256 of the file of vectors; ImportError if it is missing."""
    with (_folder() / _VECTORS).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)
def _model() -> tuple[Array, Any]:
    folder = _folder()
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    (vectors,) = load_file(folder / _VECTORS).values()
    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return vectors, tokenizer


_JOINS = re.compile(r"[^\w+#]+|_+|(?<=[a-z])(?=[A-Z][a-z])")
_PREFIX = re.compile(r"^[^:=]*(?:__|[:=])(?=.)", re.DOTALL)


def label_words(name: str) -> str:
    """Split names such as ``role::shared-lib`` or ``sharedLib`` into lower-case words; keep others."""
    return " ".join(part for part in _JOINS.split(name) if part).lower() or name


def feature_words(names: Iterable[str]) -> list[str]:
    """Split names of features into words, without the prefix of the source: ``title:game`` is ``game``."""
    return [label_words(_PREFIX.sub("", str(name))) for name in names]
