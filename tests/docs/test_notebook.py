"""The notebook of the tutorial has the page's code, and runs."""

import re
from pathlib import Path

import pytest

pytest.importorskip("jupytext")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

from tutorial_notebook import PAGE, main, notebook  # noqa: E402


def test_its_cells_are_the_blocks_of_the_page(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    cells = [cell.source for cell in notebook().cells if cell.cell_type == "code"]
    assert cells == [block.rstrip("\n") for block in blocks]
    assert "{download}" not in str(notebook())
    for name in ("first.ipynb", "again.ipynb"):
        main(str(tmp_path / name))
    assert (tmp_path / "first.ipynb").read_bytes() == (tmp_path / "again.ipynb").read_bytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning:zmq")
def test_it_runs(tmp_path):
    made = notebook()
    nbclient.NotebookClient(made, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert (tmp_path / "tickets.html").is_file()
    counts = [cell.execution_count for cell in made.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert Path(tmp_path / "tickets.lw").is_file()
