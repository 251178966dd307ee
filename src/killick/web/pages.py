"""Pages: templates that escape every value, headers that let nothing foreign in, and the index at `/`."""

import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
"""No script, style or picture but the server's own files: even text that became markup by a mistake could do nothing.
So a page has no inline script and no style attribute."""

TEMPLATES = Environment(
    loader=PackageLoader("killick.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip


class PageRoute(APIRoute):
    """A route whose form fields may be as long as the whole body, so that the server's one bound is the only one."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler over a request without a bound of its own."""
        handle = super().get_route_handler()

        async def unbounded(request: Request) -> Response:
            return await handle(Unbounded(request.scope, request.receive))

        return unbounded


class Unbounded(Request):
    """A request whose form may have parts of any length; without it a text part ends at a mebibyte."""

    def form(self, **limits: Any) -> Any:
        """The form."""
        return super().form(**{"max_part_size": sys.maxsize} | limits)


def whole(text: str) -> str:
    """Text without the halves of characters that no reply can carry."""
    return text.encode(errors="replace").decode()


def page(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A template of `templates/`, filled: every value is text, never markup."""
    return HTMLResponse(TEMPLATES.get_template(template).render(values), status, HEADERS)


def index(parts: Sequence[APIRouter]) -> APIRouter:
    """The page at `/`: every page of these parts by its route's `summary`, with the first line of its docstring.

    A page is a GET route whose `response_class` is HTMLResponse and whose path has no parameter.
    """
    pages = [
        {"path": route.path, "title": route.summary or route.name, "line": route.description.partition("\n")[0]}
        for part in parts
        for route in part.routes
        if isinstance(route, APIRoute)
        and "GET" in (route.methods or ())
        and route.response_class is HTMLResponse
        and not route.param_convertors
    ]
    router = APIRouter()

    @router.get("/", response_class=HTMLResponse, include_in_schema=False)
    def start() -> HTMLResponse:
        """What this server has."""
        return page("index.html.j2", pages=pages)

    return router
