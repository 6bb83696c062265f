"""Invalid calls are refused in one sentence, with exit status 2, and nothing is written.

``refusals.txt`` lists them: after "$" the beginning of commands, then in each line the rest of a command and
its message; between "<-" and "->" a file of its own, with escapes.  All run in one folder.
"""

import shlex
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

from commands import TABLE, invoke, things, write_matrix_files
from labelweave import Taxonomy
from labelweave.datasets import LabeledData, make_text_like, write_mulan
from labelweave.labels import LabelMatrix
from labelweave.model_files import save_object


def _listed():
    start = ""
    for line in (Path(__file__).parent / "refusals.txt").read_text().splitlines():
        if line.startswith("$"):
            start = line[1:]
        else:
            call, _, said = line.partition("-> ")
            words, _, file = call.partition("<- ")
            yield pytest.param(shlex.split(f"{start} {words}"), file[:-1], said, id=f"{start} {call}".strip())


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
    "y.csv": "x,y\n" + "".join(f"{k},{'ab'[k % 2]}\n" for k in range(12)),
    "roots.csv": "root,a\nroot,b\n",
    "colors.csv": "x,color,size\n" + "".join(f"{k},{'rgb'[k % 3]},{k % 3}\n" for k in range(12)),
    "deep.json": "[" * 100_000,
    "large.key": "k" * 5000,
}
ARRAYS = {
    "rows.npy": np.eye(6, 3), "wide.npy": np.eye(6), "five.npy": np.eye(5, 3), "three.npy": np.eye(3),
    "words.npy": np.array([["a", "b"], ["c", "d"]]),
}  # fmt: skip


MODELS = {
    "classes.lw": "things.csv --model kernel-logistic --hyperparameters fixed --text text --labels kind "
    "--class-paths",
    "logistic.lw": "d.txt --model kernel-logistic --hyperparameters fixed",
    "vectors.lw": "a.csv --vectors rows.npy --labels tags --model max-margin",
    "table.lw": "a.csv --text description --categorical section --labels tags --label-separator , --C 1",
    "d.lw": "d.arff --model max-margin",
    "svm.lw": "d.svm --model max-margin",
    "graph.lw": "d.arff --model label-graph --graph chow-liu --tol 0.5",
    "tied.lw": "things.csv --model label-graph --graph none --tol 0.5 --text text --labels kind --one-class",
    "obeying.lw": "go.arff --model kernel-logistic --hyperparameters fixed --enforce max --many-labels",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("refused")
    write_matrix_files(rows, path)
    for name, text in FILES.items():
        (path / name).write_text(text)
    (path / "noise.csv").write_bytes(bytes(range(256)))
    (path / "noise.svm").write_bytes(bytes(range(255, -1, -1)))
    (path / "again.lw").symlink_to("m.lw")
    (path / "again.xml").symlink_to("train.xml")
    for name, table in ARRAYS.items():
        np.save(path / name, table)
    np.savez(path / "ids.npz", ids=["p0", "p1", "p9"], vectors=np.eye(3))
    (path / "bad.npy").write_bytes(b"nonsense")
    data = make_text_like(240, 60, 5, labels_per_row=1.5, words_per_row=8)
    named = LabeledData(data.X, LabelMatrix(data.Y.positives, None, list("abcde")), np.arange(60).astype(str))
    write_mulan(named, path / "train.arff", path / "train.xml")
    save_object(path / "tree.lw", Taxonomy([("a", "b")]))
    with chdir(path):
        for name, words in MODELS.items():
            invoke([f"fit {words} -q --out {name}"])
    return path


@pytest.mark.parametrize(("words", "file", "said"), [*_listed()])
def test_what_makes_no_sense_is_refused(folder, monkeypatch, words, file, said):
    monkeypatch.chdir(folder)
    name, _, text = file.partition(": ")
    own = folder / (name or "no file")
    own.write_bytes(text.encode().decode("unicode_escape").encode())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = invoke(words, code=2)
    assert said in done.err
    assert done.err.startswith("labelweave: ")
    assert (done.out, done.err.strip().count("\n")) == ("", 0)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    own.unlink()
