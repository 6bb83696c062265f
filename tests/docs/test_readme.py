"""The README's Python runs as it stands, one block after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)


def test_is_short_and_its_pictures_are_there():
    text = README.read_text(encoding="utf-8")
    assert len(text.split()) <= 1200
    assert all((README.parent / picture).is_file() for picture in re.findall(r"!\[[^]]*\]\((.*?)\)", text))


@pytest.mark.slow
def test_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in BLOCKS:
        exec(block, names)
    assert (tmp_path / "report.html").is_file()
    assert names["graph"].label_names_.shape == (8,)
