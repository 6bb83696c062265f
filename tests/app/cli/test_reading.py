"""Typical input of the command line: guessed columns, missing cells, pipes, odd names, standard input."""

import gc
import gzip
import io
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pytest
from click.testing import CliRunner

import labelweave
from labelweave.app.cli import flags
from labelweave.app.cli.flags import _copied, _suffix, data_path
from labelweave.app.cli.messages import in_flags
from labelweave.app.cli.program import main
from labelweave.app.report.measured import measure
from labelweave.app.report.reported_rows import read_rows
from labelweave.datasets import detect_format, read_any, read_table
from labelweave.decisions.layers import innermost
from labelweave.foundation.arguments import ParameterMessage
from labelweave.metrics import score_table

ARFF = """@relation 'r: -C -2'
@attribute f numeric
@attribute motif {YES,NO}
@attribute y {0,1}
@attribute z {0,1}
@data
1,YES,1,0
?,NO,0,1
3,?,1,1
5,NO,0,0
"""


@pytest.fixture
def table(tmp_path):
    """Write rows with an identifier, a run of labels, another binary column and an empty one."""
    lines = ["id,note,text,price,tag_a,tag_b,tag_c,other"]
    for row in range(24):
        text = f"{'red sea' if row % 2 else 'blue sky'} {row % 3}"
        lines.append(f"{100 + row},{('', 'NA')[row % 2]},{text},{row % 7 + 0.5},{row % 2},1,0,{row % 2}")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_strings_and_dates_of_an_arff_file_read_as_a_table_are_features(run, tmp_path):
    header = "@relation r\n@attribute plot string\n@attribute at date 'yyyy-MM-dd'\n@attribute y {no,yes}\n"
    rows = [
        f"'a {'blue' if k % 2 else 'red, round'} thing {k % 9} of {k % 11}',2024-0{1 + k % 9}-03,"
        for k in range(20)
    ]
    cells = [row + ("no", "yes", "?")[k % 3] for k, row in enumerate(rows)]
    (tmp_path / "t.arff").write_text("\n".join([f"{header}@data", *cells]) + "\n")
    flags = "--label-column y --out m.lw"
    assert detect_format("t.arff", "y") == "table"
    assert (
        read_table(tmp_path / "t.arff", labels=["y"], text="plot").X.shape
        == read_any(tmp_path / "t.arff", labels=["y"], text="plot").X.shape
    )
    told = run(f"fit t.arff --model max-margin {flags}").err
    assert "text          plot" in told
    assert "at (year), at (month)" in told
    assert "ignored" not in told  # the column that the parts of a date are from
    assert "plot:red" in str(labelweave.load("m.lw").feature_names_)
    assert "read as       a table, by its columns (--format mulan otherwise)" in told
    assert "20 rows" in run("evaluate m.lw t.arff").out


def test_weights_of_rows_count_in_the_fit(run, tmp_path):
    text = ARFF.replace("1,YES,1,0", "1,YES,1,0,{4}").replace("5,NO,0,0", "5,NO,0,0,{0.5}")
    (tmp_path / "w.arff").write_text(text.replace("?", "2", 1).replace("3,?", "3,NO"))
    said = run("fit w.arff --model max-margin --scaling none --out m.lw").err
    assert "2 rows have weights" in said
    with pytest.warns(UserWarning, match="2 rows have weights"):
        data = read_any(tmp_path / "w.arff")
    model = labelweave.MaxMarginClassifier().fit(data.X, data.Y, sample_weight=[4, 1, 1, 0.5])
    np.testing.assert_array_equal(labelweave.load("m.lw").coef_, model.coef_)
    assert "weights       of 2 rows" in run("fit w.arff --dry-run").out
    told = run("evaluate m.lw w.arff")
    assert "which 'labelweave fit', 'evaluate' and 'report' use" in told.err
    assert "Rows count by their weights in all metrics" in told.err
    found = json.loads(run("evaluate m.lw w.arff --json").out)
    expected = score_table(
        data.Y, model.decision_function(data.X), model.predict(data.X), sample_weight=[4, 1, 1, 0.5]
    )
    assert expected != score_table(data.Y, model.decision_function(data.X), model.predict(data.X))
    assert {name: found[name] for name in expected} == pytest.approx(expected, nan_ok=True)
    run("report m.lw w.arff --out r.html")
    assert "Rows count by their weights" in Path("r.html").read_text()


@pytest.mark.parametrize("model", [labelweave.KernelLogisticClassifier(), labelweave.MaxMarginClassifier()])
def test_weights_of_rows_count_for_classes_too(model):
    X, weights = np.arange(40.0)[:, None] % 7, 1.0 + np.arange(40) % 4
    y = np.where(np.arange(40) % 3, "aa", "bb")
    rows, right = read_rows(model.fit(X, y), X, None), model.predict(X) == y
    for counts in (weights, None):
        found = measure(replace(rows, weights=counts), y, "missed", lambda words: None)
        assert found.metrics["accuracy"] == pytest.approx(np.average(right, weights=counts))
        assert ("Rows count by their weights" in " ".join(found.notes)) == (counts is not None)


@pytest.mark.parametrize("labels", ["tag_*", "tag_a..tag_c", "tag_[ab]"])
def test_roles_are_told_identifiers_omitted_and_patterns_of_labels_read(run, table, labels):
    told = run("fit", table, "--model", "max-margin", "--label-column", labels, "--out", "m.lw").err
    assert "categorical   text" in told
    assert "numeric       price" in told
    assert "ignored       id (identifier), note (empty)" in told
    assert "the columns 'id' look like identifiers and are ignored; to keep them, name them in --text" in told
    some = "tag_c, other" if labels == "tag_[ab]" else "other"
    assert f"the columns {some} hold only 0 and 1 and are read as features" in told
    names = ["tag_a", "tag_b"] if labels == "tag_[ab]" else ["tag_a", "tag_b", "tag_c"]
    assert list(labelweave.load("m.lw").label_names_) == names
    assert "24 rows" in run("evaluate m.lw", table).out
    assert (
        run(
            "fit", table, "--model", "max-margin", "--label-column", labels, "--out", "m.lw", "--quiet"
        ).err.count("\n")
        == 1
    )


def test_roles_that_are_given_are_told_with_what_is_not_named(fit_table, run, tmp_path):
    told = fit_table().err
    assert "labels        tags\n" in told
    assert "names of rows package" in told
    assert "ignored       size (not named)" in told
    (tmp_path / "b.csv").write_text("f,y\n1,x\n,x\n")
    told = run("fit b.csv --model max-margin --labels y --numeric f --out m.lw").err
    assert "missing       f (imputed with the mean)" in told


def test_gaps_in_features_are_filled_by_the_model(run, tmp_path):
    (tmp_path / "r.arff").write_text(ARFF)
    (tmp_path / "whole.arff").write_text(ARFF.replace("?,NO", "3,NO"))  # the mean
    for words in ([], ["--model", "low-rank"], ["--tune-threshold", "macro_f1,cv=2"]):
        told = run("fit r.arff --model max-margin --out r.lw", *words).err
        assert (
            "2 values of 2 features are missing (?), such as of 'f'; they are imputed with the mean" in told
        )
        np.testing.assert_allclose(innermost(labelweave.load("r.lw")).feature_means_, [3, 1 / 3])
        found = [run("predict r.lw", name, "--top", 2).records for name in ("r.arff", "whole.arff")]
        assert found[0][1] == found[1][1]
    run("evaluate r.lw r.arff")
    run("report r.lw r.arff --out r.html")
    data = read_any(tmp_path / "r.arff")
    with pytest.raises(ValueError, match="Input X contains NaN at row 1"):
        labelweave.MaxMarginClassifier().fit(data.X, data.Y)


def test_a_model_forgets_the_means_when_it_is_fitted_anew(run, tmp_path):
    (tmp_path / "r.arff").write_text(ARFF)
    run("fit r.arff --model max-margin --out r.lw -q")
    model = labelweave.load("r.lw")
    model.fit(np.eye(2), np.eye(2, dtype=int))
    with pytest.raises(ValueError, match="NaN"):
        model.predict([[np.nan, 1.0]])


def test_identifiers_of_arff_files_are_omitted_of_later_files_too(run, tmp_path):
    names = [f"P{row}" for row in range(12)]
    head = ARFF.replace("f numeric", f"id {{{','.join(names)}}}\n@attribute f numeric").partition("@data\n")[
        0
    ]
    rows = [f"{name},{row},YES,{row % 2},1\n" for row, name in enumerate(names)]
    (tmp_path / "r.arff").write_text(head + "@data\n" + "".join(rows))
    (tmp_path / "one.arff").write_text(head + "@data\n" + rows[4])
    told = run("fit r.arff --model max-margin --out r.lw").err
    assert "warning: r.arff: the attribute 'id' has a different value in every row, and is ignored" in told
    assert len(run("predict r.lw one.arff").out.splitlines()) == 1


def test_arff_files_are_read_by_name_and_need_no_labels(run, tmp_path):
    hues = ARFF.replace("{YES,NO}", "{a,b,c}").replace("YES", "a").replace("NO", "b")
    (tmp_path / "r.arff").write_text(hues.replace("?,1,1", "c,1,1"))
    run("fit r.arff --model max-margin --out r.lw -q")
    expected = run("predict r.lw r.arff").out
    others = ["@relation r", "@attribute motif {c,b,a}", "@attribute f numeric", "@data"]
    (tmp_path / "new.arff").write_text("\n".join([*others, "a,1", "b,?", "c,3", "b,5", ""]))
    (tmp_path / "new.xml").write_text('<labels><label name="y"/><label name="z"/></labels>')
    assert run("predict r.lw new.arff").out == expected
    assert len(run("queries r.lw new.arff").out.splitlines()) == 1 + 4 * 2
    assert "the label 'y'; expected the name of an attribute" in run("evaluate r.lw new.arff", code=2).err


def test_a_set_like_genbase_is_learned_as_it_is(run, tmp_path):
    """An identifier and hundreds of YES and NO: with the identifier as features nothing was learned."""
    random, n_motifs, n_labels = np.random.default_rng(0), 300, 12
    motifs = random.random((240, n_motifs)) < 0.02
    motifs[:, :n_labels] |= random.random((240, n_labels)) < 0.1
    names = ",".join(f"PS{row:05d}" for row in range(240))
    head = ["@relation genbase", f"@attribute protein {{{names}}}"]
    head += [f"@attribute motif{number} {{YES,NO}}" for number in range(n_motifs)]
    head += [*(f"@attribute label{number} {{0,1}}" for number in range(n_labels)), "@data"]
    rows = [
        ",".join([f"PS{row:05d}", *np.where(there, "YES", "NO"), *map(str, there[:n_labels].astype(int))])
        for row, there in enumerate(motifs)
    ]
    (tmp_path / "train.arff").write_text("\n".join([*head, *rows[:160], ""]))
    (tmp_path / "test.arff").write_text("\n".join([*head, *rows[160:]]))
    told = run("fit train.arff --model max-margin --n-labels", n_labels, "--out", "m.lw").err
    assert "the attribute 'protein' has a different value in every row, and is ignored" in told
    found = run("evaluate m.lw test.arff --n-labels", n_labels, "--json").json
    assert found["micro_f1"] > 0.95
    assert labelweave.load("m.lw").n_features_in_ == n_motifs


def test_warnings_of_a_fit_name_flags(run, tmp_path):
    rows = [f"{1e6 * (row == 0)},{row % 3},{row % 2},{row % 3 // 2}" for row in range(30)]
    lines = ["@relation 'r: -C -2'", *(f"@attribute {name} numeric" for name in "fg")]
    lines += ["@attribute y {0,1}", "@attribute z {0,1}", "@data", *rows, ""]
    (tmp_path / "r.arff").write_text("\n".join(lines))
    flags = ["--model", "max-margin", "--kernel", "rbf", "--scaling", "none", "--max-iter", 1]
    told = run("fit r.arff", *flags, "--out", "m.lw", "-q").err
    assert "is almost constant" in told
    assert "use --scaling auto if features differ in scale" in told
    told = run("fit r.arff", *flags[:2], *flags[4:], "--tol", 1e-9, "--out", "m.lw", "-q").err
    assert "met the tolerance; raise --max-iter, scale the features, or regularize more." in told
    assert "--memory-budget is 3 MB" in in_flags(
        ValueError(ParameterMessage("`memory_budget` is 3 MB, too small"))
    )


def _piped(words, data):
    return CliRunner().invoke(main, [str(word) for word in words], input=data, catch_exceptions=False)


def test_standard_input_is_a_data_file(run, table_model, tmp_path, monkeypatch):
    content, folder = (tmp_path / "a.csv").read_bytes(), tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    asked = run("predict", table_model, "a.csv").out
    for name in ("-", "/dev/stdin"):
        assert _piped(["predict", table_model, name], content).stdout == asked
    (tmp_path / "r.arff").write_text(ARFF)
    assert _piped(["fit", "-", "--model", "max-margin", "--out", "r.lw", "-q"], ARFF.encode()).exit_code == 0
    wrong = _piped(["predict", table_model, "-"], content.replace(b"p3,", b"p3,,"))
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith("labelweave: standard input:5: found a row of 6 cells")
    assert "Standard input is empty" in _piped(["predict", table_model, "-"], b"").stderr
    assert "bytes that are not text" in _piped(["fit", "-", "--out", "m.lw"], bytes(5000)).stderr
    gc.collect()
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("head", "suffix"),
    [
        (b"% a comment\n\n@relation r\n", ".arff"),
        (b'\xef\xbb\xbf{"a": 1}\n', ".jsonl"),
        (b"10 20 3\n0 1:1\n", ".txt"),
        (b"0,1 1:1 2:0.5\n", ".svm"),
        (b"a\tb\n1,2\t3\n", ".tsv"),
        (b"a,b\n", ".csv"),
        (b"PAR1\x00", ".parquet"),
        (b"\x1f\x8bnonsense", ".csv.gz"),
        (gzip.compress(b"@relation r\n"), ".arff.gz"),
        (gzip.compress(b'{"a": 1}\n'), ".jsonl.gz"),
    ],
)
def test_what_standard_input_looks_like(head, suffix):
    assert _suffix(head) == suffix


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_pipes_with_names_and_devices_are_refused(run, table_model, tmp_path):
    os.mkfifo(tmp_path / "p.csv")
    for name in ("p.csv", "/dev/zero"):
        told = run("fit", name, "--model", "max-margin", "--labels", "y", "--out", "m.lw", code=2).err
        assert "found a pipe, a device or a socket" in told
        assert told.count("\n") == 1


def test_names_make_no_lines_of_their_own(run, tmp_path):
    names = ["a\nlabelweave: forged", "b\tc"]
    rows = [{"text": f"word{k % 2} more", "tags": [names[k % 2]]} for k in range(12)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    words = ("--text", "text", "--labels", "tags", "--many-labels", "--tune-threshold", "macro_f1")
    said = run("fit t.jsonl", *words, "--model", "max-margin", "--out", "m.lw").err
    shown = [said, run("inspect m.lw").out, run("inspect m.lw --thresholds").out]
    run("fit t.jsonl", *words[:-2], "--model", "label-graph", "--graph", "full", "--out", "g.lw")
    shown += [run("inspect g.lw", *more).out for more in ((), ("--graph",), ("--label", names[0]))]
    for text in shown:
        assert "\nlabelweave: forged" not in text
        assert "a\\nlabelweave:" in text
        assert "\t" not in text


def test_escapes_in_names_are_made_visible(run, tmp_path):
    name = "z\x1b[31m\x9b\u202e"
    (tmp_path / "r.arff").write_text(ARFF.replace("attribute z", f"attribute {name}"))
    told = run("fit r.arff --model max-margin --out r.lw")
    outputs = [told.err, told.out]
    outputs.append(run("predict r.lw r.arff --output-format tsv --top 2").out)
    outputs.append(run("inspect r.lw").out)
    outputs.append(run("inspect r.lw --label y").out)
    run("predict r.lw r.arff --output-format tsv --top 2 --out p.tsv")
    outputs.append((tmp_path / "p.tsv").read_text())
    listed = run("predict r.lw r.arff --top 2").out
    for text in [*outputs, listed]:
        assert not set("\x1b\x9b\u202e") & set(text)
    assert "z\\x1b[31m\\x9b\\u202e" in outputs[2]
    assert json.loads(listed.splitlines()[1])["labels"][0]["label"] == name
    wrong = (tmp_path / "bad\x1b[2J.arff").write_text("nonsense\n")
    assert wrong
    assert "\x1b" not in run("fit", "bad\x1b[2J.arff", "--model", "max-margin", "--out", "m.lw", code=2).err


def test_blocks_are_put_together_and_more_than_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(flags, "_BLOCK_BYTES", 7)
    content = b"a,b\n" + b"1,2\n" * 20
    path = _copied(io.BytesIO(content), tmp_path)
    assert path.name == "standard-input.csv"
    assert path.read_bytes() == content
    monkeypatch.setattr(flags, "_MOST_BYTES", 20)
    with pytest.raises(click.UsageError, match="Standard input is longer than"):
        _copied(io.BytesIO(content), tmp_path)
    with pytest.raises(click.UsageError, match="is empty"):
        _copied(io.BytesIO(b""), tmp_path)


def test_the_folder_is_gone_with_the_command(monkeypatch):
    monkeypatch.setattr(flags, "sys", SimpleNamespace(stdin=SimpleNamespace(buffer=io.BytesIO(b"a,b\n"))))
    context = click.Context(click.Command("predict"))
    flag = click.Option(["--data"])
    assert data_path(context, flag, "a.csv") == "a.csv"
    path = data_path(context, flag, "-")
    assert Path(path).read_text() == "a,b\n"
    context.close()
    gc.collect()
    assert not Path(path).exists()
