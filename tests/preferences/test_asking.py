"""From a preference file to questions, and from labels back to rows."""

import json
from pathlib import Path
from typing import Any

import pytest

from killick.preferences.asking import export_form, labelled_row, question, questions
from killick.preferences.files import BadRows, read_preferences
from killick.preferences.formats.writing import write
from killick.preferences.rows import Turn
from killick.preferences.storing.records import Item, Judgement, Label

TALK = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "A rhyme."}]  # fmt: skip


def asked(**record: Any) -> Item:
    found = question(record, 7)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("record", "candidates", "kind", "place"),
    [
        ({"prompt": "p", "chosen": "a", "rejected": "b"}, ("a", "b"), "pair", [0, 1]),
        ({"prompt": "p", "first": "a", "second": "b", "preference": "second"}, ("a", "b"), "pair", [1, 0]),
        ({"prompt": "p", "first": "a", "second": "b"}, ("a", "b"), "pair", None),
        ({"context": "p", "response1": "a", "response2": "b"}, ("a", "b"), "pair", None),
        ({"context": [{"role": "user", "content": "p"}], "first": "a", "response2": "b"}, ("a", "b"), "pair", None),
        ({"context": "of the prompt", "prompt": "p", "first": "a", "second": "b"}, ("a", "b"), "pair", None),
        ({"context": "p", "responses": ["a", "b"]}, ("a", "b"), "pair", None),
        ({"prompt": "p", "responses": ["a", "b"]}, ("a", "b"), "pair", None),
        ({"prompt": "p", "responses": ["a", "b", "c"]}, ("a", "b", "c"), "ranking", None),
        ({"prompt": "p", "responses": ["a", "b", "c"], "ranking": [2, [0, 1]]}, ("a", "b", "c"), "ranking", [1, 1, 0]),
        ({"prompt": "p", "responses": ["a", "b", "a", "c"], "scores": [1, 3, 1, 2]}, ("a", "b", "c"), "ranking",
         [2, 0, 1]),
    ],
)  # fmt: skip
def test_every_form_is_a_question_and_its_verdict_stays_hidden(
    record: dict[str, Any], candidates: tuple[str, ...], kind: str, place: list[int] | None
) -> None:
    item = asked(**record)
    assert (item.prompt, item.candidates, item.kind) == ("p", candidates, kind)
    assert item.metadata.get("place") == place
    assert item.metadata["line"] == 7


def test_a_dialogue_is_shown_with_its_roles_and_kept_as_messages() -> None:
    item = asked(prompt=TALK, chosen="Free as can be.", rejected="Sea.")
    assert item.prompt == "user: Hello\n\nassistant: Yes?\n\nuser: A rhyme."
    kept = json.loads(json.dumps(item.metadata))
    said = Label(1, "ada", 0, "label", Judgement(((1,), (0,)), 1.0, strength=2), (0, 1), 0, 0.0)
    row = labelled_row(Item(item.prompt, item.candidates, metadata=kept), said)
    assert row.prompt[1] == Turn("assistant", "Yes?")
    (record,) = write(row, "comparison", messages=True).records
    assert (record["prompt"], record["preference"], record["strength"]) == (TALK, "second", 2)


@pytest.mark.parametrize(("responses"), [["a"], ["a", "a"]])
def test_what_leaves_nothing_to_choose_is_no_question(responses: list[str]) -> None:
    assert question({"prompt": "p", "responses": responses}, 1) is None


def test_a_file_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good, same = {"prompt": "p", "responses": ["a", "b"]}, {"prompt": "p", "responses": ["a", "a"]}
    bad = [{"prompt": "p"}, {"prompt": 1, "responses": ["a", "b"]}, {"responses": ["a", "b"]}]
    path.write_text("\n".join(map(json.dumps, [good, same, *bad])) + "\n[1]\n", encoding="utf-8")
    with pytest.raises(BadRows) as refused:
        questions(path)
    assert [(row.line, row.field) for row in refused.value.rows][:3] == [(3, "responses"), (4, "prompt"), (5, "prompt")]
    assert refused.value.rows[3].line == 6
    items, left = questions(path, skip_bad=True)
    assert ([item.candidates for item in items], dict(left)) == (
        [("a", "b")], {"rows without two different responses": 1, "bad rows": 4}
    )  # fmt: skip


def test_csv_is_asked_too(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('prompt,first,second\nName a bird,A heron,"A trout, fried"\n', encoding="utf-8")
    (item,) = questions(path)[0]
    assert item.candidates == ("A heron", "A trout, fried")


@pytest.mark.parametrize(
    ("order", "ranking", "strength", "place", "signed"),
    [
        ((0, 1), ((0,), (1,)), 3, (0, 1), -3),  # the first shown is much better
        ((1, 0), ((0,), (1,)), 1, (1, 0), 1),  # the second shown is slightly better
        ((1, 0), ((0, 1),), None, (0, 0), None),
        ((2, 0, 1), ((1,), (0, 2)), None, (1, 1, 0), None),
    ],
)
def test_a_label_is_a_row_in_the_order_that_was_shown(
    order: tuple[int, ...], ranking: tuple[tuple[int, ...], ...], strength: int | None, place: tuple[int, ...],
    signed: int | None,
) -> None:  # fmt: skip
    item = Item("p", tuple("abc"[: len(order)]), kind="pair" if len(order) == 2 else "ranking")
    row = labelled_row(item, Label(1, "ada", 0, "label", Judgement(ranking, 1.0, strength), order, 0, 0.0))
    assert [response[0].content for response in row.responses] == ["abc"[number] for number in order]
    assert (row.place, row.strength, row.annotator, row.shown) == (place, signed, "ada", True)


def test_labels_are_read_again_as_what_was_said(tmp_path: Path) -> None:
    pair, three = Item("p", ("a", "b")), Item("q", ("a", "b", "c"), kind="ranking")
    assert export_form([pair]) == "comparison"
    assert export_form([pair, three]) == "ranking"
    for item, ranking in ((pair, ((1,), (0,))), (three, ((1,), (0, 2)))):
        order = tuple(reversed(range(len(item.candidates))))
        row = labelled_row(item, Label(1, "ada", 0, "label", Judgement(ranking, 1.0), order, 0, 0.0))
        path = tmp_path / f"{item.prompt}.jsonl"
        form = export_form([item])
        path.write_text("".join(json.dumps(each) + "\n" for each in write(row, form).records), encoding="utf-8")
        assert read_preferences(path)[0] == [row]
