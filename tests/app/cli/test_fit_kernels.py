"""Kernel models on the command line: flags, what is said of them, what they predict."""

from __future__ import annotations

import re

import numpy as np
import pytest

import labelweave
from labelweave import LabelCovariance, MaxMarginClassifier, kernels
from labelweave.datasets import read_any
from labelweave.kernels import PolynomialKernel
from labelweave.labels import LabelMatrix


@pytest.mark.parametrize("format", ["mulan", "xmc", "svmlight"])
def test_predictions_from_a_file_are_those_of_the_model_in_process(run, matrix_files, format):
    path, flags = matrix_files[format], "--kernel poly --gamma auto --degree 2 --coef0 0.5 --C 2"
    run(f"fit {path} --model max-margin {flags} --out m.lw -q")
    data = read_any(path)
    words = {"kernel": PolynomialKernel(2, "auto", 0.5)}
    twin = MaxMarginClassifier(C=2.0, scaling="auto", **words).fit(data.X, data.Y)
    rows = [row["labels"] for row in run(f"predict m.lw {path} --top 5").records]
    found = [[{e["label"]: e["score"] for e in row}[name] for name in twin.label_names_] for row in rows]
    np.testing.assert_allclose(found, twin.decision_function(data.X), rtol=1e-4, atol=1e-5)
    loaded = labelweave.load("m.lw")
    vars(loaded).pop("feature_names_in_", None)  # X here has no names
    np.testing.assert_array_equal(loaded.decision_function(data.X), twin.decision_function(data.X))


def test_the_summary_says_kernel_and_support(run, fit_table):
    lines = fit_table("--kernel poly --gamma 0.5").err.splitlines()
    kernel = "kernel    PolynomialKernel(coef0=1, degree=3, gamma=0.5), "
    assert any(line.startswith(kernel) and line.endswith(" support rows") for line in lines)
    assert re.search(r"gamma=\d", fit_table("--kernel rbf").err)  # "scale" is a number now
    linear = fit_table().err
    assert "kernel    LinearKernel()" in linear
    assert "support" not in linear


def test_inspect_says_kernel_and_support(run, matrix_files, tmp_path):
    run("fit d.txt --model max-margin --kernel rbf --gamma 0.25 --out m.lw -q")
    text = run("inspect m.lw").out
    support = len(labelweave.load("m.lw").support_)
    assert f"kernel      RBFKernel(gamma=0.25), {support} support rows\n" in text
    facts = run("inspect m.lw --json").json
    assert (facts["kernel"], facts["support_rows"]) == ("RBFKernel(gamma=0.25)", support)
    done = run("inspect m.lw --label 0", code=2)
    assert "the kernel RBFKernel(gamma=0.25), where features have no weights to show" in done.err
    assert done.err.count("\n") == 1
    assert "no label 'x'" in run("inspect m.lw --label x", code=2).err


def test_inspect_of_models_made_in_python(run, rows, tmp_path):
    kernel = 2.0 * kernels.RBFKernel(0.5) + kernels.LinearKernel() * (kernels.CosineKernel() + 1)
    MaxMarginClassifier(kernel=kernel).fit(rows.X, rows.Y).save(tmp_path / "sum.lw")
    words = "2 * RBFKernel(gamma=0.5) + LinearKernel() * (CosineKernel() + ConstantKernel(value=1))"
    facts = run("inspect sum.lw --json").json
    assert facts["kernel"] == facts["parameters"]["kernel"] == words
    gram = (rows.X @ rows.X.T).toarray()
    MaxMarginClassifier(kernel="precomputed").fit(gram, rows.Y).save(tmp_path / "gram.lw")
    assert "kernel      precomputed, " in run("inspect gram.lw").out
    assert "the kernel precomputed" in run("inspect gram.lw --label 0", code=2).err


def test_inspect_prints_the_covariance(run, rows, tmp_path):
    Y = LabelMatrix(rows.Y.positives, None, list("abcde"))
    prior = LabelCovariance.from_labels(rows.Y)  # without names: the model's are shown
    MaxMarginClassifier(label_covariance=prior).fit(rows.X, Y).save(tmp_path / "m.lw")
    text = run("inspect m.lw --covariance").out
    assert text.startswith("Label covariance over 5 labels, dense\nvariances: 1\n")
    assert " a ~ b\n" in text
    facts = run("inspect m.lw --covariance --json").json
    assert (facts["labels"], facts["variances"]) == (list("abcde"), [1.0] * 5)
    np.testing.assert_allclose(facts["covariance"], prior.to_dense())


def test_inspect_prints_the_covariance_of_independent_labels_and_of_two_classes(run, rows, tmp_path):
    MaxMarginClassifier().fit(rows.X, rows.Y).save(tmp_path / "m.lw")
    assert "over 5 labels, independent" in run("inspect m.lw --covariance").out
    classes = np.where(np.arange(len(rows)) % 2, "odd", "even")
    MaxMarginClassifier(kernel="rbf").fit(rows.X, classes).save(tmp_path / "m.lw")
    assert "over 1 labels" in run("inspect m.lw --covariance").out


@pytest.mark.parametrize("suffix", ["png", "svg", "PDF"])
def test_inspect_draws_the_covariance(run, table_model, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    done = run("inspect", table_model, "--covariance", "--out", f"c.{suffix}")
    assert done.err == f"labelweave: the plot is in c.{suffix}.\n"
    assert (tmp_path / f"c.{suffix}").stat().st_size > 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["a.csv", f"c.{suffix}", "m.lw"])


def test_pictures_that_cannot_be_drawn(run, table_model, tmp_path, monkeypatch):
    for words, message in [
        (
            ["--covariance", "--out", "c.gif"],
            "c.gif does not determine a format; use one of .png, .pdf, .svg",
        ),
        (["--out", "c.png"], "--out needs --covariance or --graph"),
        (["--covariance", "--label", "game"], "--label and --covariance show different parts"),
        (["--covariance", "--out", "no/c.png"], "no such directory to write into"),
    ]:
        done = run("inspect", table_model, *words, code=2)
        assert message in done.err
        assert (done.out, done.err.count("\n")) == ("", 1)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    done = run("inspect", table_model, "--covariance", "--out", "c.png", code=2)
    assert done.err == "labelweave: Plots need matplotlib: install labelweave[app].\n"
    assert not (tmp_path / "c.png").exists()
