"""What a fit is of: classes or labels, by the data and by flags; what does not go together is said."""

from __future__ import annotations

import json

import numpy as np
import pytest

import labelweave

FIXED = ("--model", "kernel-logistic", "--hyperparameters", "fixed", "-q", "--out", "m.lw")


@pytest.fixture
def several(tmp_path, run):
    """Rows of a hierarchy with more than one class each, ``h.arff``."""
    head = "@relation h\n@attribute x numeric\n@attribute class hierarchical a/b,a/c\n@data\n"
    rows = "".join(f"{k / 10},{('a/b', 'a/c', 'a/b@a/c')[k % 3]}\n" for k in range(18))
    (tmp_path / "h.arff").write_text(head + rows)


def test_rows_of_several_classes_are_fitted_as_labels_with_a_note(run, several):
    done = run("fit", "h.arff", *[word for word in FIXED if word != "-q"], "--data-taxonomy")
    assert "every class is a label with a logistic loss, and the hierarchy is their prior" in done.err
    assert set(labelweave.load("m.lw").label_names_) == {"a", "a/b", "a/c"}
    run("fit", "h.arff", *FIXED, "--data-taxonomy")


def test_flags_that_do_not_go_together(run, tmp_path):
    (tmp_path / "y.csv").write_text("x,y\n" + "".join(f"{k},{'ab'[k % 2]}\n" for k in range(12)))
    table = ["fit", "y.csv", "--labels", "y", "--numeric", "x", "--out", "m.lw", "-q"]
    (tmp_path / "t.csv").write_text("root,a\nroot,b\n")
    tree = ["--taxonomy", "t.csv", "--decision", "least_expected_loss"]
    told = run(*table, *FIXED[:4], *tree, code=2).err
    assert "--decision least_expected_loss chooses one class a row; give --one-class too" in told
    np.save(tmp_path / "r.npy", np.eye(2))
    np.save(tmp_path / "w.npy", np.array([["a", "b"], ["c", "d"]]))
    np.save(tmp_path / "n.npy", np.eye(3))
    (tmp_path / "x.npy").write_text("no array")
    margins = [*table, "--model", "max-margin"]
    told = run(*margins, "--one-class", "--covariance", "r.npy", code=2).err
    assert "Two classes are one label to a max-margin model" in told
    for name, words in (("w.npy", "entries of type <U1"), ("n.npy", "an array of shape (3, 3)"),
                        ("x.npy", "no whole array")):  # fmt: skip
        assert words in run(*margins, "--covariance", name, code=2).err
    run(*margins, "--covariance", "r.npy")
    assert json.loads(run("inspect", "m.lw", "--covariance", "--json").out)["covariance"] == [[1, 0], [0, 1]]
    told = run(*margins, "--many-labels", "--compare", "low-rank", "--compare-folds", 40, code=2).err
    assert "needs as many rows, but DATA has 12" in told
