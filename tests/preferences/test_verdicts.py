"""Verdicts: a plain table, and what is no verdict."""

import pytest

from killick.preferences.verdicts import Verdict, by_item, latest, place_of
from killick.types import Refusal


def test_places_come_from_groups() -> None:
    """Best first; a tie shares its place."""
    assert place_of(((2,), (0, 1))) == (1, 1, 0)
    assert place_of(((1,), (0,))) == (1, 0)


def test_the_last_verdict_of_an_annotator_on_an_item_holds() -> None:
    """Others stay."""
    table = [Verdict("ada", "1", (0, 1)), Verdict("bob", "1", (0, 1)), Verdict("ada", "1", (1, 0))]
    assert latest(table) == [Verdict("ada", "1", (1, 0)), Verdict("bob", "1", (0, 1))]


def test_responses_have_names_of_their_own_or_the_items() -> None:
    """A name that stands in two items is one response."""
    assert Verdict("ada", "7", (0, 1)).names() == ("7 #0", "7 #1")
    assert Verdict("ada", "7", (0, 1), responses=("x", "y")).names() == ("x", "y")


def test_an_order_is_a_sign() -> None:
    """Preferred, rejected, tied."""
    verdict = Verdict("ada", "1", (0, 1, 1))
    assert [verdict.order(0, 1), verdict.order(1, 0), verdict.order(1, 2)] == [1, -1, 0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"place": (0,)}, "needs 2 responses or more, not 1"),
        ({"place": (0, 1), "shown": (0, 2)}, r"shows \(0, 2\) of 2"),
        ({"place": (0, 1), "responses": ("x",)}, "has 1 names for 2 responses"),
    ],
)
def test_what_is_no_verdict_is_refused(given, said: str) -> None:
    """One sentence each."""
    with pytest.raises(Refusal, match=said):
        Verdict("ada", "1", **given)


def test_verdicts_on_an_item_are_about_the_same_responses() -> None:
    """Else their places could not be compared."""
    with pytest.raises(Refusal, match="item 1 are about different responses"):
        by_item([Verdict("ada", "1", (0, 1)), Verdict("bob", "1", (0, 1, 2))])
