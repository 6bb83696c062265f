"""``--enforce``: labels of a hierarchy on the command line, from fit to evaluation."""

import json

import numpy as np
import pytest

import labelweave
from labelweave.datasets import read_any

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
    """Fit a model whose thresholds stand around the hierarchy; give the hierarchy."""
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
    done = run(*given, "--enforce", "max", code=2)
    assert "--enforce: the data hold no taxonomy; add one with --enforce max,taxonomy=FILE." in done.err


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
    assert "one path of the taxonomy" in refused.err
