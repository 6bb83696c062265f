"""Kernel logistic classification on the command line: classes, taxonomies, hyper-parameters."""

from __future__ import annotations

import json
import re
import signal

import numpy as np
import pytest

import labelweave
from labelweave import ClassProbabilities, KernelLogisticClassifier, Taxonomy
from labelweave.app.cli import progress
from labelweave.datasets import make_taxonomy, read_any, read_table, write_hierarchical_arff

FIXED = ("--hyperparameters", "fixed", "-q")


def _classifier(path="m.lw"):
    model = labelweave.load(path)
    return getattr(model, "classifier", model)


@pytest.fixture
def tree_file(tmp_path, run):
    """Rows of nine classes on two levels, in ``h.arff``."""
    data = make_taxonomy(90, 5, depth=2, noise=0.7, random_state=1)
    write_hierarchical_arff(data, tmp_path / "h.arff")
    return data


def test_one_class_a_row_from_a_table(fit_things, tmp_path):
    done = fit_things("--one-class", "--tol", 1e-6)
    for words in ("classes   7", "kernel    RBFKernel(gamma=", "prior     scale ", "evaluations, cross-val"):
        assert words in done.err
    model = _classifier()
    data = read_table(tmp_path / "things.csv", labels="kind", text="text")
    y = np.array([None] * len(data), object)
    has = np.diff(data.Y.positives.indptr) > 0
    y[has] = data.Y.names[data.Y.positives.indices]
    assert (y == None).sum() == 4  # noqa: E711
    twin = KernelLogisticClassifier(tol=1e-6, scaling="auto").fit(data.X, y)
    assert list(model.classes_) == list(twin.classes_)
    assert model.hyperparameters_ == pytest.approx(twin.hyperparameters_)
    np.testing.assert_allclose(model.predict_proba(data.X), twin.predict_proba(data.X), atol=1e-6)


def test_paths_as_classes_are_a_taxonomy_and_known_in_part(fit_things):
    fit_things("--class-paths", "--tie", "level,shared", *FIXED)
    model = _classifier()
    assert set(model.classes_) == {"animal/cat", "animal/dog", "fruit/apple", "fruit/pear", "rock"}
    assert list(model.tie) == ["level", "shared"]
    assert set(model.taxonomy_.roots) == {"rock", "fruit", "animal"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "parent,child\nthing,fruit\nthing,animal\nthing,rock\nfruit,fruit/apple\nfruit,fruit/pear\n"
                  "animal,animal/dog\nanimal,animal/cat\n"),
        ("t.txt", "path\nthing\nfruit/apple\nfruit/pear\n\nanimal/dog\nanimal/cat\nrock\n"),
        ("t.json", '{"fruit": ["fruit/apple", "fruit/pear"], "animal": {"animal/dog": null, '
                   '"animal/cat": {}}, "rock": []}'),
        ("t2.json", '["fruit/apple", "fruit/pear", "animal/dog", "animal/cat", "rock"]'),
    ],
)  # fmt: skip
def test_taxonomies_in_every_form_of_file(fit_things, run, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    fit_things("--one-class", "--taxonomy", name, *FIXED)
    model = _classifier()
    assert set(model.classes_) == {"animal/cat", "animal/dog", "fruit/apple", "fruit/pear", "rock"}
    assert model.taxonomy_.parents_of(["fruit/pear", "animal/dog"]) == ["fruit", "animal"]
    found = json.loads(run("evaluate", "m.lw", "test.csv", "--json").out)
    assert found["accuracy"] > 0.9
    assert found["parent_accuracy"] >= found["accuracy"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.json", '{"a":', "t.json:1: found no JSON"),
        ("t.json", "5", "found the JSON value '5'; expected nested objects of names"),
        ("t.json", '{"a": {"b": 1}}', "Below 'a > b' stands 1"),
        ("t.json", '{"a": ["b"], "a": ["c"]}', "found the name 'a' twice in one object"),
        ("t.json", "[" * 100_000, "t.json"),
        ("t.txt", "a/b\na//c\n", "The path 'a//c' has an empty part"),
        (
            "t.txt",
            "a/b\nx,y,z\n",
            "t.txt:1: found 1 cells; expected a parent and a child, or on every line a path",
        ),
        ("t.txt", "fruit/apple\n", "is no node of the taxonomy"),
        ("none.txt", None, "no such file"),
    ],
)
def test_wrong_taxonomy_files(fit_things, tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_text(text)
    done = fit_things("--one-class", "--taxonomy", name, "-q", code=2)
    assert message in done.err
    assert done.err.count("\n") == 1


def test_the_tree_of_the_data_gives_classes(run, tree_file, tmp_path):
    words = ["fit", "h.arff", "--model", "kernel-logistic", "--out", "m.lw", *FIXED]
    run(*words, "--data-taxonomy", "--decision", "least_expected_loss", "--scale", 3)
    twin = KernelLogisticClassifier(
        taxonomy=tree_file.taxonomy,
        scale=3.0,
        hyperparameters="fixed",
        decision="least_expected_loss",
        scaling="auto",
    ).fit(tree_file.X, tree_file.classes)
    np.testing.assert_allclose(_classifier().dual_coef_, twin.dual_coef_, atol=1e-9)
    lines = [json.loads(line) for line in run("predict", "m.lw", "h.arff").out.splitlines()]
    assert [line["class"] for line in lines] == list(twin.predict(tree_file.X))
    run(*words)  # without the tree, and without --one-class, all nodes are labels
    assert len(_classifier().classes_) == 12
    run(*words, "--data-taxonomy", "--many-labels")
    assert len(_classifier().classes_) == 12
    assert _classifier().taxonomy_ == tree_file.taxonomy


def test_numbers_as_classes(run, tree_file, tmp_path):
    data = read_any("h.arff")
    numbers = np.array([3, 7, 9])[np.arange(len(data)) % 3]
    lines = [
        f"{c} " + " ".join(f"{j}:{v:.4f}" for j, v in enumerate(x))
        for c, x in zip(numbers, data.X, strict=True)
    ]
    (tmp_path / "c.svm").write_text("\n".join(lines) + "\n")
    run("fit", "c.svm", "--model", "kernel-logistic", "--one-class", "--out", "m.lw", *FIXED)
    assert list(_classifier().classes_) == ["3", "7", "9"]
    assert json.loads(run("evaluate", "m.lw", "c.svm", "--json").out)["accuracy"] > 0.4


def test_many_labels_with_probabilities(run, matrix_files):
    run("fit", "d.txt", "--model", "kernel-logistic", "--kernel", "linear", "--out", "m.lw", "-q")
    data, model = read_any("d.txt"), _classifier()
    found = json.loads(run("evaluate", "m.lw", "d.txt", "--json").out)
    assert found["log_loss"] == pytest.approx(
        labelweave.metrics.log_loss(data.Y, model.predict_proba(data.X))
    )
    assert "log_loss" not in json.loads(
        (
            run("fit", "d.txt", "--model", "max-margin", "--out", "n.lw", "-q"),
            run("evaluate", "n.lw", "d.txt", "--json"),
        )[1].out
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--tie", "class", "--max-learning-iter", 1],
        ["--tie", "shared,class", "--cv", 3, "--max-learning-iter", 2],
        ["--coupling", 2, "--learning-rows", 30, "--max-learning-iter", 1],
        ["--learning-rows", 25, "--learning-blocks", 2, "--max-learning-iter", 1],
        ["--coupling", "full", "--kernel", "linear", "--max-learning-iter", 1],
        ["--kernel-rank", 20, "--kernel", "laplacian", "--gamma", 0.1, "--hyperparameters", "fixed"],
        ["--intercept-variance", 0, "--kernel", "polynomial", "--degree", 2, "--jobs", 2, "--seed", 3],
        ["--covariance-from", "things.csv", "--shrink", 0.2],
    ],
)
def test_flags_reach_the_classifier(fit_things, run, words):
    fit_things("--one-class", "--quiet", *words)
    parameters = _classifier().get_params()
    for flag, value in zip(words[::2], words[1::2], strict=True):
        name = {"--jobs": "n_jobs", "--seed": "random_state"}.get(flag, flag.strip("-").replace("-", "_"))
        if name in parameters:
            given = parameters[name]
            assert (",".join(given) if isinstance(given, list) else given) == value
    assert json.loads(run("evaluate", "m.lw", "test.csv", "--json").out)["accuracy"] > 0.8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--C", 2], "--C goes with --model max-margin or label-tree, not with kernel-logistic"),
        (["--no-intercept"], "--no-intercept goes with --model max-margin"),
        (["--precision", "float32"], "--precision goes with --model max-margin"),
        (
            ["--model", "max-margin", "--scale", 2],
            "--scale goes with --model kernel-logistic, not with max-margin",
        ),
        (["--model", "max-margin", "--class-paths"], "--class-paths goes with --model kernel-logistic"),
        (["--model", "boosting"], "Invalid value for '--model'"),
        (["--kernel", "cosine", "--gamma", 2], "--gamma goes with --kernel rbf, polynomial or laplacian"),
        (
            ["--tie", "level"],
            "--tie level needs a --taxonomy; give one, or --tie shared, 'scale' or 'class'.",
        ),
        (["--tie", "level,foo"], "--tie level,foo; give one of 'shared', 'scale', 'class', 'level',"),
        (["--tie", "class", "--coupling", 2], "--tie class does not go with --coupling"),
        (["--tie", "class", "--covariance", "x"], "--tie class does not go with --covariance"),
        (["--coupling", "some"], "Invalid value for '--coupling': 'some' is neither a number nor full."),
        (["--coupling", 9], "there are 7 labels"),
        (
            ["--coupling", 2, "--class-paths"],
            "--class-paths and --coupling are given; the labels have one structure, so",
        ),
        (
            ["--coupling", 2, "--hyperparameters", "fixed"],
            "--coupling is to be learned but --hyperparameters fixed; use",
        ),
        (
            ["--cv", 3, "--hyperparameters", "fixed"],
            "--cv goes with --hyperparameters learn, not with fixed.",
        ),
        (["--cv", 1], "--cv must be an int in the range [2, inf). Got 1 instead."),
        (["--decision", "best_parent"], "--decision best_parent needs a --taxonomy; give one, or --decision"),
        (["--class-paths", "--taxonomy", "x"], "--taxonomy and --class-paths both describe the labels"),
        (
            ["--class-paths", "--shrink", 0.5],
            "--shrink has no covariance to shrink; give one of --covariance,",
        ),
        (["--class-paths", "--many-labels"], "which --many-labels rules out"),
        (
            ["--label-separator", "/"],
            "--label-separator lists several labels a row, but --one-class wants one",
        ),
        (["--data-taxonomy"], "the data hold no taxonomy"),
        (["--memory-budget", 1e-6], "too small"),
        (["--scale", "nan"], "scale"),
    ],
)
def test_nonsense_is_one_line_and_code_2(fit_things, tmp_path, words, message):
    done = fit_things("--one-class", "-q", *words, code=2)
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "m.lw").exists()


def test_one_class_is_needed_for_a_decision(fit_things, tmp_path):
    (tmp_path / "t.txt").write_text("a/b\n")
    done = fit_things("--taxonomy", "t.txt", "--decision", "best_parent", code=2)
    assert "--decision best_parent chooses one class a row; give --one-class too" in done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text,kind\nred,a\nblue,\n", "y has one class only, 'a'"),
        ("text,kind\nred,\nblue,?\n", "no label in column 'kind'"),
        (
            "text,a,b\nred,1,1\nblue,1,0\n",
            "The row 0 (counted from 0) has several labels, such as 'a' and 'b' (1 of 2",
        ),
    ],
)
def test_tables_without_one_class_a_row(run, tmp_path, text, message):
    (tmp_path / "b.csv").write_text(text)
    labels = ["--labels", "kind"] if "kind" in text else ["--label-column", "a", "--label-column", "b"]
    words = ["--model", "kernel-logistic", "--one-class", "--text", "text", *labels, "--out", "m.lw"]
    done = run("fit", "b.csv", "-q", *words, code=2)
    assert message in done.err
    assert done.err.count("\n") == 1


def test_single_labels_are_hinted_at(fit_things):
    assert "no row has more than one label; with --one-class" in fit_things("--hyperparameters", "fixed").err
    known = fit_things("--hyperparameters", "fixed", "--many-labels").err
    assert "--one-class" not in known.split("\nrows ")[0]


@pytest.mark.parametrize(
    ("cells", "words", "has_classes"),
    [
        ("ab", [], True),
        ("01", [], False),  # one label, there or not
        ("ab", ["--many-labels"], False),
        ("ab", ["--label-separator", ","], False),
        ("ab", ["--empty-labels", "unknown"], False),
        ("ab", ["--threshold", "f1"], False),
        (["a", ""], [], False),
        (["a", "?"], [], False),
        (["a;b", "b;c", "a;c", "b"], [], False),
        ([str(k) for k in range(12)], [], False),
    ],
)
def test_a_column_of_single_labels_holds_classes(run, tmp_path, cells, words, has_classes):
    rows = "".join(f"{k},{cells[k % len(cells)]}\n" for k in range(12))
    (tmp_path / "single.csv").write_text("x,kind\n" + rows)
    labels = ["--label-column" if cells == "01" else "--labels", "kind"]
    fit = ["fit", "single.csv", "--numeric", "x", *labels, "--model", "max-margin", "--out", "m.lw"]
    told = run(*fit, *words).err
    assert ("so they are its classes; --many-labels" in told) == has_classes
    assert ("\nclasses " in told) == has_classes


def test_lists_of_one_label_are_lists(run, tmp_path):
    (tmp_path / "l.jsonl").write_text("".join(f'{{"x": {k}, "y": ["{"ab"[k % 2]}"]}}\n' for k in range(8)))
    (tmp_path / "l.csv").write_text("x,y\n" + "".join(f"{k},['{'ab'[k % 2]}']\n" for k in range(8)))
    (tmp_path / "l.svm").write_text("".join(f"{k % 3} 1:{k}\n" for k in range(9)))
    margins = ["--model", "max-margin", "--out", "m.lw"]
    for name in ("l.jsonl", "l.csv"):
        assert "classes" not in run("fit", name, "--numeric", "x", "--labels", "y", *margins).err
    assert "every row has one of 3 labels, so they are its classes" in run("fit", "l.svm", *margins).err


def test_max_margin_with_one_class_a_row(fit_things, run, tmp_path):
    fit_things("--model", "max-margin", "--one-class", "-q")
    model = _classifier()
    assert len(model.classes_) == 7
    assert json.loads(run("evaluate", "m.lw", "test.csv", "--json").out)["subset_accuracy"] > 0.8
    assert set(json.loads(run("predict", "m.lw", "test.csv").out.splitlines()[0])) == {"id", "class", "score"}
    two = "text,kind\nred,a\nblue,b\ngreen,\n"
    (tmp_path / "two.csv").write_text(two)
    (tmp_path / "t.csv").write_text("x,a\nx,b\n")
    words = ["fit", "two.csv", "--text", "text", "--labels", "kind", "--one-class", "--out", "m.lw"]
    assert "rows      2\n" in run(*words).err
    assert "Two classes are one label to a max-margin model" in run(*words, "--taxonomy", "t.csv", code=2).err
    run(*words, "--taxonomy", "t.csv", "--model", "kernel-logistic", *FIXED)
    assert _classifier().taxonomy_ == Taxonomy([("x", "a"), ("x", "b")])


def test_learning_that_ends_early_is_said(fit_things):
    done = fit_things("--one-class", "--max-learning-iter", 1, "-q")
    assert "could still improve after --max-learning-iter 1 evaluations; raise it" in done.err
    assert done.err.count("\n") == 1
    done = fit_things("--one-class", "--max-iter", 1, *FIXED)
    assert "raise --max-iter, scale the features, or regularise more. The gap is " in done.err


def test_an_interrupt_while_learning_saves_the_best_model(fit_things, monkeypatch):
    def show(lines):
        if lines.counts["cross-validation"] == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(progress.GapLines, "show", show)
    done = fit_things("--one-class", code=130)
    assert "interrupted; the model so far is saved in m.lw. The search for hyper-parameters" in done.err
    assert re.search(r"was interrupted after \d+ evaluations;", done.err.splitlines()[-1])
    assert _classifier().converged_
    assert _classifier().learning_status_ == "interrupted"


def test_inspect_says_what_was_learned(fit_things, run):
    fit_things("--class-paths", "--tie", "class", "--max-learning-iter", 2, "-q")
    text = run("inspect", "m.lw").out
    for words in ("classes     5: ", "7 x scale from", "cross-validation loss", "Newton steps"):
        assert words in text
    assert "taxonomy    7 nodes in 3 trees, the 5 classes at depths 0 to 1" in text
    assert "kernel      7 kernels, the first RBF" in text
    assert max(map(len, text.splitlines())) <= 80
    facts = json.loads(run("inspect", "m.lw", "--json").out)
    model = _classifier()
    assert facts["learning"]["evaluations"] == len(model.learning_trace_)
    assert facts["learning"]["cross_validation_loss"] == pytest.approx(model.cross_validation_loss_)
    assert facts["hyperparameters"] == pytest.approx(model.hyperparameters_)
    assert facts["taxonomy"]["nodes"] == 7
    assert len(facts["kernels"]) == 7
    assert "--label goes with max-margin models" in run("inspect", "m.lw", "--label", "rock", code=2).err


def test_inspect_shows_the_prior_covariance(fit_things, run):
    fit_things("--class-paths", "--tie", "level", *FIXED)
    facts = json.loads(run("inspect", "m.lw", "--covariance", "--json").out)
    place = {name: k for k, name in enumerate(facts["labels"])}
    covariance = np.array(facts["covariance"])
    assert covariance[place["fruit/apple"], place["fruit/pear"]] == pytest.approx(10)
    assert covariance[place["fruit/apple"], place["animal/dog"]] == 0
    assert covariance[place["fruit/apple"], place["fruit/apple"]] == pytest.approx(20)
    fit_things("--one-class", *FIXED)
    assert "no taxonomy" not in run("inspect", "m.lw").out
    assert "learning    none, hyper-parameters are as given" in run("inspect", "m.lw").out
    assert run("inspect", "m.lw", "--covariance").out.startswith("Label covariance over 7 labels")


def test_probabilities_of_one_class_a_row(run, tmp_path):
    random = np.random.default_rng(0)
    X, P = random.normal(size=(30, 2)), random.dirichlet(np.ones(3), 30).round(3)
    P[:, 2] = 1.0 - P[:, 0] - P[:, 1]
    rows = [[*map(repr, row)] for row in np.hstack([X, P]).tolist()]
    rows[3][2:] = ["", "", ""]
    (tmp_path / "p.csv").write_text("\n".join(["u,v,ant,bee,cow", *(",".join(row) for row in rows), ""]))
    flags = "--label-column", "ant..cow", "--one-class", "--model", "kernel-logistic", "-o", "m.lw"
    run("fit", "p.csv", *flags, *FIXED)
    data = read_table(tmp_path / "p.csv", labels=["ant", "bee", "cow"])
    P[3] = np.nan
    twin = KernelLogisticClassifier(hyperparameters="fixed", scaling="auto")
    twin.fit(data.X, ClassProbabilities(P, ["ant", "bee", "cow"]))
    np.testing.assert_allclose(_classifier().predict_proba(data.X), twin.predict_proba(data.X), atol=1e-6)
    found = json.loads(run("evaluate", "m.lw", "p.csv", "--json").out)
    known = np.arange(30) != 3
    assert found["rows"] == 29
    assert found["accuracy"] == pytest.approx(
        (twin.predict(data.X)[known] == twin.classes_[P[known].argmax(axis=1)]).mean()
    )
    rows[5][2] = "0.9"
    (tmp_path / "p.csv").write_text("\n".join(["u,v,ant,bee,cow", *(",".join(row) for row in rows), ""]))
    assert "probabilities of row 5 sum to" in run("fit", "p.csv", *flags, *FIXED, code=2).err
