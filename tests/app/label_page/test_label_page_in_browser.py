"""The labeling page in a headless Chromium: keys, buttons, hostile texts, narrow and wide, light and dark.

The browser is controlled by the pipe of its debugging protocol, since the page's policy allows no script of a
test.  With LABELWEAVE_SCREENSHOTS=FOLDER screenshots are stored there.
"""

import base64
import io
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from itertools import product
from pathlib import Path

import pytest

from conftest import BROWSERS
from labelweave.app.active.answers import read_answers
from labelweave.app.label_page import label_app

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
STICKS_OUT = """(() => {
  const wide = [...document.querySelectorAll("body *")].filter(
    (part) => !part.closest("svg, .bar, pre, #entries") && part.getBoundingClientRect().right > innerWidth + 1
  );
  const over = document.documentElement.scrollWidth - innerWidth;
  return JSON.stringify([over, wide.map((part) => part.id || part.tagName)]);
})()"""
LONG = "a text of several words that goes on, ünï 中文, " * 60 + "n" * 400

pytestmark = pytest.mark.browser


class Browser:
    """A Chromium controlled by messages, with responses in their order."""

    def __init__(self, program, home):
        to_read, self.into = os.pipe()
        self.out, to_write = os.pipe()

        def place():  # the protocol's pipes are 3 and 4
            ends = os.dup(to_read), os.dup(to_write)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-dev-shm-usage",
        ]
        words = [program, *flags, f"--user-data-dir={home}", "--remote-debugging-pipe", "about:blank"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(words, preexec_fn=place, close_fds=False, **silent)  # noqa: PLW1509
        for end in (to_read, to_write):
            os.close(end)
        self.number, self.rest, self.session = 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method, **given):
        self.number += 1
        message = {"id": self.number, "method": method, "params": given}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.into, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                part = os.read(self.out, 1 << 16)
                assert part, "the browser is gone"
                self.rest += part
            line, _, self.rest = self.rest.partition(b"\0")
            found = json.loads(line)
            if found.get("id") == self.number:
                assert "error" not in found, found
                return found["result"]

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait(self, expression):
        limit = time.monotonic() + 60
        while not self.value(expression):
            assert time.monotonic() < limit, expression
            time.sleep(0.05)

    def press(self, key):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def show(self, address, device, scheme="light"):
        width, height = SIZES[device]
        sizes = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": device == "phone"}
        self.call("Emulation.setDeviceMetricsOverride", **sizes)
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=wanted)
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && typeof state !== 'undefined' && state && state.row")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.into)
        os.close(self.out)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no Chromium here; `make browser` installs one where apt-get can")
    found = Browser(program, tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.fixture
def page(make_session):
    """Serve a session on a port of this machine; return it and the address."""
    import uvicorn

    session = make_session(text_of=lambda row: f"<img src=x onerror=\"document.title='owned'\"> {row} {LONG}")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # the browser may connect before the server has started
        port = listening.getsockname()[1]
        app = label_app(session, "token", port, "Labels of <b>a table</b>")
        config = uvicorn.Config(app, lifespan="off", ws="none", log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield session, f"http://127.0.0.1:{port}/token/"
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize("device", SIZES)
def test_keys_answer_and_undo(browser, page, device, tmp_path):
    _, address = page
    browser.show(address, device)
    entries = []
    for key, said in (("y", "yes"), ("n", "no"), ("d", "unknown")):
        count = len(entries)
        browser.wait(f"!isSending && state.answered === {count}")
        entries.append((browser.value("state.row.id"), browser.value("state.row.entries[0].label"), said))
        browser.press(key)
        browser.wait(f"state.answered === {count + 1}")
        assert [tuple(one) for one in read_answers(tmp_path / "answers.csv")] == entries
    browser.wait("!isSending")
    browser.press("u")
    browser.wait("state.answered === 2 && !isSending")
    assert browser.value("document.getElementById('label').textContent") == entries[-1][1]
    browser.wait("!state.is_fitting")
    assert browser.value("document.querySelectorAll('#curve polyline').length") == 1


def test_buttons_answer(browser, page, tmp_path):
    _, address = page
    browser.show(address, "phone")
    browser.value("document.getElementById('no').click()")
    browser.wait("state.answered === 1")
    assert read_answers(tmp_path / "answers.csv")[0].said == "no"


def test_a_hostile_text_is_a_text(browser, page):
    _, address = page
    browser.show(address, "desktop")
    for _ in range(6):
        browser.wait("!isSending")
        assert "onerror" in browser.value("document.getElementById('text').textContent")
        count = browser.value("state.answered")
        browser.press("y")
        browser.wait(f"state.answered === {count + 1}")
    assert browser.value("document.title") == "Labels of <b>a table</b>"
    assert browser.value("document.querySelectorAll('img, main b, main script').length") == 0
    browser.value("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    time.sleep(0.2)
    assert browser.value("document.title") == "Labels of <b>a table</b>"  # the policy would block it too


def test_a_server_that_is_gone_is_said(browser, page):
    session, address = page
    browser.show(address, "phone")
    session.answer = None  # every answer fails
    browser.press("y")
    browser.wait("!document.getElementById('trouble').hidden")
    assert browser.value("state.answered") == 0


@pytest.mark.parametrize("device", SIZES)
def test_nothing_sticks_out(browser, page, device):
    _, address = page
    browser.show(address, device)
    assert json.loads(browser.value(STICKS_OUT)) == [0, []]


@pytest.mark.parametrize(("device", "scheme"), list(product(SIZES, ["light", "dark"])))
def test_screenshots(browser, page, tmp_path, device, scheme):
    image = pytest.importorskip("matplotlib.image")
    _, address = page
    browser.show(address, device, scheme)
    for count in range(4):
        browser.press("yn"[count % 2])
        browser.wait(f"state.answered === {count + 1} && !isSending")
    browser.wait("!state.is_fitting && state.curve.length > 1")
    data = base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"])
    folder = Path(os.environ.get("LABELWEAVE_SCREENSHOTS", tmp_path)).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"label-{device}-{scheme}.png").write_bytes(data)
    pixels = image.imread(io.BytesIO(data))[..., :3]
    assert pixels.shape[:2] == SIZES[device][::-1]
    ground = pixels[:3].mean()
    assert ground < 0.2 if scheme == "dark" else ground > 0.9
    assert (abs(pixels - pixels[0, 0]).max(axis=2) > 0.3).mean() > 0.01
    buttons = ["yes", "no", "unknown", "undo"]
    places = [
        browser.value(f"document.getElementById('{one}').getBoundingClientRect().bottom") for one in buttons
    ]
    assert max(places) <= SIZES[device][1]  # everything is visible without scrolling
