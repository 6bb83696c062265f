"""``labelweave fit --dask`` reads files in parts, and writes an ordinary model file."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import labelweave as lw
from labelweave.app.cli.program import _one_line_warnings, main
from labelweave.dask.files import files_of, parts_of
from labelweave.dask.table_model import TableCounts
from labelweave.dask.waiting import warn_of_silence
from labelweave.datasets import TableVectorizer, make_text_like, write_xmc

FLAGS = ["--text", "plot", "--numeric", "size", "--categorical", "kind", "--label-column", "genre_*"]


def frame(n=40, seed=0):
    random = np.random.default_rng(seed)
    words = random.integers(0, 30, (n, 6))
    rows = pd.DataFrame({
        "plot": [" ".join(f"word{word}" for word in row) for row in words],
        "size": random.normal(5, 2, n),
        "kind": random.choice(["a", "b", f"only{seed}"], n),
        "tags": [",".join([*(["red"] if row[0] < 15 else []), *(["blue"] if row[1] < 15 else [])])
                 for row in words],
    })  # fmt: skip
    for place in range(3):
        rows[f"genre_{place}"] = ((words < 10).sum(axis=1) > place + 1).astype(float)
    rows.loc[::7, "genre_1"] = np.nan
    return rows


@pytest.fixture
def run(client, tmp_path, monkeypatch):
    """Run a command on the cluster of the tests, in a folder of Parquet files."""

    @contextmanager
    def connected(where):
        yield client

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelweave.app.cli.cluster.connected", connected)
    (tmp_path / "rows").mkdir()
    for number in range(2):
        frame(seed=number).to_parquet(tmp_path / "rows" / f"part-{number}.parquet", row_group_size=25)

    def call(*words, code=0):
        result = CliRunner().invoke(main, list(map(str, words)), catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return call


def whole():
    return pd.concat([frame(seed=number) for number in range(2)], ignore_index=True)


def test_the_model_is_that_of_one_file(run, monkeypatch):
    monkeypatch.setattr("labelweave.dask.files._SHARE", 1e-12)
    done = run("fit", "rows", "--dask", "local:2", *FLAGS, "--out", "m.lw")
    assert "so the model is max-margin; --model max-margin silences this" in done.stderr
    assert "2 file(s) in 4 partition(s)" in done.stderr
    assert "shows the workers' progress" in done.stderr
    rows = whole()
    local = lw.MaxMarginClassifier(solver="coordinate_ascent")
    labels = rows[[f"genre_{place}" for place in range(3)]]
    local = lw.TableModel(local, text="plot", numeric="size", categorical="kind").fit(rows, labels)
    loaded = lw.load("m.lw")
    assert list(loaded.feature_names_) == list(local.feature_names_)
    assert np.allclose(loaded.decision_function(rows), local.decision_function(rows), atol=1e-4)
    assert "macro_f1" in run("evaluate", "m.lw", "rows/part-0.parquet").output


def test_lists_of_labels_by_a_low_rank_model(run):
    flags = ["--text", "plot", "--labels", "tags", "--label-separator", ",", "--model", "low-rank"]
    done = run("fit", "rows/*.parquet", "--dask", "local:2", *flags, "--rank", 2, "-q", "-o", "m.lw")
    assert done.stderr == ""
    assert list(lw.load("m.lw").classes_) == ["blue", "red"]
    assert "red" in run("predict", "m.lw", "rows/part-1.parquet").output


@pytest.mark.parametrize(
    "flags",
    [
        ["--covariance", "R.csv", "--shrink", 0.3, "--flip-rates", "0.1,0.02"],
        ["--covariance-from", "all.parquet", "--model", "low-rank", "--rank", 2, "--tol", 1e-7],
        ["--taxonomy", "tree.csv", "--class-weight", "balanced"],
    ],
    ids=["covariance", "low-rank", "taxonomy"],
)
def test_flags_about_labels_do_what_they_do_in_memory(run, tmp_path, flags):
    names = ["genre_0", "genre_1", "genre_2"]
    whole().to_parquet("all.parquet")
    pd.DataFrame(0.4 + 0.6 * np.eye(3), names, names).to_csv("R.csv")
    (tmp_path / "tree.csv").write_text("genre_0,a\ngenre_1,a\ngenre_2,b\n")
    flags = ["--model", "max-margin", "--tol", 1e-6, *FLAGS, *flags, "--scaling", "none", "-q"]
    run("fit", "rows", "--dask", "local:2", *flags, "-o", "cluster.lw")
    run("fit", "all.parquet", *flags, "-o", "memory.lw")
    there, here = (lw.load(path).decision_function(whole()) for path in ("cluster.lw", "memory.lw"))
    assert np.allclose(there, here, atol=2e-3)
    assert abs(here).max() > 0.5


@pytest.mark.parametrize(
    "flags",
    [
        ["--calibrate", "sigmoid,cv=2"],
        ["--tune-threshold", "macro_f1,validation_fraction=0.3"],
        ["--conformal", "false_negatives,level=0.4"],
        ["--enforce", "max", "--taxonomy", "tree.csv", "--calibrate", "sigmoid,cv=2"],
    ],
    ids=["calibrated", "tuned", "conformal", "hierarchy"],
)
def test_flags_of_decisions_do_what_they_do_in_memory(run, tmp_path, flags):
    whole().to_parquet("all.parquet")
    (tmp_path / "tree.csv").write_text("genre_0,a\ngenre_1,genre_0\ngenre_2,b\n")
    flags = ["--model", "low-rank", "--rank", 2, "--penalty", "ridge", "--tol", 1e-2, *FLAGS, *flags]
    run("fit", "rows", "--dask", "local:2", *flags, "-o", "cluster.lw")
    run("fit", "all.parquet", *flags, "--scaling", "none", "-q", "-o", "memory.lw")
    there, here = (lw.load(path) for path in ("cluster.lw", "memory.lw"))
    assert type(there.classifier_) is type(here.classifier_)
    scores = [model.decision_function(whole()) for model in (there, here)]
    assert np.allclose(*scores, rtol=0, atol=1e-9)
    assert np.abs(scores[0]).max() > 0.1


def test_a_graph_from_a_file_joins_labels_by_name(run, tmp_path):
    whole().to_parquet("all.parquet")
    (tmp_path / "edges.csv").write_text("genre_0,genre_1\n")
    flags = ["--model", "label-graph", "--graph", "edges.csv", "--alpha", 1, *FLAGS]
    run("fit", "rows", "--dask", "local:2", *flags, "-o", "cluster.lw")
    run("fit", "all.parquet", *flags, "--scaling", "none", "-q", "-o", "memory.lw")
    there, here = (lw.load(path) for path in ("cluster.lw", "memory.lw"))
    assert there.classifier.label_graph_.cliques == here.classifier.label_graph_.cliques == ((0, 1),)
    assert np.allclose(there.decision_function(whole()), here.decision_function(whole()), atol=1e-9)


def test_files_are_measured_by_workers_as_in_memory(run):
    whole().to_parquet("all.parquet")
    run("fit", "all.parquet", "--model", "max-margin", *FLAGS, "-q", "-o", "m.lw")
    there, here = (
        json.loads(run("evaluate", "m.lw", *words, "--json").stdout)
        for words in (["rows/*.parquet", "--dask", "local:2"], ["all.parquet"])
    )
    assert here.pop("auc_label") > 0.5
    for line in here["per_label"]:
        del line["auc"]
    assert there.pop("per_label") == here.pop("per_label")
    assert there == pytest.approx(here, rel=1e-12)
    assert "micro_f1" in run("evaluate", "m.lw", "rows", "--dask", "local:2").stdout
    frame().rename(columns={"genre_2": "x"}).to_parquet("rows/part-2.parquet")
    assert "part-2.parquet: found no" in run("evaluate", "m.lw", "rows", "--dask", "local:2", code=2).stderr


@pytest.mark.parametrize(
    "model",
    [
        ["--model", "max-margin"],
        ["--model", "kernel-logistic", "--hyperparameters", "fixed", "--taxonomy", "tree.csv"],
    ],
    ids=["scores", "probabilities"],
)
def test_classes_are_measured_by_workers_as_in_memory(run, tmp_path, model):
    random = np.random.default_rng(0)
    (tmp_path / "tree.csv").write_text("broad,oak\nfruit,apple\nfruit,pear\n")
    kinds = np.array(["oak", "apple", "pear", ""])
    tables = [pd.DataFrame(random.normal(size=(40, 3)), columns=list("abc")) for _ in range(2)]
    (tmp_path / "classes").mkdir()
    for number, table in enumerate(tables):
        table["kind"] = kinds[np.argmax([*table.to_numpy().T, np.full(40, 0.2)], axis=0)]
        table.to_csv(tmp_path / "classes" / f"{number}.csv", index=False)
    pd.concat(tables).to_csv("all.csv", index=False)
    flags = ["--labels", "kind", "--one-class", "--empty-labels", "unknown", *model]
    run("fit", "all.csv", *flags, "-q", "-o", "m.lw")
    there, here = (
        run("evaluate", "m.lw", *words, "--json") for words in (["classes", "--dask", "local:2"], ["all.csv"])
    )
    assert "of 80 rows have no known class" in there.stderr
    found, expected = json.loads(there.stdout), json.loads(here.stdout)
    for line in expected["per_label"]:
        del line["auc"]
        line.pop("calibration_error", None)
    assert found.pop("per_label") == expected.pop("per_label")
    omitted = set(expected) - set(found)
    assert omitted == ({"calibration_error"} if "log_loss" in found else {"auc_label"})
    assert found == pytest.approx({name: expected[name] for name in found}, rel=1e-12)
    assert found["classes"] == 3


@pytest.mark.parametrize(
    "flags",
    [
        ["--model", "max-margin", "--many-labels", "--label-separator", "|"],
        ["--model", "max-margin", "--one-class"],
        ["--model", "kernel-logistic", "--one-class", "--hyperparameters", "fixed"],
    ],
    ids=["labels", "classes", "probabilities"],
)
@pytest.mark.parametrize("unknown", ["missed", "ignore"])
def test_labels_that_training_did_not_have_count_as_in_memory(run, tmp_path, flags, unknown):
    random = np.random.default_rng(0)
    tables = [pd.DataFrame(random.normal(size=(30, 3)), columns=list("abc")) for _ in range(3)]
    (tmp_path / "tests").mkdir()
    for number, (table, new) in enumerate(zip(tables, ("", "yew", "fir"), strict=True)):
        table["kind"] = np.array(["oak", "apple", "pear"])[np.argmax(table.to_numpy(), axis=1)]
        if new and "--many-labels" in flags:
            table.loc[:4, "kind"] += "|" + new
            table.loc[5, "kind"] = "yew|fir" if number == 2 else "?"
        elif new:
            table.loc[:4, "kind"] = new
        table.to_csv(f"tests/{number}.csv", index=False)
    pd.concat(tables).to_csv("all.csv", index=False)
    run("fit", "tests/0.csv", "--labels", "kind", *flags, "-q", "-o", "m.lw")
    there, here = (
        run("evaluate", "m.lw", *words, "--json", "--unknown-labels", unknown)
        for words in (["tests", "--dask", "local:2"], ["all.csv"])
    )
    found, expected = json.loads(there.stdout), json.loads(here.stdout)
    lines = [{name: line[name] for name in found["per_label"][0]} for line in expected.pop("per_label")]
    assert found.pop("per_label") == lines
    assert found == pytest.approx({name: expected[name] for name in found}, rel=1e-12)
    assert set(expected) - set(found) <= {"auc_label", "calibration_error"}
    if unknown == "missed":
        said = [line for line in here.stderr.splitlines() if "2 " in line and "count as missed" in line]
        assert said[0] in there.stderr


@pytest.mark.parametrize("more", [[], ["--one-class"]])
def test_weights_of_rows_that_workers_would_read_are_refused(run, tmp_path, more):
    head = "@relation 'r: -C -1'\n@attribute f real\n@attribute y {0,1}\n@data\n"
    (tmp_path / "t.arff").write_text(head + "1,0\n2,1,{3}\n" * 5)
    flags = ["--model", "max-margin", "--dask", "local:2", "-o", "m.lw"]
    done = run("fit", "t.arff", *flags, *more, code=2)
    assert "t.arff has row weights, which workers do not read" in done.stderr


def test_the_one_call_is_that_of_all_rows_in_memory(run):
    whole().to_parquet("all.parquet")
    flags = ["--model", "auto", "--time-budget", 1, "--metric", "macro_f1", *FLAGS]
    done = run("fit", "rows", "--dask", "local:2", *flags, "-o", "cluster.lw")
    assert "out-of-fold loss" in done.stderr
    run("fit", "all.parquet", *flags, "-q", "-o", "memory.lw")
    there, here = (lw.load(path) for path in ("cluster.lw", "memory.lw"))
    assert there.classifier_.label_names_.tolist() == here.classifier_.label_names_.tolist()
    assert np.allclose(there.predict_proba(whole()), here.predict_proba(whole()), rtol=1e-9)
    assert there.classifier_.plan_ == here.classifier_.plan_
    assert there.classifier_.oof_score_ == pytest.approx(here.classifier_.oof_score_)


def test_models_are_compared_on_folds_of_the_rows(run):
    flags = ["--model", "max-margin", "--C", 0.1, *FLAGS, "--dask", "local:2"]
    done = run("fit", "rows", *flags, "--compare", "label-tree", "--compare-folds", 2, "-q", "-o", "m.lw")
    for word in ("max-margin", "label-tree", "micro_f1", "fit_seconds", "mean over 2 folds"):
        assert word in done.stdout
    found = json.loads(run("cross-validate", "rows", *flags, "--folds", 2, "--json", "-q").stdout)
    assert (found["model"], found["rows"], found["folds"]) == ("max-margin", 80, 2)
    whole().to_parquet("all.parquet")
    words = ["all.parquet", *flags[:-2], "--scaling", "none", "--folds", 2, "--json", "-q"]
    here = json.loads(run("cross-validate", *words).stdout)["metrics"]["micro_f1"]
    assert found["metrics"]["micro_f1"]["mean"] == pytest.approx(here["mean"], abs=0.02)


def test_files_of_other_formats(run, tmp_path):
    (tmp_path / "texts").mkdir()
    for number in range(2):
        data = make_text_like(30, 20, 6, words_per_row=5, random_state=number)
        write_xmc(data, tmp_path / "texts" / f"{number}.txt")
    np.save("R.npy", 0.5 + 0.5 * np.eye(6))
    run("fit", "texts", "--dask", "local:2", "--covariance", "R.npy", "-q", "-o", "m.lw")
    assert lw.load("m.lw").coef_.shape == (6, 20)
    assert not lw.load("m.lw").label_covariance_.is_diagonal


def test_features_have_the_names_of_all_files(run, tmp_path):
    (tmp_path / "rows").rename(tmp_path / "other")
    (tmp_path / "rows").mkdir()
    head = "@relation r\n@attribute {} numeric\n@attribute {} numeric\n@attribute y {{0,1}}\n@data\n"
    lines = "".join(f"{k},{k % 3},{k % 2}\n" for k in range(12))
    (tmp_path / "y.xml").write_text('<labels><label name="y"></label></labels>')
    for number in range(2):
        (tmp_path / "rows" / f"{number}.arff").write_text(head.format("a", "b") + lines)
    flags = ["rows", "--dask", "x", "--xml", "y.xml", "-q", "-o", "m.lw"]
    run("fit", *flags)
    assert lw.load("m.lw").feature_names_in_.tolist() == ["a", "b"]
    (tmp_path / "rows" / "1.arff").write_text(head.format("b", "a") + lines)
    for model in ("max-margin", "auto"):
        said = run("fit", *flags, "--model", model, code=2).stderr
        assert "Partition 1: rows/1.arff has other features" in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rows", "--dask", "x", "--enforce", "max", *FLAGS], "the data hold no taxonomy"),
        (["rows", "--dask", "x"], "A table needs --labels COLUMN"),
        (["nothing/*.parquet", "--dask", "x"], "no files"),
        (["rows", "--dask", "x", "--label-column", "size"], "0, 1, -1, true, false"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(run, words, said):
    done = run("fit", *words, "-q", "--out", "m.lw", code=2)
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize("where", ["local:0", "local:x", "nowhere", "tcp://127.0.0.1:9"])
def test_clusters_that_are_none(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelweave.app.cli.cluster._SECONDS", 0.2)
    frame().to_parquet("a.parquet")
    words = ["fit", "a.parquet", "--dask", where, *FLAGS, "-q", "-o", "m.lw"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 2
    assert f"--dask {where}" in " ".join(done.stderr.split())


def test_counts_of_parts_fit_a_vectorizer_as_all_rows_do():
    rows = whole()
    rows.loc[3, "size"] = np.nan
    columns = {"text": "plot", "categorical": "kind", "numeric": "size"}
    vectorizer = TableVectorizer(**columns, min_df=0.1, ngram_range=(1, 2), missing_numeric="mean")
    parts = [TableCounts.of(vectorizer, part) for part in (rows[:10], rows[10:11], rows[11:])]
    found = (parts[0] + (parts[1] + parts[2])).fitted(vectorizer)
    expected = vectorizer.fit(rows)
    assert list(found.get_feature_names_out()) == list(expected.get_feature_names_out())
    assert np.allclose(found.transform(rows).toarray(), expected.transform(rows).toarray(), rtol=1e-12)


def test_row_groups_make_parts(tmp_path):
    frame(100).to_parquet(tmp_path / "a.parquet", row_group_size=30)
    (tmp_path / "_SUCCESS").write_text("")
    assert [part.groups for part in parts_of(files_of([str(tmp_path)]), 2000.0)] == [(0, 1, 2, 3)]
    parts = parts_of([str(tmp_path / "a.parquet")], 1e-6)
    assert [len(part.table()) for part in parts] == [30, 30, 30, 10]
    assert [part.table().first_row for part in parts] == [0, 30, 60, 90]


def test_it_is_said_why_nothing_happens(capsys, monkeypatch):
    monkeypatch.setattr("labelweave.dask.waiting.SILENCE", 60.0)
    client = SimpleNamespace(status="closed", scheduler=SimpleNamespace(address="tcp://10.0.0.1:8786"))
    with _one_line_warnings():
        warn_of_silence(client, stacklevel=1)
    said = capsys.readouterr().err
    assert "warning: No task of the fit has ended for 60 s" in said
    assert "the connection to tcp://10.0.0.1:8786 is closed" in said


@pytest.mark.parametrize("model", ["auto", "kernel-logistic", "label-tree", "max-margin"])
def test_classes_of_rows(run, tmp_path, model):
    (tmp_path / "rows").rename(tmp_path / "other")
    (tmp_path / "rows").mkdir()
    random, names = np.random.default_rng(0), np.array(["oak", "apple", "pear"])
    tables = [pd.DataFrame(random.normal(size=(40, 3)), columns=list("abc")) for _ in range(2)]
    for number, table in enumerate(tables):
        table["kind"] = names[table.to_numpy().argmax(axis=1)]
        table.loc[3, "kind"] = None
        table.to_csv(tmp_path / "rows" / f"{number}.csv", index=False)
    flags = ["--labels", "kind", "--one-class", "--model", model, "--out", "m.lw"]
    flags += ["--kernel-rank", 40, "--hyperparameters", "fixed"] if model == "kernel-logistic" else []
    flags += ["--kernel-rank", 40, "--kernel", "rbf"] if model == "max-margin" else []
    flags += ["--time-budget", 1] if model == "auto" else []
    run("fit", "rows", "--dask", "here", *flags)
    loaded = lw.load("m.lw")
    assert loaded.classifier.classes_.tolist() == sorted(names)
    whole = pd.concat(tables)
    assert np.mean(loaded.predict(whole) == whole["kind"].fillna("oak").to_numpy()) > 0.9
    refused = run("fit", "rows", "--dask", "here", *flags, "--kernel", "nonsense", code=2)
    assert "nonsense" in refused.output
    for number, table in enumerate(tables):
        pd.concat([table[list("abc")], table[list("abc")] > 0], axis=1, keys=["x", "y"]).pipe(
            lambda both: both.set_axis(["_".join(pair) for pair in both.columns], axis=1).astype(float)
        ).to_csv(tmp_path / "rows" / f"{number}.csv", index=False)
    flags[:2] = ["--label-column", "y_*"]
    refused = run("fit", "rows", "--dask", "here", *flags, code=2)
    assert "Partition 0: Row " in refused.output
