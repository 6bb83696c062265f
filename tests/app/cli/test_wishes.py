"""What commands print and plot of label graphs, and files of answers."""

import json

import numpy as np
import pytest

import labelweave
from labelweave import BinaryRelevance, LabelGraphClassifier
from labelweave.app.cli.answer_files import Columns, chosen_format, write_answers

X = np.random.default_rng(0).normal(size=(30, 3))
Y = (X[:, :2] > 0).astype(int)


@pytest.fixture
def graph(run):
    labels = labelweave.LabelMatrix.from_any(Y, ["a", "b"])
    model = LabelGraphClassifier([(0, 1)], tol=0.1).fit(X, labels)
    model.save("g.lw")
    return model


def test_label_sets_come_with_certificates(run, graph, tmp_path):
    rows = "\n".join(f"0 {' '.join(f'{j}:{value!r}' for j, value in enumerate(row))}" for row in X.tolist())
    (tmp_path / "r.svm").write_text(rows + "\n")
    told = run("predict g.lw r.svm --certificates").out
    found = [json.loads(line) for line in told.splitlines()]
    expected = graph.predict(X).toarray()
    assert [{one["label"] for one in row["labels"]} for row in found] == [
        set(np.array(["a", "b"])[row > 0]) for row in expected
    ]
    assert all(row["proven"] and row["gap"] == 0 for row in found)
    table = run("predict g.lw r.svm --certificates --output-format csv").out
    assert table.splitlines()[0] == "id,label,score,proven,gap"
    assert all(",true," in line for line in table.splitlines()[1:])


def test_the_graph_is_shown_in_words_numbers_and_a_picture(run, graph, tmp_path):
    text = run("inspect g.lw --graph").out.splitlines()
    assert text[0].startswith("given, 1 of 1 pairs")
    assert text[2].endswith("a, b")
    facts = run("inspect g.lw --graph --json").json
    assert facts["cliques"][0]["labels"] == ["a", "b"]
    pytest.importorskip("matplotlib")
    assert "the plot is in g.svg" in run("inspect g.lw --graph --out g.svg").err
    assert (tmp_path / "g.svg").read_text().startswith("<?xml")


def test_ties_of_one_label_and_the_first_of_two_classes(run, graph):
    text = run("inspect g.lw --label a").out
    assert "ties:" in text
    assert text.rstrip().endswith("a, b")
    two = BinaryRelevance().fit(X, np.array(["no", "yes"])[Y[:, 0]])
    two.save("t.lw")
    assert "use 'yes'" in run("inspect t.lw --label no", code=2).err
    assert "yes (intercept" in run("inspect t.lw --label yes").out


@pytest.mark.parametrize(
    ("out", "wanted", "format"),
    [(None, None, "jsonl"), ("a.csv", None, "csv"), ("a.csv.gz", None, "csv"), ("a.TSV", None, "tsv"),
     ("a.txt", "tsv", "tsv"), ("a.unknown", None, "jsonl"), ("a.xlsx", "csv", "csv")],
)  # fmt: skip
def test_formats_of_answers(out, wanted, format):
    assert chosen_format(out, wanted) == format


def test_answers_go_into_parquet_block_by_block(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("labelweave.app.cli.answer_files._LINES_AT_ONCE", 2)
    records = [
        {"id": 1, "labels": [{"label": "a", "score": 0.5}, {"label": "b", "score": 0.25}], "proven": True},
        {"id": 2, "labels": [], "proven": False},
    ]
    columns, out = Columns(["id", "label", "score", "proven"], []), str(tmp_path / "a.parquet")
    write_answers(iter(records), columns, out, "parquet")
    table = parquet.read_table(out).to_pydict()
    assert table == {
        "id": ["1", "1", "2"], "label": ["a", "b", None], "score": [0.5, 0.25, None],
        "proven": [True, True, False],
    }  # fmt: skip
