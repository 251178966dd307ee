"""What goes into the store: validated, in one spelling, the same question with the same hash."""

import json
import math
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killick.preferences.storing.records import (
    Annotator,
    Card,
    Item,
    Judgement,
    dumps,
    valid_key,
    valid_name,
)  # fmt: skip
from killick.refusal import Refusal

PAIR = Item("p", ("a", "b"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": ("a",)},
        {"candidates": ()},
        {"candidates": ("a", "b", "c")},  # of kind "pair"
        {"candidates": ("a",), "kind": "ranking"},
        {"candidates": ("a", "b"), "sources": ("x",)},
        {"candidates": ("a", "b"), "scores": (1.0, 2.0, 3.0)},
        {"candidates": ("a", "b"), "scores": (1.0, math.nan)},
        {"candidates": ("a", "b"), "overlap": 0},
    ],
)
def test_an_item_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        Item("p", **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ranking": ((0,),)},
        {"ranking": ((0,), (0,))},
        {"ranking": ((0,), (2,))},
        {"ranking": ((0,), (), (1,))},
        {"ranking": ((0,), (1,)), "seconds": -1.0},
        {"ranking": ((0,), (1,)), "seconds": math.inf},
        {"ranking": ((0,), (1,)), "strength": 0},
        {"ranking": ((0,), (1,)), "strength": 4},
        {"ranking": ((0, 1),), "strength": 1},
        {"ranking": ((0,), (1,), (2,)), "strength": 1},
        {"ranking": (), "strength": 1},
        {"ranking": ((0, 1),), "note": "x" * 10_001},
        {"ranking": ((0, 1),), "flags": ("",)},
        {"ranking": ((0, 1),), "flags": ("x" * 65,)},
        {"ranking": ((0, 1),), "flags": tuple(map(str, range(17)))},
    ],
)
def test_a_judgement_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        Judgement(**{"seconds": 1.0, **wrong})


def test_one_meaning_has_one_spelling() -> None:
    one = Judgement(((2, 0), (1,)), 3.0, flags=("b", "a", "b"))
    other = Judgement(((0, 2), (1,)), 99.0, flags=("a", "b"))
    assert one.says(other)
    assert not one.says(Judgement(((0, 2), (1,)), 3.0, flags=("a",)))
    assert not one.says(Judgement(((0, 2), (1,)), 3.0, flags=("a", "b"), note="!"))
    assert not Judgement(((0,), (1,)), 1.0, strength=1).says(Judgement(((0,), (1,)), 1.0))
    assert Judgement((), 1.0).skipped
    assert not one.skipped


def test_the_same_question_has_the_same_hash_whatever_comes_with_it() -> None:
    assert PAIR.digest == Item("p", ("a", "b"), sources=("x", "y"), metadata={"n": 1}, overlap=3, id=7).digest
    others = [Item("p", ("b", "a")), Item("pa", ("", "b")), Item("p", ("a", "b"), kind="ranking")]
    assert len({PAIR.digest, *(other.digest for other in others)}) == 4


def test_the_order_is_random_over_annotators_and_the_same_each_time() -> None:
    item = Item("p", ("a", "b", "c"), kind="ranking")
    orders = [Annotator(n, "x", f"seed {n}").order(item) for n in range(3000)]
    assert orders == [Annotator(n, "y", f"seed {n}").order(item) for n in range(3000)]
    # 6 orders, 500 expected of each; the deviation is sqrt(3000 * 1/6 * 5/6) = 20.4, and 90 is more than four of it.
    assert all(abs(orders.count(order) - 500) < 90 for order in permutations(range(3)))
    one = Annotator(1, "x", "seed")
    firsts = sum(one.order(Item(f"prompt {n}", ("a", "b")))[0] for n in range(1000))
    assert abs(firsts - 500) < 64  # over items of one annotator too: four deviations of 15.8


@given(st.permutations(range(4)), st.permutations(range(4)))
def test_places_on_a_card_become_candidates(order: list[int], places: list[int]) -> None:
    card = Card(Item("p", ("a", "b", "c", "d"), kind="ranking"), tuple(order), guidelines=0, until=0.0)
    ranking = card.ranking(tuple((place,) for place in places))
    assert [card.item.candidates[number] for (number,) in ranking] == [card.shown[place] for place in places]
    assert card.ranking(((places[0], places[1]),)) == ((order[places[0]], order[places[1]]),)


@given(st.text(st.characters(codec=None), max_size=20))
def test_any_text_survives_as_ascii_without_zero_bytes(text: str) -> None:
    kept = dumps({"text": text})
    assert kept.isascii()
    assert "\x00" not in kept
    assert json.loads(kept) == {"text": text}


def test_what_is_not_json_is_refused() -> None:
    for value in (math.nan, [math.inf], {1, 2}, object()):
        with pytest.raises(Refusal):
            dumps(value)


@pytest.mark.parametrize("name", ["a", "Ada Lovelace", "zoë", "李雷", "a.b_c@d+e-f", "7of9", "x" * 64])
def test_a_name_may_be_in_any_script(name: str) -> None:
    assert valid_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", ".", "..", ".a", "-a", "a/b", "a\\b", "a:b", " a", "a ", "a\n", "a\x00b", "~", "<b>", "x" * 65]
)
def test_a_name_that_could_be_a_path_or_markup_is_refused(name: str) -> None:
    with pytest.raises(Refusal, match="name"):
        valid_name(name)


@given(st.text(max_size=70))
def test_a_name_is_refused_or_harmless(name: str) -> None:
    try:
        kept = valid_name(name)
    except Refusal:
        return
    assert 1 <= len(kept) <= 64
    assert not set(kept) & set("/\\:<>&\"'\n\r\t\x00")
    assert kept[0].isalnum()


@pytest.mark.parametrize("key", ["", "a b", "a\n", "é", "x" * 201, "\x00"])
def test_a_key_is_visible_ascii(key: str) -> None:
    with pytest.raises(Refusal, match="key"):
        valid_key(key)


def test_a_uuid_is_a_key() -> None:
    assert valid_key("0b0e1a3c-5d0e-4b4e-9e8b-1c2d3e4f5a6b").startswith("0b0e")
