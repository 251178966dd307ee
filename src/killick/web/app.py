"""One small server on this machine: parts put together, bodies bounded, errors told as field and reason."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from killick.web.pages import index, whole
from killick.web.reference import reference
from killick.web.strict import ANYWHERE

STATIC = Path(__file__).parent / "static"
BODY = 2_000_000
"""Bytes; a longer body is refused before it is read."""


def build(
    parts: Sequence[APIRouter], *, body: int = BODY, origins: Sequence[str] = (), hosts: Sequence[str] = ()
) -> FastAPI:
    """An app of these parts, with `/healthz`, `/static`, `/docs`, and an index of their pages at `/`.

    Args:
        parts: routers; each brings its own pages and endpoints.
        body: bytes; a longer body is refused before it is read (413).
        origins: further origins ("http://host:port") whose pages may send; a page of this server always may.
        hosts: names under which this server may be called, without port; any where there are none. A server of the
            loopback names them, or a page elsewhere could point its own name at this machine and read what is here.
    """
    app = FastAPI(
        title="killick",
        summary="RLHF from preferences to policy, with the anchor in view.",
        docs_url=None,
        redoc_url=None,
    )

    @app.get("/healthz", tags=["server"], responses=ANYWHERE)
    async def healthz() -> dict[str, str]:
        """Whether the server answers; it waits for no thread."""
        return {"status": "ok"}

    for part in [index(parts), reference(), *parts]:
        app.include_router(part)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_middleware(Gate, body=body, origins=frozenset(origins), hosts=frozenset(hosts))
    return app


def invalid(_: Request, error: Exception) -> JSONResponse:
    """What pydantic refuses: every field with its reason, and nothing of what was sent (it may hold NaN)."""
    assert isinstance(error, RequestValidationError)
    found = [{"field": plain(".".join(map(str, one["loc"]))), "reason": plain(one["msg"])} for one in error.errors()]
    return JSONResponse({"errors": found[:100]}, 422)


def plain(text: str) -> str:
    """What a sender named, short, and without the halves of characters that no reply can carry."""
    return whole(text[:300])


def refused(_: Request, error: Exception) -> JSONResponse:
    """What a route refuses, or a route that is not there."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"errors": [{"field": "", "reason": error.detail}]}, error.status_code, error.headers)


class Gate:
    """What every request passes first: pages of other origins may not write, and bodies are bounded before reading."""

    def __init__(self, app: ASGIApp, *, body: int, origins: frozenset[str], hosts: frozenset[str]):
        self.app, self.body, self.origins, self.hosts = app, body, origins, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on with a `receive` that stops at the bound."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        origin, length = headers.get(b"origin"), headers.get(b"content-length", "0")
        if self.hosts and named(host := headers.get(b"host", "")) not in self.hosts:
            reason = f"This server is not called {host[:100]}." if host else "The request names no host."
            await say(send, 421, "host", reason)
            return
        if scope["method"] not in ("GET", "HEAD") and origin and not self.own(origin, headers.get(b"host", "")):
            await say(send, 403, "origin", f"Pages of {origin[:100]} may not write here.")
            return
        if not length.isdigit() or int(length) > self.body:
            await say(send, 413, "body", f"A body may have {self.body} bytes at most.")
            return
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.body:
                raise HTTPException(413, f"A body may have {self.body} bytes at most.")
            return message

        await self.app(scope, bounded, send)

    def own(self, origin: str, host: str) -> bool:
        """Whether a page comes from here."""
        return origin in self.origins or origin in (f"http://{host}", f"https://{host}")


def named(host: str) -> str:
    """A Host header without its port; an address of six has its colons in brackets."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


async def say(send: Send, status: int, field: str, reason: str) -> None:
    """Answer with one error, before any route."""
    body = json.dumps({"errors": [{"field": field, "reason": reason}]}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
