"""Labels with a hierarchy: enforced, matched by other names, completed; and the effect of ``--enforce``."""

import json

import numpy as np
import pytest

import labelweave
from labelweave.datasets import read_any

_OBO = """format-version: 1.2

[Term]
id: GO:1

[Term]
id: GO:3
alt_id: GO:19
is_a: GO:1

[Term]
id: GO:4
relationship: part_of GO:3
is_a: GO:1

[Term]
id: GO:5
is_obsolete: true
replaced_by: GO:4
"""
_TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix y: <http://a.org/y/> .
y:p1 a skos:Concept .
y:p2 a skos:Concept ; skos:broader y:p1 .
y:p3 a skos:Concept ; skos:broader y:p1 .
"""
_IRI = "http://purl.obolibrary.org/obo/GO_3"
_Y = "http://a.org/y/"
_NOTE = "labels lie below others in the hierarchy of"


@pytest.fixture
def fit(run, tmp_path):
    """Fit to rows of two kinds with the labels given for each."""
    (tmp_path / "t.obo").write_text(_OBO)
    (tmp_path / "t.ttl").write_text(_TURTLE)
    (tmp_path / "t.csv").write_text("parent,child\na,b\na,c\nb,d\n")
    (tmp_path / "t.json").write_text('{"a": {"b": ["d"], "c": null}}')
    (tmp_path / "paths.txt").write_text("a/b\na/c\n")

    def write(name, red, blue):
        rows = [f"r{k},{'red sun' if k % 2 else 'blue sea'} {k},{red if k % 2 else blue}" for k in range(24)]
        (tmp_path / name).write_text("\n".join(["id,text,tags", *rows]) + "\n")

    def call(red, blue, *words, code=0):
        write("d.csv", red, blue)
        given = ["--labels", "tags", "--label-separator", "|", "--text", "text", "--many-labels"]
        model = [] if "--time-budget" in words or "--model" in words else ["--model", "max-margin"]
        return run("fit d.csv --out m.lw", *given, *model, *words, code=code)

    call.write = write
    return call


def labels_of(run, path="d.csv"):
    lines = run("predict m.lw", path).out.splitlines()
    return [sorted(entry["label"] for entry in json.loads(line)["labels"]) for line in lines]


@pytest.mark.parametrize(
    ("file", "red", "blue", "expected", "said"),
    [
        ("t.obo", "GO:19", "GO:1", ["GO:1", "GO:3"], "GO:19 is GO:3"),
        ("t.obo", "GO:5", "GO:1", ["GO:1", "GO:4"], "GO:5 is GO:4"),
        ("t.obo", "GO:19|GO:5", "GO:1", ["GO:1", "GO:3", "GO:4"], "2 of 3 labels are synonyms of terms"),
        ("t.obo", "GO_3", "GO:1", ["GO:1", "GO:3"], "GO_3 is GO:3"),
        ("t.obo", _IRI, "GO:1", ["GO:1", _IRI], _NOTE),
        ("t.ttl", f"{_Y}p2", f"{_Y}p1", [f"{_Y}p1", f"{_Y}p2"], _NOTE),
        ("t.ttl", "<http://a.org/y/p2>", "p1", ["<http://a.org/y/p2>", "p1"], _NOTE),
        ("t.ttl", "p2", "p1", ["p1", "p2"], _NOTE),
        ("t.ttl", "https://a.org/y/p2", "p1", ["https://a.org/y/p2", "p1"], _NOTE),
        ("t.csv", "d", "a", ["a", "d"], f"1 of 2 {_NOTE} t.csv"),
        ("t.json", "b|d", "a", ["a", "b", "d"], f"2 of 3 {_NOTE} t.json"),
        ("paths.txt", "a/b", "a", ["a", "a/b"], f"1 of 2 {_NOTE} paths.txt"),
    ],
)  # fmt: skip
def test_a_taxonomy_in_a_file_is_obeyed_and_said(run, fit, file, red, blue, expected, said):
    pytest.importorskip("rdflib")
    done = fit(red, blue, "--taxonomy", file)
    assert said in done.err
    assert "--enforce max" in done.err
    found = labels_of(run)
    assert found[1] == sorted(expected)
    assert found[0] == [blue]


@pytest.mark.parametrize(
    "edges", ["1,1/1,1/2,2", "root/m,root/p,m/k", "a,a/b,a/b/c", "root/x,x/y", "r/a,r/b,a/c,b/c"]
)
def test_a_hierarchy_of_the_data_is_obeyed_and_said(run, tmp_path, edges):
    nodes = edges.split(",")
    last = nodes[1] if not edges.startswith("r") else nodes[-1].split("/")[-1]
    other = nodes[-1] if not edges.startswith("r") else nodes[0].split("/")[-1]
    rows = [f"{k % 2}.{k % 7},{last if k % 2 else other}" for k in range(20)]
    head = f"@relation h\n@attribute x numeric\n@attribute class hierarchical {edges}\n@data\n"
    (tmp_path / "h.arff").write_text(head + "\n".join(rows) + "\n")
    done = run("fit h.arff --model max-margin --out m.lw")
    assert f"{_NOTE} h.arff: it completes rows, and predictions obey it (--enforce max;" in done.err
    tree = labelweave.load("m.lw").taxonomy_
    for found in labels_of(run, "h.arff"):
        assert all(set(tree.ancestors(name)) & set(tree.nodes) <= {*found, "root", "r"} for name in found)
    unasked = run("fit h.arff --model max-margin --enforce none --out m.lw")
    assert _NOTE not in unasked.err
    assert labelweave.load("m.lw").enforce == "none"
    quiet = run("fit h.arff --model max-margin --out m.lw -q")
    assert quiet.err == ""
    assert "au_prc" in run("evaluate m.lw h.arff --json").json


def test_labels_none_of_which_lies_below_another_are_left_alone(run, fit):
    done = fit("b", "c", "--taxonomy", "t.csv")
    assert "--enforce" not in done.err
    assert type(labelweave.load("m.lw").classifier_).__name__ == "MaxMarginClassifier"
    done = fit("b", "c", "--taxonomy", "t.csv", "--model", "binary-relevance")
    assert "no label lies below another in t.csv, so it has no effect on binary-relevance" in done.err


@pytest.mark.parametrize(
    "words",
    [["--model", name] for name in ("low-rank", "label-tree", "binary-relevance", "label-graph")]
    + [
        ["--time-budget", "2"],
        ["--model", "kernel-logistic"],
        ["--model", "auto", "--enforce", "projection"],
    ],
)
def test_a_taxonomy_goes_with_any_model(run, fit, words):
    fit("d", "a", "--taxonomy", "t.csv", "-q", *words)
    assert labels_of(run)[1] == ["a", "d"]


def test_labels_outside_are_refused_with_a_way_out(run, fit):
    done = fit("d|x", "a|y", "--taxonomy", "t.csv", code=2)
    assert "'x' is not in the taxonomy (2 of 4 are not)" in done.err
    assert "--outside-taxonomy drop" in done.err
    done = fit("d|x", "a|y", "--taxonomy", "t.csv", "--outside-taxonomy", "drop")
    assert "2 of 4 labels are not in t.csv and are dropped: 'x' and 'y'." in done.err
    assert labels_of(run)[1] == ["a", "d"]
    done = fit("d|x", "a|y", "--enforce", "max,taxonomy=t.csv", "--outside-taxonomy", "root")
    assert "kept as roots" in done.err
    assert labels_of(run)[1] == ["a", "d", "x"]
    assert "'GO:7' is not in the taxonomy" in fit("GO:7", "GO:1", "--taxonomy", "t.obo", code=2).err


def test_relations_are_those_asked_for(run, fit):
    fit("GO:4", "GO:3", "--taxonomy", "t.obo", "--relations", "is_a, part_of", "-q")
    assert labels_of(run)[1] == ["GO:3", "GO:4"]
    said = fit("GO:4", "GO:3", "--taxonomy", "t.obo", "--relations", "partof", code=2).err
    assert "no relation 'partof'" in said


@pytest.mark.parametrize("test", [("GO:19", "GO:1"), ("GO:3", "GO:1"), ("GO:1|GO_3", "GO:1")])
def test_the_truth_is_completed_and_found_by_other_names(run, fit, tmp_path, test):
    fit("GO:3", "GO:1", "--taxonomy", "t.obo", "-q")
    fit.write("test.csv", *test)
    done = run("evaluate m.lw test.csv --json")
    assert done.json["micro_f1"] == done.json["hierarchical_f1"] == done.json["fmax"] == 1
    assert ("12 of 24 rows lack ancestors of their labels" in done.err) == ("GO:1" not in test[0].split("|"))
    run("report m.lw test.csv --out r.html")
    assert "Fmax" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "12 of 24" in run("cross-validate d.csv --labels tags --text text --many-labels "
                             "--model max-margin --taxonomy t.obo --folds 2").err  # fmt: skip


def test_labels_that_training_lacked_count_as_missed(run, fit):
    fit("d", "a", "--taxonomy", "t.csv", "-q")
    fit.write("test.csv", "d|c", "a|zz")
    done = run("evaluate m.lw test.csv --json")
    assert "2 labels unknown to the model count as missed" in done.err
    assert "'c' (12), 'zz' (12); --ignore-unknown-labels ignores them" in done.err
    assert done.json["micro_f1"] == pytest.approx(2 * 36 / (2 * 36 + 24))
    assert run("evaluate m.lw test.csv --json --unknown-labels ignore").json["micro_f1"] == 1


def test_models_of_tags_give_tags_and_rows_keep_their_names(run, fit):
    fit("d", "a", "--taxonomy", "t.csv", "--id", "id", "-q")
    assert [row["id"] for row in run("predict m.lw d.csv").records][:3] == ["r0", "r1", "r2"]
    rows = labelweave.datasets.read_table_columns("d.csv", labelweave.datasets.TableColumns(text="text")).X
    found = labelweave.load("m.lw").predict(rows)
    assert sorted(found[1]) == ["a", "d"]
    fit("d", "a", "--tune-threshold", "micro_f1", "-q")
    assert labelweave.load("m.lw").predict(rows)[:2].tolist() == [["a"], ["d"]]
    np.testing.assert_equal(labelweave.load("m.lw").score(rows, [["a"], ["d"]] * 12), 1)


_HEAD = (
    "@relation genes\n@attribute a numeric\n@attribute b numeric\n@attribute class hierarchical {}\n@data\n"
)
_EDGES = "root/m,root/p,m/k,p/k,k/s"


@pytest.fixture
def genes(tmp_path, run):
    rng = np.random.default_rng(0)
    nodes = ["m", "p", "k", "s"]
    X = rng.normal(size=(80, 2))
    chosen = (X[:, 0] > 0) * 2 + (X[:, 1] > 0)
    rows = [f"{a:.3f},{b:.3f},{nodes[k]}\n" for (a, b), k in zip(X, chosen, strict=True)]
    rows[0] = "?,0.5,m@p\n"
    (tmp_path / "go.arff").write_text(_HEAD.format(_EDGES) + "".join(rows))


@pytest.mark.parametrize("words", [["--model", "max-margin"], []])
@pytest.mark.parametrize("how", ["max", "projection,incomplete=true"])
def test_predictions_obey_the_hierarchy_of_the_data(run, genes, words, how):
    if not words and how != "max":
        pytest.skip("one model is enough")
    done = run("fit go.arff --enforce", how, "--out", "m.lw", *words)
    assert "decides   HierarchicalClassifier: a hierarchy of 5 nodes" in done.err
    graph, model = read_any("go.arff").taxonomy, labelweave.load("m.lw")
    assert model.taxonomy_ == graph
    for line in run("predict m.lw go.arff").out.splitlines():
        labels = {entry["label"] for entry in json.loads(line)["labels"]}
        assert all(set(graph.ancestors(label)) <= labels for label in labels)
    assert run("evaluate m.lw go.arff --json").json["micro_f1"] > 0.5
    assert "HierarchicalClassifier" in run("inspect m.lw").out


def tuned(run):
    """Fit a model with thresholds around the hierarchy; return the hierarchy."""
    words = ("--model", "max-margin", "--enforce", "max", "--tune-threshold", "macro_f1")
    run("fit go.arff", *words, "--out", "m.lw")
    return read_any("go.arff").taxonomy


def test_thresholds_around_a_hierarchy(run, genes):
    graph = tuned(run)
    for line in run("predict m.lw go.arff").out.splitlines():
        labels = {entry["label"] for entry in json.loads(line)["labels"]}
        assert all(set(graph.ancestors(label)) <= labels for label in labels)


def test_a_taxonomy_from_a_file(run, tmp_path):
    (tmp_path / "t.csv").write_text("tags,x\n" + "dog,1\ncat,0\n" * 10)
    (tmp_path / "tree.csv").write_text("parent,child\nanimal,dog\nanimal,cat\n")
    given = ["fit", "t.csv", "--labels", "tags", "--model", "max-margin", "--out", "m.lw", "--many-labels"]
    run(*given, "--enforce", "max,taxonomy=tree.csv")
    run(*given, "--enforce", "max", "--taxonomy", "tree.csv")  # a prior too
    assert labelweave.load("m.lw").classifier_.taxonomy_.parents["dog"] == ("animal",)


def test_a_fitted_model_is_put_in(run, genes):
    run("fit go.arff --model max-margin --out m.lw")
    run("decide m.lw go.arff --enforce max --out h.lw")
    assert type(labelweave.load("h.lw")).__name__ == "HierarchicalClassifier"


def test_closed_sets_and_most_specific_terms(run, genes):
    graph = tuned(run)

    def terms(*flags):
        lines = run("predict m.lw go.arff", *flags).out.splitlines()
        return [{entry["label"] for entry in json.loads(line)["labels"]} for line in lines]

    for whole, specific in zip(terms(), terms("--terms", "specific"), strict=True):
        assert specific == whole - {up for label in whole for up in graph.ancestors(label)}
    assert terms("--terms", "closed") == terms()
    assert max(map(len, terms("--terms", "specific", "--top", "1"))) == 1
    refused = run("predict m.lw go.arff --terms closed --top 1", code=2)
    assert "--terms closed adds ancestors" in refused.err


def test_rows_on_several_paths_have_labels_with_the_prior_of_the_data(run, genes):
    done = run("fit go.arff --model kernel-logistic --data-taxonomy --out m.lw")
    assert "classes with several parents; every class is a label with a logistic loss" in done.err
    assert labelweave.load("m.lw").taxonomy_ == read_any("go.arff").taxonomy
    rows = [f"{k % 5}.0,{k % 3}.0,{'a/b@c' if k % 2 else 'a'}\n" for k in range(20)]
    with open("tree.arff", "w") as file:
        file.write(_HEAD.format("a,a/b,c") + "".join(rows))
    done = run("fit tree.arff --model kernel-logistic --data-taxonomy --out m.lw")
    assert "has two most specific nodes" in done.err
    assert "every class is a label" in done.err
    refused = run("fit tree.arff --model kernel-logistic --data-taxonomy --one-class --out m.lw", code=2)
    assert "must be on one path" in refused.err
