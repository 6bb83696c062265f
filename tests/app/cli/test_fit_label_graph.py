"""Graphs of labels and label trees on the command line."""

from __future__ import annotations

import json

import pytest

from commands import loaded
from labelweave import LabelGraphClassifier
from labelweave.app.cli import fit_words as progress
from labelweave.app.cli import fitting
from labelweave.datasets import read_any
from labelweave.metrics import hamming_loss

GRAPH = "--model label-graph --out m.lw --alpha 0.05 --tol 0.05"
EDGES = "source,target\nl0,l3\nl1,l2\nl0,l1,l4\n"


def _twin(graph="learn", **parameters):
    data = read_any("d.arff")
    return LabelGraphClassifier(graph, **({"alpha": 0.05, "tol": 0.05} | parameters)).fit(data.X, data.Y)


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
