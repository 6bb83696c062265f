from __future__ import annotations

from types import SimpleNamespace

import pytest

from labelweave.app.cli import messages


def test_a_table_with_texts(run, table_model, tmp_path):
    done = run("report", table_model, "a.csv", "--id", "package", "--out", "r.html")
    assert "the report is in r.html" in done.err
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<title>m.lw on a.csv</title>" in html
    assert "Row p" in html
    assert "chess" in html
    assert "duality gap" in html
    assert "labelweave" in html


def test_matrix_files_with_names(run, matrix_files, tmp_path):
    run("fit", "d.arff", "--model", "max-margin", "--out", "m.lw", "-q")
    done = run(
        "report", "m.lw", "d.arff", "--out", "r.html", "--title", "Mine & yours", "--weakest", "2", "-q"
    )
    assert done.err == ""
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h1>Mine &amp; yours</h1>" in html
    assert html.count('<details class="weak"') == 2
    assert ">f" in html


def test_words_that_are_no_text(run, table_model, tmp_path):
    run("report", table_model, "a.csv", "--title", "t\udce9", "--out", "r.html")
    assert "<title>t\\udce9</title>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_one_class_a_row(run, fit_things, tmp_path):
    fit_things("--class-paths", "--quiet")
    run("report", "m.lw", "test.csv", "--out", "r.html")
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "The tree" in html
    assert "Weak classes" in html


@pytest.mark.parametrize("cells", ["tags\n", "tags\n?\n", "section\nx\n"])
def test_data_without_labels(run, table_model, tmp_path, cells):
    header, *rows = cells.split("\n")[:-1]
    lines = [f"description,section,{header}", *(f"chess,games,{row}" for row in rows)]
    (tmp_path / "n.csv").write_text("\n".join(lines).replace(",section,section", ",section") + "\n")
    done = run("report", table_model, "n.csv", "--out", "r.html", code=2)
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "r.html").exists()


def test_no_row_with_a_label(run, matrix_files, tmp_path):
    run("fit", "d.svm", "--model", "max-margin", "--out", "m.lw", "-q")
    (tmp_path / "n.svm").write_text(" 0:1\n 1:1\n")
    done = run("report", "m.lw", "n.svm", "--zero-based", "--out", "r.html", code=2)
    assert "None of the 2 rows has a label" in done.err


def test_bad_places_and_unknown_labels(run, table_model, tmp_path):
    done = run("report", table_model, "a.csv", "--out", "no/r.html", code=2)
    assert "make it first" in done.err
    assert "--out" in run("report", table_model, "a.csv", code=2).err
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "u.csv").write_text(text.replace("game,x11", "game,x11,toy"))
    assert "unknown label 'toy'" in run("report", table_model, "u.csv", "--out", "r.html", code=2).err
    run("report", table_model, "u.csv", "--out", "r.html", "--ignore-unknown-labels")


def test_labels_of_a_matrix_file_that_the_model_does_not_know(run, matrix_files, tmp_path):
    run("fit", "d.arff", "--model", "max-margin", "--out", "m.lw", "-q")
    for name in ("d.arff", "d.xml"):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace("l0", "new"))
    done = run("report", "m.lw", "d.arff", "--out", "r.html", code=2)
    assert "The label 'new' is unknown to the model (1 of 5 are)" in done.err
    assert "--ignore-unknown-labels" in done.err
    run("report", "m.lw", "d.arff", "--out", "r.html", "--ignore-unknown-labels")


def test_progress_is_told_after_two_seconds(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 2.5, 3.0])
    # In place of the module: threads of other tests, such as the loop of a Dask cluster, read its clock too.
    monkeypatch.setattr(messages, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    tell = messages.Waiting()
    for words in ("one", "two", "three"):
        tell(words)
    assert capsys.readouterr().err == "labelweave: two, 2 s\n"
