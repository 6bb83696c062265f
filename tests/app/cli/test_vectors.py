"""Vectors on the command line: columns of tables, and files next to tables, which predict needs too."""

import json

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from commands import invoke
from labelweave import MaxMarginClassifier

ROWS = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
NAMES = np.array([f"p{row}" for row in range(40)])
LABELS = "--labels tags --label-separator , --empty-labels none"
FIT = f"{LABELS} --model max-margin --out m.lw"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tags = [",".join(np.array(["red", "sea"])[row[:2] > 0]) for row in ROWS]
    frame = pd.DataFrame({"key": NAMES, "title": ["one", "two"] * 20, "tags": tags})
    frame.to_csv("t.csv", index=False)
    frame[:20].to_csv("half.csv", index=False)
    frame.assign(emb=list(ROWS)).to_parquet("t.parquet")
    np.save("rows.npy", ROWS)
    np.savez("rows.npz", ROWS)
    np.savez("ids.npz", ids=NAMES[::-1], vectors=ROWS[::-1])
    save_file({"x": ROWS}, "rows.safetensors")


def _scores(words):
    found = map(json.loads, invoke(f"predict m.lw {words} --top 2".split()).out.splitlines())
    return [{one["label"]: one["score"] for one in row["labels"]} for row in found]


@pytest.mark.parametrize("data", [
    "t.parquet", "t.csv --vectors rows.npz", "t.csv --vectors rows.safetensors",
    "t.csv --vectors ids.npz --id key",
])  # fmt: skip
def test_vectors_in_files_and_columns_are_the_same(data):
    invoke(f"fit t.csv --vectors rows.npy {FIT}".split())
    expected = _scores("t.csv --vectors rows.npy")
    invoke(f"fit {data} {'--vectors emb' if data == 't.parquet' else ''} {FIT}".split())
    assert _scores(data) == expected
    assert _scores("t.csv --vectors rows.npy") == _scores("rows.npy") == _scores("ids.npz")[::-1] == expected
    assert json.loads(invoke(["predict", "m.lw", "ids.npz"]).out.splitlines()[0])["id"] == NAMES[-1]


def test_rows_of_a_model_of_a_matrix_may_be_a_file_of_vectors():
    MaxMarginClassifier().fit(ROWS, [["red"] if row[0] > 0 else ["sea"] for row in ROWS]).save("m.lw")
    assert len(_scores("rows.npy")) == 40


@pytest.mark.parametrize("data", ["t.csv --vectors ids.npz", "t.parquet"])
def test_commands_that_read_tables_take_vectors(data):
    id = " --id key" if "ids" in data else ""
    kinds = "--text title --vectors emb" if data == "t.parquet" else "--text title"
    invoke(f"fit {data}{id} {kinds} {FIT}".split())
    assert json.loads(invoke(f"evaluate m.lw {data} --json".split()).out)["rows"] == 40
    assert "the report is in r.html" in invoke(f"report m.lw {data} --out r.html".split()).err
    invoke(f"decide m.lw {data} --tune-threshold macro_f1 --out d.lw".split())
    pd.DataFrame({"key": NAMES, "title": "one", "emb": list(ROWS)}).to_parquet("pool.parquet")
    pool = "pool.parquet" if data == "t.parquet" else "half.csv --labels none --vectors ids.npz"
    invoke(f"queries m.lw {pool} --count 2{id} --out ask.csv".split())
    assert set(pd.read_csv("ask.csv")["text"]) <= {"one", "two"}
    measured = invoke(
        f"cross-validate {data}{id} {kinds} {LABELS} --model max-margin --folds 2 --json".split()
    )
    assert json.loads(measured.out)["rows"] == 40


@pytest.mark.parametrize(("words", "shown"), [
    ("t.csv --vectors rows.npy", "vectors       vectors (3 numbers)"),
    ("t.parquet --drop key", "vectors       emb (3 numbers)"),
])  # fmt: skip
def test_what_is_understood_of_vectors_is_shown(words, shown):
    assert shown in invoke(f"fit {words} {LABELS} --dry-run".split()).out.splitlines()


def test_inspect_names_the_columns_of_vectors():
    invoke(f"fit t.parquet --vectors emb {FIT}".split())
    assert json.loads(invoke(["inspect", "m.lw", "--json"]).out)["columns"]["vectors"] == ["emb"]
