"""Scores of a server in the shape of the practice API: `POST /v1/reward`, asked in small batches and never for ever.

A reply that does not come, or says that the server is at fault (5xx, 429), is asked for again after a pause that
doubles; whatever else is wrong is said at once.
"""

import http.client
import json
import math
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import torch
from torch import Tensor

from killick.recipes.scores.text_score import Prompt, Unscored, as_text
from killick.types import Refusal

ITEMS, BODY = 100, 1_500_000
"""Answers and bytes in a request: well below what the practice API takes, so that a slow model answers in time."""
REPLY = 64_000_000
"""Bytes of a reply that are read."""
TRIES = 6
ITEM = re.compile(r"body\.items\.(\d+)")


class Away(OSError):
    """No reply, or one that may be another when it is asked for again."""


@dataclass(frozen=True)
class Server:
    """Where to ask.

    Args:
        flag: what the user gave, for what is said: "--gold http://...".
        secure: whether by TLS.
        host: its name.
        port: its port.
        path: before /v1, mostly empty.
        patience: seconds for a request, all of it.
        pause: seconds before the second try; it doubles.
        wait: sleeps.
    """

    flag: str
    secure: bool
    host: str
    port: int
    path: str = ""
    patience: float = 120.0
    pause: float = 0.5
    wait: Callable[[float], None] = time.sleep

    def ask(self, path: str, body: bytes | None = None) -> tuple[int, Any]:
        """Status and JSON of a reply, after as many tries as it takes; a GET without a body, else a POST.

        Raises:
            Refusal: where the last try brought none.
        """
        for tried in range(1, TRIES + 1):
            try:
                status, reply = self.exchange(self.path + path, body)
                if status >= 500 or status == 429:
                    raise Away(f"it answered with status {status}")
                return status, read(reply)
            except (OSError, http.client.HTTPException) as error:
                if tried == TRIES:
                    raise Refusal(f"{self.flag} gives no answer after {TRIES} tries: {why(error)}.") from error
            except ValueError as error:
                raise Refusal(f"{self.flag} answered with no JSON ({error}); is it the practice API?") from error
            self.wait(self.pause * 2 ** (tried - 1))
        raise AssertionError("the last try returns or raises")

    def exchange(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        """One request and its reply; its connection is cut when patience ends, whatever the server still sends."""
        kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
        connection = kind(self.host, self.port, timeout=self.patience)
        connection.connect()
        line, ended = connection.sock, threading.Event()  # the connection forgets it where the reply ends it

        def cut() -> None:
            ended.set()
            with suppress(OSError):  # it is closed already
                line.shutdown(socket.SHUT_RDWR)

        alarm = threading.Timer(self.patience, cut)
        alarm.start()
        try:
            headers = {} if body is None else {"content-type": "application/json"}
            connection.request("GET" if body is None else "POST", path, body, headers)
            response = connection.getresponse()
            reply = response.read(REPLY)
        except (OSError, http.client.HTTPException) as error:
            raise (Away(f"no whole reply within {self.patience:g} seconds") if ended.is_set() else error) from error
        finally:
            alarm.cancel()
            connection.close()
        if ended.is_set():
            raise Away(f"no whole reply within {self.patience:g} seconds")
        return response.status, reply


@dataclass(frozen=True)
class Remote:
    """A `TextScore` by a server.

    Args:
        server: where to ask.
        model: the name of its reward model; None where the server has no names.
    """

    server: Server
    model: str | None

    def __call__(self, prompts: Sequence[Prompt], answers: Sequence[str]) -> Tensor:
        """The server's number for each answer.

        Raises:
            Unscored: at the first answer that the server has no number for.
            Refusal: where it gives no reply, or one of another shape.
        """
        found: list[float] = []
        for batch in batches([as_text(prompt) for prompt in prompts], answers):
            found += self.batch(batch, before=len(found))
        return torch.tensor(found, dtype=torch.float64)

    def batch(self, items: list[dict[str, str]], *, before: int) -> list[float]:
        """Numbers of a request's answers."""
        named = {} if self.model is None else {"model": self.model}
        status, reply = self.server.ask("/v1/reward", json.dumps(named | {"items": items}).encode())
        if status != 200:
            raise self.refusal(status, reply, before=before)
        results = reply.get("results") if isinstance(reply, dict) else None
        if not isinstance(results, list) or len(results) != len(items):
            raise Refusal(
                f"{self.server.flag}/v1/reward gave no results, one for each of {len(items)} answers, but "
                f"{json.dumps(reply)[:80]}."
            )
        return [self.number(one, before + row) for row, one in enumerate(results)]

    def number(self, result: Any, row: int) -> float:
        """The number of a result."""
        value = result.get("reward") if isinstance(result, dict) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        reason = result.get("reason") if isinstance(result, dict) else None
        raise Unscored(
            row, str(reason or f"the server gave {json.dumps(result)[:60]}").rstrip("."), name=self.server.flag
        )

    def refusal(self, status: int, reply: Any, *, before: int) -> Refusal:
        """What the server says is wrong."""
        errors = reply.get("errors") if isinstance(reply, dict) else None
        first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
        field, reason = str(first.get("field", "")), str(first.get("reason", "")).rstrip(".")[:200]
        if place := ITEM.match(field):
            return Unscored(before + int(place[1]), f"the server refuses it: {reason}", name=self.server.flag)
        return Refusal(
            f"{self.server.flag} refuses the request with status {status}: {field or 'no field named'}, "
            f"{reason or 'no reason given'}."
        )


def load_remote(url: str, *, flag: str) -> Remote:
    """The reward model behind a URL: `http://host:port`, and `?model=NAME` where the server has several.

    Raises:
        Refusal: where the URL is none, nobody answers, or the model is not there.
    """
    server, model = parsed(url, flag=flag)
    status, reply = server.ask("/v1/models")
    if status == 404:  # a server that only scores
        return Remote(server, model)
    rows = reply.get("data") if isinstance(reply, dict) else None
    if status != 200 or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Refusal(f"{server.flag} is no practice API: /v1/models answered with status {status} and no list.")
    names = [str(row.get("name")) for row in rows if row.get("kind") == "reward"]
    if model is None and len(names) == 1:
        return Remote(server, names[0])
    if model not in names:
        wrong = "says no ?model=NAME" if model is None else f"has no reward model {model}"
        raise Refusal(f"{server.flag} {wrong}; there are {', '.join(names) or 'none'}.")
    return Remote(server, model)


def parsed(url: str, *, flag: str) -> tuple[Server, str | None]:
    """Where a URL points, and the model it names."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise Refusal(f"{flag} {url} is no URL ({error}).") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise Refusal(f"{flag} {url} is no URL like http://127.0.0.1:8000?model=NAME.")
    asked = parse_qs(parts.query)
    if asked.keys() - {"model"}:
        raise Refusal(f"{flag} {url} asks for {', '.join(asked)}; after the ? it may name only model=NAME.")
    path = parts.path.rstrip("/").removesuffix("/v1/reward").removesuffix("/v1")
    shown = f"{flag} {parts.scheme}://{parts.netloc}{path}"
    return Server(shown, parts.scheme == "https", parts.hostname, port, path), asked.get("model", [None])[0]


def batches(prompts: Sequence[str], answers: Sequence[str]) -> Iterator[list[dict[str, str]]]:
    """Items in order, as many at once as a request takes."""
    batch, size = list[dict[str, str]](), 0
    for prompt, answer in zip(prompts, answers, strict=True):
        item = {"prompt": prompt, "answer": answer}
        length = len(json.dumps(item))
        if batch and (len(batch) == ITEMS or size + length > BODY):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += length
    if batch:
        yield batch


def read(reply: bytes) -> Any:
    """JSON without NaN and infinity.

    Raises:
        ValueError: where it is none.
    """

    def never(name: str) -> None:
        raise ValueError(f"it holds {name}")

    try:
        return json.loads(reply.decode(), parse_constant=never)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def why(error: BaseException) -> str:
    """What kept a reply away, in words."""
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
    if isinstance(error, TimeoutError):
        return "it took too long"
    return " ".join(str(error).split()) or type(error).__name__
