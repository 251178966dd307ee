"""Bodies read strictly: JSON that says one thing only, and what is wrong with it told as a field and a reason."""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Form(BaseModel):
    """What a body may hold: nothing but these fields, no number that is NaN or infinite, no string for a number."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True, frozen=True)


class Error(BaseModel):
    """One thing that is wrong."""

    field: str
    reason: str


class Errors(BaseModel):
    """All that is wrong with a request."""

    errors: list[Error]


REFUSALS: dict[int | str, dict[str, Any]] = {
    403: {"model": Errors, "description": "A page of another origin sent it."},
    413: {"model": Errors, "description": "The body is too long."},
    415: {"model": Errors, "description": "The body is not application/json."},
    421: {"model": Errors, "description": "It was sent to another host than this server, or names none."},
    422: {"model": Errors, "description": "The request is malformed, or asks for what there is not."},
}
"""What a route that takes a body may refuse, for its page in /docs."""
ANYWHERE: dict[int | str, dict[str, Any]] = {421: REFUSALS[421]}
"""What every route may refuse, whatever it takes."""


class StrictRoute(APIRoute):
    """A route whose body is JSON in UTF-8 without a name twice in one object: APIRouter(route_class=StrictRoute)."""

    def get_route_handler(self) -> Handler:
        """FastAPI's handler over a request that reads strictly."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            request = StrictRequest(request.scope, request.receive)
            if self.body_field is not None:
                check_type(request.headers.get("content-type", ""))
                await request.json()  # before FastAPI, which would call every fault of its own finding a 400
            return await handle(request)

        return strictly


class StrictRequest(Request):
    """A request whose body is read by `read`."""

    async def json(self) -> Any:
        """The body.

        Raises:
            RequestValidationError: where it is no strict JSON.
        """
        if not hasattr(self, "_json"):
            self._json = read(await self.body())
        return self._json


def check_type(given: str) -> None:
    """Refuse a body that does not say it is JSON.

    Raises:
        HTTPException: 415.
    """
    kind = given.partition(";")[0].strip().lower()
    if not (kind.startswith("application/") and kind.removeprefix("application/").split("+")[-1] == "json"):
        raise HTTPException(415, f"A body is application/json, not {kind[:60] or 'of no type'}.")


def read(body: bytes) -> Any:
    """JSON from bytes.

    Raises:
        RequestValidationError: where it is no UTF-8, no JSON, nested too deeply, holds a number of thousands of digits
            or a name twice in one object. NaN and Infinity pass: the field that may not hold them says so.
    """
    try:
        return json.loads(body.decode(), object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise wrong(f"No JSON: {error.msg} at character {error.pos}.") from error
    except UnicodeDecodeError as error:
        raise wrong(f"No UTF-8: byte {error.start} cannot be read.") from error
    except RecursionError as error:
        raise wrong("It is nested too deeply.") from error
    except ValueError as error:
        raise wrong(str(error)) from error


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless it has a name twice: readers would disagree on which value counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"An object has the name {twice[:60]!r} twice.")
    return found


def wrong(reason: str, *field: str | int) -> RequestValidationError:
    """An answer of 422: what is wrong, and where in the body ("items", 3, "product")."""
    return RequestValidationError([{"loc": ("body", *field), "msg": reason, "type": "value_error"}])
