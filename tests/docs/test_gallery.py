"""Each example of the gallery has its own picture, and each picture a page that shows it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"^# sphinx_gallery_thumbnail_path = '(.*)'$", re.MULTILINE)


def test_examples_name_pictures_that_are_there():
    examples = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "pictures")
    pictures = [NAMED.findall(path.read_text(encoding="utf-8")) for path in examples]
    assert pictures == [[f"images/gallery/{path.stem}.png"] for path in examples]
    assert all((ROOT / "docs" / picture).is_file() for (picture,) in pictures)


def test_pictures_are_linked_from_somewhere():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "papers").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    pictures = [path.name for path in (ROOT / "docs" / "images").glob("*.png")]
    assert [name for name in pictures if f"images/{name}" not in text] == []
