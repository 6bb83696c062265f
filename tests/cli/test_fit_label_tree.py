import pytest


@pytest.mark.parametrize("words", [[], ["--leaf-size", 2, "--branching", 2], ["--max-iter", 1]])
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
    assert "above --tol 1e-09; raise --max-iter or lower --C" in " ".join(said.split())
