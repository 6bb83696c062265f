"""Label covariances on the command line: from another data file, from signatures, shrunk."""

import gzip

import numpy as np
import pytest

import labelweave
from labelweave import LabelCovariance
from labelweave.datasets import LabeledData, read_any, write_mulan, write_svmlight, write_xmc
from labelweave.labels import LabelMatrix

OTHER = """package,tags
q0,"x11,game,new"
q1,"net,daemon"
q2,game
q3,?
q4,net
"""
SIGNATURES = """class,x11,net,extra,game,daemon,prior
desktop,1,0,1,1,0,3
server,0,1,1,0,1,1
unused,1,1,1,1,1,0
"""


def _covariance(path="m.lw"):
    model = labelweave.load(path)
    return getattr(model, "classifier", model).label_covariance_


def test_a_table_gives_the_covariance_by_label_name(fit_table, tmp_path):
    (tmp_path / "b.csv").write_text(OTHER)
    fit_table("--covariance-from b.csv -q")
    signs = np.array([[-1, 1, -1, 1], [1, -1, 1, -1], [-1, 1, -1, -1], [-1, -1, 1, -1]])
    rarer = np.minimum((signs > 0).sum(axis=0), (signs < 0).sum(axis=0))
    trust = np.sqrt(rarer / (rarer + 5))
    expected = np.corrcoef(signs.T) * np.outer(trust, trust)
    np.fill_diagonal(expected, 1)
    np.testing.assert_allclose(_covariance().to_dense(), expected, atol=1e-12)
    assert list(_covariance().label_names) == ["daemon", "game", "net", "x11"]


def test_the_same_from_one_column_a_label_with_missing_entries(run, tmp_path):
    (tmp_path / "t.csv").write_text("t,a,b\nred,1,0\nsea,0,1\n")
    (tmp_path / "u.csv").write_text("b,a\n1,1\n,0\n0,1\n1,?\n")
    words = ["--text", "t", "--label-column", "a", "--label-column", "b"]
    run("fit t.csv --model max-margin", *words, "--covariance-from", "u.csv", "--out", "m.lw", "-q")
    twin = LabelCovariance.from_labels([[1, 1], [0, np.nan], [1, 0], [np.nan, 1]])
    np.testing.assert_allclose(_covariance().to_dense(), twin.to_dense())


@pytest.mark.parametrize("format", ["mulan", "xmc", "svmlight"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_matrix_files_give_a_covariance(run, matrix_files, format, kernel):
    path = matrix_files[format]
    run(f"fit {path} --model max-margin --covariance-from {path} --kernel {kernel} --out m.lw -q")
    data = read_any(path)
    twin = labelweave.MaxMarginClassifier(
        kernel=kernel, scaling="auto", label_covariance=LabelCovariance.from_labels(data.Y)
    )
    twin.fit(data.X, data.Y)
    np.testing.assert_allclose(_covariance().to_dense(), twin.label_covariance_.to_dense())
    model = labelweave.load("m.lw")
    vars(model).pop("feature_names_in_", None)  # X here has no names
    np.testing.assert_allclose(model.decision_function(data.X), twin.decision_function(data.X), atol=1e-9)


def test_another_format_and_another_order_of_labels(run, matrix_files, rows, tmp_path):
    order = [3, 0, 4, 1, 2]
    Y = LabelMatrix(rows.Y.positives[:, order], None, [f"l{k}" for k in order])
    named = LabeledData(rows.X, Y, np.array([f"g{j}" for j in range(rows.X.shape[1])]))
    write_mulan(named, tmp_path / "e.arff", tmp_path / "e.xml")
    run("fit d.arff --model max-margin --covariance-from e.arff --out m.lw -q")
    np.testing.assert_allclose(_covariance().to_dense(), LabelCovariance.from_labels(rows.Y).to_dense())
    run("fit d.txt --model max-margin --covariance-from d.svm --out m.lw -q")
    np.testing.assert_allclose(_covariance().to_dense(), LabelCovariance.from_labels(rows.Y).to_dense())


def test_an_svmlight_file_need_not_mention_the_last_labels(run, matrix_files, rows, tmp_path):
    fewer = LabelMatrix(rows.Y.positives[:, :4])
    write_svmlight(LabeledData(rows.X, fewer), tmp_path / "e.svm")
    run("fit d.svm --model max-margin --covariance-from e.svm --shrink 0.1 --out m.lw -q")
    assert _covariance().n_labels == 5
    write_xmc(LabeledData(rows.X, fewer), tmp_path / "e.txt")
    done = run("fit d.txt --model max-margin --covariance-from e.txt --out m.lw", code=2)
    assert "e.txt: found labels without names, none of them '4'; expected every label of the data" in done.err


@pytest.mark.parametrize("coding", ["0/1", "-1/1"])
def test_signatures_of_classes(fit_table, tmp_path, coding):
    text = SIGNATURES if coding == "0/1" else SIGNATURES.replace(",0", ",-1").replace(",-1\n", ",0\n")
    (tmp_path / "s.csv").write_text(text)
    fit_table("--signatures s.csv --kernel rbf -q")
    desktop, server = np.array([-1, 1, -1, 1]), np.array([1, -1, 1, -1])
    expected = 0.75 * np.outer(desktop, desktop) + 0.25 * np.outer(server, server)
    np.testing.assert_allclose(_covariance().to_dense(), expected)
    assert list(_covariance().label_names) == ["daemon", "game", "net", "x11"]


def test_signatures_without_a_prior_in_a_compressed_table_with_tabs(fit_table, tmp_path):
    (tmp_path / "s.tsv").write_text("\tdaemon\tgame\tnet\tx11\na\t1\t0\t1\t0\nb\t0\t0\t1\t1\n")
    fit_table("--signatures s.tsv -q")
    signs = np.array([[1, -1, 1, -1], [-1, -1, 1, 1]])
    np.testing.assert_allclose(_covariance().to_dense(), signs.T @ signs / 2, atol=1e-12)
    with gzip.open(tmp_path / "s.tsv.gz", "wt") as stream:
        stream.write((tmp_path / "s.tsv").read_text())
    fit_table("--signatures s.tsv.gz -q")
    np.testing.assert_allclose(_covariance().to_dense(), signs.T @ signs / 2, atol=1e-12)


def test_a_label_may_be_called_prior(run, tmp_path):
    (tmp_path / "t.csv").write_text("t,prior,a\nred,1,0\nsea,0,1\n")
    (tmp_path / "s.csv").write_text("class,a,prior\nx,1,1\ny,1,0\n")
    words = ["--text", "t", "--label-column", "prior", "--label-column", "a"]
    run("fit t.csv --model max-margin", *words, "--signatures", "s.csv", "--out", "m.lw", "-q")
    np.testing.assert_allclose(_covariance().to_dense(), np.eye(2), atol=1e-12)


@pytest.mark.parametrize("source", ["--covariance", "--taxonomy", "--covariance-from", "--signatures"])
def test_any_covariance_can_be_shrunk(fit_table, tmp_path, source):
    np.save(tmp_path / "c.npy", np.full((4, 4), 2.0) + np.eye(4))
    (tmp_path / "t.csv").write_text("fun,game\nsystem,net\nsystem,daemon\nlook,x11\n")
    (tmp_path / "b.csv").write_text(OTHER)
    (tmp_path / "s.csv").write_text(SIGNATURES)
    files = {"--covariance": "c.npy", "--taxonomy": "t.csv", "--covariance-from": "b.csv"}
    words = [source, files.get(source, "s.csv"), "-q"]
    fit_table(*words)
    whole = _covariance().to_dense()
    fit_table(*words, "--shrink", 0.25)
    np.testing.assert_allclose(
        _covariance().to_dense(), 0.75 * whole + 0.25 * np.diag(whole).mean() * np.eye(4)
    )
    fit_table(*words, "--shrink", 1, "--solver", "auto")
    assert np.count_nonzero(_covariance().to_dense()) == 4
