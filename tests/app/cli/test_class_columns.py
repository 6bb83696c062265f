"""Label columns with more than two values, from ARFF files and tables, in every command."""

import numpy as np
import pandas as pd
import pytest

import labelweave
from labelweave.datasets import TableColumns, read_any, read_mulan, read_table

LABELS = "--label-column color --label-column size"
ARFF = """@relation 'toy: -C 3'
@attribute color {red,green,blue}
@attribute size {0,1,2,3,4}
@attribute ok {0,1}
@attribute x numeric
@attribute y numeric
@data
"""


def _table(n=80, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3)).round(3)
    frame = pd.DataFrame(X, columns=["x", "y", "z"])
    frame["color"] = np.array(["blue", "green", "red"])[X.argmax(axis=1)]
    frame["size"] = 4 + (X[:, 0] > 0) + (X[:, 1] > 0.3)
    frame.loc[::11, "color"] = None
    return frame


@pytest.fixture
def table(tmp_path):
    train, test = _table(), _table(20, 1)
    train.to_csv(tmp_path / "t.csv", index=False)
    test.to_csv(tmp_path / "later.csv", index=False)
    test.to_parquet(tmp_path / "later.parquet")
    return test


def test_arff_files_of_several_classes(tmp_path):
    (tmp_path / "m.arff").write_text(ARFF + "red,4,1,0.5,1\n?,0,0,0,1\ngreen,4,?,1,1\n")
    data = read_mulan(tmp_path / "m.arff")
    assert data.Y.names.tolist() == ["color=green", "color=red", "size=0", "size=4", "ok=0", "ok=1"]
    missing = np.isnan(data.Y.to_dense())
    assert missing.tolist() == [[False] * 6, [True] * 2 + [False] * 4, [False] * 4 + [True] * 2]
    assert data.feature_names.tolist() == ["x", "y"]
    model = labelweave.MaxMarginClassifier(C=100).fit(data.X, data.Y)
    assert model.predict(data.X)[[0, 2]].tolist() == [
        ["red", "4", "1"],
        ["green", "4", model.predict(data.X)[2, 2]],
    ]


def test_a_numeric_label_beside_nominal_ones_is_refused(tmp_path):
    (tmp_path / "m.arff").write_text(ARFF.replace("{0,1}", "numeric") + "red,4,1,0.5,1\n")
    with pytest.raises(
        ValueError, match=r"m\.arff:4: found the label 'ok' of type numeric beside nominal ones"
    ):
        read_mulan(tmp_path / "m.arff")


@pytest.mark.parametrize("model", ["max-margin", "low-rank", "binary-relevance"])
def test_a_table_is_fitted_evaluated_and_predicted(run, table, model):
    said = run(f"fit t.csv {LABELS} --model {model} --out m.lw").err
    assert all(part in said for part in ("color=blue, color=green, color=red, size=4", "one class in each"))
    found = run("evaluate m.lw later.csv --json").json
    own = labelweave.load("m.lw")
    predicted = own.predict(table)
    seen = table["color"].notna().to_numpy()
    right = (
        (predicted[seen, 0] == table["color"][seen]).mean(),
        (predicted[:, 1] == table["size"].astype(str)).mean(),
    )
    assert (found["accuracy of color"], found["accuracy of size"]) == pytest.approx(right)
    assert found["column_accuracy"] == pytest.approx(np.mean(right))
    assert found["subset_accuracy"] == pytest.approx(
        own.score(table, table[["color", "size"]].astype(object))
    )
    assert run("evaluate m.lw later.parquet --json").json == found
    for name in ("p.csv", "p.parquet"):
        run("predict m.lw later.csv --out", name)
    rows = [pd.read_csv("p.csv", dtype=str), pd.read_parquet("p.parquet")]
    for given in rows:
        assert given[["color", "size"]].to_numpy().tolist() == predicted.tolist()
    assert '"classes": {"color": ' in run("predict m.lw later.csv").out


def test_probabilities_and_best_labels_are_of_all_classes(run, table):
    run(f"fit t.csv {LABELS} --model kernel-logistic --hyperparameters fixed --out m.lw -q")
    lines = run("predict m.lw later.csv --probabilities --output-format csv").out.splitlines()
    assert lines[0] == "id,color=blue,color=green,color=red,size=4,size=5,size=6"
    shares = np.array([line.split(",")[1:] for line in lines[1:]], float)
    np.testing.assert_allclose(np.c_[shares[:, :3].sum(axis=1), shares[:, 3:].sum(axis=1)], 1.0, atol=1e-4)
    assert run("predict m.lw later.csv --top 2").out.count("label") == 60
    run("report m.lw later.csv --out r.html")


def test_what_the_data_are_is_shown(run, table):
    assert "one class in each label column" in run(f"fit t.csv {LABELS} --dry-run").out


def test_blocks_of_a_table_have_the_classes_of_all(tmp_path, table):
    rows = {"labels": ["color", "size"], "numeric": ["x", "y", "z"]}
    whole = read_table(tmp_path / "t.csv", **rows)
    parts = read_table(tmp_path / "t.csv", block_rows=7, **rows)
    assert parts.label_names.tolist() == whole.label_names.tolist()
    np.testing.assert_array_equal(parts.Y.to_dense(), whole.Y.to_dense())


def test_columns_of_0_and_1_are_classes_if_they_are_said_to_be(tmp_path):
    pd.DataFrame({"a": [0, 1], "b": [1, 0], "x": [0.5, 1]}).to_csv(tmp_path / "b.csv", index=False)
    roles = {"labels": ["a", "b"], "numeric": "x"}
    assert read_table(tmp_path / "b.csv", **roles).label_names.tolist() == ["a", "b"]
    found = read_any(tmp_path / "b.csv", **roles, holds_classes=True).label_names
    assert found.tolist() == ["a=0", "a=1", "b=0", "b=1"]
    assert not TableColumns(**roles).holds_classes
