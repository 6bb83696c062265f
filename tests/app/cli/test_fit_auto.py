"""``labelweave fit`` without ``--model``: an ensemble, unless flags or data need max-margin."""

import numpy as np
import pandas as pd
import pytest

import labelweave
from commands import loaded
from labelweave.app.cli import fit_words as progress
from labelweave.app.cli import fitting
from labelweave.datasets import read_any
from labelweave.decisions.automatic.members import Members
from labelweave.metrics import f1_score

QUICK = "--time-budget 0.001"


@pytest.mark.parametrize("format", ["mulan", "xmc", "svmlight"])
def test_it_is_the_usual_model(run, matrix_files, format):
    told = run(
        "fit", matrix_files[format], *QUICK.split(), "--metric", "hamming_loss", "--seed", 3, "--out", "m.lw"
    )
    model, data = labelweave.load("m.lw"), read_any(matrix_files[format])
    twin = labelweave.AutoLabelClassifier("hamming_loss", time_budget=0.001, random_state=3)
    np.testing.assert_array_equal(model.thresholds_, twin.fit(data.X, data.Y).thresholds_)
    assert "weight  out-of-fold loss  seconds  member" in told.err
    assert "1 of 1 members in" in told.err
    assert "out-of-fold" in told.err
    assert "so the model is" not in told.err


def test_every_command_takes_its_file(run, matrix_files, tmp_path):
    run(f"fit d.arff {QUICK} --members 'rbf, linear' --out m.lw -q")
    assert [member["name"] for member in loaded().members_] == ["rbf", "linear"]
    lines = run("predict m.lw d.arff").records
    assert len(lines) == 60
    data = read_any("d.arff")
    frame = pd.DataFrame(data.X.toarray(), columns=data.feature_names)
    own = f1_score(data.Y, loaded().predict(frame), average="micro")
    assert run("evaluate m.lw d.arff --json").json["micro_f1"] == pytest.approx(own)
    assert len(run("inspect m.lw --json").json["combination"]["members"]) == 2
    table = run("inspect m.lw").out.splitlines()[-3:]
    assert table[0] == "weight  out-of-fold loss  seconds  member"
    assert [line.split()[3] for line in table[1:]] == ["rbf", "linear"]
    assert "probability is above" in run("inspect m.lw --thresholds").out
    assert "combines several models, where features" in run("inspect m.lw --label l0", code=2).err
    assert "an AutoLabelClassifier, which has no graph" in run("inspect m.lw --graph", code=2).err
    run("report m.lw d.arff --out r.html")
    assert "rbf" in (tmp_path / "r.html").read_text()
    run("decide m.lw d.arff --conformal false_negatives,level=0.3 --out c.lw")
    assert run("predict c.lw d.arff").out


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--C", 0.5], "--C is a flag of max-margin"),
        (["--kernel", "rbf"], "--kernel is a flag of max-margin"),
        (["--data-taxonomy"], "--data-taxonomy is a flag of max-margin"),
        (["--calibrate", "sigmoid,cv=2"], "--calibrate fits a model several times"),
    ],
)
def test_flags_of_max_margin_ask_for_it(run, tmp_path, flags, reason):
    (tmp_path / "h.arff").write_text(
        "@relation h\n@attribute x numeric\n@attribute class hierarchical 1,1/1,2\n@data\n"
        + "1,1/1\n2,2\n1.1,1/1\n2.2,2\n0.9,1/1\n2.1,2\n"
    )
    told = run("fit h.arff", *flags, "--out", "m.lw").err
    said = f"labelweave: {reason}, so the model is max-margin; --model max-margin silences this."
    assert told.splitlines()[0] == said
    quiet = run("fit h.arff", *flags, "--out", "m.lw", "--model", "max-margin").err
    assert "so the model is" not in quiet


def test_data_that_it_cannot_take_go_to_max_margin(run, matrix_files, tmp_path, monkeypatch):
    (tmp_path / "one.csv").write_text("t,y\nred rose,flower\n")
    words = ["fit", "one.csv", "--text", "t", "--labels", "y", "--out", "m.lw"]
    assert "one.csv has 1 row(s) with labels but auto needs 2, so the model is max-margin" in run(*words).err
    monkeypatch.setattr(fitting, "LARGEST_TABLE", 100)
    told = run("fit d.arff --out m.lw").err
    assert "60 rows of 5 labels exceed auto's limit, 1e+02 entries, so the model is max-margin" in told
    assert isinstance(loaded(), labelweave.MaxMarginClassifier)


def test_an_interrupt_saves_the_members_there_are(run, matrix_files, monkeypatch):
    make = Members.make

    def make_or_interrupt(self, name):
        if name == "rbf":
            raise KeyboardInterrupt
        return make(self, name)

    monkeypatch.setattr(Members, "make", make_or_interrupt)
    done = run(f"fit d.arff {QUICK} --members linear,rbf --out m.lw", code=130)
    assert "labelweave: The fit was interrupted after 1 of 2 members;" in done.err


def test_progress_names_the_member_and_the_time_left(run, matrix_files, monkeypatch):
    monkeypatch.setattr(progress.GapLines, "_pause", lambda _: 0.0)
    monkeypatch.setattr("labelweave.estimators.progress_lines._QUIET_SECONDS", 0.0)
    told = run(f"fit d.arff {QUICK} --members linear --out m.lw").err
    assert "scaling, step 1 of 8\n" in told
    assert "linear, step 3 of 8, about 0 s left" in told


@pytest.fixture
def sources(run, tmp_path):
    """Texts of 30 sources, whose tags depend on the source; flags that read them."""
    random = np.random.default_rng(0)
    lines = ["source,text,tags"]
    for source in range(30):
        words = [f"w{number}" for number in random.choice(800, 16, replace=False)]
        tags = "|".join(tag for tag in "abc" if random.random() < 0.4)
        lines += [f"s{source},{' '.join(random.permutation(words))},{tags}" for _ in range(4)]
    (tmp_path / "s.csv").write_text("\n".join([*lines, ""]))
    return f"--labels tags --label-separator | --empty-labels none {QUICK}"


@pytest.mark.parametrize("more", ["", "--text text"])
def test_groups_are_a_column_that_is_no_feature(run, sources, monkeypatch, tmp_path, more):
    run(f"fit s.csv {sources} {more} --groups source --members linear --out m.lw -q")
    grouped = loaded()
    told = run(f"fit s.csv {sources} --members linear --text text --out alone.lw").err
    assert "have a near-duplicate with the same labels in another fold" in told
    assert "pass --groups of related rows" in told
    alone = loaded("alone.lw")
    assert grouped.oof_score_ < 0.7 < 0.95 < alone.oof_score_
    assert grouped.oof_standard_error_ > 1.5 * alone.oof_standard_error_
    monkeypatch.setattr(fitting, "_LARGEST_AT_ONCE", 10)
    monkeypatch.setattr(fitting, "_BLOCK_ROWS", 13)
    run(f"fit s.csv {sources} {more} --groups source --members linear --out blocks.lw -q")
    assert loaded("blocks.lw").oof_score_ == grouped.oof_score_
    (tmp_path / "t.csv").write_text("text\nw1 w2 w3\n")
    assert len(run("predict m.lw t.csv").records) == 1


def test_groups_are_shown_counted_and_compared(run, sources):
    shown = run(f"fit s.csv {sources} --groups source --dry-run").out
    assert "groups        source, kept in one fold each" in shown
    assert "source (" not in shown
    values = [
        run(f"cross-validate s.csv {sources} {flag} source --folds 3 --json").json
        for flag in ("--groups", "--drop")
    ]
    assert [one["folds"] for one in values] == [3, 3]
    assert values[0]["metrics"]["micro_f1"]["mean"] < 0.7 < values[1]["metrics"]["micro_f1"]["mean"]


@pytest.mark.parametrize(("n", "code"), [(1, 2), (3, 0)])
def test_few_groups(run, sources, tmp_path, n, code):
    lines = (tmp_path / "s.csv").read_text().splitlines()
    some = [f"g{row % n},{line.split(',', 1)[1]}" for row, line in enumerate(lines[1:])]
    (tmp_path / "s.csv").write_text("\n".join([lines[0], *some, ""]))
    told = run(f"fit s.csv {sources} --groups source --out m.lw", code=code).err
    said = (
        "--groups has 3 groups, so that there are 3 folds, not 5." if n > 1 else "--groups has one group, but"
    )
    assert said in told


def test_a_time_limit_saves_the_members_that_are_done(run, matrix_files):
    told = run(f"fit d.arff {QUICK} --members linear,rbf --time-limit 0.001 --out m.lw").err
    assert (
        "warning: The fit reached --time-limit 0.001, which is not reproducible, after 1 of 2 members" in told
    )
    assert loaded().status_ == "time_limit"
