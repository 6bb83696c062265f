"""``--label-descriptions``: texts of labels on the command line."""

import json

import pytest

import labelweave

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
    return run("fit", "t.csv", *columns, *words, "--out", "m.lw", **options)


@pytest.mark.parametrize("model", [[], ["--model", "max-margin", "--C", "3"]])
def test_described_labels_are_predicted(run, tickets, model):
    done = _fit(run, "--label-descriptions", "labels.csv", *model)
    assert "1 of 3 labels have no description" in done.err
    assert "such as 'astronomy', are in no row" in done.err
    read = labelweave.load("m.lw")
    assert read.label_names_.tolist() == ["games", "mail", "music", "astronomy"]
    lines = run("predict", "m.lw", "new.csv", "--top", "1").out.splitlines()
    assert [json.loads(line)["labels"][0]["label"] for line in lines] == ["astronomy", "games"]
    assert "texts of 4 labels" in run("inspect", "m.lw").out


def test_one_class_a_row(run, tickets):
    words = ("--text", "text", "--labels", "tags", "--one-class", "--label-descriptions", "labels.csv")
    run("fit", "t.csv", *words, "--quiet", "--out", "m.lw")
    assert labelweave.load("m.lw").classes_.tolist() == ["games", "mail", "music", "astronomy"]
    assert len(run("predict", "m.lw", "new.csv").out.splitlines()) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("name,description\n", "no label"),
        ("games,a,b\n", "3 cells"),
        ("games,a\ngames,b\n", "again"),
        (",a\n", "no name of a label"),
    ],
)
def test_bad_files_give_one_sentence(run, tickets, tmp_path, content, said):
    (tmp_path / "labels.csv").write_text(content)
    done = _fit(run, "--label-descriptions", "labels.csv", code=2)
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--label-descriptions", "none.csv"], "none.csv"),
        (["--label-descriptions", "labels.csv", "--model", "label-graph"], "goes with --model"),
        (["--label-descriptions", "labels.csv", "--covariance", "c.csv"], "both describe the labels"),
        (["--label-descriptions", "labels.csv", "--tune-threshold", "f1"], "--tune-threshold"),
        (
            ["--label-descriptions", "labels.csv", "--model", "max-margin", "--scaling", "standard"],
            "--scaling",
        ),
    ],
)
def test_what_makes_no_sense_together(run, tickets, words, said):
    done = _fit(run, *words, code=2)
    assert said in done.err
