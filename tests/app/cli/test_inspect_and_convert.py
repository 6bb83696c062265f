import numpy as np
import pytest

import labelweave
from labelweave.datasets import make_taxonomy, read_any, write_hierarchical_arff


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


def test_taxonomies(run, tmp_path):
    write_hierarchical_arff(make_taxonomy(6, 2), tmp_path / "h.arff")
    run("convert h.arff m.arff")
    assert set(read_any("m.arff").parents) == set(read_any("h.arff").parents)
    run("convert m.arff again.arff --to hierarchical_arff")
    np.testing.assert_array_equal(read_any("again.arff").Y.to_dense(), read_any("h.arff").Y.to_dense())


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
