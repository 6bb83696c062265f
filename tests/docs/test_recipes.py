"""The code of the pages runs, block after block, as a reader would run it."""

import re
from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

DOCS = Path(__file__).parents[2] / "docs"
RECIPES = DOCS / "recipes.md"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recipes", "tutorial", "what_you_have", "extending", "dask"])
def test_pages_run(name, tmp_path, monkeypatch):
    page = DOCS / f"{name}.md"
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    blocks = list(FENCE.finditer(text))
    assert len(blocks) >= (1 if name == "dask" else 4)
    variables = {"__name__": page.stem}
    for block in blocks:
        # blank lines before the code make a traceback name the line of the page
        code = "\n" * text.count("\n", 0, block.start(1)) + block[1]
        exec(compile(code, str(page), "exec"), variables)


def test_every_block_of_the_recipes_is_python():
    fences = re.findall(r"^```(.*)$", RECIPES.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences[::2]) == {"python"}
    assert set(fences[1::2]) == {""}
