"""Links that lead nowhere are found in a built site."""

import pytest
from site_links import broken_links, main

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
