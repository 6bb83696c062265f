"""Kernel models on the command line: flags, what is said of them, what they predict."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import labelweave
from labelweave import LabelCovariance, MaxMarginClassifier, kernels
from labelweave.app.cli import model_rows
from labelweave.datasets import LabeledData, read_any, write_xmc
from labelweave.labels import LabelMatrix

FLAGS = {
    "rbf": ["--gamma", 0.3],
    "polynomial": ["--gamma", "auto", "--degree", 2, "--coef0", 0.5],
    "laplacian": ["--gamma", "scale"],
    "cosine": [],
}
WORDS = {"rbf": {"gamma": 0.3}, "polynomial": {"gamma": "auto", "degree": 2, "coef0": 0.5}}


def _scores(done):
    return [[entry["score"] for entry in json.loads(line)["labels"]] for line in done.out.splitlines()]


def _in_label_order(done, names):
    rows = [json.loads(line)["labels"] for line in done.out.splitlines()]
    return np.array([[{e["label"]: e["score"] for e in row}[name] for name in names] for row in rows])


@pytest.mark.parametrize("kernel", FLAGS)
@pytest.mark.parametrize("format", ["mulan", "xmc", "svmlight"])
def test_predictions_from_a_file_are_those_of_the_model_in_process(run, matrix_files, kernel, format):
    path = matrix_files[format]
    run(
        "fit",
        path,
        "--model",
        "max-margin",
        "--kernel",
        kernel,
        *FLAGS[kernel],
        "--C",
        2,
        "--out",
        "m.lw",
        "-q",
    )
    data = read_any(path)
    twin = MaxMarginClassifier(C=2.0, kernel=kernel, scaling="auto", **WORDS.get(kernel, {})).fit(
        data.X, data.Y
    )
    done = run("predict", "m.lw", path, "--top", 5)
    found = _in_label_order(done, twin.label_names_)
    np.testing.assert_allclose(found, twin.decision_function(data.X), rtol=1e-4, atol=1e-5)
    loaded = labelweave.load("m.lw")
    vars(loaded).pop("feature_names_in_", None)  # X here has no names
    np.testing.assert_array_equal(loaded.decision_function(data.X), twin.decision_function(data.X))


@pytest.mark.parametrize("kernel", ["rbf", "cosine"])
def test_blocks_of_rows_change_nothing(run, matrix_files, fit_table, kernel, monkeypatch):
    run("fit", "d.txt", "--model", "max-margin", "--kernel", kernel, "--out", "d.lw", "-q")
    fit_table("--kernel", kernel, "-q")
    files = (("d.lw", "d.txt"), ("m.lw", "a.csv"))
    whole = [_scores(run("predict", *words, "--top", 4)) for words in files]
    monkeypatch.setattr(model_rows, "_MOST_ROWS_AT_ONCE", 2)
    for words, scores in zip(files, whole, strict=True):
        np.testing.assert_allclose(_scores(run("predict", *words, "--top", 4)), scores, atol=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "cosine", "laplacian", "polynomial"])
def test_tables_with_a_kernel(run, fit_table, kernel):
    fit_table("--kernel", kernel, "-q", "--tol", 1e-6, "--C", 10)
    rows = [json.loads(line) for line in run("predict", "m.lw", "a.csv").out.splitlines()]
    assert [row["id"] for row in rows] == [f"p{k}" for k in range(6)]
    assert {entry["label"] for entry in rows[2]["labels"]} == {"net", "daemon"}
    metrics = json.loads(run("evaluate", "m.lw", "a.csv", "--json").out)
    assert metrics["rows"] == 6  # of the last one the labels are missing
    assert metrics["micro_f1"] == 1.0


def test_the_summary_says_kernel_and_support(run, fit_table):
    lines = fit_table("--kernel", "polynomial", "--gamma", 0.5).err.splitlines()
    kernel = "kernel    PolynomialKernel(coef0=1, degree=3, gamma=0.5), "
    assert any(line.startswith(kernel) and line.endswith(" support rows") for line in lines)
    assert re.search(r"gamma=\d", fit_table("--kernel", "rbf").err)  # "scale" is a number now
    linear = fit_table().err
    assert "kernel    LinearKernel()" in linear
    assert "support" not in linear


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["--factorization", "eigenvalues", "--precision", "float64", "--memory-budget", 5],
        ["--factorization", "incomplete_cholesky", "--solver", "alternating_directions"],
        ["--factorization", "cholesky", "--precision", "float32"],
        ["--solver", "block_ascent"],
        ["--solver", "working_set"],
    ],
)
def test_every_way_to_solve_gives_the_same_model(run, matrix_files, words):
    run(
        "fit",
        "d.txt",
        "--model",
        "max-margin",
        "--kernel",
        "rbf",
        "--tol",
        1e-4,
        *words,
        "--out",
        "m.lw",
        "-q",
    )
    run("fit", "d.txt", "--model", "max-margin", "--kernel", "rbf", "--tol", 1e-6, "--out", "n.lw", "-q")
    X, (model, other) = read_any("d.txt").X, (labelweave.load(name) for name in ("m.lw", "n.lw"))
    assert model.converged_
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=0.05)


def test_one_row_and_one_label(run, tmp_path):
    (tmp_path / "one.csv").write_text("t,y\nred rose,flower\n")
    for kernel in FLAGS:
        run(
            "fit",
            "one.csv",
            "--model",
            "max-margin",
            "--text",
            "t",
            "--labels",
            "y",
            "--kernel",
            kernel,
            "--out",
            "m.lw",
            "-q",
        )
        found = json.loads(run("predict", "m.lw", "one.csv").out)
        assert [entry["label"] for entry in found["labels"]] == ["flower"]


def test_rows_without_words_and_missing_labels(run, tmp_path):
    (tmp_path / "t.csv").write_text("t,a,b\nred,1,\n,0,1\nsea,?,0\nsea,0,1\n")
    words = ["--text", "t", "--label-column", "a", "--label-column", "b", "--out", "m.lw"]
    for kernel in FLAGS:
        run("fit", "t.csv", "--model", "max-margin", *words, "--kernel", kernel, "-q")
        assert np.isfinite(_in_label_order(run("predict", "m.lw", "t.csv", "--top", 2), ["a", "b"])).all()
        assert json.loads(run("evaluate", "m.lw", "t.csv", "--json").out)["rows"] == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gamma", 1], "--gamma goes with --kernel rbf, polynomial or laplacian, not with linear."),
        (["--kernel", "cosine", "--gamma", 1], "--gamma goes with --kernel rbf, polynomial or laplacian"),
        (["--kernel", "rbf", "--degree", 2], "--degree goes with --kernel polynomial, not with rbf."),
        (["--kernel", "rbf", "--coef0", 2], "--coef0 goes with --kernel polynomial, not with rbf."),
        (
            ["--kernel", "rbf", "--gamma", "wide"],
            "Invalid value for '--gamma': 'wide' is neither a number nor scale, auto or",
        ),
        (
            ["--kernel", "rbf", "--gamma", "-1"],
            "one of auto, scale or a float in the range (0.0, inf). Got -1.0 instead.",
        ),
        (
            ["--kernel", "rbf", "--gamma", "nan"],
            "one of auto, scale or a float in the range (0.0, inf). Got nan instead.",
        ),
        (["--kernel", "precomputed"], "Invalid value for '--kernel'"),
        (
            ["--kernel", "rbf", "--solver", "coordinate_ascent"],
            "--solver coordinate_ascent walks explicit features, which this kernel does",
        ),
        (
            ["--solver", "working_set", "--factorization", "cholesky"],
            "--solver working_set factorises no kernel matrix, as --factorization cholesky asks for",
        ),
        (
            ["--kernel", "rbf", "--memory-budget", 0],
            "--memory-budget must be a float in the range (0.0, inf). Got 0.0 instead.",
        ),
        (["--kernel", "rbf", "--memory-budget", 1e-9], "--memory-budget is 1e-09 MB, too small"),
        (
            ["--kernel", "polynomial", "--degree", 2, "--coef0", "-1"],
            "--coef0 must be a float in the range [0.0, inf). Got -1.0 instead.",
        ),
        (["--kernel", "polynomial", "--coef0", "nan"], "coef0"),
        (["--precision", "float16"], "Invalid value for '--precision'"),
        (["--kernel", "rbf", "--prune", "certified"], "--prune certified drops weights of features"),
        (
            ["--prune", "most"],
            "Invalid value for '--prune': 'most' is neither a number nor off, certified or",
        ),
        (["--prune", 0], "one of certified, off, small or a float in the range (0.0, inf). Got 0.0 instead."),
    ],
)
def test_bad_kernel_flags_are_one_line_and_code_2(run, matrix_files, tmp_path, words, message):
    done = run("fit", "d.txt", "--model", "max-margin", *words, "--out", "m.lw", code=2)
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "m.lw").exists()


def test_kernel_models_refuse_rows_of_another_width(run, matrix_files, rows, tmp_path):
    run("fit", "d.txt", "--model", "max-margin", "--kernel", "rbf", "--out", "m.lw", "-q")
    write_xmc(LabeledData(rows.X[:, :7], rows.Y), tmp_path / "narrow.txt")
    done = run("predict", "m.lw", "narrow.txt", code=2)
    assert "found 7 features; expected the 40 of the model" in done.err


def test_inspect_says_kernel_and_support(run, matrix_files, tmp_path):
    run("fit", "d.txt", "--model", "max-margin", "--kernel", "rbf", "--gamma", 0.25, "--out", "m.lw", "-q")
    text = run("inspect", "m.lw").out
    support = len(labelweave.load("m.lw").support_)
    assert f"kernel      RBFKernel(gamma=0.25), {support} support rows\n" in text
    facts = json.loads(run("inspect", "m.lw", "--json").out)
    assert (facts["kernel"], facts["support_rows"]) == ("RBFKernel(gamma=0.25)", support)
    done = run("inspect", "m.lw", "--label", "0", code=2)
    assert "the kernel RBFKernel(gamma=0.25), with which features have no weights to show" in done.err
    assert done.err.count("\n") == 1
    assert "no label 'x'" in run("inspect", "m.lw", "--label", "x", code=2).err


def test_inspect_shows_the_weights_of_a_cosine_model(run, fit_table):
    fit_table("--kernel", "cosine", "-q")
    assert "section=games" in run("inspect", "m.lw", "--label", "game").out
    assert json.loads(run("inspect", "m.lw", "--json").out)["support_rows"] is None


def test_inspect_of_models_made_in_python(run, rows, tmp_path):
    kernel = 2.0 * kernels.RBFKernel(0.5) + kernels.LinearKernel() * (kernels.CosineKernel() + 1)
    MaxMarginClassifier(kernel=kernel).fit(rows.X, rows.Y).save(tmp_path / "sum.lw")
    words = "2 * RBFKernel(gamma=0.5) + LinearKernel() * (CosineKernel() + ConstantKernel(value=1))"
    facts = json.loads(run("inspect", "sum.lw", "--json").out)
    assert facts["kernel"] == facts["parameters"]["kernel"] == words
    gram = (rows.X @ rows.X.T).toarray()
    MaxMarginClassifier(kernel="precomputed").fit(gram, rows.Y).save(tmp_path / "gram.lw")
    assert "kernel      precomputed, " in run("inspect", "gram.lw").out
    assert "the kernel precomputed" in run("inspect", "gram.lw", "--label", "0", code=2).err


def test_inspect_prints_the_covariance(run, rows, tmp_path):
    Y = LabelMatrix(rows.Y.positives, None, list("abcde"))
    prior = LabelCovariance.from_labels(rows.Y)  # without names: the model's are shown
    MaxMarginClassifier(label_covariance=prior).fit(rows.X, Y).save(tmp_path / "m.lw")
    text = run("inspect", "m.lw", "--covariance").out
    assert text.startswith("Label covariance over 5 labels, dense\nvariances: 1\n")
    assert " a ~ b\n" in text
    facts = json.loads(run("inspect", "m.lw", "--covariance", "--json").out)
    assert (facts["labels"], facts["variances"]) == (list("abcde"), [1.0] * 5)
    np.testing.assert_allclose(facts["covariance"], prior.to_dense())


def test_inspect_prints_the_covariance_of_independent_labels_and_of_two_classes(run, rows, tmp_path):
    MaxMarginClassifier().fit(rows.X, rows.Y).save(tmp_path / "m.lw")
    assert "over 5 labels, independent" in run("inspect", "m.lw", "--covariance").out
    classes = np.where(np.arange(len(rows)) % 2, "odd", "even")
    MaxMarginClassifier(kernel="rbf").fit(rows.X, classes).save(tmp_path / "m.lw")
    assert "over 1 labels" in run("inspect", "m.lw", "--covariance").out


@pytest.mark.parametrize("suffix", ["png", "svg", "PDF"])
def test_inspect_draws_the_covariance(run, table_model, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    done = run("inspect", table_model, "--covariance", "--out", f"c.{suffix}")
    assert done.err == f"labelweave: the picture is in c.{suffix}.\n"
    assert (tmp_path / f"c.{suffix}").stat().st_size > 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["a.csv", f"c.{suffix}", "m.lw"])


def test_pictures_that_cannot_be_drawn(run, table_model, tmp_path, monkeypatch):
    for words, message in [
        (["--covariance", "--out", "c.gif"], "c.gif does not say its format; end it in .png, .pdf, .svg"),
        (["--out", "c.png"], "--out goes with --covariance or --graph only"),
        (["--covariance", "--label", "game"], "--label and --covariance show different things"),
        (["--covariance", "--out", "no/c.png"], "no such directory to write into"),
    ]:
        done = run("inspect", table_model, *words, code=2)
        assert message in done.err
        assert (done.out, done.err.count("\n")) == ("", 1)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    done = run("inspect", table_model, "--covariance", "--out", "c.png", code=2)
    assert done.err == "labelweave: Pictures need matplotlib: install labelweave[app].\n"
    assert not (tmp_path / "c.png").exists()
