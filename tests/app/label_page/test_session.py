import os
import time

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import LabelMatrix
from labelweave.app.active.answers import Answer, AnswerFile, last_answers, merged, read_answers, row_places
from labelweave.datasets import DataFileError

EVIL = "<script>document.title='owned'</script>"


def settled(session):
    """Wait until the model is fitted to all answers; return the state."""
    limit = time.monotonic() + 60
    while (state := session.state())["is_fitting"]:
        assert time.monotonic() < limit
        time.sleep(0.01)
    return state


def first(session):
    row = session.state()["row"]
    return row["id"], row["entries"][0]["label"]


def test_asks_and_keeps_answers(make_session, tmp_path):
    session = make_session()
    begin = session.state()
    assert begin["answered"] == 0
    assert (begin["known"], begin["entries"], begin["left"]) == (24, 90, 66)
    for said in ("yes", "no", "unknown"):
        row, label = first(session)
        session.answer(row, label, said)
        assert read_answers(tmp_path / "answers.csv")[-1] == Answer(row, label, said)
    state = settled(session)
    assert (state["answered"], state["known"], state["left"]) == (3, 26, 63)
    assert [count for count, _ in state["curve"]][-1] == 3
    asked = {(one.row, one.label) for one in session.questions}
    assert not asked & {(one.row, one.label) for one in session.history}


def test_goes_on_from_the_file(make_session):
    session = make_session()
    row, label = first(session)
    session.answer(row, label, "yes")
    again = make_session()
    assert again.state()["answered"] == 1
    assert (row, label) not in {(one.row, one.label) for one in again.questions}


def test_undo_asks_again(make_session, tmp_path):
    session = make_session()
    assert not session.undo()
    entries = []
    for said in ("yes", "no"):
        entries.append(first(session))
        session.answer(*entries[-1], said)
    for entry in reversed(entries):
        assert session.undo()
        assert first(session) == entry
    assert not session.undo()
    assert last_answers(read_answers(tmp_path / "answers.csv")) == {}
    session.answer(*first(session), "no")
    assert settled(session)["answered"] == 1


def test_the_curve_has_no_answers_that_were_taken_back(make_session):
    session = make_session()
    for said in ("yes", "no"):
        session.answer(*first(session), said)
        settled(session)
    session.undo()
    counts = [count for count, _ in settled(session)["curve"]]
    assert counts[-1] == 1
    assert counts == sorted(counts)


def test_questions_about_one_row_come_together(make_session):
    session = make_session()
    rows = [one.row for one in session.questions]
    turns = [row for place, row in enumerate(rows) if place == 0 or rows[place - 1] != row]
    assert len(turns) == len(set(turns))


def test_begins_with_nothing_known(make_session):
    nothing = sp.csr_array((30, 2), dtype=np.int8)
    session = make_session(Y=LabelMatrix(nothing, nothing, ["a", "b"]))
    assert session.state()["row"]["entries"][0]["guess"] is None
    for said in ("yes", "no", "yes", "no", "yes"):
        session.answer(*first(session), said)
    settled(session)
    assert session.trouble is None


def test_ends_when_all_is_answered(make_session):
    ones = sp.csr_array(np.ones((30, 2), np.int8))
    session = make_session(Y=LabelMatrix(ones, None, ["a", "b"]))
    state = session.state()
    assert state["is_done"]
    assert state["row"] is None


@pytest.mark.parametrize(
    ("given", "words"),
    [(("99", "fruit", "yes"), "'99'"), (("1", "boat", "yes"), "'boat'"), (("1", "fruit", "so"), "'so'")],
)
def test_refuses_what_is_no_entry(make_session, given, words, tmp_path):
    session = make_session()
    with pytest.raises(ValueError, match=words):
        session.answer(*given)
    assert read_answers(tmp_path / "answers.csv") == []


def test_answers_below_a_long_header_are_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"id,label,answer,{'x' * 1000}\n1,fruit,yes,\n")
    assert read_answers(path) == [Answer("1", "fruit", "yes")]


def test_a_line_without_its_end_is_no_answer(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,label,answer\n1,fruit,yes\n2,fru")
    AnswerFile(path).close()
    assert read_answers(path) == [Answer("1", "fruit", "yes")]
    path.write_bytes(b"id,la")
    AnswerFile(path).close()
    assert path.read_bytes() == b"id,label,answer\n"


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("data.csv", b"text,fruit\na red apple,1\na wave,0"),
        ("notes.csv", b"a precious note"),
        ("answers.parquet", b"PAR1 and more"),
        ("answers.jsonl", b'{"id": "1", "label": "sea", "answer": "yes"}'),
        ("answers.csv", b'id,label,answer\n1,"two\nlines,yes'),
        ("latin.csv", b"id,label,answer\n1,caf\xe9,yes"),
    ],
)
def test_leaves_files_that_are_none_of_answers(tmp_path, name, held):
    path = tmp_path / name
    path.write_bytes(held)
    with pytest.raises(DataFileError):
        AnswerFile(path)
    assert path.read_bytes() == held
    with pytest.raises(DataFileError):
        AnswerFile(tmp_path / "new.tsv")
    assert not (tmp_path / "new.tsv").exists()


def test_writes_answers_in_the_columns_of_the_file(tmp_path):
    path = tmp_path / "ask.CSV"
    path.write_bytes(b'\xef\xbb\xbflabel;id;answer;text\r\nsea;1;yes;"a;\n wave"')
    for answer in (Answer("2", "=sum", "no"), Answer("3", "a;b", "unknown")):
        file = AnswerFile(path)
        file.add(answer)
        file.close()
    assert read_answers(path) == [
        Answer("1", "sea", "yes"),
        Answer("2", "=sum", "no"),
        Answer("3", "a;b", "unknown"),
    ]


def test_a_whole_answer_without_a_line_end_is_kept(make_session, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("answer,id,label\nno,1,sea\nyes,2,fruit")
    session = make_session()
    session.answer("3", "sea", "no")
    assert path.read_text() == "answer,id,label\nno,1,sea\nyes,2,fruit\nno,3,sea\n"
    for begin in ("label,id,answer", "", "\n", "\ufeff"):
        path.write_text(begin, encoding="utf-8")
        AnswerFile(path).close()
        assert path.read_text() == (begin.strip("\ufeff\n") or "id,label,answer") + "\n"
        assert read_answers(path) == []


def test_a_line_that_did_not_fit_is_taken_off(tmp_path, monkeypatch):
    file, write = AnswerFile(tmp_path / "a.csv"), os.write
    monkeypatch.setattr(os, "write", lambda to, line: write(to, line[:4]))
    with pytest.raises(OSError, match="No space left"):
        file.add(Answer("1", "fruit", "yes"))
    monkeypatch.undo()
    file.add(Answer("2", "sea", "no"))
    file.close()
    assert read_answers(tmp_path / "a.csv") == [Answer("2", "sea", "no")]


def test_names_that_are_hard_come_back(tmp_path):
    file = AnswerFile(tmp_path / "a.csv")
    hard = [EVIL, "=cmd()", "a,b", 'a "quoted" one', "ünï 中文"]
    for name in hard:
        file.add(Answer(name, name, "no"))
    file.close()
    assert [one.row for one in read_answers(tmp_path / "a.csv")] == hard
    assert [one.label for one in read_answers(tmp_path / "a.csv")] == hard


def test_answers_change_what_is_known():
    Y = LabelMatrix.from_any(np.array([[1, 0], [np.nan, 1.0]]), ["a", "b"])
    places = row_places(None, 2, "x.csv")
    found = merged(Y, places, {("0", "a"): "no", ("1", "a"): "yes", ("1", "b"): "unknown"}, "x.csv")
    np.testing.assert_array_equal(found.to_dense(), [[0, 0], [1, np.nan]])
    whole = LabelMatrix.from_any(np.array([[1, 0], [0, 1]]), ["a", "b"])
    changed = merged(whole, places, {("0", "b"): "yes"}, "x.csv")
    assert not changed.has_missing
    np.testing.assert_array_equal(changed.to_dense(), [[1, 1], [0, 1]])
    doubted = merged(whole, places, {("0", "b"): "unknown"}, "x.csv")
    np.testing.assert_array_equal(doubted.to_dense(), [[1, np.nan], [0, 1]])
    with pytest.raises(DataFileError, match="named 'p'"):
        row_places(["p", "p"], 2, "x.csv")
