"""Each example of the gallery has a picture of its own."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"^# sphinx_gallery_thumbnail_path = '(.*)'$", re.MULTILINE)


def test_examples_name_pictures_that_are_there():
    examples = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "pictures")
    pictures = [NAMED.findall(path.read_text(encoding="utf-8")) for path in examples]
    assert pictures == [[f"images/gallery/{path.stem}.png"] for path in examples]
    assert all((ROOT / "docs" / picture).is_file() for (picture,) in pictures)
