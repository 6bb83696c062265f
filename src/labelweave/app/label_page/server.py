"""The server of the page, which accepts only local requests with a token, own host names and small bodies.

The page's content security policy allows only requests to this server, and its own scripts and styles.  Data
is sent to the page as JSON and inserted as text.
"""

from __future__ import annotations

import json
import secrets
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
_WORDS = {
    403: "The address is not the one printed by labelweave.",
    413: "The request is too long.",
    415: "Only JSON is accepted.",
    421: "This server only answers to 127.0.0.1 and localhost.",
}


def label_app(session: LabelSession, token: str, port: int, title: str) -> Any:
    """Return the application that serves a session under ``/token/`` on a local port.

    Raises ImportError if Starlette is not installed.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    routes = [
        Route(f"/{token}/", partial(_page, title)),
        Route(f"/{token}/state", partial(_state, session)),
        Route(f"/{token}/answer", partial(_answer, session), methods=["POST"]),
        Route(f"/{token}/undo", partial(_undo, session), methods=["POST"]),
        *(Route(f"/{token}/{name}", partial(_file, name)) for name in _FILES),
    ]
    return _Guarded(Starlette(routes=routes), token, {f"127.0.0.1:{port}", f"localhost:{port}"})


class _Guarded:
    """An application that only accepts requests of its own page.

    A page of another site whose name resolves to this machine (DNS rebinding) sends its own host name; a page
    that posts from elsewhere sends its origin.
    """

    def __init__(self, app: Any, token: str, hosts: set[str]) -> None:
        self.app, self.token, self.hosts = app, token, hosts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.responses import PlainTextResponse

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            status = self._refused(scope)
            refusal = status and PlainTextResponse(_WORDS[status], status, {"connection": "close"})
            await (refusal or self.app)(scope, receive, with_headers)

    def _refused(self, scope: Any) -> int | None:
        from starlette.datastructures import Headers

        headers = Headers(scope=scope)
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


def _page(title: str, request: Any) -> Any:
    from starlette.responses import HTMLResponse

    loader = PackageLoader(__package__)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    return HTMLResponse(environment.get_template("label.html").render(title=title))


def _file(name: str, request: Any) -> Any:
    from starlette.responses import Response

    text = (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")
    return Response(text, media_type=_FILES[name])


def _trouble(words: str, status: int) -> Any:
    from starlette.responses import JSONResponse

    return JSONResponse({"trouble": words}, status_code=status)


def _state(session: LabelSession, request: Any) -> Any:
    from starlette.responses import JSONResponse

    return JSONResponse(session.state())


async def _answer(session: LabelSession, request: Any) -> Any:
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException

    body = b""
    async for part in request.stream():  # whose length may be unknown in advance
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(413, _WORDS[413], {"connection": "close"})
    try:
        given = json.loads(body)
        row, label, said = (given[name] for name in ("row", "label", "said"))
        if not all(isinstance(part, str) for part in (row, label, said)):
            raise ValueError("Row, label and answer must be texts.")
        await run_in_threadpool(session.answer, row, label, said)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return _trouble(f"Invalid answer: {error}", 400)
    except OSError as error:
        return _trouble(f"The answer could not be written: {error.strerror}", 507)
    return await run_in_threadpool(_state, session, request)


def _undo(session: LabelSession, request: Any) -> Any:
    try:
        session.undo()
    except OSError as error:
        return _trouble(f"The undone answer could not be written: {error.strerror}", 507)
    return _state(session, request)
