"""The page as a whole: complete, escaped, self-contained, readable by screen readers."""

import re
from importlib import resources
from itertools import pairwise

import numpy as np
import pytest

import labelweave as lw
from labelweave.metrics import score_table
from labelweave.report import ReportOptions, write_report

EVIL = "<script>document.title='owned'</script>"


def test_says_what_how_well_and_why(report, model, rows):
    page = report(model, *rows, title="Words", facts={"Model file": "m.lw"})
    for heading in (
        "The model",
        "Metrics",
        "Weak labels",
        "How labels are related",
        "Rows",
        "All labels",
    ):
        assert heading in page.text
    assert "Model file m.lw" in page.text
    assert f"duality gap {model.duality_gap_:.1e}" in page.text
    metrics = score_table(rows[1], model.decision_function(rows[0]))
    assert f"{metrics['micro_f1']:.4f}" in page.text
    assert all(f"tag {k}" in page.text for k in range(7))


def test_all_is_closed_and_named_for_programs_that_read_aloud(report, model, rows):
    page = report(model, *rows)
    assert page.still_open == []
    assert page.named("html")[0]["lang"] == "en"
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all("scope" in heading for heading in page.named("th"))
    assert all(picture["role"] == "img" and picture["aria-labelledby"] for picture in page.named("svg"))
    references = [
        attributes["aria-labelledby"] for _, attributes in page.tags if "aria-labelledby" in attributes
    ]
    assert {name for words in references for name in words.split()} <= set(ids)
    links = [link["href"] for link in page.named("a")]
    assert {link.removeprefix("#") for link in links} <= set(ids)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-4]", tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_nothing_comes_from_elsewhere(report, model, rows):
    page = report(model, *rows)
    assert not page.named("link")
    assert not page.named("img")
    assert not any("src" in attributes for _, attributes in page.tags)
    assert not re.search(r"https?:|@import|url\(", page.html)
    policy = next(tag["content"] for tag in page.named("meta") if "http-equiv" in tag)
    assert "default-src 'none'" in policy
    assert "'unsafe-inline'" not in policy.split("script-src")[1]


def test_names_are_text_and_never_markup(report, rows):
    X, Y = rows
    names = [EVIL, '" onmouseover="x', "a & b <b>", "it's", "{{ 7 * 7 }}", "ünï 中文 🙂", "n" * 300]
    frame = X.rename(columns={X.columns[0]: EVIL + "&"})
    given = lw.LabelMatrix(Y.positives, None, names)
    model = lw.MaxMarginClassifier(label_covariance=lw.LabelCovariance.from_labels(given).shrink(0.2)).fit(
        frame, given
    )
    page = report(model, frame, given, row_names=[EVIL] * len(frame), title=EVIL, facts={EVIL: EVIL})
    assert EVIL not in page.html
    assert len(page.named("script")) == 1
    assert page.named("b") == []
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert all(" ".join(name.split()) in page.text for name in names)
    assert page.still_open == []


def test_missing_labels_are_not_counted(report, model, rows):
    X, Y = rows
    table = Y.to_dense()
    hidden = np.random.default_rng(0).random(table.shape) < 0.3
    missing = lw.LabelMatrix.from_any(np.where(hidden, np.nan, table), [f"tag {k}" for k in range(7)])
    page = report(model, X, missing)
    assert "of the label table are missing and are not counted" in page.text
    metrics = score_table(missing, model.decision_function(X))
    assert f"{metrics['micro_f1']:.4f}" in page.text


def test_the_same_rows_give_the_same_bytes(report, model, rows):
    assert report(model, *rows).html == report(model, *rows).html


def test_a_model_without_errors(report):
    X = np.repeat(np.eye(3), 5, axis=0)
    page = report(lw.MaxMarginClassifier(C=10).fit(X, X), X, X)
    assert "None: all labels of these rows are predicted correctly." in page.text
    assert "feature 0" in page.text


def test_wrappers_that_decide(report, data):
    X, Y = data
    model = lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), "macro_f1").fit(X, Y)
    page = report(model, X, Y)
    assert "TunedThresholdClassifier around MaxMarginClassifier" in page.text
    assert "add up exactly to the distance of a label above its threshold; it is predicted" in page.text


def test_where_whole_rows_decide_lines_add_up_to_the_score(report, data):
    X, Y = data
    page = report(lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), scope="top_k").fit(X, Y), X, Y)
    assert "to its score; the predicted labels depend on all labels of the row." in page.text
    assert "above its threshold" not in page.text


def test_labels_that_are_known_by_probabilities_count_as_such(report):
    X = np.random.default_rng(0).normal(size=(200, 3))
    Q = np.where(X > [0, 0.5, 1], 0.9, 0.3)
    Q[:, 0] = 0
    Q[0, 0] = 0.6
    names = ["rare", "one", "two"]
    model = lw.MaxMarginClassifier().fit(X, lw.LabelMatrix.from_any((X > 1).astype(int), names))
    page = report(model, X, lw.LabelMatrix.from_probabilities(Q, names))
    assert "Only 0.6 rows have it here, so these numbers are imprecise." in page.text
    shares = re.findall(r"([\d,.]+) of ([\d,.]+)", page.text)
    assert shares
    assert all(float(part.rstrip(".")) <= float(whole.rstrip(".")) for part, whole in shares)
    assert f"{Q[:, 1].sum():,.1f}" in page.text


def test_kernels_have_no_contributions(report, data):
    X, Y = data
    page = report(lw.MaxMarginClassifier(kernel="rbf").fit(X, Y), X, Y)
    assert "so single features have no contributions" in page.text
    assert not any(table.get("class") == "parts" for table in page.named("table"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda Y: lw.LabelMatrix(0 * Y.positives, None, Y.names), "None of the 100 rows has a label"),
        (lambda Y: lw.LabelMatrix.from_any(np.full(Y.shape, np.nan)), "no observed entry"),
        (lambda Y: Y[np.arange(5)], "X has 100 rows but y has 5"),
        (
            lambda Y: lw.LabelMatrix(Y.positives, None, [*"abcdef", "tag 6"]),
            "'a' is unknown to the model (6 of 7 are)",
        ),
        (lambda Y: lw.LabelMatrix(Y.positives[:, :0], None, []), "No label of the data is known"),
    ],
)
def test_labels_that_do_not_fit(model, rows, tmp_path, change, message):
    X, Y = rows
    with pytest.raises(ValueError, match=re.escape(message)):
        write_report(model, X, change(Y), tmp_path / "r.html", options=ReportOptions(unknown_labels="raise"))
    assert list(tmp_path.iterdir()) == []


def test_unknown_labels_can_be_ignored(report, model, rows):
    X, Y = rows
    given = lw.LabelMatrix(Y.positives, None, ["new", *Y.names[1:]])
    page = report(model, X, given, unknown_labels="ignore")
    assert "1 of the model's 7 labels are not in the data" in page.text
    assert page.text.count("tag 0") == 1  # among the labels that the model knows


def test_rows_and_models_that_are_none(model, rows, tmp_path):
    X, Y = rows
    with pytest.raises(ValueError, match="3 row names were given for 100 rows"):
        write_report(model, X, Y, tmp_path / "r.html", row_names=["a", "b", "c"])
    with pytest.raises(TypeError, match="A str was given"):
        write_report("model", X, Y, tmp_path / "r.html")
    with pytest.raises(ValueError, match="no rows"):
        write_report(model, X.iloc[:0], Y[np.arange(0)], tmp_path / "r.html")
    with pytest.raises(ValueError, match="weakest is -1"):
        ReportOptions(weakest=-1)
    with pytest.raises(ValueError, match="unknown_labels is 'drop'"):
        ReportOptions(unknown_labels="drop")


def test_progress_is_told(model, rows, tmp_path):
    told = []
    write_report(model, *rows, tmp_path / "r.html", on_progress=told.append)
    looking = ["analyzing weak labels", "looking for label errors"]
    assert told == ["scored 100 of 100 rows", "measuring", *looking, "writing"]


def test_labels_that_may_be_wrong_are_shown(model, rows, report):
    X, Y = rows
    scores = model.decision_function(X)
    given = (scores > 0).astype(float)  # correct everywhere except where the model is most certain
    row = int(np.argmax(scores[:, 2]))
    given[row, 2] = 0
    page = report(
        model, X, lw.LabelMatrix.from_any(given, Y.names), row_names=[f"row {k}" for k in range(100)]
    )
    assert "#suspects" in [link.get("href") for link in page.named("a")]
    assert f"row {row} tag 2 no" in page.text
    few = report(model, X.iloc[:20], Y[np.arange(20)])
    assert "#suspects" not in [link.get("href") for link in few.named("a")]


def _luminance(color):
    parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_stands_out_from_its_ground_in_light_and_dark():
    style = (resources.files("labelweave.app.report") / "templates" / "report.css").read_text()
    palettes = [
        dict(re.findall(r"--([\w-]+): (#\w{6})", part))
        for part in re.findall(r":root \{(.*?)\}", style, re.S)
    ]
    pairs = [(ink, ground) for ink in ("ink", "soft", "link", "good", "bad") for ground in ("paper", "panel")]
    pairs += [("ink", "for-back"), ("ink", "against-back")]
    for palette in palettes[:2]:
        for ink, ground in pairs:
            high, low = sorted((_luminance(palette[ink]), _luminance(palette[ground])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground)  # the contrast that WCAG 2 requires


def test_says_what_an_automatic_model_tried(report, model, rows):
    X, Y = rows
    combined = lw.AutoLabelClassifier(members=["linear", "rbf"], time_budget=1e-3).fit(X, Y)
    page = report(combined, X, Y)
    assert page.still_open == []
    for one in combined.members_:
        assert f"{one['name']} {one['weight']:.2f} {one['oof_loss']:.4f}" in page.text
    assert "combination" in page.text
    assert f"micro f1 {combined.oof_score_:.4f}" in page.text
    assert "Ensemble members" not in report(model, X, Y).text
