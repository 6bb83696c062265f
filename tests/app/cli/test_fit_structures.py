"""Kernels, label covariances, graphs of labels and label trees on the command line."""

import gzip
import json
import re

import numpy as np
import pytest

import labelweave
from commands import loaded
from labelweave import LabelCovariance, MaxMarginClassifier, kernels
from labelweave.app.cli import fit_words as progress
from labelweave.app.cli import fitting
from labelweave.datasets import LabeledData, read_any, write_mulan, write_svmlight
from labelweave.kernels import PolynomialKernel
from labelweave.labels import LabelMatrix
from labelweave.metrics import hamming_loss

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


def test_several_relations_are_a_sum_with_learned_weights(fit_table, tmp_path):
    (tmp_path / "b.csv").write_text(OTHER)
    (tmp_path / "s.csv").write_text(SIGNATURES)
    np.save(tmp_path / "c.npy", np.eye(4) + 1)
    fit_table("--covariance c.npy --signatures s.csv --covariance-from b.csv -q")
    found = _covariance()
    assert found.part_names == ["covariance", "signatures", "covariance-from"]
    assert found.weights.sum() == pytest.approx(1)
    alone = []
    for words in ("--covariance c.npy", "--signatures s.csv", "--covariance-from b.csv"):
        fit_table(words, "-q")
        alone.append(_covariance().to_dense())
    scaled = [part / np.diagonal(part).mean() for part in alone]
    np.testing.assert_allclose(found.to_dense(), np.tensordot(found.weights, scaled, 1), atol=1e-12)
    fit_table("--covariance c.npy --signatures s.csv --model kernel-logistic -q")
    assert {"scale[covariance]", "scale[signatures]"} < set(
        getattr(labelweave.load("m.lw"), "classifier", labelweave.load("m.lw")).hyperparameters_
    )


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


GRAPH = "--model label-graph --out m.lw --alpha 0.05 --tol 0.05"
EDGES = "source,target\nl0,l3\nl1,l2\nl0,l1,l4\n"


@pytest.fixture
def edges(run, matrix_files, tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES)
    return "edges.csv"


def test_a_graph_from_a_file(run, edges):
    run(f"fit d.arff {GRAPH} --graph", edges, "-q")
    assert loaded().label_graph_.cliques == ((0, 3), (1, 2), (0, 1, 4))
    facts = run("inspect m.lw --json").json
    assert facts["parameters"]["graph"] == "CliqueGraph over 5 labels"
    assert facts["graph"]["summary"] == "given, 2 of 10 pairs and 1 larger cliques, width 2"


def test_the_summary_says_who_is_tied_to_whom(run, matrix_files):
    done = run(f"fit d.arff {GRAPH} --max-rounds 2")
    assert done.out == ""
    model, lines = loaded(), done.err.splitlines()
    assert any(line.startswith(f"fit       {model.n_iter_} passes in ") for line in lines)
    assert f"penalty   alpha {model.alpha_:.3g}" in lines
    assert "graph     learned, 2 of 10 pairs, width " in done.err
    graph, words = model.label_graph_, {1: "together", -1: "apart", 0: "by row"}
    for clique, weight, sign in zip(graph.cliques, graph.weights, graph.signs, strict=True):
        names = ", ".join(graph.label_names[list(clique)])
        assert f"{weight:10.4f}  {words[sign]:9}{names}" in lines
    assert max(map(len, lines)) <= 80
    quiet = run(f"fit d.arff {GRAPH} --max-rounds 2 -q")
    assert (quiet.out, quiet.err) == ("", "")


def test_inspect_shows_the_graph_and_its_order(run, matrix_files):
    run(f"fit d.arff {GRAPH} --max-rounds 3 --graph-tol 0 --validation-fraction 0.2 -q")
    model = loaded()
    text = run("inspect m.lw").out
    assert "graph       learned, " in text
    assert " passes in " in text
    assert max(map(len, text.splitlines())) <= 80
    facts = run("inspect m.lw --json").json["graph"]
    assert run("inspect m.lw --graph --json").json == facts
    weights = [entry["weight"] for entry in facts["cliques"]]
    assert weights == sorted(weights, reverse=True)
    assert [entry["objective"] for entry in facts["rounds"]] == pytest.approx(
        [record.primal for record in model.graph_trace_]
    )
    assert [entry["held_out_loss"] for entry in facts["rounds"]] == pytest.approx(
        [record.held_out_loss for record in model.graph_trace_], abs=1e-5
    )
    names = model.label_graph_.label_names
    order = [[names[label] for label in record.cliques[0]] for record in model.graph_trace_[1:]]
    assert [entry["cliques"] for entry in facts["rounds"]] == [[], *([pair] for pair in order)]
    lines = run("inspect m.lw --graph").out.splitlines()
    assert "round   objective  held-out  added" in lines
    assert lines[-1].endswith(", ".join(order[-1]))


def test_evaluate_counts_proven_predictions(run, matrix_files):
    run(f"fit d.arff {GRAPH} --graph full -q")
    found = run("evaluate m.lw d.arff --json").json
    data, model = read_any("d.arff"), loaded()
    vars(model).pop("feature_names_in_")
    assert found["proven_optimal"] == 1.0
    assert found["hamming_loss"] == pytest.approx(hamming_loss(data.Y, model.predict(data.X)))
    assert "proven_optimal" in run("evaluate m.lw d.arff").out


def test_progress_counts_rounds(run, matrix_files, monkeypatch):
    states = []
    monkeypatch.setattr(progress.GapLines, "show", lambda lines: states.append(lines.state))
    run(f"fit d.arff {GRAPH} --max-rounds 2 --graph-tol 0")
    assert "round 2 of at most 3" in states
    states.clear()
    run(f"fit d.arff {GRAPH} --graph full")
    assert any(state.startswith("gap about ") for state in states)


@pytest.mark.parametrize(
    "words",
    ["--leaf-size 2 --branching 2", "--n-trees 2 --calibrate sigmoid,cv=2 --conformal false_negatives,cv=2"],
)
def test_every_command_takes_a_label_tree(run, matrix_files, words):
    data = "d.arff --xml d.xml"
    run(f"fit {data} --model label-tree {words} --out m.lw")
    for command in ("evaluate", "predict"):
        assert run(f"{command} m.lw {data}").out
    assert "LabelTreeClassifier" in run("inspect m.lw").out
    run(f"report m.lw {data} --out m.html")


def test_the_best_labels_are_those_of_all_scores(run, matrix_files):
    data = matrix_files["mulan"], "--xml", "d.xml"
    words = ["--leaf-size", 2, "--branching", 2]
    run("fit", *data, "--model", "label-tree", *words, "--out", "m.lw")
    least = ["--threshold", -1e300]  # scores all labels
    assert run("predict m.lw", *data, "--top", 2).out == run("predict m.lw", *data, "--top", 2, *least).out


def test_a_large_table_is_read_in_blocks_to_the_same_model(run, tmp_path, monkeypatch):
    lines = [{"t": f"w{i % 7} w{i % 3}", "y": [f"l{i % 5}"], "n": i % 4} for i in range(90)]
    lines[80]["late"] = "only here"
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["--model", "label-tree", "--labels", "y", "--text", "t", "--text", "late", "--numeric", "n"]
    run("fit d.jsonl", *words, "--out", "whole.lw")
    for name, value in (("_LARGEST_AT_ONCE", 10), ("_BLOCK_ROWS", 13)):
        monkeypatch.setattr(fitting, name, value)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN", 0.0)
    said = run("fit d.jsonl", *words, "--out", "blocks.lw").err
    assert "words: 13 rows" in " ".join(said.split())
    assert "features: 90 rows" in " ".join(said.split())
    one, other = (run("predict", name, "d.jsonl", "--top", 3).out for name in ("whole.lw", "blocks.lw"))
    assert one == other
    told = run("fit d.jsonl --model label-tree --labels y --out blocks.lw").err
    assert "late" in next(line for line in told.splitlines() if line.startswith("text "))


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


def test_pictures_need_matplotlib(run, table_model, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    done = run("inspect", table_model, "--covariance", "--out", "c.png", code=2)
    assert done.err == "labelweave: Plots need matplotlib: install labelweave[app].\n"
    assert not (tmp_path / "c.png").exists()


@pytest.mark.parametrize("flags", ["--kernel rbf --solver alternating_directions", "--model kernel-logistic"])
def test_a_fit_on_a_device_is_the_same(run, matrix_files, flags):
    pytest.importorskip("torch")
    path = matrix_files["svmlight"]
    run(f"fit {path} {flags} --out here.lw -q")
    run(f"fit {path} {flags} --device cpu --out there.lw -q")
    here, there = (
        labelweave.load(name).decision_function(read_any(path).X) for name in ("here.lw", "there.lw")
    )
    np.testing.assert_allclose(there, here, atol=1e-3 * abs(here).max())
