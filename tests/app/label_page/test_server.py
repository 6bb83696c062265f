import asyncio
import json

import pytest
from starlette.testclient import TestClient

from labelweave.app.active.answers import read_answers
from labelweave.app.label_page import label_app
from labelweave.app.label_page.server import MOST_BYTES

EVIL = "<script>document.title='owned'</script>"

TOKEN, PORT = "secret", 8123
HOST = f"127.0.0.1:{PORT}"


@pytest.fixture
def session(make_session):
    return make_session()


@pytest.fixture
def client(session):
    app = label_app(session, TOKEN, PORT, f"Labels of {EVIL}")
    return TestClient(app, base_url=f"http://{HOST}")


def test_the_page_with_its_policy(client):
    found = client.get(f"/{TOKEN}/")
    assert found.status_code == 200
    policy = found.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["cache-control"] == "no-store"
    assert EVIL not in found.text
    assert "&lt;script&gt;" in found.text
    for name in ("label.js", "label.css"):
        part = client.get(f"/{TOKEN}/{name}")
        assert part.status_code == 200
        assert "http://" not in part.text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in part.text


def test_answers_and_undo(client, tmp_path):
    row = client.get(f"/{TOKEN}/state").json()["row"]
    given = {"row": row["id"], "label": row["entries"][0]["label"], "said": "yes"}
    found = client.post(f"/{TOKEN}/answer", json=given)
    assert found.status_code == 200
    assert found.json()["answered"] == 1
    assert read_answers(tmp_path / "answers.csv")[0].said == "yes"
    undone = client.post(f"/{TOKEN}/undo", json={})
    assert undone.json()["answered"] == 0
    assert undone.json()["row"]["entries"][0]["label"] == given["label"]


@pytest.mark.parametrize(
    "path", ["/", "/state", "/wrong/", "/wrong/state", "//state", "/secret2/state", "/sécret/"]
)
def test_nothing_without_the_token(client, path):
    found = client.get(path)
    assert found.status_code == 403
    assert found.headers["content-security-policy"]


def test_nothing_about_the_server_as_a_whole(client):
    """``OPTIONS * HTTP/1.1``, whose path has no slash."""
    status, app = [], client.app

    async def send(message):
        status.append(message.get("status"))

    headers = [(b"host", HOST.encode())]
    asyncio.run(app({"type": "http", "method": "OPTIONS", "path": "*", "headers": headers}, None, send))
    assert status[0] == 403


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", ""])
def test_nothing_for_another_host_name(client, host):
    assert client.get(f"/{TOKEN}/state", headers={"host": host}).status_code == 421


def test_localhost_is_this_machine(client):
    assert client.get(f"/{TOKEN}/state", headers={"host": f"localhost:{PORT}"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}, 200),
    ],
)
def test_pages_of_others_cannot_answer(client, session, headers, status):
    given = json.dumps({"row": "20", "label": "sea", "said": "yes"})
    words = {"content-type": "application/json"} | headers
    assert client.post(f"/{TOKEN}/answer", content=given, headers=words).status_code == status
    assert len(session.history) == (status == 200)


def test_long_bodies_are_refused(client, session):
    words = {"content-type": "application/json"}
    found = client.post(f"/{TOKEN}/answer", content=b" " * (MOST_BYTES + 1), headers=words)
    assert found.status_code == 413

    def parts():
        for _ in range(20):
            yield b" " * 1000

    assert client.post(f"/{TOKEN}/answer", content=parts(), headers=words).status_code == 413
    assert session.history == []


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b"7", b"{\"row\": 1, \"label\": 2, \"said\": 3}", b"[" * 9000, b"\xff", b"null",
     b'{"row": "1", "label": "sea", "said": "perhaps"}', b'{"row": "1", "label": "no such", "said": "yes"}'],
)  # fmt: skip
def test_what_is_no_answer_is_refused(client, session, body):
    found = client.post(f"/{TOKEN}/answer", content=body, headers={"content-type": "application/json"})
    assert found.status_code == 400
    assert session.history == []


def test_a_full_disk_is_said(client, session, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session.file, "add", full)
    found = client.post(f"/{TOKEN}/answer", json={"row": "20", "label": "sea", "said": "yes"})
    assert found.status_code == 507
    assert "No space left" in found.json()["trouble"]
    assert session.history == []


def test_other_methods_and_places(client):
    assert client.post(f"/{TOKEN}/state", json={}).status_code == 405
    assert client.get(f"/{TOKEN}/answer").status_code == 405
    assert client.get(f"/{TOKEN}/../etc/passwd").status_code in (403, 404)
    assert client.get(f"/{TOKEN}/nothing").status_code == 404
