"""``--label-descriptions``: texts of labels on the command line."""

import json
from importlib import import_module

import pytest

import labelweave
from labelweave.app.cli.relation_files import read_descriptions

_TEXTS = {
    "games": ["a chess puzzle", "card game with friends", "arcade shooter game", "play chess online"],
    "mail": ["read email messages", "mail server daemon", "email spam filter", "letters and mail folders"],
    "music": ["play mp3 songs", "audio sound mixer", "record sound and music", "a song library"],
}


@pytest.fixture
def tickets(tmp_path, run):
    pytest.importorskip("tokenizers")
    rows = [f'"{text}",{tag}' for tag, texts in _TEXTS.items() for text in texts * 3]
    (tmp_path / "t.csv").write_text("text,tags\n" + "\n".join(rows) + "\n")
    (tmp_path / "labels.csv").write_text(
        'name,description\ngames,"board games, arcade games"\nmail,electronic mail\n'
        "astronomy,stars and planets\n"
    )
    (tmp_path / "new.csv").write_text("text\na telescope for planets and stars\nchess game\n")


def _fit(run, *words, **options):
    columns = ("--text", "text", "--labels", "tags", "--label-separator", ";")
    return run("fit t.csv", *columns, *words, "--out", "m.lw", **options)


def test_says_what_is_not_installed(run, tickets, monkeypatch):
    module = import_module("labelweave.labels.text.static_embeddings")
    module._model.cache_clear()
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    done = _fit(run, "--label-descriptions", "labels.csv", "-q", code=2)
    assert "install labelweave[text]" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("model", [[], ["--model", "max-margin", "--C", "3"]])
def test_described_labels_are_predicted(run, tickets, model):
    done = _fit(run, "--label-descriptions", "labels.csv", *model)
    assert "1 of 3 labels have no description" in done.err
    assert "such as 'astronomy', are in no row" in done.err
    read = labelweave.load("m.lw")
    assert read.label_names_.tolist() == ["games", "mail", "music", "astronomy"]
    lines = run("predict m.lw new.csv --top 1").out.splitlines()
    assert [json.loads(line)["labels"][0]["label"] for line in lines] == ["astronomy", "games"]
    assert "texts of 4 labels" in run("inspect m.lw").out


def test_one_class_a_row(run, tickets):
    words = ("--text", "text", "--labels", "tags", "--one-class", "--label-descriptions", "labels.csv")
    run("fit t.csv", *words, "--quiet", "--out", "m.lw")
    assert labelweave.load("m.lw").classes_.tolist() == ["games", "mail", "music", "astronomy"]
    assert len(run("predict m.lw new.csv").out.splitlines()) == 2


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_descriptions_are_whole_records(tmp_path, delimiter):
    rows = ["name,description", 'red,"first, line\nsecond; line"', " ", '"""blue""", sea', ""]
    text = "\n".join(rows).replace(",", delimiter).replace(f"first{delimiter}", "first,")
    (tmp_path / "labels.csv").write_text(text)
    found = read_descriptions(str(tmp_path / "labels.csv"))
    assert found == {"red": "first, line\nsecond; line", '"blue"': "sea"}
    (tmp_path / "labels.csv").write_text("red\nblue sea\n")
    assert read_descriptions(str(tmp_path / "labels.csv")) == {"red": "", "blue sea": ""}


@pytest.fixture
def columns(tickets, tmp_path, run):
    """A model of two labels with columns and two that are only described; the words that name the columns."""
    words = ["games", "music"]
    texts = [(text, *(int(tag == word) for word in words)) for tag, some in _TEXTS.items() for text in some]
    lines = [",".join(map(str, line)) for line in texts * 2]
    (tmp_path / "c.csv").write_text("\n".join(["text,games,music", *lines]) + "\n")
    (tmp_path / "later.csv").write_text(
        "\n".join(
            [
                "text,astronomy,games,music",
                *(f"{text},{i % 2},{a},{b}" for i, (text, a, b) in enumerate(texts)),
            ]
        )
    )
    (tmp_path / "described.csv").write_text("mail,electronic mail\nastronomy,stars and planets\n")
    asked = ["--text", "text", "--label-column", "games", "--label-column", "music"]
    run("fit c.csv", *asked, "--label-descriptions", "described.csv", "--quiet", "--out", "m.lw")
    return asked


def test_labels_that_are_only_described_need_no_column(run, columns):
    done = run("evaluate m.lw c.csv --json").json
    observed = {line["label"]: line["observed"] for line in done["per_label"]}
    assert observed == {"games": 24, "music": 24, "mail": 0, "astronomy": 0}
    run("report m.lw c.csv --out report.html")
    assert "2 without observed values: mail, astronomy; their scores rely" in run("inspect m.lw").out.replace(
        "\n            ", " "
    )
    assert run("inspect m.lw --json").json["unobserved"] == ["mail", "astronomy"]
    assert "LabelText over 4 labels" in run("inspect m.lw").out.replace("\n            ", " ")


def test_weights_of_a_label_have_those_known_by_its_text(run, columns):
    asked = ["fit", "c.csv", *columns, "--label-descriptions", "described.csv", "--model", "low-rank"]
    run(*asked, "--quiet", "--out", "m.lw")
    shown = run("inspect m.lw --label mail --json").json
    assert {one["feature"].split(":")[-1] for one in shown["for"]} & {"mail", "email", "letters"}
    run("report m.lw c.csv --out report.html")


def test_a_column_of_a_described_label_is_read_where_there_is_one(run, columns):
    done = run("evaluate m.lw later.csv --json").json
    observed = {line["label"]: (line["observed"], line["positive"]) for line in done["per_label"]}
    assert observed["astronomy"] == (12, 6)
    assert observed["mail"] == (0, 0)


def test_answers_about_described_labels_need_no_column_later(run, columns, tmp_path):
    run("queries m.lw c.csv -n 4 --out q.csv")
    lines = (tmp_path / "q.csv").read_text().splitlines()
    assert {line.split(",")[1] for line in lines[1:]} <= {"mail", "astronomy"}
    (tmp_path / "a.csv").write_text("id,label,answer\n0,mail,no\n4,mail,yes\n5,mail,yes\n1,mail,no\n")
    asked = ["fit", "c.csv", *columns, "--answers", "a.csv", "--label-descriptions", "described.csv"]
    run(*asked, "--quiet", "--out", "m.lw")
    done = run("evaluate m.lw c.csv --json").json
    assert {line["label"] for line in done["per_label"]} == {"games", "music", "mail", "astronomy"}


def test_a_trained_label_needs_its_column(run, columns, tmp_path):
    (tmp_path / "less.csv").write_text("text,games\nchess,1\n")
    assert "music" in run("evaluate m.lw less.csv", code=2).err
