import csv
import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import labelweave
from labelweave import LabelMatrix, MaxMarginClassifier

TABLE = """name,text,fruit,sea
r0,a red apple,1,0
r1,a green pear,1,0
r2,a blue wave,0,1
r3,a salty wave,0,1
r4,a red wave,,
r5,an apple by the sea,,?
r6,=cmd() a pear,1,
"""
FLAGS = "--text text --label-column fruit --label-column sea --id name"


@pytest.fixture
def model(run, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    run(f"fit t.csv {FLAGS} --model kernel-logistic --out m.lw -q")
    return "m.lw"


def lines(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_asks_about_what_is_unknown_and_takes_the_answers(run, model, tmp_path):
    done = run("queries", model, "t.csv", "--count", "9", "--out", "ask.csv")
    assert "5 of 5 unknown entries are in ask.csv" in done.err
    asked = lines(tmp_path / "ask.csv")
    entries = {(one["id"], one["label"]) for one in asked}
    assert entries == {("r4", "fruit"), ("r4", "sea"), ("r5", "fruit"), ("r5", "sea"), ("r6", "sea")}
    assert {one["answer"] for one in asked} == {""}
    assert next(one for one in asked if one["id"] == "r6")["text"] == "'=cmd() a pear"  # no formula
    assert all(0 <= float(one["probability"]) <= 1 for one in asked)
    filled = [one | {"answer": "yes" if one["label"] == "sea" else "?"} for one in asked]
    with open(tmp_path / "ask.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, asked[0].keys())
        writer.writeheader()
        writer.writerows(filled)
    run(f"fit t.csv {FLAGS} --answers ask.csv --model kernel-logistic --out n.lw -q")
    shares = [labelweave.load(tmp_path / name).classifier_ for name in ("m.lw", "n.lw")]
    assert shares[1].intercept_[1] > shares[0].intercept_[1]  # more of them have the label sea now
    done = run("queries n.lw t.csv --answers ask.csv --out more.csv")
    assert "nothing is left to ask" in done.err
    assert lines(tmp_path / "more.csv") == []


def test_names_come_back_as_they_are(run, tmp_path):
    known = TABLE.splitlines()[1:5]
    tags = ["be\x07l" if ",1,0" in line else "=\tsum" for line in known]
    rows = [{"name": f"r\x1b{k}", "text": line.split(",")[1], "tags": [tag]}
            for k, (line, tag) in enumerate(zip(known, tags, strict=True))]  # fmt: skip
    rows.append({"name": "r\x1bnew", "text": "a red wave", "tags": None})
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    flags = ("t.jsonl", "--text", "text", "--labels", "tags", "--empty-labels", "unknown", "--id", "name")
    run("fit", *flags, "--model", "kernel-logistic", "--out", "m.lw", "-q")
    run("queries m.lw t.jsonl --out ask.csv")
    text = (tmp_path / "ask.csv").read_bytes().decode()
    assert "\x07" in text
    (tmp_path / "ask.csv").write_bytes(text.replace(",,", ",yes,").encode())
    done = run("fit", *flags, "--model", "kernel-logistic", "--answers", "ask.csv", "--out", "n.lw", "-q")
    assert done.err == ""
    assert labelweave.load(tmp_path / "n.lw").label_names_.tolist() == ["=\tsum", "be\x07l"]
    assert "\x07" not in run("queries m.lw t.jsonl").out


def test_writes_to_stdout_and_knows_tables_without_labels(run, model, tmp_path):
    (tmp_path / "new.csv").write_text("text\na pear\na wave\n")
    done = run("queries", model, "new.csv", "-n", "3")
    found = list(csv.DictReader(done.out.splitlines()))
    assert len(found) == 3
    assert {one["id"] for one in found} <= {"0", "1"}


def test_asks_about_rows_of_a_matrix(run, matrix_files, tmp_path):
    text = (tmp_path / "d.arff").read_text()
    run("fit d.arff --model max-margin --out m.lw -q")
    done = run("queries m.lw d.arff --out ask.csv")
    assert "nothing is left to ask" in done.err
    (tmp_path / "a.csv").write_text("id,label,answer\n3,l1,unknown\n4,l2,unknown\n")
    run("fit d.arff --model max-margin --answers a.csv --out n.lw -q")
    before, after = (labelweave.load(tmp_path / name).coef_ for name in ("m.lw", "n.lw"))
    assert not np.array_equal(before, after)
    assert text == (tmp_path / "d.arff").read_text()


def test_labels_that_only_answers_name(run, model, tmp_path):
    (tmp_path / "more.csv").write_text("id,label,answer\nr0,lake,no\nr2,lake,yes\nr3,lake,1\nr1,lake,FALSE\n")
    assert "the label 'lake'" in run("queries", model, "t.csv", "--answers", "more.csv", code=2).err
    words = ("--model", "kernel-logistic", "--answers", "more.csv", "--out", "n.lw")
    assert "'lake'" in run(f"fit t.csv {FLAGS}", *words).err
    assert labelweave.load(tmp_path / "n.lw").label_names_.tolist() == ["fruit", "sea", "lake"]
    alone = ("--text", "text", "--drop", "fruit", "--drop", "sea", "--id", "name")
    run("fit t.csv", *alone, *words, "-q")
    assert labelweave.load(tmp_path / "n.lw").label_names_.tolist() == ["lake"]
    (tmp_path / "more.csv").write_text("id,label,answer\n")
    assert "nothing to learn" in run("fit t.csv", *alone, *words, code=2).err


def test_asks_with_a_pipeline_of_texts(run, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    texts = [line.split(",")[1] for line in TABLE.splitlines()[1:5]]
    piped = make_pipeline(TfidfVectorizer(), MaxMarginClassifier())
    labels = LabelMatrix.from_any(np.array([[1, 0], [1, 0], [0, 1], [0, 1]]), ["fruit", "sea"])
    labelweave.save(piped.fit(texts, labels), tmp_path / "p.lw")
    done = run("queries p.lw t.csv --text text --id name -n 4")
    assert len(list(csv.DictReader(done.out.splitlines()))) == 4
    named = ("--label-column", "fruit", "--label-column", "sea")
    done = run("queries p.lw t.csv --text text --id name", *named)
    found = list(csv.DictReader(done.out.splitlines()))
    assert {(one["id"], one["label"]) for one in found} == {
        *(("r4", "fruit"), ("r4", "sea"), ("r5", "fruit"), ("r5", "sea"), ("r6", "sea"))
    }
    assert {one["text"] for one in found} >= {"a red wave"}
