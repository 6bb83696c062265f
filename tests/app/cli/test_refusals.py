"""Invalid calls are refused in one sentence, with exit status 2, and nothing is written.

``refusals.txt`` lists them: after "$" the beginning of commands, then in each line the rest of a command and
its message.  All run in one folder of small files.
"""

import shlex
from pathlib import Path

import numpy as np
import pytest

from commands import TABLE, TABLE_FLAGS, invoke, things, write_matrix_files
from labelweave.datasets import LabeledData, make_text_like, write_mulan
from labelweave.labels import LabelMatrix


def _listed():
    start = ""
    for line in (Path(__file__).parent / "refusals.txt").read_text().splitlines():
        if line.startswith("$"):
            start = line[1:]
        else:
            words, _, said = line.partition("-> ")
            yield pytest.param(shlex.split(f"{start} {words}"), said, id=f"{start} {words}".strip())


FILES = {
    "a.csv": TABLE,
    "b.csv": 'package,tags\nq0,"x11,game"\nq1,"net,daemon"\n',
    "bad.csv": "id,label,answer\n77,a,yes\n",
    "few.csv": "tags\ngame\nnet\n",
    "plain.csv": "x\n1\n",
    "empty.csv": "",
    "t.csv": "id,label,answer\n",
    "m.lw": "a model",
    "key": "0123456789abcdef0123456789abcdef",
    "things.csv": things(60, partial=6),
    "test.csv": things(30, 1),
    "tickets.csv": "text,tags\nchess,games\nread mail,mail\nplay songs,music\n",
    "labels.csv": "name,description\ngames,board games\n",
    "apple.txt": "fruit/apple\n",
    "tree.csv": "parent,child\nx,games\nx,mail\nx,music\n",
    "go.arff": "@relation go\n@attribute a numeric\n@attribute class hierarchical root/m,root/p\n@data\n"
    "1,m\n2,p\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, rows):
    """All files that refused commands name."""
    path = tmp_path_factory.mktemp("refused")
    write_matrix_files(rows, path)
    for name, text in FILES.items():
        (path / name).write_text(text)
    (path / "noise.csv").write_bytes(bytes(range(256)))
    (path / "noise.svm").write_bytes(bytes(range(255, -1, -1)))
    (path / "again.lw").symlink_to("m.lw")
    np.save(path / "rows.npy", np.eye(6, 3))
    np.save(path / "wide.npy", np.eye(6))
    np.save(path / "five.npy", np.eye(5, 3))
    np.savez(path / "ids.npz", ids=["p0", "p1", "p9"], vectors=np.eye(3))
    (path / "bad.npy").write_bytes(b"nonsense")
    data = make_text_like(240, 60, 5, labels_per_row=1.5, words_per_row=8)
    named = LabeledData(data.X, LabelMatrix(data.Y.positives, None, list("abcde")), np.arange(60).astype(str))
    write_mulan(named, path / "train.arff", path / "train.xml")
    words = ["fit", path / "things.csv", "--model", "kernel-logistic", "--text", "text", "--labels", "kind"]
    words += ["--class-paths", "--hyperparameters", "fixed", "-q", "--out", path / "classes.lw"]
    invoke(words)
    of_vectors = [
        "fit",
        path / "a.csv",
        "--vectors",
        path / "rows.npy",
        "--labels",
        "tags",
        "--model",
        "max-margin",
    ]
    invoke([*of_vectors, "-q", "--out", path / "vectors.lw"])
    return path


@pytest.mark.parametrize(("words", "said"), [*_listed()])
def test_what_makes_no_sense_is_refused(folder, monkeypatch, words, said):
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = invoke(words, code=2)
    assert said in done.err
    assert done.err.startswith("labelweave: ")
    assert (done.out, done.err.strip().count("\n")) == ("", 0)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


COVARIANCE, SIGNATURES = ",daemon,game,net,x11\n", "class,daemon,game,net,x11\n"
DAMAGED = [
    ("--taxonomy t.csv", "fun,game\n", "The label 'daemon' is not in the taxonomy (3 of 4"),
    ("--taxonomy t.csv", "fun\n", "t.csv:1: found 1 cells; expected a parent and a child"),
    ("--taxonomy t.csv", "a,b\nb,a\n", "has a cycle"),
    ("--taxonomy t.json", '{"a":', "t.json:1: found no JSON"),
    ("--taxonomy t.json", "5", "found the JSON value '5'; expected nested objects of names"),
    ("--taxonomy t.json", '{"a": {"b": 1}}', "Below 'a > b' is 1"),
    ("--taxonomy t.json", '{"a": ["b"], "a": ["c"]}', "found the name 'a' twice in an object"),
    ("--taxonomy t.json", "[" * 100_000, "t.json"),
    ("--taxonomy t.txt", "a/b\na//c\n", "The path 'a//c' has an empty part"),
    ("--taxonomy t.txt", "a/b\nx,y,z\n", "t.txt:1: found 1 cells; expected a parent and a child, or paths"),
    ("--covariance c.csv", ",game\ngame,1\n", "c.csv:1: found no column for the label 'daemon'"),
    ("--covariance c.csv", f"{COVARIANCE}game,0,x,0,0\n", "c.csv:2: found 'x'"),
    ("--covariance c.csv", f"{COVARIANCE}game,0,1,0,0\n", "c.csv: found no row for the label 'daemon'"),
    ("--covariance c.csv", "\n", "c.csv:1: found no column for the label 'daemon'"),
    ("--covariance c.csv", f"{COVARIANCE}game,0,1,0,0\n{COVARIANCE[1:]}", "c.csv:3: found 4 cells"),
    ("--covariance c.csv", ";daemon;game;net;x11\n" + "game;0;1;0;0\n" * 2, "c.csv:3: found the row 'game'"),
    ("--covariance c.csv", f"{COVARIANCE[:-1]},net\n", "c.csv:1: found more than one column 'net'"),
    ("--covariance c.npy", "nonsense", "c.npy: found no whole array"),
    ("--signatures s.csv", "class,game\nx,1\n", "s.csv:1: found no column for the label 'daemon'"),
    ("--signatures s.csv", f"{SIGNATURES}x,1,1,1\n", "s.csv:2: found 4 cells; expected 5"),
    ("--signatures s.csv", f"{SIGNATURES}x,1,1,1,?\n", "s.csv:2: found '?' for the label 'x11'; expected 0"),
    ("--signatures s.csv", f"{SIGNATURES}x,1,1,1,2\n", "found '2' for the label 'x11'"),
    ("--signatures s.csv", f"{SIGNATURES}x,1,1,1,0\ny,1,1,1,-1\n", "found both 0 and -1"),
    ("--signatures s.csv", SIGNATURES, "found no class"),
    ("--signatures s.csv", f"{SIGNATURES[:-1]},prior\nx,1,1,1,1,-2\n", "s.csv:2: found the prior -2"),
    ("--signatures s.csv", f"{SIGNATURES[:-1]},prior\nx,1,1,1,1,nan\n", "s.csv:2: found 'nan'"),
    ("--signatures s.csv", f"{SIGNATURES[:-1]},prior\nx,1,1,1,1,0\n", "found a prior of 0 for every class"),
    ("--signatures s.csv", f"{SIGNATURES[:-1]},game\nx,1,1,1,1,1\n", "found more than one column 'game'"),
    ("--signatures s.csv", "", "s.csv: found an empty file"),
    ("--graph e.csv", "game,net\ngame,lx\n", "e.csv:2: found the unknown label 'lx'; expected labels"),
    ("--graph e.csv", "game,net\nnet,game\n", "e.csv:2: found the edge of line 1 again"),
    ("--graph e.csv", "game,game\n", "e.csv:1: found a label joined to itself"),
    ("--graph e.csv", "game\n", "e.csv:1: found a single label"),
    ("--graph e.csv", "", "e.csv: found an empty file"),
    ("--graph e.csv", "source,target\n", "e.csv: found no edge"),
    ("--label-descriptions d.csv", "name,description\n", "d.csv: found no label"),
    ("--label-descriptions d.csv", "game,a,b\n", "d.csv:1: found 3 cells"),
    ("--label-descriptions d.csv", "game,a\ngame,b\n", "d.csv:2: found the label 'game' again"),
    ("--label-descriptions d.csv", ",a\n", "d.csv:1: found an empty label name"),
    ("--label-descriptions d.csv", "game;a, b;c\n", "d.csv:1: found 3 cells"),
    ("--label-descriptions d.csv", 'game,a\nnet,"b\nc\n', "d.csv:2: found a broken record"),
    ("--answers q.csv", "id,label,answer\np4,net,maybe\n", "'maybe'"),
    ("--answers q.csv", "id,label,answer\nr9,net,yes\n", "the row 'r9'"),
    ("--answers q.csv", "id,label\np4,net\n", "no column 'answer'"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "text", "said"), DAMAGED)
def test_files_about_labels_that_make_no_sense(run, tmp_path, words, text, said):
    (tmp_path / words.split()[1]).write_text(text)
    flags = [word for pair in TABLE_FLAGS.items() for word in pair]
    model = "label-graph" if "--graph" in words else "max-margin"
    model = "kernel-logistic" if "descriptions" in words else model
    done = run("fit a.csv --model", model, *flags, *words.split(), "-q", "--out", "m.lw", code=2)
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "m.lw").exists()


def test_answers_are_refused_by_queries_too(run, table_model, tmp_path):
    (tmp_path / "x.csv").write_text("id,label,answer\nr9,net,yes\n")
    assert "the row 'r9'" in run("queries", table_model, "a.csv", "--answers", "x.csv", code=2).err
