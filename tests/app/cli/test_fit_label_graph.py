"""Graphs of labels on the command line."""

from __future__ import annotations

import json
import re
import signal

import numpy as np
import pandas as pd
import pytest

import labelweave
from labelweave import LabelGraphClassifier
from labelweave.app.cli import progress
from labelweave.datasets import read_any
from labelweave.metrics import hamming_loss
from labelweave.problems.structured_margin import StructuredMargin

GRAPH = ("--model", "label-graph", "--out", "m.lw", "--regularization", 0.05, "--tol", 0.05)
EDGES = "source,target\nl0,l3\nl1,l2\nl0,l1,l4\n"


def _classifier(path="m.lw"):
    model = labelweave.load(path)
    return getattr(model, "classifier", model)


def _twin(graph="learn", **parameters):
    data = read_any("d.arff")
    return LabelGraphClassifier(graph, **({"regularization": 0.05, "tol": 0.05} | parameters)).fit(
        data.X, data.Y
    )


@pytest.fixture
def edges(run, matrix_files, tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES)
    return "edges.csv"


@pytest.mark.parametrize("format", ["mulan", "xmc", "svmlight"])
def test_matrix_files_give_the_classifier_itself(run, matrix_files, format):
    run("fit", matrix_files[format], *GRAPH, "--max-rounds", 2, "-q")
    data, model = read_any(matrix_files[format]), _classifier()
    twin = LabelGraphClassifier(regularization=0.05, tol=0.05, max_rounds=2).fit(data.X, data.Y)
    np.testing.assert_array_equal(model.clique_coef_, twin.clique_coef_)
    assert (model.label_graph_.label_names is None) == (format != "mulan")
    found = [json.loads(line) for line in run("predict", "m.lw", matrix_files[format]).out.splitlines()]
    names = [str(name) for name in twin.label_names_]
    for row, labels in zip(found, twin.predict(data.X).toarray(), strict=True):
        assert {entry["label"] for entry in row["labels"]} == {names[k] for k in np.flatnonzero(labels)}


@pytest.mark.parametrize(
    "words",
    [
        ["--graph", "learn", "--cliques-per-round", 2, "--max-rounds", 2, "--graph-tol", 0.001],
        ["--clique-size", 3, "--max-rounds", 4, "--validation-fraction", 0.2, "--seed", 3],
        ["--graph", "full", "--inference", "exact", "--exact-width", 5, "--max-nodes", 7],
        ["--graph", "chow-liu", "--max-iter", 300, "--jobs", 2, "--intercept-scaling", 2.0],
        ["--graph", "none", "--false-positive-cost", 2.0, "--false-negative-cost", 0.5],
    ],
)
def test_flags_reach_the_classifier(run, matrix_files, words):
    run("fit", "d.arff", *GRAPH, "-q", *words)
    model = _classifier()
    names = {"--jobs": "n_jobs", "--seed": "random_state"}
    for flag, value in zip(words[::2], words[1::2], strict=True):
        assert model.get_params()[names.get(flag, flag.strip("-").replace("-", "_"))] == value
    parameters = model.get_params() | {"n_jobs": 1}
    np.testing.assert_array_equal(_twin(**parameters).clique_coef_, model.clique_coef_)


def test_early_stopping_and_no_intercept(run, matrix_files):
    run("fit", "d.arff", *GRAPH, "--early-stopping", "--refit", "--no-intercept", "--max-rounds", 2, "-q")
    model = _classifier()
    assert model.early_stopping
    assert model.refit
    assert not model.fit_intercept
    assert model.graph_reason_ == "held-out rows chose the number of rounds"


def test_a_graph_from_a_file(run, edges):
    run("fit", "d.arff", *GRAPH, "--graph", edges, "-q")
    assert _classifier().label_graph_.cliques == ((0, 3), (1, 2), (0, 1, 4))
    facts = json.loads(run("inspect", "m.lw", "--json").out)
    assert facts["parameters"]["graph"] == "CliqueGraph over 5 labels"
    assert facts["graph"]["summary"] == "given, 2 of 10 pairs and 1 larger cliques, width 2"


def test_the_summary_says_who_is_tied_to_whom(run, matrix_files):
    done = run("fit", "d.arff", *GRAPH, "--max-rounds", 2)
    assert done.out == ""
    model, lines = _classifier(), done.err.splitlines()
    assert any(line.startswith(f"fit       {model.n_iter_} passes in ") for line in lines)
    assert f"penalty   regularization {model.regularization_:.3g}" in lines
    assert "graph     learned, 2 of 10 pairs, width " in done.err
    graph, words = model.label_graph_, {1: "together", -1: "apart", 0: "by row"}
    for clique, weight, sign in zip(graph.cliques, graph.weights, graph.signs, strict=True):
        names = ", ".join(graph.label_names[list(clique)])
        assert f"{weight:10.4f}  {words[sign]:9}{names}" in lines
    assert max(map(len, lines)) <= 80
    quiet = run("fit", "d.arff", *GRAPH, "--max-rounds", 2, "-q")
    assert (quiet.out, quiet.err) == ("", "")


def test_inspect_shows_the_graph_and_its_order(run, matrix_files):
    run("fit", "d.arff", *GRAPH, "--max-rounds", 3, "--graph-tol", 0, "--validation-fraction", 0.2, "-q")
    model = _classifier()
    text = run("inspect", "m.lw").out
    assert "graph       learned, " in text
    assert " passes in " in text
    assert max(map(len, text.splitlines())) <= 80
    facts = json.loads(run("inspect", "m.lw", "--json").out)["graph"]
    assert json.loads(run("inspect", "m.lw", "--graph", "--json").out) == facts
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
    lines = run("inspect", "m.lw", "--graph").out.splitlines()
    assert "round   objective  held-out  added" in lines
    assert lines[-1].endswith(", ".join(order[-1]))


def test_inspect_of_a_label_shows_its_ties(run, edges):
    run("fit", "d.arff", *GRAPH, "--graph", edges, "-q")
    facts = json.loads(run("inspect", "m.lw", "--label", "l1", "--json").out)
    assert sorted(tie["labels"] for tie in facts["ties"]) == [["l0", "l1", "l4"], ["l1", "l2"]]
    assert facts["for"]
    assert "\nties:\n" in run("inspect", "m.lw", "--label", "l1").out
    run("fit", "d.arff", *GRAPH, "--graph", "none", "-q")
    assert "\nties: none\n" in run("inspect", "m.lw", "--label", "l1").out


def test_the_graph_is_drawn(run, matrix_files, tmp_path):
    pytest.importorskip("matplotlib")
    run("fit", "d.arff", *GRAPH, "--graph", "chow-liu", "-q")
    done = run("inspect", "m.lw", "--graph", "--out", "g.png")
    assert "the picture is in g.png" in done.err
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")
    assert "end it in .png" in run("inspect", "m.lw", "--graph", "--out", "g.gif", code=2).err
    run("fit", "d.arff", *GRAPH, "--graph", "none", "-q")
    assert "nothing to draw" in run("inspect", "m.lw", "--graph", "--out", "n.png", code=2).err


def test_evaluate_counts_proven_predictions(run, matrix_files):
    run("fit", "d.arff", *GRAPH, "--graph", "full", "-q")
    found = json.loads(run("evaluate", "m.lw", "d.arff", "--json").out)
    data, model = read_any("d.arff"), _classifier()
    vars(model).pop("feature_names_in_")
    assert found["proven_optimal"] == 1.0
    assert found["hamming_loss"] == pytest.approx(hamming_loss(data.Y, model.predict(data.X)))
    assert "proven_optimal" in run("evaluate", "m.lw", "d.arff").out


def test_tables_with_text_and_missing_labels(run, fit_table):
    fit_table("--model", "label-graph", "--graph", "full", "--regularization", 0.01, "-q")
    found = json.loads(run("evaluate", "m.lw", "a.csv", "--json").out)
    assert found["micro_f1"] > 0.9
    assert found["proven_optimal"] == 1.0


def test_one_class_a_row(fit_things, run):
    fit_things("--model", "label-graph", "--one-class", "--graph", "none", "-q")
    assert json.loads(run("evaluate", "m.lw", "test.csv", "--json").out)["subset_accuracy"] > 0.8


def test_too_few_passes_are_one_plain_line(run, matrix_files):
    done = run("fit", "d.arff", *GRAPH, "--graph", "full", "--max-iter", 2, "--tol", 1e-9, "-q")
    assert "raise --max-iter or --tol, scale the features, or regularise more. The gap is " in done.err
    assert done.err.endswith(" after 2 passes.\n")
    assert done.err.count("\n") == 1


def test_progress_counts_rounds(run, matrix_files, monkeypatch):
    states = []
    monkeypatch.setattr(progress.GapLines, "show", lambda lines: states.append(lines.state))
    run("fit", "d.arff", *GRAPH, "--max-rounds", 2, "--graph-tol", 0)
    assert "round 2 of at most 3" in states
    states.clear()
    run("fit", "d.arff", *GRAPH, "--graph", "full")
    assert any(state.startswith("gap about ") for state in states)


def test_an_interrupt_saves_the_model_so_far(run, matrix_files, monkeypatch):
    sweep, calls = StructuredMargin.sweep, []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 12:  # a call with inference is followed by some without
            signal.raise_signal(signal.SIGINT)
        return sweep(*arguments, **options)

    monkeypatch.setattr(StructuredMargin, "sweep", interrupted)
    done = run("fit", "d.arff", *GRAPH, "--tol", 1e-6, code=130)
    assert re.search(r" The gap is [\d.e+-]+ after \d+ passes\.$", done.err.splitlines()[-1])
    assert "interrupted; the model so far is saved in m.lw. The fit was interrupted;" in done.err
    assert _classifier().status_ == "interrupted"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--C", 2], "--C goes with --model max-margin or label-tree, not with label-graph."),
        (["--rank", 2], "--rank goes with --model low-rank, not with label-graph."),
        (["--tie", "class"], "--tie goes with --model kernel-logistic, not with"),
        (["--graph", "full", "--threshold", 1, "--validation-fraction", 0.1], "--validation-fraction"),
        (["--model", "low-rank", "--graph", "full"], "--graph goes with --model label-graph, not with"),
        (["--model", "low-rank", "--early-stopping"], "--early-stopping goes with --model label-graph"),
        (["--graph", "abc"], "'abc' is neither one of learn, chow-liu, full, none nor a file"),
        (["--graph", "full", "--max-rounds", 2], "--max-rounds goes with --graph learn, not with full."),
        (["--graph", "none", "--early-stopping"], "--early-stopping goes with --graph learn, not with none."),
        (["--graph", "full", "--validation-fraction", 0.1],
         "--validation-fraction goes with --threshold f1, micro_f1, macro_f1,"),
        (["--max-rounds", 0], "--max-rounds is 0; a learned graph needs at least one round: give 1 or more,"),
        (["--clique-size", 1], "--clique-size must be an int in the range [2, 8]. Got 1 instead."),
        (["--exact-width", 21], "--exact-width must be an int in the range [0, 20]. Got 21 instead."),
        (["--regularization", 0],
         "--regularization must be one of auto or a float in the range (0.0, inf). Got 0.0"),
        (["--intercept-scaling", 2, "--no-intercept"], "--intercept-scaling has no intercept to scale"),
        (["--inference", "exact", "--exact-width", 1, "--graph", "full"],
         "has width 4, above --exact-width 1; raise --exact-width (up to 20)"),
    ],
)  # fmt: skip
def test_nonsense_is_one_line_and_code_2(run, matrix_files, tmp_path, words, message):
    done = run("fit", "d.arff", *GRAPH, *words, code=2)
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "m.lw").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("l0,l1\nl0,lx\n", "e.csv:2: found the unknown label 'lx'; expected labels of the data: l0, l1, l2"),
        ("l0,l1\nl1,l0\n", "e.csv:2: found the edge of line 1 again"),
        ("l0,l0\n", "e.csv:1: found a label joined to itself"),
        ("l0\n", "e.csv:1: found a single label"),
        ("", "e.csv: found an empty file"),
        ("source,target\n", "e.csv: found no edge"),
    ],
)
def test_files_that_hold_no_graph(run, matrix_files, tmp_path, text, message):
    (tmp_path / "e.csv").write_text(text)
    done = run("fit", "d.arff", *GRAPH, "--graph", "e.csv", code=2)
    assert message in done.err
    assert done.err.count("\n") == 1


def test_inspect_refuses_what_makes_no_sense(run, matrix_files):
    run("fit", "d.arff", "--model", "max-margin", "--out", "m.lw", "-q")
    assert "has no graph of labels" in run("inspect", "m.lw", "--graph", code=2).err
    assert (
        "--graph and --covariance show different things"
        in run("inspect", "m.lw", "--graph", "--covariance", code=2).err
    )
    assert (
        "--out goes with --covariance or --graph only."
        in run("inspect", "m.lw", "--out", "x.png", code=2).err
    )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--jobs", 0], "--jobs is 0; give a number of threads from 1 on, or -1 for all."),
        (["--graph-tol", "nan"], "--graph-tol must be a float in the range [0.0, inf). Got nan instead."),
        (
            ["--regularization", "nan"],
            "--regularization must be one of auto or a float in the range (0.0, inf). Got nan",
        ),
    ],
)
def test_numbers_that_make_no_sense_are_refused_by_flag(run, matrix_files, flags, said):
    done = run("fit", matrix_files["mulan"], "--model", "label-graph", *flags, "--out", "m.lw", code=2)
    assert said in done.err


def test_predictions_have_certificates(run, matrix_files):
    run("fit", matrix_files["mulan"], *GRAPH, "--graph", "full", "-q")
    lines = run("predict", "m.lw", matrix_files["mulan"], "--certificates").out.splitlines()
    data, model = read_any(matrix_files["mulan"]), _classifier()
    found = model.predict_map(pd.DataFrame(data.X.toarray(), columns=model.feature_names_in_))
    for line, chosen, proven, gap in zip(lines, found.labels, found.proven, found.gaps, strict=True):
        record = json.loads(line)
        names = {str(name) for name in model.label_names_[chosen > 0]}
        assert {entry["label"] for entry in record["labels"]} == names
        assert record["proven"] == bool(proven)
        assert record["gap"] == pytest.approx(gap)
    table = run("predict", "m.lw", matrix_files["mulan"], "--certificates", "--output-format", "tsv").out
    assert table.splitlines()[0].split("\t") == ["id", "label", "score", "proven", "gap"]
    refused = run("predict", "m.lw", matrix_files["mulan"], "--certificates", "--threshold", 0, code=2).err
    assert "--certificates are of whole label sets, and --threshold prints others" in refused
    run("fit", matrix_files["mulan"], "--model", "max-margin", "--out", "m.lw", "-q")
    refused = run("predict", "m.lw", matrix_files["mulan"], "--certificates", code=2).err
    assert "--certificates are of label-graph models, and this is a MaxMarginClassifier" in refused


def test_a_table_has_certificates_too(fit_table, run):
    fit_table("--model", "label-graph", "--graph", "full", "--tol", 0.1, "-q")
    lines = run("predict", "m.lw", "a.csv", "--certificates").out.splitlines()
    assert [json.loads(line)["proven"] for line in lines] == [True] * 6
