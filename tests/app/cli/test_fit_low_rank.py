"""Low-rank learning on the command line, and the models it is compared with."""

from __future__ import annotations

import json
import signal

import numpy as np
import pytest

import labelweave
from labelweave import BinaryRelevance, LowRankClassifier, metrics
from labelweave.app.cli import model_rows, progress
from labelweave.datasets import LabeledData, read_any, write_mulan
from labelweave.labels import LabelMatrix

LOW_RANK = ("--model", "low-rank", "--out", "m.lw")


def _classifier(path="m.lw"):
    model = labelweave.load(path)
    return getattr(model, "classifier", model)


def _rows(done):
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.parametrize("format", ["mulan", "xmc", "svmlight"])
def test_matrix_files_give_the_classifier_itself(run, matrix_files, format):
    run("fit", matrix_files[format], *LOW_RANK, "--rank", 3, "--regularization", 0.3, "-q")
    data, model = read_any(matrix_files[format]), _classifier()
    twin = LowRankClassifier(3, regularization=0.3).fit(data.X, data.Y)
    np.testing.assert_array_equal(model.label_factors_, twin.label_factors_)
    assert hasattr(model, "feature_names_in_") == (format == "mulan")
    names = [str(name) for name in twin.label_names_]
    best, scores = twin.predict_top(data.X, 2)
    for row, labels, values in zip(
        _rows(run("predict", "m.lw", matrix_files[format], "--top", 2)), best, scores, strict=True
    ):
        assert [entry["label"] for entry in row["labels"]] == [names[k] for k in labels]
        np.testing.assert_allclose([entry["score"] for entry in row["labels"]], values, atol=1e-5)


@pytest.mark.parametrize(
    "words",
    [
        ["--rank", 0.4, "--loss", "logistic", "--tol", 1e-2, "--max-iter", 40],
        ["--rank", 2, "--loss", "squared_hinge", "--penalty", "ridge", "--threshold", "f1"],
        ["--rank", 100, "--negative-weight", 0.25, "--start", "random", "--seed", 3, "--jobs", 2],
        ["--rank", 4, "--intercept-scaling", 5.0, "--precision", "float32", "--threshold", 0.25],
        ["--rank", 3, "--threshold", "macro_f1", "--validation-fraction", 0.3],
        ["--rank", 3, "--kernel", "rbf", "--gamma", 0.5, "--kernel-rank", 20, "--memory-budget", 10.0],
        ["--penalty", "ridge", "--kernel", "polynomial", "--degree", 2, "--coef0", 0.5],
        ["--penalty", "ridge", "--hyperparameters", "learn", "--cv", 3, "--learning-rows", 40,
         "--max-learning-iter", 4],
    ],
)  # fmt: skip
def test_flags_reach_the_classifier(run, matrix_files, words):
    run("fit", "d.arff", *LOW_RANK, "-q", *words)
    model, data = _classifier(), read_any("d.arff")
    parameters = model.get_params()
    for flag, value in zip(words[::2], words[1::2], strict=True):
        name = {"--jobs": "n_jobs", "--seed": "random_state"}.get(flag, flag.strip("-").replace("-", "_"))
        assert parameters[name] == value
    twin = LowRankClassifier(**parameters).fit(data.X, data.Y)
    np.testing.assert_array_equal(twin.label_factors_, model.label_factors_)
    np.testing.assert_array_equal(twin.thresholds_, model.thresholds_)


def test_no_intercept(run, matrix_files):
    run("fit", "d.txt", *LOW_RANK, "--no-intercept", "-q")
    assert not _classifier().fit_intercept
    assert not _classifier().intercept_.any()


def test_the_summary(run, matrix_files):
    done = run("fit", "d.txt", *LOW_RANK, "--rank", 0.4)
    assert done.out == ""
    model, lines = _classifier(), done.err.splitlines()
    assert "rank      2 (asked for 0.4 of the labels)" in lines
    fit = next(line for line in lines if line.startswith("fit "))
    assert fit.startswith(f"fit       {model.n_iter_} rounds in ")
    assert fit.endswith(f" s, objective {model.objective_:.6g}, converged")
    assert f"gap       {model.duality_gap_:.2e} at most, to factors of any rank" in lines
    assert "threshold 0.5" in lines
    ridge = run("fit", "d.txt", *LOW_RANK, "--penalty", "ridge", "--threshold", "macro_f1").err
    assert "rank      5 (asked for 100; no product of factors has more)" in ridge
    assert " at most, to factors of this rank" in ridge
    logistic = run("fit", "d.txt", *LOW_RANK, "--penalty", "ridge", "--loss", "logistic").err
    assert "gap       no bound with the penalty ridge" in logistic
    assert "threshold one a label, from " in ridge


def test_what_was_learned_is_said(run, matrix_files):
    words = ["--penalty", "ridge", "--hyperparameters", "learn", "--kernel", "rbf", "--max-learning-iter", 1]
    done = run("fit", "d.txt", *LOW_RANK, *words)
    assert "learned   regularization " in done.err
    assert "could still improve after --max-learning-iter 1 evaluations" in done.err
    text = run("inspect", "m.lw").out
    assert "learned     regularization " in text
    assert "learning    " in text
    facts = json.loads(run("inspect", "m.lw", "--json").out)
    assert facts["hyperparameters"] == pytest.approx(_classifier().hyperparameters_)
    run("fit", "d.txt", *LOW_RANK, "-q")
    assert not {"learned", "learning"} & {line.split()[0] for line in run("inspect", "m.lw").out.splitlines()}


def test_missing_labels_of_a_mulan_file(run, rows, tmp_path):
    seen = np.random.default_rng(0).random(rows.Y.shape) < 0.5
    table = np.where(seen, rows.Y.to_dense(), np.nan)
    Y = LabelMatrix.from_any(table, [f"l{k}" for k in range(table.shape[1])])
    names = np.array([f"f{j}" for j in range(rows.X.shape[1])])
    write_mulan(LabeledData(rows.X, Y, names), tmp_path / "s.arff", tmp_path / "s.xml")
    twin = LowRankClassifier(3).fit(rows.X, Y)
    run("fit", "s.arff", *LOW_RANK, "--rank", 3, "-q")
    np.testing.assert_allclose(_classifier().label_factors_, twin.label_factors_)
    found = json.loads(run("evaluate", "m.lw", "s.arff", "--json").out)
    assert found["precision@1"] == pytest.approx(
        metrics.precision_at_k(Y, twin.decision_function(rows.X), k=1)
    )
    run("fit", "s.arff", "--model", "binary-relevance", "--out", "b.lw", "-q")


def test_missing_labels_of_tables(run, fit_table, tmp_path):
    fit_table("--model", "low-rank", "--regularization", 0.01, "-q")  # one row has no observed label
    found = _rows(run("predict", "m.lw", "a.csv"))
    assert {entry["label"] for entry in found[2]["labels"]} == {"net", "daemon"}
    assert json.loads(run("evaluate", "m.lw", "a.csv", "--json").out)["micro_f1"] == 1.0
    (tmp_path / "t.csv").write_text("t,a,b\nred,1,\n,0,1\nsea,?,0\nsea,0,1\n")
    words = ["--text", "t", "--label-column", "a", "--label-column", "b"]
    for loss in ("squared", "logistic"):
        run("fit", "t.csv", *words, *LOW_RANK, "--loss", loss, "-q")
        assert json.loads(run("evaluate", "m.lw", "t.csv", "--json").out)["rows"] == 4


def test_blocks_of_rows_change_nothing(run, matrix_files, monkeypatch):
    run("fit", "d.txt", *LOW_RANK, "--kernel", "rbf", "-q")
    whole = _rows(run("predict", "m.lw", "d.txt", "--top", 4))
    monkeypatch.setattr(model_rows, "_MOST_ROWS_AT_ONCE", 7)
    parts = _rows(run("predict", "m.lw", "d.txt", "--top", 4))
    for one, other in zip(whole, parts, strict=True):
        assert [entry["label"] for entry in one["labels"]] == [entry["label"] for entry in other["labels"]]


def test_thresholds_of_labels_leave_rankings_alone(run, matrix_files, rows):
    run("fit", "d.txt", *LOW_RANK, "--threshold", "macro_f1", "--validation-fraction", 0.4, "-q")
    model = _classifier()
    assert len(set(model.thresholds_)) > 1
    best = model.predict_top(rows.X, 3)[0]
    found = _rows(run("predict", "m.lw", "d.txt", "--top", 3))
    assert [[int(entry["label"]) for entry in row["labels"]] for row in found] == best.tolist()
    measured = json.loads(run("evaluate", "m.lw", "d.txt", "--json").out)
    ranking = model.decision_function(rows.X)
    assert measured["precision@3"] == pytest.approx(metrics.precision_at_k(rows.Y, ranking, k=3))
    assert measured["micro_f1"] == pytest.approx(
        metrics.f1_score(rows.Y, model.predict(rows.X), average="micro")
    )
    labels = {(row["id"], int(entry["label"])) for row in _rows(run("predict", "m.lw", "d.txt"))
              for entry in row["labels"]}  # fmt: skip
    assert labels == set(zip(*map(np.ndarray.tolist, model.predict(rows.X).nonzero()), strict=True))


def test_inspect_describes_the_product_of_the_factors(run, matrix_files):
    run("fit", "d.arff", *LOW_RANK, "--rank", 3, "-q")
    model = _classifier()
    Z = model.feature_factors_ @ model.label_factors_.T
    facts = json.loads(run("inspect", "m.lw", "--json").out)["factors"]
    np.testing.assert_allclose(facts["singular_values"], np.linalg.svd(Z, compute_uv=False)[:3], rtol=1e-4)
    lengths = np.linalg.norm(Z, axis=0)
    assert [entry["label"] for entry in facts["longest_labels"]] == [
        f"l{k}" for k in np.argsort(-lengths)[:10]
    ]
    assert facts["longest_labels"][0]["length"] == pytest.approx(lengths.max(), rel=1e-4)
    text = run("inspect", "m.lw").out
    assert text.index("\nkernel ") < text.index("\nrank ") < text.index("\nthreshold ") < text.index("\nfit ")
    for words in ("rank        3\n", "singular    ", "labels with the longest weights: ", "objective "):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80


def test_inspect_describes_a_label(run, matrix_files):
    run("fit", "d.arff", *LOW_RANK, "--rank", 3, "-q")
    model = _classifier()
    Z = model.feature_factors_ @ model.label_factors_.T
    facts = json.loads(run("inspect", "m.lw", "--label", "l2", "--features", 4, "--json").out)
    assert [entry["feature"] for entry in facts["for"]] == [f"f{j}" for j in np.argsort(-Z[:, 2])[:4]]
    cosines = (Z.T @ Z[:, 2]) / np.linalg.norm(Z, axis=0) / np.linalg.norm(Z[:, 2])
    cosines[2] = -2
    assert [entry["label"] for entry in facts["similar"]] == [f"l{k}" for k in np.argsort(-cosines)[:4]]
    assert facts["similar"][0]["cosine"] == pytest.approx(cosines.max(), abs=1e-4)
    text = run("inspect", "m.lw", "--label", "l2").out
    assert "\nlabels most like it:\n" in text
    assert "no label 'x'" in run("inspect", "m.lw", "--label", "x", code=2).err


@pytest.mark.parametrize("words", [["--kernel-rank", 25], []])
def test_inspect_of_a_kernel_measures_in_its_space(run, matrix_files, words):
    run("fit", "d.txt", *LOW_RANK, "--rank", 3, "--kernel", "rbf", "--gamma", 0.3, *words, "-q")
    model = _classifier()
    support = model.support_vectors_.toarray()
    squares = ((support[:, None] - support) ** 2).sum(axis=2)
    root = np.linalg.cholesky(np.exp(-0.3 * squares) + 1e-10 * np.eye(len(support)))
    Z = root.T @ model.feature_factors_ @ model.label_factors_.T
    facts = json.loads(run("inspect", "m.lw", "--json").out)
    np.testing.assert_allclose(
        facts["factors"]["singular_values"], np.linalg.svd(Z, compute_uv=False)[:3], rtol=1e-3
    )
    label = json.loads(run("inspect", "m.lw", "--label", "1", "--json").out)
    assert len(label["similar"]) == 4
    assert "for" not in label
    assert "for:" not in run("inspect", "m.lw", "--label", "1").out


def test_inspect_of_a_kernel_that_is_not_at_hand(run, rows, tmp_path):
    gram = (rows.X @ rows.X.T).toarray()
    LowRankClassifier(2, kernel="precomputed").fit(gram, rows.Y).save(tmp_path / "gram.lw")
    assert json.loads(run("inspect", "gram.lw", "--json").out)["factors"]["singular_values"] is None
    assert "singular    not computed" in run("inspect", "gram.lw").out
    assert "labels most like it" in run("inspect", "gram.lw", "--label", "0").out


def test_one_class_a_row(fit_things, run):
    fit_things("--model", "low-rank", "--one-class", "--regularization", 0.1, "-q")
    found = json.loads(run("evaluate", "m.lw", "test.csv", "--json").out)
    assert found["subset_accuracy"] > 0.8
    assert set(_rows(run("predict", "m.lw", "test.csv"))[0]) == {"id", "class", "score"}
    assert "classes     7: " in run("inspect", "m.lw").out


def test_too_few_rounds_are_one_plain_line(run, matrix_files):
    done = run("fit", "d.txt", *LOW_RANK, "--loss", "logistic", "--max-iter", 2, "--tol", 1e-12, "-q")
    assert "lowered the objective by more than --tol; raise --max-iter, or --tol." in done.err
    assert "It ended after 2 rounds at an objective of " in done.err
    assert done.err.count("\n") == 1


def test_an_interrupt_saves_the_best_model(run, matrix_files, monkeypatch):
    def show(lines):
        if lines.done == 2:
            assert lines.state == "round 2 of at most 100"
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(progress.GapLines, "show", show)
    done = run("fit", "d.txt", *LOW_RANK, "--loss", "logistic", "--tol", 1e-12, code=130)
    assert "It ended after 2 rounds at an objective of " in done.err.splitlines()[-1]
    assert "interrupted; the model so far is saved in m.lw. The fit was interrupted; the" in done.err
    assert _classifier().status_ == "interrupted"
    assert json.loads(run("evaluate", "m.lw", "d.txt", "--json").out)["precision@1"] > 0.2


def test_rounds_after_learning_are_told_from_it():
    states, lines = [], progress.GapLines()
    lines.show = lambda: states.append(lines.state)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), rng.random((40, 4)) < 0.4
    model = LowRankClassifier(2, penalty="ridge", hyperparameters="learn", max_learning_iter=20, max_iter=5)
    model.set_callbacks(lines).fit(X, Y)
    assert states[0] == "learning 1 of at most 20"
    assert states[-1].startswith("round ")
    assert states[-1].endswith(" of at most 5")


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        (["--loss", "logistic", "--regularization", 0.5, "--jobs", 2],
         {"loss": "logistic", "regularization": 0.5, "n_jobs": 2}),
        (["--no-intercept"], {"fit_intercept": False}),
    ],
)  # fmt: skip
def test_a_linear_model_a_label(run, matrix_files, words, parameters):
    done = run("fit", "d.arff", "--model", "binary-relevance", *words, "--out", "m.lw")
    assert "labels    5" in done.err
    model, data = _classifier(), read_any("d.arff")
    twin = BinaryRelevance(**parameters).fit(data.X, data.Y)
    vars(model).pop("feature_names_in_")
    np.testing.assert_allclose(model.decision_function(data.X), twin.decision_function(data.X))
    assert len(_rows(run("predict", "m.lw", "d.arff", "--top", 2))[0]["labels"]) == 2
    assert "precision@1" in json.loads(run("evaluate", "m.lw", "d.arff", "--json").out)
    assert max(map(len, run("inspect", "m.lw").out.splitlines())) <= 80
    assert "for:" in run("inspect", "m.lw", "--label", "l1").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--C", 2], "--C goes with --model max-margin or label-tree, not with low-rank."),
        (["--scale", 2], "--scale goes with --model kernel-logistic, not with low-rank."),
        (["--solver", "auto"], "--solver goes with --model max-margin, not with low-rank."),
        (["--data-taxonomy"], "--data-taxonomy: the data hold no taxonomy"),
        (["--coupling", 2], "--coupling goes with --model max-margin or kernel-logistic, not with low-rank."),
        (["--model", "max-margin", "--rank", 3], "--rank goes with --model low-rank, not with max-margin."),
        (["--model", "kernel-logistic", "--loss", "squared"],
         "--loss goes with --model low-rank, label-tree or binary-relevance, not with kernel-logistic."),
        (["--model", "binary-relevance", "--kernel", "rbf"], "--kernel goes with --model max-margin,"),
        (["--model", "binary-relevance", "--seed", 1], "--seed goes with --model auto, max-margin,"),
        (["--model", "binary-relevance", "--regularization", 0],
         "--regularization must be a float in the range (0.0, inf). Got 0.0 instead."),
        (["--rank", 0],
         "--rank must be an int in the range [1, inf) or a float in the range (0.0, 1.0]. Got 0 "),
        (["--rank", "1.5"],
         "--rank must be an int in the range [1, inf) or a float in the range (0.0, 1.0]. Got 1.5 "),
        (["--rank", "all"], "'all' is neither"),
        (["--rank", "nan"],
         "--rank must be an int in the range [1, inf) or a float in the range (0.0, 1.0]. Got nan "),
        (["--loss", "hinge"], "--loss must be one of logistic, squared, squared_hinge. Got 'hinge' instead."),
        (["--loss", "log"], "Invalid value for '--loss'"),
        (["--regularization", -1],
         "--regularization must be a float in the range [0.0, inf). Got -1.0 instead."),
        (["--regularization", "nan"], "regularization"),
        (["--negative-weight", 0],
         "--negative-weight must be a float in the range (0.0, inf). Got 0.0 instead."),
        (["--threshold", "best"],
         "Invalid value for '--threshold': 'best' is neither a number nor auto, f1,"),
        (["--threshold", "inf"], "macro_f1, micro_f1 or a float in the range (-inf, inf). Got inf instead."),
        (["--validation-fraction", 0.2],
         "--validation-fraction goes with --threshold f1, micro_f1, macro_f1,"),
        (["--intercept-scaling", 2, "--no-intercept"], "--intercept-scaling has no intercept to scale"),
        (["--kernel-rank", 5], "--kernel-rank goes with --kernel rbf, polynomial or laplacian, not with"),
        (["--precision", "auto"], "--precision must be one of float32, float64. Got 'auto' instead."),
        (["--gamma", 1], "--gamma goes with --kernel rbf, polynomial or laplacian, not with linear."),
        (["--hyperparameters", "learn"],
         "--hyperparameters learn is for --loss squared with --penalty ridge, but they"),
        (["--cv", 3], "--cv goes with --hyperparameters learn, not with fixed."),
        (["--cv", 3, "--hyperparameters", "fixed"],
         "--cv goes with --hyperparameters learn, not with fixed."),
        (["--kernel", "rbf", "--memory-budget", 1e-9], "too small"),
    ],
)  # fmt: skip
def test_nonsense_is_one_line_and_code_2(run, matrix_files, tmp_path, words, message):
    done = run("fit", "d.txt", *LOW_RANK, *words, code=2)
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "m.lw").exists()


def test_a_label_without_observed_entries(run, tmp_path):
    (tmp_path / "unseen.csv").write_text("t,a,b\nred,1,\nsea,0,?\n")
    words = ["--text", "t", "--label-column", "a", "--label-column", "b"]
    done = run("fit", "unseen.csv", "-q", *words, *LOW_RANK, code=2)
    assert "Label 'b' has no observed entry" in done.err
    assert done.err.count("\n") == 1
