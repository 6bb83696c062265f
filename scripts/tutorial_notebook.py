"""Make a notebook of the tutorial: the code of ``docs/tutorial.md`` as code cells, the text as text cells.

    python scripts/tutorial_notebook.py tutorial.ipynb

``make docs`` runs it, and the page links to the notebook; the slow tests run all of it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import jupytext

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"
_LINK = re.compile(r"\[([^]]+)\]\([\w./#-]+\.md[\w#-]*\)")
_OFFER = re.compile(r"^.*\{download\}.*\n\n?", re.MULTILINE)


def notebook() -> Any:
    """Read the page as a notebook; links to other pages become plain text."""
    text = _OFFER.sub("", PAGE.read_text(encoding="utf-8"))
    made = jupytext.reads(_LINK.sub(r"\1", text), fmt="md")
    made.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(made.cells):
        cell["id"] = f"cell-{number}"  # the same file each time
    return made


def main(path: str) -> None:
    """Write the notebook."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    jupytext.write(notebook(), path, fmt="ipynb")


if __name__ == "__main__":
    main(*sys.argv[1:])
