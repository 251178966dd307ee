"""The practice API over small functions: what it gives, and what it says to what it cannot take."""

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient

from killick.models.asking import Answer, Question, Unread
from killick.types import Refusal
from killick.web.app import build
from killick.web.practice import Practice, practice
from killick.web.practice_forms import ITEMS, TEXT
from killick.web.together import Together

PAIRS = [
    {"prompt": f"Describe the {product} .", "chosen": f"{product} good", "rejected": f"{product} bad"}
    for product in ("Kestrel rain jacket", "Kestrel day pack", "Lark day pack", "Wren winter hat")
]


def speak(questions: list[Question]) -> list[list[Answer] | Refusal]:
    """Says back what it was asked; knows no Latin."""
    return [Refusal("It knows no Latin.") if "Salve" in asked.prompt else echo(asked) for asked in questions]


def echo(asked: Question) -> list[Answer]:
    """What it was asked, by number; every other one is cut."""
    said = f"{asked.prompt} {asked.seed}"
    return [Answer(f"{said} {number} at {asked.temperature:g}", number % 2 == 0) for number in range(asked.n)]


def length(prompts: Sequence[str], answers: Sequence[str]) -> list[float | Unread]:
    """Letters; but none for what has none, what is no question, or an answer in Latin."""
    return [letters(*one) for one in zip(prompts, answers, strict=True)]


def letters(prompt: str, answer: str) -> float | Unread:
    """Of one answer."""
    if not prompt.startswith("Describe"):
        return Unread("prompt", "It reads descriptions only.")
    if "Salve" in answer:
        return Unread("answer", "It knows no Latin.")
    return float(len(answer)) if answer else float("nan")


@pytest.fixture
def client() -> TestClient:
    offers = Practice(lambda: PAIRS, {"echo": speak}, {"length": length})
    return TestClient(build([practice(offers)]), base_url="http://127.0.0.1:8000")


def test_all_preferences_come_in_one_reply_where_nothing_is_asked_for(client: TestClient) -> None:
    assert client.get("/v1/preferences").json() == {"data": PAIRS, "total": 4}


@pytest.mark.parametrize(
    ("asked", "rows", "total"),
    [
        ({"limit": 2}, [0, 1], 4),
        ({"offset": 3}, [3], 4),
        ({"offset": 9}, [], 4),
        ({"limit": 0}, [], 4),
        ({"product": "Kestrel day pack"}, [1], 1),
        ({"product": "kestrel"}, [0, 1], 2),
        ({"product": "DAY-PACKS", "offset": 1, "limit": 5}, [2], 2),
        ({"product": "day"}, [1, 2], 2),
        ({"product": "pack day"}, [], 0),
        ({"product": "Kestr"}, [], 0),
        ({"product": "?!"}, [], 0),
        ({"product": " "}, [0, 1, 2, 3], 4),
    ],
)
def test_pages_and_products(client: TestClient, asked: dict[str, Any], rows: list[int], total: int) -> None:
    said = client.get("/v1/preferences", params=asked)
    assert said.json() == {"data": [PAIRS[row] for row in rows], "total": total}


@pytest.mark.parametrize(
    ("asked", "field"),
    [({"offset": -1}, "query.offset"), ({"limit": "many"}, "query.limit"), ({"product": "x" * 201}, "query.product")],
)
def test_a_page_that_cannot_be_is_refused(client: TestClient, asked: dict[str, Any], field: str) -> None:
    said = client.get("/v1/preferences", params=asked)
    assert (said.status_code, said.json()["errors"][0]["field"]) == (422, field)


def test_each_text_is_reviewed_and_its_flaws_are_told(client: TestClient) -> None:
    """The first breaks all four guidelines, the second none."""
    items = [
        {"product": "Kestrel rain jacket", "text": "The Lark day pack: warm wool, warm all over."},
        {"product": "Kestrel rain jacket", "text": "The Kestrel rain jacket is nylon. Repairs are free."},
    ]
    said = client.post("/v1/brand-check", json={"items": items})
    assert said.json() == {
        "results": [
            {
                "flaws": [
                    "product: Kestrel rain jacket is not named, but Lark day pack",
                    "repetition: a sentence repeats warm",
                    "material: a rain jacket is not made of wool",
                    "repair: the promise to repair is not mentioned",
                ]
            },
            {"flaws": []},
        ]
    }
    assert client.post("/v1/brand-check", json={"items": []}).json() == {"results": []}


def test_answers_come_with_the_seed_that_gives_them_again(client: TestClient) -> None:
    asked = {"model": "echo", "prompt": "Hello", "n": 2, "temperature": 1, "seed": 7}
    said = client.post("/v1/generate", json=asked).json()
    assert said == {"seed": 7, "answers": [
        {"text": "Hello 7 0 at 1", "finished": True}, {"text": "Hello 7 1 at 1", "finished": False}]}  # fmt: skip
    drawn = client.post("/v1/generate", json={"model": "echo", "prompt": "Hello"}).json()
    assert drawn["answers"] == [{"text": f"Hello {drawn['seed']} 0 at 0.8", "finished": True}]


def test_scores_come_in_order_and_what_is_no_number_is_null_with_a_reason(client: TestClient) -> None:
    items = [{"prompt": "Describe", "answer": "four"}, {"prompt": "Describe", "answer": ""}]
    said = client.post("/v1/reward", json={"model": "length", "items": items})
    assert said.json()["results"] == [
        {"reward": 4.0, "reason": None},
        {"reward": None, "reason": "The reward model gave nan, which is no number."},
    ]
    assert client.post("/v1/reward", json={"model": "length", "items": []}).json() == {"results": []}


def test_the_models_are_named_by_what_they_do(client: TestClient) -> None:
    assert client.get("/v1/models").json()["data"] == [
        {"name": "echo", "kind": "language"}, {"name": "length", "kind": "reward"}]  # fmt: skip


ITEM = {"product": "Kestrel rain jacket", "text": "x"}
GOOD = {"items": [ITEM]}
READ, LATIN = ({"prompt": "Describe", "answer": answer} for answer in ("x", "Salve"))


class Busy:
    """A model whose first batch lasts until three more are waiting."""

    def __init__(self, answer: Any, patch: pytest.MonkeyPatch):
        self.answer, self.patch = answer, patch
        self.batches: list[int] = []
        self.begun, self.three = threading.Event(), threading.Event()
        patch.setattr("killick.web.practice.Together", self.queue)

    def queue(self, *given: Any, **named: Any) -> Together[Any, Any]:
        """A queue that tells when three wait."""
        busy = self

        class Waiting(list[Any]):
            def append(self, one: Any) -> None:
                super().append(one)
                if len(self) == 3:
                    busy.three.set()

        found = Together[Any, Any](*given, **named)
        take = found.take

        def taken() -> Any:
            batch = take()
            found.waiting = Waiting(found.waiting)
            return batch

        self.patch.setattr(found, "take", taken)
        return found

    def __call__(self, *given: Any) -> Any:
        """The answers, when three more wait; the bound is for a broken queue only, and says so."""
        self.batches.append(len(given[0]))
        self.begun.set()
        assert self.three.wait(300), "three who ask at the same time do not come to wait"
        return self.answer(*given)


def at_once(app: Any, path: str, bodies: list[Any], *, begun: threading.Event) -> list[Any]:
    """The replies to requests, all but the first of which come while that one is answered."""

    def send(body: Any) -> Any:
        return TestClient(app, base_url="http://127.0.0.1:8000").post(f"/v1/{path}", json=body)

    with ThreadPoolExecutor(len(bodies)) as pool:
        sent = [pool.submit(send, bodies[0])]
        assert begun.wait(300)
        sent += [pool.submit(send, body) for body in bodies[1:]]
        return [one.result() for one in sent]


def test_those_who_ask_while_others_are_answered_make_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is alone; three that come meanwhile are asked together, and each gets its own answers."""
    slow = Busy(speak, monkeypatch)
    app = build([practice(Practice(list, {"slow": slow}, {}))])
    bodies = [{"model": "slow", "prompt": f"Hello {number}", "seed": number} for number in range(4)]
    said = at_once(app, "generate", bodies, begun=slow.begun)
    assert [one.json()["answers"][0]["text"] for one in said] == [f"Hello {n} {n} 0 at 0.8" for n in range(4)]
    assert slow.batches == [1, 3]


def test_those_who_score_while_others_are_scored_make_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1, then 1 + 2 + 3 answers; one of the three asks what cannot be read, and only that one is told."""
    slow = Busy(length, monkeypatch)
    app = build([practice(Practice(list, {}, {"slow": slow}))])
    items = [[{"prompt": "Describe", "answer": count * "x"}] * count for count in (1, 1, 2, 3)]
    items[2][1] = {"prompt": "Hello", "answer": "x"}
    said = at_once(app, "reward", [{"model": "slow", "items": each} for each in items], begun=slow.begun)
    assert slow.batches == [1, 6]
    assert [one.status_code for one in said] == [200, 200, 422, 200]
    assert said[2].json()["errors"][0]["field"] == "body.items.1.prompt"
    for one, count in ((said[0], 1), (said[1], 1), (said[3], 3)):
        assert [each["reward"] for each in one.json()["results"]] == [count] * count


@pytest.mark.parametrize(
    ("path", "body", "field", "reason"),
    [
        ("brand-check", {}, "body.items", "required"),
        ("brand-check", [], "body", "dictionary"),
        ("brand-check", {"items": None}, "body.items", "list"),
        ("brand-check", {"items": [{"product": "Kestrel rain jacket"}]}, "body.items.0.text", "required"),
        ("brand-check", {"items": [{"product": 7, "text": ""}]}, "body.items.0.product", "string"),
        ("brand-check", {"items": [ITEM] * (ITEMS + 1)}, "body.items", f"at most {ITEMS}"),
        ("brand-check", {"items": [ITEM | {"text": "x" * (TEXT + 1)}]}, "body.items.0.text", "at most"),
        ("brand-check", {"items": [ITEM, ITEM | {"product": "Teapot"}]}, "body.items.1.product", "name and a kind"),
        ("brand-check", GOOD | {"more": 1}, "body.more", "not permitted"),
        ("generate", {"prompt": "x", "model": "gpt"}, "body.model", "there are echo"),
        ("generate", {"prompt": "Salve", "model": "echo"}, "body.prompt", "no Latin"),
        ("generate", {"prompt": ""}, "body.prompt", "at least 1"),
        ("generate", {"prompt": "x", "n": 0}, "body.n", "greater"),
        ("generate", {"prompt": "x", "n": 65}, "body.n", "less"),
        ("generate", {"prompt": "x", "n": True}, "body.n", "integer"),
        ("generate", {"prompt": "x", "n": "2"}, "body.n", "integer"),
        ("generate", {"prompt": "x", "temperature": 0}, "body.temperature", "greater"),
        ("generate", {"prompt": "x", "seed": -1}, "body.seed", "greater"),
        ("generate", {"prompt": "x", "seed": 2**53}, "body.seed", "less"),
        ("reward", {"model": "gold", "items": []}, "body.model", "there are length"),
        ("reward", {"model": "length", "items": [READ, {"prompt": "H", "answer": ""}]}, "body.items.1.prompt", "reads"),
        ("reward", {"model": "length", "items": [READ] * 3 + [LATIN]}, "body.items.3.answer", "no Latin"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_is_told_by_field_and_reason(
    client: TestClient, path: str, body: Any, field: str, reason: str
) -> None:
    said = client.post(f"/v1/{path}", json=body)
    assert said.status_code == 422
    told = {one["field"]: one["reason"] for one in said.json()["errors"]}
    assert reason in told[field]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1" + 400 * "0"])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"prompt": "x", "temperature": NUMBER}', "body.temperature"),
        ('{"prompt": "x", "n": NUMBER}', "body.n"),
        ('{"prompt": NUMBER}', "body.prompt"),
        ('{"prompt": "x", "extra": NUMBER}', "body.extra"),
        ("NUMBER", "body"),
    ],
)
def test_what_is_no_number_names_its_field(client: TestClient, number: str, body: str, field: str) -> None:
    said = post(client, "generate", body.replace("NUMBER", number).encode())
    assert said.status_code == 422
    assert field in [one["field"] for one in strict(said.text)["errors"]]


HOSTILE = {
    "not JSON": b'{"items": [}',
    "empty": b"",
    "cut": b'{"items": [{"product": "Kes',
    "twice": b'{"items": [], "items": []}',
    "twice inside": b'{"items": [{"product": "Kestrel rain jacket", "text": "a", "text": "b"}]}',
    "deep": b'{"items": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "deep objects": b'{"items":' * 100_000 + b"1" + b"}" * 100_000,
    "digits": b'{"items": ' + b"9" * 100_000 + b"}",
    "no UTF-8": b'{"items": [{"product": "Kestrel rain jacket", "text": "\xff"}]}',
    "UTF-16": '{"items": []}'.encode("utf-16"),
    "half a character": b'{"items": [{"product": "Kestrel rain jacket", "text": "\\ud800"}]}',
    "half a character in a product": b'{"items": [{"product": "\\udfff", "text": ""}]}',
    "half a character in a name": b'{"items": [], "\\ud800": 1}',
    "a long name": b'{"items": [], "' + b"x" * 100_000 + b'": 1}',
    "many names": b'{"items": [' + b",".join(b'{"a%d": 1}' % n for n in range(900)) + b"]}",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_body_is_too_much(client: TestClient, body: bytes) -> None:
    said = post(client, "brand-check", body)
    assert said.status_code == 422
    errors = strict(said.text)["errors"]
    assert errors
    assert all(one["field"].startswith("body") and one["reason"] for one in errors)
    assert len(said.content) < 50_000


def test_a_null_character_and_half_the_planet_are_text(client: TestClient) -> None:
    said = client.post(
        "/v1/brand-check", json={"items": [{"product": "Kestrel rain jacket", "text": "\0 العربية 漢字 🙂 \u2028"}]}
    )
    assert said.status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", ""]
)
def test_another_type_of_body_is_refused(client: TestClient, kind: str) -> None:
    said = client.post("/v1/brand-check", content=json.dumps(GOOD), headers={"content-type": kind})
    assert said.status_code == 415
    assert "application/json" in said.json()["errors"][0]["reason"]


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json"])
def test_json_by_another_spelling_is_taken(client: TestClient, kind: str) -> None:
    assert client.post("/v1/brand-check", content=json.dumps(GOOD), headers={"content-type": kind}).status_code == 200


def test_the_page_of_the_api_has_examples_that_work(client: TestClient) -> None:
    """Each example of a request is sent; the models of these tests stand in for the real ones."""
    page = client.get("/openapi.json").json()
    assert client.get("/docs").status_code == 200
    for path, name in (("brand-check", "BrandCheck"), ("generate", "Generate"), ("reward", "Score")):
        (example,) = page["components"]["schemas"][name]["examples"]
        model = {"generate": {"model": "echo"}, "reward": {"model": "length"}}.get(path, {})
        said = client.post(f"/v1/{path}", json=example | model)
        assert said.status_code == 200, said.text
        assert set(page["paths"][f"/v1/{path}"]["post"]["responses"]) == {"200", "403", "413", "415", "421", "422"}
    gets = {
        path: set(page["paths"][path]["get"]["responses"]) for path in page["paths"] if "get" in page["paths"][path]
    }
    assert gets == {
        "/healthz": {"200", "421"}, "/v1/models": {"200", "421"}, "/v1/preferences": {"200", "421", "422"}}  # fmt: skip


def test_a_foreign_or_missing_host_is_refused_as_the_page_of_the_api_says() -> None:
    """Whatever is asked for: the status and the form of each route's own page."""
    offers = Practice(lambda: PAIRS, {}, {"length": length})
    client = TestClient(build([practice(offers)], hosts=["127.0.0.1"]), base_url="http://127.0.0.1:8000")
    page = client.get("/openapi.json").json()
    for path, methods in page["paths"].items():
        for method, operation in methods.items():
            for host, reason in (("elsewhere.example", "not called elsewhere.example"), ("", "names no host")):
                said = client.request(method, path, headers={"host": host})
                assert said.status_code == 421
                (error,) = said.json()["errors"]
                assert (error["field"], reason in error["reason"]) == ("host", True)
                told = operation["responses"]["421"]["content"]["application/json"]["schema"]
                assert told == {"$ref": "#/components/schemas/Errors"}


def post(client: TestClient, path: str, body: bytes) -> Any:
    """Bytes that say they are JSON."""
    return client.post(f"/v1/{path}", content=body, headers={"content-type": "application/json"})


def strict(text: str) -> Any:
    """JSON that a strict reader takes: no NaN, and every character whole."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    text.encode()
    return json.loads(text, parse_constant=refuse)
