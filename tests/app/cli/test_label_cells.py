"""What the command line prints about cells of labels, and how the model reads later files."""

import json
import random

import numpy as np
import pandas as pd
import pytest

import labelweave
from labelweave.datasets import DataFileError, read_table

TAGS = ("sql", "python", "git", "c", "pandas")


def tag_sets(n_rows=40, seed=0):
    source = random.Random(seed)
    return [source.sample(TAGS, source.randint(1, 3)) for _ in range(n_rows)]


def write(path, cells, name="tags", text=None):
    text = [" ".join(names) for names in tag_sets(len(cells))] if text is None else text
    pd.DataFrame({"title": [f"{words} n{k}" for k, words in enumerate(text)], name: cells}).to_csv(
        path, index=False
    )


@pytest.fixture
def fit(run):
    words = ["fit", "t.csv", "--text", "title", "--model", "max-margin", "--out", "m.lw", "--labels"]
    return lambda *more, code=0: run(*words, *more, code=code)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (lambda tags: f"[{', '.join(tags)}]", "are split at ',' inside '[' and ']'; --one-class reads each"),
        (lambda tags: "".join(f"<{tag}>" for tag in tags), "are split at '><'; --one-class reads each"),
        (";".join, "are split at ';'; --one-class reads each as a class, --label-separator"),
        (" & ".join, "are split at '&'"),
        (str, None),
        (lambda tags: json.dumps([{"id": 1, "name": tag} for tag in tags]), None),
    ],
)
def test_a_later_file_is_read_as_the_training_file_was(run, fit, tmp_path, written, said):
    sets = tag_sets()
    write(tmp_path / "t.csv", [*map(written, sets)])
    done = fit("tags")
    assert sum(line.startswith("labelweave: ") for line in done.err.splitlines()) == (said is not None)
    assert said is None or said in done.err
    assert list(labelweave.load("m.lw").label_names_) == sorted(TAGS)
    write(tmp_path / "later.csv", [*map(written, sets)][:1])
    assert run("evaluate m.lw later.csv --json").json["hamming_loss"] == 0.0


@pytest.mark.parametrize(
    ("column", "flags", "names"),
    [
        ("tags", [], ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]),
        ("tags", ["--label-names", "l,k,j,i,h,g,f,e,d,c,b,a"], list("lkjihgfedcba")),
        ("l,k,j,i,h,g,f,e,d,c,b,a", [], list("lkjihgfedcba")),
        ("a,b", [], ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]),
        ("l/k/j/i/h/g/f/e/d/c/b/a", [], list("lkjihgfedcba")),
        ("l k j i h g f e d c b a", [], list("lkjihgfedcba")),
        ("tags", ["--label-names", "l, k, j, i, h, g, f, e, d, c, b, a"], list("lkjihgfedcba")),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_cells_of_0_and_1_are_columns(run, tmp_path, column, flags, names, suffix):
    bits = np.random.default_rng(0).integers(2, size=(30, 12))
    frame = pd.DataFrame({"title": ["w" + " w".join(map(str, np.flatnonzero(row))) for row in bits]})
    frame[column] = bits.tolist()
    if suffix == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    else:
        frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    words = ["--text", "title", "--model", "max-margin", "--out", "m.lw", "--labels", column]
    done = run("fit", f"t.{suffix}", *words, *flags)
    assert "hold 0 or 1 for each label, such as '[" in done.err
    assert "--label-names names them" in done.err
    assert "blank" not in done.err
    assert list(labelweave.load("m.lw").label_names_) == names
    assert run("evaluate", "m.lw", f"t.{suffix}", "--json").json["micro_f1"] > 0.9


def test_later_cells_of_0_and_1_that_do_not_fit_are_refused(run, fit, tmp_path):
    write(tmp_path / "t.csv", ["[0, 1, 0]", "[1, 1, 0]"] * 5)
    fit("tags", "-q")
    write(tmp_path / "later.csv", ["[0, 1, 0]", "[1, 1]"])
    assert (
        "later.csv:3: found '[1, 1]' in column 'tags' of row 1" in run("evaluate m.lw later.csv", code=2).err
    )


def test_places_are_read_in_blocks_and_may_be_missing(tmp_path):
    cells = [*(str([k % 2, *[0] * 10, 1]) for k in range(5)), "?", ""]
    write(tmp_path / "t.csv", cells)
    with pytest.warns(UserWarning, match=r"column 'tags' hold 0 or 1 for each label.*set label_separator to"):
        whole = read_table(tmp_path / "t.csv", labels="tags", text="title").Y
    with pytest.warns(UserWarning, match="hold 0 or 1"):
        blocks = read_table(tmp_path / "t.csv", labels="tags", text="title", block_rows=2).Y
    assert whole.words == blocks.words == [*map(str, range(12))]
    np.testing.assert_array_equal(whole.to_dense(), blocks.to_dense())
    assert np.isnan(whole.to_dense()[5:]).all()


def test_read_table_cuts_as_the_command_line_does(tmp_path):
    sets = tag_sets()
    write(tmp_path / "t.csv", [";".join(tags) for tags in sets])
    with pytest.warns(
        UserWarning, match="list labels, such as 'c;.*split at ';'; set label_separator to override"
    ):
        Y = read_table(tmp_path / "t.csv", labels="tags", text="title").Y
    assert Y.words == sorted(TAGS)
    whole = read_table(tmp_path / "t.csv", labels="tags", text="title", label_separator="\n").Y
    assert "c;git" in whole.words or "git;c" in whole.words


def test_one_row_and_cells_of_nothing(run, fit, tmp_path):
    write(tmp_path / "t.csv", ["[a, b]"])
    fit("tags")
    assert list(labelweave.load("m.lw").label_names_) == ["a", "b"]


def test_what_may_be_a_list_is_said(fit, tmp_path):
    write(tmp_path / "t.csv", ["sql python", "python git", "git"] * 5)
    said = "may be lists with ' ' between labels, such as 'python git', and are not split; "
    assert f"{said}--label-separator ' ' splits them." in fit("tags").err


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("Yes", "No"),
        ("yes", "no"),
        ("Y", "N"),
        ("y", "n"),
        ("T", "F"),
        ("t", "f"),
        ("TRUE", "FALSE"),
        ("True", "no"),
        ("X", "0"),
    ],
)
def test_words_for_yes_and_no_are_labels(run, tmp_path, yes, no):
    rows = [
        f"{'fool' if k % 3 else 'nice'} n{k},{yes if k % 3 else no},{no if k % 2 else yes}\n"
        for k in range(12)
    ]
    (tmp_path / "t.csv").write_text("text,a,b\n" + "".join(rows))
    run("fit t.csv --text text --label-column a --label-column b --model max-margin --out m.lw")
    Y = read_table(tmp_path / "t.csv", labels=["a", "b"], text="text").Y
    np.testing.assert_array_equal(Y.positive_counts(), [8, 6])
    (tmp_path / "t.csv").write_text("text,a\nx,Yes\ny,maybe\n")
    with pytest.raises(DataFileError, match=r"'maybe' in column 'a'.*true, false, yes, no"):
        read_table(tmp_path / "t.csv", labels=["a"], text="text")


def test_labels_that_are_written_alike_are_pointed_out(fit, tmp_path):
    write(tmp_path / "t.csv", ["Red", "red", "blue", "green"] * 5)
    assert "warning: some labels differ only in spelling: 'Red' and 'red'; if they are one" in fit("tags").err


PATHS = "fit t.csv --text title --labels tags --model kernel-logistic --hyperparameters fixed --out m.lw"


@pytest.mark.parametrize(
    ("flags", "said", "nodes"),
    [
        (["--class-paths"], "split at '>'; --path-separator sets another", 6),
        (["--class-paths", "--path-separator", " > "], None, 6),
        (
            ["--class-paths", "--path-separator", "|"],
            "warning: no class is a path, such as 'animal > live'",
            3,
        ),
        ([], "look like paths, such as 'animal > live', and are not split; --class-paths", None),
    ],
)
def test_paths_are_divided(run, tmp_path, flags, said, nodes):
    cells = ["animal > pet > bird", "animal > live", "food > dairy"] * 6
    write(tmp_path / "t.csv", cells, text=cells)
    done = run(PATHS, *flags)
    assert said is None or said in done.err
    assert ("labelweave: " in done.err) == (said is not None)
    assert nodes is None or f"taxonomy  {nodes} nodes" in done.err
