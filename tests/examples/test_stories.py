"""The three examples of ``examples/`` run, with the results that their texts state."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import arff_folder
import search_with_gaps
import ticket_table

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")


def test_blank_tags_are_unknown_tags(tmp_path, capsys):
    found = ticket_table.main(str(tmp_path))
    assert found["unknown"] > found["none"] + 0.02
    assert found["unknown"] > 0.7
    assert "pages: none.html, unknown.html" in capsys.readouterr().out
    assert "T100" in (tmp_path / "unknown.html").read_text()


def test_a_folder_of_arff_files_is_read_as_it_is(tmp_path, capsys):
    found = arff_folder.main(str(tmp_path))
    assert found.keys() == {"pages-sparse", "proteins"}
    assert all(scores["micro_f1"] > 0.75 for scores in found.values()), found
    told = capsys.readouterr().out
    assert "'protein'" in told  # omitted as an identifier
    assert "proteins.arff: 200 rows, 10 features, 4 labels" in told
    assert str(tmp_path) not in told


def test_a_search_with_gaps(capsys):
    found = search_with_gaps.main()
    assert found["unobserved"] > found["taken for no"]
    assert "36% of the training labels are not observed" in capsys.readouterr().out
