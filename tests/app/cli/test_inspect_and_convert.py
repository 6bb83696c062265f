import numpy as np
import pytest

import labelweave
from labelweave import LabelMatrix
from labelweave.datasets import LabeledData, make_taxonomy, read_any, write_hierarchical_arff, write_mulan


def test_a_model_is_described(run, table_model):
    text = run("inspect", table_model).out
    for words in ("TableModel with MaxMarginClassifier", "C=1.0", "4: daemon, game", "(converged)", "numpy"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80
    facts = run("inspect", table_model, "--json").json
    assert facts["labels"] == ["daemon", "game", "net", "x11"]
    assert facts["columns"]["labels"] == "tags"
    assert 0 <= facts["fit"]["gap"] <= 1e-3


def test_weights_of_a_label(run, table_model, matrix_files):
    facts = run("inspect", table_model, "--label", "game", "--features", 2, "--json").json
    assert facts["for"][0]["feature"] == "section=games"
    assert facts["against"][0]["weight"] < 0
    assert "section=games" in run("inspect", table_model, "--label", "game").out
    assert "no label 'chess'; it has 4" in run("inspect", table_model, "--label", "chess", code=2).err
    assert "Did you mean 'daemon'?" in run("inspect", table_model, "--label", "deamon", code=2).err
    for format, name in (("xmc", "0"), ("mulan", "l0")):
        run(f"fit {matrix_files[format]} --model max-margin --out d.lw -q")
        feature = run("inspect d.lw --label", name, "--json").json["for"][0]["feature"]
        assert feature.startswith("f") == (format == "mulan")


def test_sparse_weights_are_described(run, matrix_files):
    words = ("--model", "max-margin", "--prune", "certified", "--tol", 0.1, "--out", "s.lw")
    said = run("fit", matrix_files["xmc"], *words).err
    facts = run("inspect s.lw --json").json["pruning"]
    assert facts["gap_before"] <= facts["gap"] <= 0.1
    assert facts["weights"] == labelweave.load("s.lw").coef_.nnz
    line = f"{facts['weights']:,} of {facts['weights_before']:,} kept ("
    assert line in " ".join(said.split())
    assert line in " ".join(run("inspect s.lw").out.split())
    assert "for" in run("inspect s.lw --label 0 --json").json


def test_a_matrix_covariance_is_described_by_its_size(run, matrix_files, tmp_path):
    np.save(tmp_path / "c.npy", np.eye(5) + 1)
    run("fit d.txt --model max-margin --covariance c.npy --out d.lw -q")
    assert "DenseCovariance over 5 labels" in run("inspect d.lw --json").out


@pytest.mark.parametrize("target", ["mulan", "xmc", "svmlight"])
@pytest.mark.parametrize("source", ["mulan", "xmc", "svmlight"])
def test_conversions_keep_rows_and_labels(run, matrix_files, source, target):
    run("convert", matrix_files[source], "out.data", "--to", target, "--lossy")
    options = {"xml": "out.xml"} if target == "mulan" else {}
    first, second = read_any(matrix_files[source]), read_any("out.data", target, **options)
    np.testing.assert_allclose(second.X.toarray(), first.X.toarray())
    np.testing.assert_array_equal(second.Y.to_dense(), first.Y.to_dense())


def test_nothing_is_lost_in_silence(run, matrix_files, tmp_path):
    done = run("convert d.arff x.txt --to xmc", code=2)
    assert "xmc cannot hold feature names and label names; add --lossy" in done.err
    assert not (tmp_path / "x.txt").exists()
    (tmp_path / "n.txt").write_text("1 2 3\n0 0:1\n")
    assert "the number of labels" in run("convert n.txt n.svm", code=2).err
    missing = LabeledData(np.eye(2), LabelMatrix.from_any([[1, np.nan], [0, 1]]))
    write_mulan(missing, tmp_path / "m.arff", tmp_path / "m.xml")
    for words in (["m.txt", "--to", "xmc"], ["m.svm"]):
        done = run("convert m.arff", *words, "--lossy", code=2)
        assert "unobserved labels" in done.err
        assert "would become negative" in done.err


def test_taxonomies(run, tmp_path):
    write_hierarchical_arff(make_taxonomy(6, 2), tmp_path / "h.arff")
    run("convert h.arff m.arff")
    assert set(read_any("m.arff").parents) == set(read_any("h.arff").parents)
    run("convert m.arff again.arff --to hierarchical_arff")
    np.testing.assert_array_equal(read_any("again.arff").Y.to_dense(), read_any("h.arff").Y.to_dense())
    assert "the taxonomy" in run("convert h.arff h.svm", code=2).err


def test_converting_keeps_names_that_are_read(run, matrix_files, tmp_path):
    held = (tmp_path / "d.xml").read_bytes()
    (tmp_path / "d.arff").rename(tmp_path / "rows.arff")
    for words in (["x.arff", "--xml-out", "d.xml"], ["d.arff"]):
        assert "d.xml is an input file" in run("convert rows.arff", *words, "--xml", "d.xml", code=2).err
    done = run("convert rows.arff x.arff --xml d.xml --xml-out x.arff", code=2)
    assert "is the file of the rows" in done.err
    assert (tmp_path / "d.xml").read_bytes() == held


def test_thresholds_by_label(run, matrix_files):
    fitted = run(
        "fit", matrix_files["mulan"], "--model", "max-margin", "--tune-threshold", "macro_f1", "--out", "m.lw"
    )
    model = labelweave.load("m.lw")
    limits = model.thresholds_ - model.thresholds_.min()  # of scores as predict prints them
    expected = dict(zip(model.label_names_.tolist(), limits.tolist(), strict=True))
    found = run("inspect m.lw --thresholds --json").json
    assert found["thresholds"] == pytest.approx(expected, rel=1e-4)
    assert found["number"] == "score"
    shown = run("inspect m.lw --thresholds").out.splitlines()
    assert len(shown) == 6
    assert shown[1].split() == [f"{expected['l0']:.4g}", "l0"]
    assert f"l0 {expected['l0']:.3g}, l1 {expected['l1']:.3g}" in " ".join(fitted.err.split())
    done = run("inspect m.lw --thresholds --label l0", code=2)
    assert "show different parts" in done.err
