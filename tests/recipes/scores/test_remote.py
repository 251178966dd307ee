"""A server that scores: asked in batches, again where it is away, and never for ever."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import torch

from killick.recipes.scores import remote as scores_remote
from killick.recipes.scores.remote import BODY, ITEMS, TRIES, Remote, Server, batches, load_remote, parsed
from killick.recipes.scores.text_score import Unscored
from killick.types import Refusal
from killick.web import app, practice_forms

Reply = tuple[int, bytes]


def lengths(body: Any) -> Reply:
    """The shape of the practice API: the reward is the answer's length."""
    rewards = [{"reward": float(len(item["answer"])), "reason": None} for item in body["items"]]
    return 200, json.dumps({"results": rewards}).encode()


def names(*kinds: str) -> bytes:
    return json.dumps({"data": [{"name": f"m{place}", "kind": kind} for place, kind in enumerate(kinds)]}).encode()


@contextmanager
def serving(answer: Callable[[Any], Reply], models: Reply = (200, names("reward"))) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers so, its address, and the bodies that it was sent."""
    bodies: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(*(models if self.path == "/v1/models" else (404, b"{}")))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert self.headers["content-type"] == "application/json"
            bodies.append((self.path, body))
            self.reply(*answer(body))

        def reply(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def patient(url: str, pauses: list[float] | None = None, patience: float = 5.0) -> Remote:
    """A score by this server that writes its pauses down and takes none."""
    wait = (lambda _: None) if pauses is None else pauses.append
    server, model = parsed(url, flag="--gold")
    return Remote(replace(server, wait=wait, patience=patience), model)


def test_it_asks_in_batches_and_keeps_the_order() -> None:
    answers = ["x" * (number % 7) for number in range(2 * ITEMS + 1)]
    with serving(lengths) as (url, bodies):
        found = load_remote(url, flag="--gold")([[("user", "p")]] * len(answers), answers)
    assert found.tolist() == [len(answer) for answer in answers]
    assert found.dtype == torch.float64
    assert [(path, body["model"], len(body["items"])) for path, body in bodies] == [
        ("/v1/reward", "m0", ITEMS), ("/v1/reward", "m0", ITEMS), ("/v1/reward", "m0", 1),
    ]  # fmt: skip
    assert bodies[0][1]["items"][0] == {"prompt": "p", "answer": ""}


def test_batches_stay_within_what_our_own_server_takes() -> None:
    long = ["é" * practice_forms.TEXT] * 15  # six bytes each, as JSON writes it: five to a body
    found = list(batches(["p"] * 15, long))
    assert [len(batch) for batch in found] == [4, 4, 4, 3]
    assert all(len(json.dumps(batch)) < BODY < app.BODY for batch in found)
    assert ITEMS <= practice_forms.ITEMS
    assert list(batches([], [])) == []


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_at_fault_is_asked_again_with_longer_and_longer_pauses(status: int) -> None:
    left = [status] * 3
    pauses: list[float] = []
    with serving(lambda body: (left.pop(), b"no") if left else lengths(body)) as (url, _):
        assert patient(url, pauses)(["p"], ["four"]).tolist() == [4]
    assert pauses == [0.5, 1, 2]


def test_one_that_stays_away_is_told_in_one_sentence() -> None:
    pauses: list[float] = []
    with serving(lambda _: (502, b"")) as (url, bodies), pytest.raises(Refusal) as error:
        patient(url, pauses)(["p"], ["a"])
    assert str(error.value) == f"--gold {url} gives no answer after {TRIES} tries: it answered with status 502."
    assert (len(bodies), pauses) == (TRIES, [0.5, 1, 2, 4, 8])
    with pytest.raises(Refusal, match=f"no answer after {TRIES} tries: nobody listens there"):
        patient(url)(["p"], ["a"])


def test_one_that_never_ends_its_reply_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte every 50 ms never lets a single read time out; patience is of the whole request."""
    monkeypatch.setattr(scores_remote, "TRIES", 2)
    with trickling() as url:
        start = time.monotonic()
        with pytest.raises(Refusal, match=r"after 2 tries: no whole reply within 0[.]3 seconds"):
            patient(url, patience=0.3)(["p"], ["a"])
        assert time.monotonic() - start < 5


@contextmanager
def trickling() -> Iterator[str]:
    """A server that sends its reply byte by byte."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            try:
                while not over.wait(0.05):
                    self.wfile.write(b" ")
            except OSError:
                pass

        def log_message(self, *_: Any) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("reply", "part"),
    [
        ((200, b"<html>"), "answered with no JSON"),
        ((200, b'{"results": [{"reward": NaN}]}'), "answered with no JSON (it holds NaN)"),
        ((200, b"[" * 100_000), "nested too deeply"),
        ((200, b"\xff"), "answered with no JSON"),
        ((200, b'{"results": []}'), "no results, one for each of 1 answers"),
        ((200, b"[1]"), "no results"),
        ((404, b"{}"), "refuses the request with status 404: no field named, no reason given"),
        ((422, b'{"errors": [{"field": "body.model", "reason": "There is no such model."}]}'), "body.model, There is"),
    ],
)
def test_a_reply_of_another_shape_is_told_at_once(reply: Reply, part: str) -> None:
    with serving(lambda _: reply) as (url, bodies), pytest.raises(Refusal) as error:
        patient(url)(["p"], ["a"])
    assert part in str(error.value)
    assert len(str(error.value).splitlines()) == len(bodies) == 1


@pytest.mark.parametrize(
    ("result", "part"),
    [
        ({"reward": None, "reason": "The prompt holds no word."}, "answer 102: The prompt holds no word."),
        ({"reward": "5"}, 'answer 102: the server gave {"reward": "5"}.'),
        ({"reward": True}, "answer 102: the server gave"),
        (7, "answer 102: the server gave 7."),
    ],
)
def test_an_answer_without_a_number_is_told_with_its_row(result: Any, part: str) -> None:
    def reply(body: Any) -> Reply:
        good = [{"reward": 1.0, "reason": None}] * len(body["items"])
        return 200, json.dumps({"results": good if len(good) == ITEMS else [good[0], result]}).encode()

    with serving(reply) as (url, _), pytest.raises(Unscored) as error:
        patient(url)(["p"] * (ITEMS + 2), ["a"] * (ITEMS + 2))
    assert part in str(error.value)
    assert error.value.row == ITEMS + 1


def test_an_item_that_the_server_refuses_is_told_with_its_row() -> None:
    said = {"errors": [{"field": "body.items.1.answer", "reason": "String should have at most 50000 characters"}]}
    with serving(lambda _: (422, json.dumps(said).encode())) as (url, _), pytest.raises(Unscored) as error:
        patient(url)(["p", "p"], ["a", "b"])
    assert (error.value.row, "at most 50000 characters" in str(error.value)) == (1, True)


@pytest.mark.parametrize(
    ("asked", "models", "part"),
    [
        ("?model=other", (200, names("language", "reward")), "has no reward model other; there are m1."),
        ("", (200, names("reward", "reward")), "says no ?model=NAME; there are m0, m1."),
        ("", (200, names("language")), "there are none"),
        ("", (200, b"[]"), "is no practice API"),
        ("", (403, b"{}"), "is no practice API: /v1/models answered with status 403"),
    ],
)
def test_a_model_that_is_not_there_is_told_with_those_that_are(asked: str, models: Reply, part: str) -> None:
    with serving(lengths, models) as (url, _), pytest.raises(Refusal) as error:
        load_remote(url + asked, flag="--gold")
    assert part in str(error.value)


def test_the_model_is_the_one_that_is_named_or_the_only_one() -> None:
    with serving(lengths, (200, names("language", "reward", "reward"))) as (url, _):
        assert load_remote(url + "/v1/reward?model=m2", flag="--gold").model == "m2"
    with serving(lengths, (200, names("language", "reward"))) as (url, _):
        assert load_remote(url + "/", flag="--gold").model == "m1"
    with serving(lengths, (404, b"{}")) as (url, bodies):
        assert load_remote(url, flag="--gold")(["p"], ["abc"]).tolist() == [3]
    assert bodies[0][1] == {"items": [{"prompt": "p", "answer": "abc"}]}


def test_where_a_url_points() -> None:
    server, model = parsed("https://judge.example/deep/v1/reward?model=m", flag="--gold")
    assert (server.secure, server.host, server.port, server.path, model) == (True, "judge.example", 443, "/deep", "m")
    assert parsed("http://[::1]:81", flag="--gold")[0] == Server("--gold http://[::1]:81", False, "::1", 81)


@pytest.mark.parametrize(
    "url", ["http://", "http://h:x", "http://h:99999", "http://me@h", "http://h?key=1", "http://["]
)
def test_what_is_no_url_is_one_sentence(url: str) -> None:
    with pytest.raises(Refusal, match="--gold http://"):
        parsed(url, flag="--gold")
