"""Write the results of a measurement as JSON, whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

__all__ = ["write_json"]


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Replace a JSON file once the new one is complete.

    Parameters
    ----------
    path : Path
        The file; its folder is made if need be.
    content : dict
        What JSON can hold.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".part")
    scratch.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(scratch, path)
