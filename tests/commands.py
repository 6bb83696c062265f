"""Commands run in this process, and the small data files that they read."""

from __future__ import annotations

import json
import shlex
from typing import NamedTuple

import numpy as np
from click.testing import CliRunner

import labelweave
from labelweave.app.cli.program import main
from labelweave.datasets import LabeledData, write_mulan, write_svmlight, write_xmc
from labelweave.labels import LabelMatrix

TABLE = """package,description,section,size,tags
p0,a game of chess,games,3,"game,x11"
p1,a game of cards,games,4,game
p2,a web server,net,10,"net,daemon"
p3,a mail server,net,12,"net,daemon"
p4,chess for the web,games,5,"game,net"
p5,a daemon,net,2,?
"""
TABLE_FLAGS = {
    "--text": "description",
    "--categorical": "section",
    "--labels": "tags",
    "--label-separator": ",",
    "--id": "package",
}


def split(words):
    """Write out words as typed, where the first may be several."""
    first, *others = [str(word) for word in words] or ["  "]
    return [*(shlex.split(first) if " " in first else [first]), *others]


def invoke(words, code=0, **options):
    """Run a command; return what it printed."""
    result = CliRunner().invoke(main, split(words), catch_exceptions=False, **options)
    assert result.exit_code == code, result.output
    return Done(result.stdout, result.stderr)


class Done(NamedTuple):
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def records(self):
        return [json.loads(line) for line in self.out.splitlines()]


def loaded(path="m.lw"):
    """Read a model, or the classifier of a table model."""
    model = labelweave.load(path)
    return getattr(model, "classifier_", model)


def write_matrix_files(rows, folder):
    Y = LabelMatrix(rows.Y.positives, None, [f"l{k}" for k in range(rows.Y.n_labels)])
    named = LabeledData(rows.X, Y, np.array([f"f{j}" for j in range(rows.X.shape[1])]))
    write_mulan(named, folder / "d.arff", folder / "d.xml")
    write_xmc(rows, folder / "d.txt")
    write_svmlight(rows, folder / "d.svm")
    return {"mulan": "d.arff", "xmc": "d.txt", "svmlight": "d.svm"}


THINGS = {
    "fruit/apple": "red sweet tree crunchy",
    "fruit/pear": "green sweet tree soft",
    "animal/dog": "bark fur tail loyal",
    "animal/cat": "purr fur tail sleepy",
    "rock": "hard grey heavy",
}


def things(n_rows, seed=0, *, paths=True, partial=0):
    """Write a table of things with one class per row; the first ``partial`` rows are partially observed."""
    rng, lines = np.random.default_rng(seed), ["id,text,kind"]
    for row in range(n_rows):
        kind = list(THINGS)[row % len(THINGS)]
        words = " ".join(rng.choice(THINGS[kind].split(), 3))
        known = ["", "?", kind.split("/")[0]][row % 3] if row < partial else kind
        lines.append(f"r{row},a {words} thing,{known if paths else known.split('/')[-1]}")
    return "\n".join(lines) + "\n"
