"""The code of the pages and of the README runs, block after block, as a reader would run it."""

import pathlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import labelweave

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

DOCS = Path(__file__).parents[2] / "docs"
RECIPES = DOCS / "recipes.md"
LIBRARIES = ["scikit_learn", "scikit_multilearn", "meka", "pecos", "hiclass", "cleanlab"]
COMING = [f"coming_from/{library}" for library in LIBRARIES]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+\.\d+")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recipes", "tutorial", "what_you_have", "extending", *COMING])
def test_pages_run(name, tmp_path, monkeypatch, capsys):
    page = DOCS / f"{name}.md"
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    blocks = list(FENCE.finditer(text))
    assert len(blocks) >= (1 if name in COMING else 4)
    variables = {"__name__": page.stem}
    for block in blocks:
        # blank lines before the code make a traceback name the line of the page
        code = "\n" * text.count("\n", 0, block.start(1)) + block[1]
        exec(compile(code, str(page), "exec", dont_inherit=True), variables)
        printed = capsys.readouterr().out
        if shown := OUTPUT.match(text, block.end()):
            assert NUMBER.sub("0", printed) == NUMBER.sub("0", shown[1])


@pytest.mark.slow
def test_the_page_about_clusters_runs(tmp_path):
    # in a separate process: joblib makes a client inside of workers, which stays the default one
    text = (DOCS / "dask.md").read_text(encoding="utf-8")
    code = "\n".join(block[1] for block in FENCE.finditer(text))
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600, cwd=tmp_path)


def test_every_block_of_the_recipes_is_python():
    fences = re.findall(r"^```(.*)$", RECIPES.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences[::2]) == {"python"}
    assert set(fences[1::2]) == {""}


def test_the_block_about_keys_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.key").write_bytes(bytes(range(32)))
    model = labelweave.MaxMarginClassifier().fit([[0.0], [1.0]], [[0], [1]])
    names = {"pathlib": pathlib, "labelweave": labelweave, "model": model}
    blocks = FENCE.findall((DOCS.parent / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(blocks) == 1
    exec(blocks[0], names)
    assert names["model"].predict([[1.0]]) == 1


README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)


def test_is_short_and_its_pictures_are_there():
    text = README.read_text(encoding="utf-8")
    assert len(text.split()) <= 720
    assert all((README.parent / picture).is_file() for picture in re.findall(r"!\[[^]]*\]\((.*?)\)", text))


@pytest.mark.slow
def test_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in BLOCKS:
        exec(block, names)
    assert (tmp_path / "report.html").is_file()
    assert names["graph"].label_names_.shape == (8,)
