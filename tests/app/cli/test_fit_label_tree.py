import json

import pytest

from labelweave.app.cli import fitting, progress


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--leaf-size", 2, "--branching", 2],
        ["--max-iter", 1],
        ["--leaf-size", 2, "--tune-threshold", "macro_f1,cv=2"],
        [
            "--leaf-size",
            2,
            "--n-trees",
            2,
            "--calibrate",
            "sigmoid,cv=2",
            "--conformal",
            "false_negatives,cv=2",
        ],
    ],
)
def test_every_command_takes_a_label_tree(run, matrix_files, words):
    data = matrix_files["mulan"], "--xml", "d.xml"
    run("fit", *data, "--model", "label-tree", *words, "--out", "m.lw")
    for command in ("evaluate", "predict"):
        assert run(command, "m.lw", *data).out
    assert "LabelTreeClassifier" in run("inspect", "m.lw").out
    run("report", "m.lw", *data, "--out", "m.html")


def test_a_fit_that_ends_early_says_what_to_do(run, matrix_files):
    words = ["--model", "label-tree", "--max-iter", 1, "--tol", 1e-9, "--C", 100]
    said = run("fit", matrix_files["mulan"], "--xml", "d.xml", *words, "--out", "m.lw").err
    why = "raise --max-iter, scale the features, or regularise more. The gap is 9.84e-01 after 1"
    assert why in " ".join(said.split())


def test_the_best_labels_are_those_of_all_scores(run, matrix_files):
    data = matrix_files["mulan"], "--xml", "d.xml"
    words = ["--leaf-size", 2, "--branching", 2]
    run("fit", *data, "--model", "label-tree", *words, "--out", "m.lw")
    least = ["--threshold", -1e300]  # scores all labels
    assert (
        run("predict", "m.lw", *data, "--top", 2).out == run("predict", "m.lw", *data, "--top", 2, *least).out
    )


def test_a_large_table_is_read_in_blocks_to_the_same_model(run, tmp_path, monkeypatch):
    lines = [{"t": f"w{i % 7} w{i % 3}", "y": [f"l{i % 5}"], "n": i % 4} for i in range(90)]
    lines[80]["late"] = "only here"
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["--model", "label-tree", "--labels", "y", "--text", "t", "--text", "late", "--numeric", "n"]
    run("fit", "d.jsonl", *words, "--out", "whole.lw")
    for name, value in (("_LARGEST_AT_ONCE", 10), ("_BLOCK_ROWS", 13)):
        monkeypatch.setattr(fitting, name, value)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN", 0.0)
    said = run("fit", "d.jsonl", *words, "--out", "blocks.lw").err
    assert "words: 13 rows" in " ".join(said.split())
    assert "features: 90 rows" in " ".join(said.split())
    one, other = (run("predict", name, "d.jsonl", "--top", 3).out for name in ("whole.lw", "blocks.lw"))
    assert one == other
    told = run("fit", "d.jsonl", "--model", "label-tree", "--labels", "y", "--out", "blocks.lw").err
    assert "late" in next(line for line in told.splitlines() if line.startswith("text "))
