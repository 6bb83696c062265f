"""What the site's settings make of the code: examples of commands, and a reference with all public names."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def settings():
    for needed in ("click", "latex2mathml", "sphinx"):
        pytest.importorskip(needed)
    spec = importlib.util.spec_from_file_location("settings_of_the_site", DOCS / "conf.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_examples_of_commands_are_code_with_the_ends_of_their_lines(settings):
    lines = ["Write.", "", "| Examples:", "|   labelweave fit a.csv \\", "|       --out a.lw", ""]
    settings._examples(None, None, lines)
    code = ["    labelweave fit a.csv \\", "        --out a.lw"]
    assert lines == ["Write.", "", ".. rubric:: Examples", "", ".. code-block:: shell", "", *code, "    ", ""]


def test_the_commands_are_listed_where_they_are_marked(settings):
    content = [(DOCS / "command_line.md").read_text(encoding="utf-8")]
    settings._list_commands(None, "command_line", content)
    assert "- `fit <#labelweave-fit>`__: Fit a model to a data file and save it." in content[0]


def test_every_page_of_the_reference_lists_names(settings):
    page = settings._module_page("labelweave.decisions", ["CalibratedLabelClassifier"])
    assert "From scores to decisions" in page
    assert page.endswith("   ~labelweave.CalibratedLabelClassifier\n")
    assert ":toctree:" not in page
    assert "   :toctree: generated\n\n   f1_score\n" in settings._module_page(
        "labelweave.metrics", ["f1_score"]
    )
