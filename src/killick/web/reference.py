"""The page at /docs: every endpoint with what it takes and gives, an example to send, and the same as a curl line.

It is made from /openapi.json and needs nothing from elsewhere, so it works without a network.
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from killick.web.pages import page

Schema = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """One thing that an endpoint takes.

    Args:
        name: where it stands, as in items[].text.
        kind: its type.
        needed: whether it must be there.
        about: what it means, its default and its limits.
    """

    name: str
    kind: str
    needed: bool
    about: str


@dataclass(frozen=True)
class Endpoint:
    """One address.

    Args:
        method: GET or POST.
        path: of the address.
        summary: its docstring.
        fields: what it takes.
        example: a body to send, None where there is none.
        reply: an example of what it gives, None where the schema has none.
        statuses: what else it may answer, and why.
    """

    method: str
    path: str
    summary: str
    fields: list[Field]
    example: str | None
    reply: str | None
    statuses: list[tuple[str, str]]

    def curl(self, address: str) -> str:
        """The example as a line for a terminal."""
        url = shlex.quote(address + self.path)
        if self.example is None:
            return f"curl {url}"
        body = json.dumps(json.loads(self.example))
        return f"curl {url} -H 'content-type: application/json' -d {shlex.quote(body)}"


def reference() -> APIRouter:
    """The page at /docs."""
    router = APIRouter()

    @router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    def docs(request: Request) -> HTMLResponse:
        """Every address with what it takes and gives."""
        found = list(endpoints(request.app.openapi()))
        return page("reference.html.j2", endpoints=found, address=str(request.base_url).rstrip("/"))

    return router


def endpoints(openapi: Schema) -> Iterator[Endpoint]:
    """Every endpoint of an OpenAPI document, in its order."""
    schemas = openapi.get("components", {}).get("schemas", {})
    for path, methods in openapi["paths"].items():
        for method, told in methods.items():
            body = content(told.get("requestBody", {}), schemas)
            parameters = [
                field(
                    one["name"],
                    one["schema"] | {"description": one.get("description")},
                    needed=one.get("required", False),
                )
                for one in told.get("parameters", [])
            ]
            yield Endpoint(
                method.upper(),
                path,
                told.get("description", told["summary"]),
                [*parameters, *fields(body, schemas)],
                example(body),
                example(content(told["responses"].get("200", {}), schemas)),
                [(status, one["description"]) for status, one in told["responses"].items() if status != "200"],
            )


def content(told: Schema, schemas: Schema) -> Schema:
    """The schema of a JSON body; empty where there is none."""
    return resolved(told.get("content", {}).get("application/json", {}).get("schema", {}), schemas)


def resolved(schema: Schema, schemas: Schema) -> Schema:
    """What a reference stands for."""
    found: Schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return found


def example(schema: Schema) -> str | None:
    """The first example of a schema, to read."""
    return json.dumps(schema["examples"][0], indent=2, ensure_ascii=False) if "examples" in schema else None


def fields(schema: Schema, schemas: Schema, *, before: str = "") -> Iterator[Field]:
    """The fields of an object, and of the objects in its lists."""
    for name, told in schema.get("properties", {}).items():
        yield field(before + name, told, needed=name in schema.get("required", ()))
        if told.get("type") == "array":
            yield from fields(resolved(told["items"], schemas), schemas, before=f"{before}{name}[].")


LIMITS = {
    "default": "{} if not said", "minLength": "at least {} characters", "maxLength": "at most {} characters",
    "maxItems": "at most {}", "minimum": "at least {}", "maximum": "at most {}",
}  # fmt: skip


def field(name: str, told: Schema, *, needed: bool) -> Field:
    """One field, with its limits in words."""
    options = [*told.get("anyOf", ()), told]
    kind = next((one["type"] for one in options if "type" in one), "any")
    limits = [
        words.format(whole(one[key]))
        for key, words in LIMITS.items()
        for one in options
        if one.get(key) not in (None, "")
    ]
    about = [(told.get("description") or "").rstrip("."), *limits]
    return Field(name, kind, needed, "; ".join(filter(None, about)))


def whole(value: Any) -> Any:
    """A limit without the .0 that OpenAPI gives every number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
