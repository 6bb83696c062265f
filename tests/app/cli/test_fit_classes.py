"""One class per row: from the data and from flags, taxonomies, what kernel logistic models learn."""

import json
import re
import signal

import numpy as np
import pytest

import labelweave
from commands import loaded
from labelweave import ClassProbabilities, KernelLogisticClassifier, Taxonomy
from labelweave.app.cli import fit_words as progress
from labelweave.datasets import make_taxonomy, read_any, read_table, write_hierarchical_arff

FIXED = ("--hyperparameters", "fixed", "-q")


@pytest.fixture
def tree_file(tmp_path, run):
    data = make_taxonomy(90, 5, depth=2, noise=0.7, random_state=1)
    write_hierarchical_arff(data, tmp_path / "h.arff")
    return data


def test_one_class_a_row_from_a_table(fit_things, tmp_path):
    done = fit_things("--one-class --tol 1e-6")
    for words in ("classes   7", "kernel    RBFKernel(gamma=", "prior     scale ", "evaluations, cross-val"):
        assert words in done.err
    model = loaded()
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
    fit_things("--class-paths --tie level,shared --max-learning-iter 1")
    model = loaded()
    assert set(model.classes_) == {"animal/cat", "animal/dog", "fruit/apple", "fruit/pear", "rock"}
    assert list(model.hyperparameters.tie) == ["level", "shared"]
    assert set(model.taxonomy_.roots) == {"rock", "fruit", "animal"}


def test_a_taxonomy_from_a_file(fit_things, run, tmp_path):
    tree = {"fruit": ["fruit/apple", "fruit/pear"], "animal": ["animal/dog", "animal/cat"], "rock": []}
    (tmp_path / "t.json").write_text(json.dumps(tree))
    fit_things("--one-class --taxonomy t.json", *FIXED)
    model = loaded()
    assert set(model.classes_) == {"animal/cat", "animal/dog", "fruit/apple", "fruit/pear", "rock"}
    assert model.taxonomy_.parents_of(["fruit/pear", "animal/dog"]) == ["fruit", "animal"]
    found = run("evaluate m.lw test.csv --json").json
    assert found["accuracy"] > 0.9
    assert found["parent_accuracy"] >= found["accuracy"]


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
    np.testing.assert_allclose(loaded().dual_coef_, twin.dual_coef_, atol=1e-9)
    lines = run("predict m.lw h.arff").records
    assert [line["class"] for line in lines] == list(twin.predict(tree_file.X))
    run(*words)  # without the tree, and without --one-class, all nodes are labels
    assert len(loaded().classes_) == 12
    run(*words, "--data-taxonomy", "--many-labels")
    assert len(loaded().classes_) == 12
    assert loaded().taxonomy_ == tree_file.taxonomy


def test_numbers_as_classes(run, tree_file, tmp_path):
    data = read_any("h.arff")
    numbers = np.array([3, 7, 9])[np.arange(len(data)) % 3]
    lines = [
        f"{c} " + " ".join(f"{j}:{v:.4f}" for j, v in enumerate(x))
        for c, x in zip(numbers, data.X, strict=True)
    ]
    (tmp_path / "c.svm").write_text("\n".join(lines) + "\n")
    run("fit c.svm --model kernel-logistic --one-class --out m.lw", *FIXED)
    assert list(loaded().classes_) == ["3", "7", "9"]
    assert run("evaluate m.lw c.svm --json").json["accuracy"] > 0.4


def test_many_labels_with_probabilities(run, matrix_files):
    run("fit d.txt --model kernel-logistic --kernel linear --out m.lw -q")
    data, model = read_any("d.txt"), loaded()
    found = run("evaluate m.lw d.txt --json").json
    assert found["log_loss"] == pytest.approx(
        labelweave.metrics.log_loss(data.Y, model.predict_proba(data.X))
    )
    assert (
        "log_loss"
        not in (run("fit d.txt --model max-margin --out n.lw -q"), run("evaluate n.lw d.txt --json"))[1].json
    )


def test_single_labels_are_hinted_at(fit_things):
    assert "no row has more than one label; with --one-class" in fit_things("--hyperparameters fixed").err
    known = fit_things("--hyperparameters fixed --many-labels").err
    assert "--one-class" not in known.split("\nrows ")[0]


@pytest.mark.parametrize(
    ("cells", "words", "has_classes"),
    [
        ("ab", [], True),
        ("01", [], False),  # one label, present or absent
        ("ab", ["--many-labels"], False),
        ("ab", ["--label-separator", ","], False),
        ("ab", ["--empty-labels", "unknown"], False),
        ("ab", ["--tune-threshold", "micro_f1"], False),
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
    assert "every row has one of 3 labels, so they are its classes" in run("fit l.svm", *margins).err


def test_max_margin_with_one_class_a_row(fit_things, run, tmp_path):
    fit_things("--model max-margin --one-class -q")
    model = loaded()
    assert len(model.classes_) == 7
    assert run("evaluate m.lw test.csv --json").json["subset_accuracy"] > 0.8
    assert set(json.loads(run("predict m.lw test.csv").out.splitlines()[0])) == {"id", "class", "score"}
    two = "text,kind\nred,a\nblue,b\ngreen,\n"
    (tmp_path / "two.csv").write_text(two)
    (tmp_path / "t.csv").write_text("x,a\nx,b\n")
    words = ["fit", "two.csv", "--text", "text", "--labels", "kind", "--one-class", "--out", "m.lw"]
    assert "rows      2\n" in run(*words).err
    run(*words, "--taxonomy", "t.csv", "--model", "kernel-logistic", *FIXED)
    assert loaded().taxonomy_ == Taxonomy([("x", "a"), ("x", "b")])


def test_learning_that_ends_early_is_said(fit_things):
    done = fit_things("--one-class --max-learning-iter 1 -q")
    assert "may still improve after --max-learning-iter 1 evaluations; raise it" in done.err
    assert done.err.count("\n") == 1
    done = fit_things("--one-class --max-iter 1", *FIXED)
    assert "raise --max-iter, scale the features, or regularize more. The gap is " in done.err


def test_an_interrupt_while_learning_saves_the_best_model(fit_things, monkeypatch):
    def show(lines):
        if lines.counts["cross-validation"] == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(progress.GapLines, "show", show)
    done = fit_things("--one-class", code=130)
    said = (
        r"labelweave: The search for hyperparameters was interrupted after \d+ evaluations;.* saved in m.lw"
    )
    assert re.search(said, done.err.splitlines()[-1])
    assert loaded().converged_
    assert loaded().learning_status_ == "interrupted"


def test_inspect_says_what_was_learned(fit_things, run):
    fit_things("--class-paths --tie class --max-learning-iter 2 -q")
    text = run("inspect m.lw").out
    for words in ("classes     5: ", "7 x scale from", "cross-validation loss", "Newton steps"):
        assert words in text
    assert "taxonomy    7 nodes in 3 trees, the 5 classes at depths 0 to 1" in text
    assert "kernel      7 kernels, the first RBF" in text
    assert max(map(len, text.splitlines())) <= 80
    facts = run("inspect m.lw --json").json
    model = loaded()
    assert facts["learning"]["evaluations"] == len(model.learning_trace_)
    assert facts["learning"]["cross_validation_loss"] == pytest.approx(model.cross_validation_loss_)
    assert facts["hyperparameters"] == pytest.approx(model.hyperparameters_)
    assert facts["taxonomy"]["nodes"] == 7
    assert len(facts["kernels"]) == 7
    assert "--label is for max-margin models" in run("inspect m.lw --label rock", code=2).err


def test_inspect_shows_the_prior_covariance(fit_things, run):
    fit_things("--class-paths --tie level --max-learning-iter 1")
    facts = run("inspect m.lw --covariance --json").json
    place = {name: k for k, name in enumerate(facts["labels"])}
    covariance = np.array(facts["covariance"])
    assert covariance[place["fruit/apple"], place["fruit/pear"]] == pytest.approx(10)
    assert covariance[place["fruit/apple"], place["animal/dog"]] == 0
    assert covariance[place["fruit/apple"], place["fruit/apple"]] == pytest.approx(20)
    fit_things("--one-class", *FIXED)
    assert "no taxonomy" not in run("inspect m.lw").out
    assert "learning    none, hyperparameters are as given" in run("inspect m.lw").out
    assert run("inspect m.lw --covariance").out.startswith("Label covariance over 7 labels")


def test_probabilities_of_one_class_a_row(run, tmp_path):
    random = np.random.default_rng(0)
    X, P = random.normal(size=(30, 2)), random.dirichlet(np.ones(3), 30).round(3)
    P[:, 2] = 1.0 - P[:, 0] - P[:, 1]
    rows = [[*map(repr, row)] for row in np.hstack([X, P]).tolist()]
    rows[3][2:] = ["", "", ""]
    (tmp_path / "p.csv").write_text("\n".join(["u,v,ant,bee,cow", *(",".join(row) for row in rows), ""]))
    flags = "--label-column", "ant..cow", "--one-class", "--model", "kernel-logistic", "-o", "m.lw"
    run("fit p.csv", *flags, *FIXED)
    data = read_table(tmp_path / "p.csv", labels=["ant", "bee", "cow"])
    P[3] = np.nan
    twin = KernelLogisticClassifier(hyperparameters="fixed", scaling="auto")
    twin.fit(data.X, ClassProbabilities(P, ["ant", "bee", "cow"]))
    np.testing.assert_allclose(loaded().predict_proba(data.X), twin.predict_proba(data.X), atol=1e-6)
    found = run("evaluate m.lw p.csv --json").json
    known = np.arange(30) != 3
    assert found["rows"] == 29
    assert found["accuracy"] == pytest.approx(
        (twin.predict(data.X)[known] == twin.classes_[P[known].argmax(axis=1)]).mean()
    )
    rows[5][2] = "0.9"
    (tmp_path / "p.csv").write_text("\n".join(["u,v,ant,bee,cow", *(",".join(row) for row in rows), ""]))
    assert "probabilities of row 5 sum to" in run("fit p.csv", *flags, *FIXED, code=2).err


LOGISTIC = ("--model", "kernel-logistic", "--hyperparameters", "fixed", "-q", "--out", "m.lw")


@pytest.fixture
def several(tmp_path, run):
    """Rows of a hierarchy with more than one class each, ``h.arff``."""
    head = "@relation h\n@attribute x numeric\n@attribute class hierarchical a/b,a/c\n@data\n"
    rows = "".join(f"{k / 10},{('a/b', 'a/c', 'a/b@a/c')[k % 3]}\n" for k in range(18))
    (tmp_path / "h.arff").write_text(head + rows)


def test_rows_of_several_classes_are_fitted_as_labels_with_a_note(run, several):
    done = run("fit h.arff", *[word for word in LOGISTIC if word != "-q"], "--data-taxonomy")
    assert "every class is a label with a logistic loss, and the hierarchy is their prior" in done.err
    assert set(labelweave.load("m.lw").label_names_) == {"a", "a/b", "a/c"}
    run("fit h.arff", *LOGISTIC, "--data-taxonomy")


def test_two_classes_read_as_labels_are_related(run, tmp_path):
    (tmp_path / "y.csv").write_text("x,y\n" + "".join(f"{k},{'ab'[k % 2]}\n" for k in range(12)))
    np.save(tmp_path / "r.npy", np.eye(2))
    run("fit y.csv --labels y --numeric x --model max-margin --covariance r.npy --out m.lw -q")
    assert run("inspect m.lw --covariance --json").json["covariance"] == [[1, 0], [0, 1]]
