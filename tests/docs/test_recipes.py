"""The code of docs/recipes.md runs, block after block, as a reader would run it."""

import re
from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_recipes_run():
    text = PAGE.read_text(encoding="utf-8")
    blocks = list(FENCE.finditer(text))
    assert len(blocks) >= 10
    variables = {"__name__": "recipes"}
    for block in blocks:
        # blank lines before the code make a traceback name the line of the page
        code = "\n" * text.count("\n", 0, block.start(1)) + block[1]
        exec(compile(code, str(PAGE), "exec"), variables)


def test_every_block_of_the_page_is_python():
    fences = re.findall(r"^```(.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences[::2]) == {"python"}
    assert set(fences[1::2]) == {""}
