"""How the site's settings convert the code, and that broken links are found in a built site."""

import importlib.util
from pathlib import Path

import pytest
from site_links import broken_links, main

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
    assert "Decisions from scores" in page
    assert page.endswith("   ~labelweave.CalibratedLabelClassifier\n")
    assert ":toctree:" not in page
    assert "   :toctree: generated\n\n   f1_score\n" in settings._module_page(
        "labelweave.metrics", ["f1_score"]
    )


GOOD = """<p id="here"><a href="#here">x</a> <a href="sub/other.html#far">x</a> <a href="https://elsewhere.org/x">x</a>
<img src="sub/a%20picture.png"> <a href="mailto:someone@elsewhere.org">x</a></p>"""
OTHER = '<a name="far" href="../index.html#here">x</a>'


@pytest.fixture
def site(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(GOOD)
    (tmp_path / "sub" / "other.html").write_text(OTHER)
    (tmp_path / "sub" / "a picture.png").write_bytes(b"")
    return tmp_path


def test_links_that_lead_somewhere_pass(site, capsys):
    assert broken_links(site) == []
    assert main(str(site)) == 0
    assert "2 pages, 0 links lead nowhere" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("#there", "index.html: #there has no such place"),
        ("sub/other.html#near", "index.html: sub/other.html#near has no such place"),
        ("gone.html", "index.html: gone.html is no file"),
        ("sub", "index.html: sub is no file"),
    ],
)
def test_links_that_lead_nowhere_are_named(site, link, said, capsys):
    (site / "index.html").write_text(f'{GOOD}<a href="{link}">x</a>')
    assert broken_links(site) == [said]
    assert main(str(site)) == 1
    assert said in capsys.readouterr().out
