"""The labeling page as a separate program: its address, what it refuses, and what SIGKILL leaves."""

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import httpx
import pytest

import labelweave
from labelweave.app.active.answers import read_answers

ROWS = [
    f"row {k} {word},{int(word == 'apple') if k < 8 else ''}" for k in range(60) for word in ("apple", "wave")
]
TABLE = "text,fruit\n" + "\n".join(ROWS) + "\n"
FLAGS = ("t.csv", "--text", "text", "--label-column", "fruit", "--new-label", "sea")


@pytest.fixture
def serve(tmp_path):
    """Start the program in a folder with a table; return the process and a client of its page."""
    (tmp_path / "t.csv").write_text(TABLE)
    started, clients = [], []

    def start(*words):
        program = [sys.executable, "-m", "labelweave", "label", *(words or FLAGS)]
        done = subprocess.Popen(
            program, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(done)
        line = done.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/", line)
        assert address, line + done.stderr.read()
        clients.append(httpx.Client(base_url=address[0], timeout=60))
        return done, clients[-1]

    yield start
    for client in clients:
        client.close()
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


def answer_next(client, said):
    """Answer the first question; return the entry once the server has taken it."""
    row = client.get("state").json()["row"]
    entry = row["id"], row["entries"][0]["label"]
    client.post("answer", json={"row": entry[0], "label": entry[1], "said": said}).raise_for_status()
    return (*entry, said)


@pytest.mark.slow
def test_labels_in_a_process_of_its_own(serve, tmp_path, run):
    process, client = serve()
    given = [answer_next(client, said) for said in ("yes", "no", "unknown", "no")]
    assert (
        client.get(str(client.base_url).replace(client.base_url.path.strip("/"), "other")).status_code == 403
    )
    assert client.get("state", headers={"host": "evil.example"}).status_code == 421
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert "4 answers are in t.answers.csv" in process.stderr.read()
    assert [tuple(one) for one in read_answers(tmp_path / "t.answers.csv")] == given


@pytest.mark.slow
def test_a_killed_server_loses_no_answer(serve, tmp_path):
    """SIGKILL while answers come: all that were acknowledged are in the file, and at most one more."""
    kept, entries, wait = [], set(), 0.2
    while len(kept) <= 3 or wait < 1.0:
        process, client = serve()
        assert client.get("state").json()["answered"] == len(set(kept))
        timer = threading.Timer(wait, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        with suppress(httpx.HTTPError, TypeError):  # the server is gone, or there is no question left
            while True:
                kept.append(answer_next(client, "yes" if len(kept) % 2 else "no"))
        timer.join()
        process.wait()
        found = [tuple(one) for one in read_answers(tmp_path / "t.answers.csv")]
        assert set(kept) <= set(found)
        assert len(found) <= len(kept) + 1
        kept = found
        entries = {one[:2] for one in kept}
        assert len(entries) == len(kept)  # none was asked twice
        wait *= 2


@pytest.mark.slow
def test_terminated_and_then_fitted(serve, tmp_path):
    process, client = serve()
    for said in ("yes", "no", "yes"):
        answer_next(client, said)
    process.terminate()
    process.wait(30)
    words = [sys.executable, "-m", "labelweave", "fit", "t.csv", "--text", "text", "--label-column", "fruit"]
    words += ["--model", "kernel-logistic", "--answers", "t.answers.csv", "--out", "m.lw", "-q"]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert "fruit" in labelweave.load(tmp_path / "m.lw").label_names_.tolist()


def test_says_what_is_not_installed(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = run("label a.csv --new-label a", code=2)
    assert "install labelweave[app]" in done.err


def test_reads_rows_of_numbers_and_of_tables(matrix_files, tmp_path, monkeypatch):
    from labelweave.app.cli.asking import _rows_to_label as _read
    from labelweave.app.cli.flags import DataFlags

    rows, text_of = _read("d.arff", DataFlags(), ["new", "l1"])
    assert rows.Y.names.tolist() == ["l0", "l1", "l2", "l3", "l4", "new"]
    assert rows.Y.observed_counts().tolist() == [60] * 5 + [0]
    assert re.match(r"f\d+ = [\d.]+", text_of(0))
    rows, text_of = _read("a.csv", DataFlags(text=("description",), labels="tags", label_separator=","), [])
    assert text_of(0) == "a game of chess"
    assert rows.Y.observed_counts().tolist() == [5, 5, 5, 5]
    (tmp_path / "b.csv").write_text("text,tags\n" + "a sea,alpha;beta\na sky,beta\na lake,alpha\n" * 2)
    rows, _ = _read("b.csv", DataFlags(text=("text",), labels="tags"), [])  # split as by labelweave fit
    assert rows.Y.names.tolist() == ["alpha", "beta"]
    rows, text_of = _read("a.csv", DataFlags(text=("description",), categorical=("section",)), ["x"])
    assert rows.Y.shape == (6, 1)
    assert text_of(1) == "description: a game of cards\nsection: games"
