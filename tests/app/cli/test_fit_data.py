"""How ``labelweave fit`` reads typical files, and what it prints about them before a fit."""

import json

import numpy as np
import pytest

import labelweave
from commands import invoke

MARGINS = "--model max-margin -q"


def svmlight_rows(numbers, n_rows=40):
    rng = np.random.default_rng(0)
    lines = []
    for row in range(n_rows):
        label = numbers[row % len(numbers)]
        also = f",{numbers[0]}" if row % 5 == 0 and label != numbers[0] else ""
        features = " ".join(f"{1 + 2 * (row % len(numbers)) + k}:{1 + rng.random():.3f}" for k in range(2))
        lines.append(f"{label}{also} {features}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("numbers", [[1, 2, 3], [444_800, 444_801, 444_802], [5, 50, 500], [0, 2, 4]])
@pytest.mark.parametrize("format", ["svm", "txt"])
def test_numbers_of_labels_are_names_in_every_file(run, tmp_path, numbers, format):
    text = svmlight_rows(numbers)
    header = f"40 8 {max(numbers) + 1}\n" if format == "txt" else ""
    (tmp_path / f"a.{format}").write_text(header + text)
    run(f"fit a.{format} {MARGINS} --many-labels --out m.lw")
    assert list(labelweave.load("m.lw").label_names_) == list(map(str, numbers))
    assert run(f"evaluate m.lw a.{format} --json").json["labels"] == 3
    lines = text.splitlines(keepends=True)
    few = [line for line in lines if line.startswith(f"{numbers[-1]} ")]
    (tmp_path / f"b.{format}").write_text(
        (f"{len(few)} 8 {max(numbers) + 1}\n" if header else "") + "".join(few)
    )
    found = run(
        f"evaluate m.lw b.{format} --json --one-based" if not header else "evaluate m.lw b.txt --json"
    )
    assert found.json["subset_accuracy" if "subset_accuracy" in found.json else "micro_f1"] > 0.9
    (tmp_path / f"c.{format}").write_text(
        (f"1 8 {max(numbers) + 3}\n" if header else "") + f"{max(numbers) + 2} 3:1\n"
    )
    flags = "" if header else "--one-based"
    told = run(f"evaluate m.lw c.{format} {flags} --json")
    assert "1 label unknown to the model count as missed" in told.err
    predicted = run(f"predict m.lw b.{format} {flags}").out
    assert str(numbers[-1]) in predicted


def test_conversions_keep_the_numbers_of_labels(run, tmp_path):
    (tmp_path / "a.svm").write_text("1,7 0:1\n7 1:1\n")
    run("convert a.svm b.txt --to xmc")
    assert (tmp_path / "b.txt").read_text().startswith("2 2 8\n1,7 0:1.0\n")
    run("convert b.txt c.svm --lossy")
    assert [line.split()[0] for line in (tmp_path / "c.svm").read_text().splitlines()] == ["1,7", "7"]


TABLE = "id,text,tags\n" + "".join(
    f"r{n},{('red ball', 'blue sea')[n % 2]} n{n},{'ab'[n % 2]}|c\n" for n in range(24)
)


def test_a_dry_run_shows_what_is_understood_and_writes_nothing(run, tmp_path):
    (tmp_path / "a.txt").write_text(TABLE)
    before = sorted(tmp_path.iterdir())
    done = run("fit --dry-run a.txt --labels tags --id id --label-separator |")
    assert sorted(tmp_path.iterdir()) == before
    lines = [line.split(None, 1) for line in done.out.splitlines()]
    assert ["format", "table (csv, cells parted by ',')"] in lines
    assert ["labels", "tags"] in lines
    assert ["text", "text"] in lines
    assert ["separator", "'|'"] in lines
    assert ["label", "c, 24 of 24 rows"] in lines
    assert ["label", "a, 12 of 24 rows"] in lines
    assert "names of rows id" in done.out
    assert (
        done.out.index("row 0         a, c")
        < done.out.index("text:red")
        < done.out.index("row 1         b, c")
    )
    run("fit --dry-run a.txt --labels tags --id id --out m.lw")
    assert not (tmp_path / "m.lw").exists()


@pytest.mark.parametrize("format", ["mulan", "xmc", "svmlight"])
def test_dry_runs_of_matrices(run, matrix_files, format):
    out = run(f"fit --dry-run {matrix_files[format]}").out
    assert f"format        {format}\n" in out
    assert "5 labels\n" in out
    assert "row 2" in out


def test_files_without_a_header_are_read_with_a_flag_that_models_keep(run, tmp_path):
    rows = "".join(f"{('red ball', 'blue sea')[n % 2]} n{n}\t{n % 2}\n" for n in range(24))
    (tmp_path / "a.tsv").write_text(rows)
    said = run("fit a.tsv --labels 0 --model max-margin --out m.lw").err
    assert "the name '0' of a column looks like a cell; if the first line is a row, pass --no-header" in said
    run(f"fit a.tsv --labels 2 --no-header {MARGINS} --out m.lw")
    assert run("evaluate m.lw a.tsv --json").json["rows"] == 24
    assert len(run("predict m.lw a.tsv").records) == 24


def test_lines_of_fasttext_and_cats_need_no_flag(run, tmp_path):
    words = ["red ball", "blue sea"]
    (tmp_path / "a.txt").write_text(
        "".join(f"__label__{'ab'[n % 2]} __label__c {words[n % 2]}\n" for n in range(24))
    )
    assert "cells of column 'labels' are blank" not in run(f"fit a.txt {MARGINS} --out m.lw").err
    assert run("evaluate m.lw a.txt --json").json["micro_f1"] == 1
    with (tmp_path / "a.txt").open("a") as file:
        file.write("nothing known\n")
    assert "1 of 25 cells of column 'labels' are blank" in run("fit a.txt --dry-run").err
    assert "warning" not in run("fit a.txt --dry-run --empty-labels unknown").err
    rows = [{"text": words[n % 2], "cats": {"a": n % 2, "b": 1 - n % 2}} for n in range(24)]
    (tmp_path / "b.json").write_text(json.dumps(rows))
    run(f"fit b.json {MARGINS} --out m.lw")
    assert run("evaluate m.lw b.json --json").json["micro_f1"] == 1


def test_pairs_are_one_row_in_a_fit_and_in_its_evaluation(run, tmp_path):
    pairs = "".join(
        f"d{n},{('red ball', 'blue sea')[n % 2]} n{n},{tag}\n"
        for n in range(24)
        for tag in ("ab"[n % 2], "c")
    )
    (tmp_path / "a.csv").write_text("doc,text,label\n" + pairs)
    said = run("fit a.csv --labels label --id doc --model max-margin --out m.lw").err
    assert said.count("names in column 'doc' repeat (24 in 48 rows); their labels are merged") == 1
    assert "rows      24\n" in said
    assert run("evaluate m.lw a.csv --json").json["rows"] == 24
    assert len(run("predict m.lw a.csv").records) == 48


def test_blank_cells_of_label_columns_are_decided_by_a_flag(run, tmp_path):
    rows = "".join(
        f"{('red ball', 'blue sea')[n % 2]} n{n},{1 if n % 2 else ''},{'' if n % 3 else 1}\n"
        for n in range(24)
    )
    (tmp_path / "a.csv").write_text("text,x,y\n" + rows)
    words = f"fit a.csv --label-column x --label-column y {MARGINS} --out m.lw"
    assert "2 of 2 label columns hold 1 and missing cells only" in run(words).err
    head = "@relation 'r: -C 2'\n@attribute a {0,1}\n@attribute b {0,1}\n@attribute f numeric\n@data\n"
    (tmp_path / "t.arff").write_text(head + "1,?,1\n?,1,2\n1,1,3\n")
    said = run("fit t.arff --model max-margin --out m.lw").err
    assert "2 of 2 label columns hold 1 and missing cells only, such as 'a' (2 and 1)" in said
    assert run(words, "--empty-labels", "unknown").err == ""
    assert run(words, "--empty-labels", "none").err == ""
    found = run("evaluate m.lw a.csv --json").json
    assert found["micro_precision"] > 0.9 if "micro_precision" in found else found["micro_f1"] > 0.8


def test_missing_features_are_spoken_of_where_some_are_missing(run, tmp_path):
    header = "@relation 'x: -C 1'\n@attribute l {0,1}\n@attribute f real\n@data\n"
    (tmp_path / "a.arff").write_text(header + "".join(f"{n % 2},{n % 2}.5\n" for n in range(20)))
    assert "missing" not in run("fit a.arff --model max-margin --out m.lw").err
    (tmp_path / "b.arff").write_text(header + "".join(f"{n % 2},{n % 2 or '?'}\n" for n in range(20)))
    said = run("fit b.arff --model max-margin --out m.lw").err
    assert "are imputed with the mean of the training rows" in said
    assert len(run("predict m.lw a.arff").records) == 20


@pytest.mark.parametrize(
    "text",
    [
        '[{"text": "red ball", "tags": ["a"]}, {"text": "blue", "tags": []}]',
        '[\n{"text": "red ball", "tags": ["a"]}, {"text": "blue", "tags": []}\n]',
        '{\n"text": "red ball", "tags": ["a"]}\n{"text": "blue", "tags": []}\n',
        '{"text": "red ball", "tags": ["a"]}\n{"text": "blue", "tags": []}\n',
        '[["red ball", {"tags": ["a"]}], ["blue", {"tags": []}]]',
    ],
)
def test_json_of_any_layout_comes_from_standard_input(text):
    out = invoke(["fit - --labels tags --dry-run"], input=text).out
    assert "label         a, 1 of 2 rows" in out
    assert "text:red" in out


def test_lines_of_fasttext_come_from_standard_input():
    out = invoke(["fit - --dry-run"], input="__label__a red ball\n__label__b blue\n").out
    assert "table (fasttext)" in out
    assert "2 labels" in out
