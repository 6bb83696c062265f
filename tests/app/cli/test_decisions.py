"""``fit`` with tuned thresholds, calibration and guarantees, ``decide``, and such files in other commands."""

import json
import signal

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import labelweave
from labelweave import CalibratedLabelClassifier, MaxMarginClassifier, TunedThresholdClassifier
from labelweave.app.cli import fit_words as progress
from labelweave.datasets import LabeledData, make_text_like, read_any, write_mulan
from labelweave.decisions.base import layers
from labelweave.decisions.layers import innermost
from labelweave.labels import LabelMatrix
from labelweave.metrics import f1_score, log_loss
from labelweave.solvers import DualCoordinateAscent

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")

SETS = ["--conformal", "false_negatives,level=0.3"]


@pytest.fixture
def files(run, tmp_path):
    data = make_text_like(400, 60, 5, labels_per_row=1.5, words_per_row=8)
    Y = LabelMatrix(data.Y.positives, None, [f"l{k}" for k in range(5)])
    named = LabeledData(data.X, Y, np.array([f"f{j}" for j in range(60)]))
    for name, rows in {"train": slice(0, 240), "other": slice(240, 400)}.items():
        part = LabeledData(named.X[rows], Y[rows], named.feature_names)
        write_mulan(part, tmp_path / f"{name}.arff", tmp_path / f"{name}.xml")


def _fit(run, *words, code=0):
    return run("fit train.arff --model max-margin --out m.lw", *words, code=code)


def _metrics(run, model="m.lw", data="other.arff"):
    return run("evaluate", model, data, "--json").json


def test_tuned_thresholds_decide(run, files):
    done = _fit(run, "--tune-threshold", "macro_f1,scope=global,cv=3", "--seed", 4)
    assert "decides   TunedThresholdClassifier: the threshold" in done.err
    assert "best for macro_f1" in done.err
    model, rows = labelweave.load("m.lw"), read_any("other.arff")
    assert (model.objective, model.scope, model.cv, model.random_state) == ("macro_f1", "global", 3, 4)
    assert innermost(model).label_names_.tolist() == [f"l{k}" for k in range(5)]
    predicted = model.predict(rows.X)
    assert _metrics(run)["micro_f1"] == pytest.approx(f1_score(rows.Y, predicted))
    found = run("predict m.lw other.arff").records
    sets = [{entry["label"] for entry in row["labels"]} for row in found]
    assert [len(labels) for labels in sets] == predicted.sum(axis=1).tolist()


@pytest.mark.parametrize("outside", [["--tune-threshold", "micro_f1"], SETS])
def test_probabilities_are_those_of_the_calibrated_one_inside(run, files, outside):
    done = _fit(run, "--calibrate", "sigmoid", *outside)
    assert "around    CalibratedLabelClassifier: probabilities by sigmoid maps" in done.err
    model, rows = labelweave.load("m.lw"), read_any("other.arff")
    inside = next(layer for layer in layers(model) if isinstance(layer, CalibratedLabelClassifier))
    expected = inside.predict_proba(rows.X)
    assert _metrics(run)["log_loss"] == pytest.approx(log_loss(rows.Y, expected))
    line = run("predict m.lw other.arff --probabilities").out.splitlines()[0]
    assert list(json.loads(line)["probabilities"].values()) == pytest.approx(expected[0], rel=1e-5)


def test_the_guarantee_is_stated(run, files):
    promise = "the expected share of a row's true labels that are not predicted is at most 0.3"
    done = _fit(run, *SETS)
    assert "guarantee for rows like the 60 calibration rows" in done.err
    assert promise in run("predict m.lw other.arff").err
    assert promise not in run("predict m.lw other.arff --top 2").err
    assert "Guaranteed: for rows like the 60 calibration rows" in run("evaluate m.lw other.arff").out
    assert promise in run("inspect m.lw --json").json["guarantee"]
    rows = read_any("other.arff")
    truth, predicted = rows.Y.to_dense(), labelweave.load("m.lw").predict(rows.X).toarray()
    missed = (truth * (1 - predicted)).sum(axis=1) / np.maximum(1, truth.sum(axis=1))
    assert _metrics(run)["false_negatives"] == pytest.approx(missed.mean())
    assert missed.mean() < 0.3


def test_false_discoveries_are_measured(run, files):
    _fit(run, "--conformal", "false_discoveries,level=0.6", "-q")
    rows = read_any("other.arff")
    truth, predicted = rows.Y.to_dense(), labelweave.load("m.lw").predict(rows.X).toarray()
    wrong = ((1 - truth) * predicted).sum(axis=1) / np.maximum(1, predicted.sum(axis=1))
    assert _metrics(run)["false_discoveries"] == pytest.approx(wrong.mean())


def test_inspect_and_report_name_all_layers(run, files, tmp_path):
    _fit(run, "--calibrate", "isotonic,min_positives=9", *SETS, "-q")
    told = " ".join(run("inspect m.lw").out.split())
    names = "ConformalLabelClassifier around CalibratedLabelClassifier around MaxMarginClassifier"
    assert f"kind {names}" in told
    for words in ("level=0.3", "min_positives=9", "guarantee for rows like", "model MaxMarginClassifier"):
        assert words in told
    facts = run("inspect m.lw --json").json
    assert [layer["classifier"] for layer in facts["decisions"]] == names.split(" around ")[:2]
    assert facts["classifier"] == "MaxMarginClassifier"
    assert "for:" in run("inspect m.lw --label l2").out
    run("report m.lw other.arff --out r.html -q")
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    for words in (names, "level=0.3", "min_positives=9", "for rows like the 60", "False negatives"):
        assert words in html


def test_tables_with_missing_labels(run, fit_table):
    fit_table("--tune-threshold micro_f1,validation_fraction=0.4 -q")
    assert run("evaluate m.lw a.csv --json").json["labels"] == 4
    assert "TableModel with TunedThresholdClassifier around" in " ".join(run("inspect m.lw").out.split())
    run("report m.lw a.csv --out r.html -q")


@pytest.mark.parametrize("around", ["fit", "decide"])
def test_classes_have_sets_with_a_guarantee(run, fit_things, around):
    sets = ["--conformal", "false_negatives,level=0.4,guarantee=expectation"]
    fit_things("--one-class -q", *(sets if around == "fit" else []))
    if around == "decide":
        run("decide m.lw test.csv", *sets, "--out", "m.lw", "-q")
    found = run("predict m.lw test.csv").records
    assert all(row["labels"] for row in found)
    shown = run("evaluate m.lw test.csv --ignore-unknown-labels")
    assert "Guaranteed:" in shown.out
    assert _metrics(run, data="things.csv")["false_negatives"] <= 0.5


def test_classes_have_calibrated_probabilities(run, fit_things):
    fit_things("--one-class -q --calibrate auto,cv=3")
    done = run("decide m.lw things.csv --calibrate sigmoid --out c.lw")
    assert "softmax maps" in done.err
    found = run("predict c.lw test.csv --probabilities").records
    assert all(sum(row["probabilities"].values()) == pytest.approx(1, abs=1e-3) for row in found)
    assert _metrics(run, "c.lw", "things.csv")["accuracy"] > 0.5


def test_a_fitted_model_is_put_inside(run, files):
    _fit(run, "-q")
    done = run("decide m.lw other.arff --calibrate sigmoid --out c.lw")
    assert "decides   CalibratedLabelClassifier" in done.err
    run("decide c.lw other.arff --tune-threshold macro_f1 --out t.lw -q")
    tuned, plain, rows = labelweave.load("t.lw"), labelweave.load("m.lw"), read_any("other.arff")
    by_hand = CalibratedLabelClassifier(plain, cv="prefit").fit(rows.X, rows.Y)
    by_hand = TunedThresholdClassifier(by_hand, "macro_f1", cv="prefit").fit(rows.X, rows.Y)
    np.testing.assert_array_equal(tuned.predict(rows.X).toarray(), by_hand.predict(rows.X).toarray())
    assert tuned.feature_names_in_[0] == "f0"


def test_a_table_model_stays_one(run, table_model):
    run("decide", table_model, "a.csv", "--tune-threshold", "micro_f1,scope=top_k", "--out", "t.lw", "-q")
    found = run("predict t.lw a.csv").records
    k = labelweave.load("t.lw").classifier_.k_
    assert [len(row["labels"]) for row in found] == [k] * 6


def test_labels_of_the_data_come_in_the_order_of_the_model(run, files, tmp_path):
    _fit(run, "-q")
    rows = read_any("other.arff")
    turned = LabeledData(rows.X, rows.Y.select_labels([4, 3, 2, 1, 0]), rows.feature_names)
    write_mulan(turned, tmp_path / "turned.arff", tmp_path / "turned.xml")
    for data in ("other", "turned"):
        run("decide m.lw", f"{data}.arff", "--tune-threshold", "macro_f1", "--out", f"{data}.lw", "-q")
    found = [labelweave.load(f"{data}.lw").thresholds_ for data in ("other", "turned")]
    np.testing.assert_array_equal(*found)


def test_decide_refuses_what_it_cannot_do_justice(run, files, rows, tmp_path):
    _fit(run, "-q")
    data = read_any("other.arff")
    few = LabeledData(data.X, data.Y.select_labels([0, 2]), data.feature_names)
    write_mulan(few, tmp_path / "few.arff", tmp_path / "few.xml")
    done = run("decide m.lw few.arff --calibrate sigmoid --out c.lw", code=2)
    assert "3 of the model's 5 labels are not in the data, such as 'l1'" in done.err
    MaxMarginClassifier().fit(rows.X, np.arange(len(rows)) % 3).save(tmp_path / "three.lw")
    done = run("decide three.lw other.arff --tune-threshold micro_f1 --out c.lw", code=2)
    assert "has one class per row" in done.err
    _fit(run, *SETS, "-q")
    done = run("decide m.lw other.arff --calibrate sigmoid --out c.lw", code=2)
    assert "m.lw holds label sets with a guarantee, which another decision would break" in done.err


def test_two_classes_with_a_threshold_are_predicted_by_it(run, rows, tmp_path):
    y = rows.Y.to_dense()[:, 0].astype(int)
    tuned = TunedThresholdClassifier(
        CalibratedLabelClassifier(MaxMarginClassifier(), cv=3), "recall", target=1.0, cv=3
    ).fit(rows.X, y)
    tuned.save(tmp_path / "two.lw")
    dump_svmlight_file(rows.X, y, str(tmp_path / "c.svm"))
    found = run("predict two.lw c.svm --zero-based").records
    assert [int(row["class"]) for row in found] == tuned.predict(rows.X).tolist()
    metrics = run("evaluate two.lw c.svm --zero-based --json").json
    assert metrics["accuracy"] == pytest.approx((tuned.predict(rows.X) == y).mean())


def test_a_comparison_names_what_decides(run, files):
    words = ["--tune-threshold", "micro_f1", "--compare", "binary-relevance", "--compare-folds", 2, "-q"]
    assert "max-margin, tuned" in _fit(run, *words).out


@pytest.mark.parametrize(
    ("words", "fits"),
    [
        ([], 1),
        (["--tune-threshold", "micro_f1"], 6),
        (["--tune-threshold", "micro_f1,validation_fraction=0.1"], 2),
        (["--calibrate", "sigmoid,cv=3"], 4),
        (["--calibrate", "sigmoid,cv=3", "--tune-threshold", "micro_f1,validation_fraction=0.2"], 8),
        (["--calibrate", "sigmoid", *SETS], 6),
    ],
)
def test_fits_are_counted(run, files, monkeypatch, words, fits):
    seen = []
    monkeypatch.setattr(progress.GapLines, "show", lambda lines: seen.append(lines.heading))
    _fit(run, *words)
    expected = ["fitting"] if fits == 1 else [f"fitting {k} of {fits}" for k in range(1, fits + 1)]
    assert list(dict.fromkeys(seen)) == expected


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_an_interrupt_of_any_fit_leaves_no_file(run, files, tmp_path, monkeypatch, quiet):
    def one_round(self, problem, state):
        calls.append(1)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return true(self, problem, state)

    calls, true = [], DualCoordinateAscent.round
    monkeypatch.setattr(DualCoordinateAscent, "round", one_round)
    done = _fit(run, "--calibrate", "sigmoid", "--tune-threshold", "micro_f1", *quiet, code=130)
    assert done.err.splitlines()[-1] == "labelweave: interrupted; nothing was written."
    assert not (tmp_path / "m.lw").exists()
    assert len(calls) == 2  # later fits are not started
