"""The page's server, for this machine and who has the address: a token, own host names, small bodies.

The policy of the page forbids every request but those to this server, and every script and style but its
own.  What is shown of the data goes to the page as JSON and into it as text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from labelweave.app.label_page.session import LabelSession

MOST_BYTES = 10_000
_FILES = {"label.js": "text/javascript", "label.css": "text/css"}
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


def label_app(session: LabelSession, token: str, port: int, title: str) -> Any:
    """Make the application that serves a session under ``/token/`` on a port of this machine.

    Raises ImportError if Starlette is not there.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError:
        said = "The page to label on needs Starlette and uvicorn: install labelweave[app]."
        raise ImportError(said) from None
    routes = [
        Route(f"/{token}/", partial(_page, title)),
        Route(f"/{token}/state", partial(_state, session)),
        Route(f"/{token}/answer", partial(_answer, session), methods=["POST"]),
        Route(f"/{token}/undo", partial(_undo, session), methods=["POST"]),
        *(Route(f"/{token}/{name}", partial(_file, name)) for name in _FILES),
    ]
    return _Guarded(Starlette(routes=routes), token, {f"127.0.0.1:{port}", f"localhost:{port}"})


class _Guarded:
    """An application that only hears requests of its own page.

    A page of another site that had its name turned to this machine (DNS rebinding) sends its own host name;
    one that posts from elsewhere sends its origin.
    """

    def __init__(self, app: Any, token: str, hosts: set[str]) -> None:
        self.app, self.token, self.hosts = app, token, hosts

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        status = self._refused(scope)
        if status is None:
            body = await _whole_body(receive)
            if body is None:
                status = 413
            else:
                await self.app(scope, partial(_replayed, [body]), partial(_with_headers, send))
                return
        await _say(status, partial(_with_headers, send))

    def _refused(self, scope: Any) -> int | None:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        if headers.get("host", "") not in self.hosts:
            return 421
        given = scope["path"].removeprefix("/").partition("/")[0]  # "*" has no slash
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return 403
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] not in self.hosts:
            return 403
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403
        is_json = headers.get("content-type", "").partition(";")[0].strip() == "application/json"
        if scope["method"] == "POST" and not is_json:
            return 415
        length = headers.get("content-length", "0")
        return 413 if not length.isdecimal() or int(length[:9]) > MOST_BYTES else None


async def _whole_body(receive: Receive) -> bytes | None:
    """Read a body that is no longer than allowed; None for one that is."""
    found = b""
    while True:
        message = await receive()
        found += bytes(message.get("body", b""))
        if len(found) > MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return found


async def _replayed(bodies: list[bytes]) -> Any:
    """Give the body once; after it the page is gone."""
    if bodies:
        return {"type": "http.request", "body": bodies.pop(), "more_body": False}
    return {"type": "http.disconnect"}


async def _with_headers(send: Send, message: Any) -> None:
    if message["type"] == "http.response.start":
        more = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
        message = {**message, "headers": [*message.get("headers", ()), *more]}
    await send(message)


_WORDS = {
    403: "The address is not the one that labelweave printed.",
    413: "The request is too long.",
    415: "Only JSON is taken.",
    421: "This server answers to 127.0.0.1 and localhost alone.",
}


async def _say(status: int, send: Send) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": _WORDS[status].encode()})


async def _page(title: str, request: Any) -> Any:
    from starlette.responses import HTMLResponse

    loader = PackageLoader("labelweave.app.label_page")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    return HTMLResponse(environment.get_template("label.html").render(title=title))


async def _file(name: str, request: Any) -> Any:
    from starlette.responses import Response

    text = (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")
    return Response(text, media_type=_FILES[name])


async def _state(session: LabelSession, request: Any) -> Any:
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse

    return JSONResponse(await run_in_threadpool(session.state))


async def _answer(session: LabelSession, request: Any) -> Any:
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse

    try:
        given = json.loads(await request.body())
        row, label, said = (given[name] for name in ("row", "label", "said"))
        if not all(isinstance(part, str) for part in (row, label, said)):
            raise ValueError("Row, label and answer are texts.")
        await run_in_threadpool(session.answer, row, label, said)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return JSONResponse({"trouble": f"That is no answer: {error}"}, status_code=400)
    except OSError as error:
        trouble = f"The answer could not be written: {error.strerror}"
        return JSONResponse({"trouble": trouble}, status_code=507)
    return await _state(session, request)


async def _undo(session: LabelSession, request: Any) -> Any:
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse

    try:
        await run_in_threadpool(session.undo)
    except OSError as error:
        trouble = f"What was taken back could not be written: {error.strerror}"
        return JSONResponse({"trouble": trouble}, status_code=507)
    return await _state(session, request)
