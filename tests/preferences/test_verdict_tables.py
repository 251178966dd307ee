"""Tables from a store and from a file: the same item in any order, and what is no verdict is counted."""

from killick.preferences.rows import PreferenceRow, Turn
from killick.preferences.storing.records import Item, Judgement, Label
from killick.preferences.verdict_tables import from_rows, from_store
from killick.preferences.verdicts import Verdict


def row(*texts: str, place: tuple[int, ...] = (0, 1), annotator: str | None = "ada", **traits) -> PreferenceRow:
    responses = tuple((Turn("assistant", text),) for text in texts)
    return PreferenceRow((Turn("user", "Which?"),), responses, place, annotator=annotator, **traits)


def test_a_store_gives_places_and_the_order_of_showing() -> None:
    """The second candidate was shown first and preferred; a skip is counted."""
    item = Item("Which?", ("a", "b"), id=7)
    labels = [
        Label(7, name, 0, "label", Judgement(ranking, 1.0), (1, 0), 0, 0.0)
        for name, ranking in (("ada", ((1,), (0,))), ("bob", ()))
    ]
    table, left = from_store((item, label) for label in labels)
    assert table == [Verdict("ada", "7", (1, 0), (1, 0))]
    assert left == {"skips": 1}


def test_one_item_in_two_orders_is_one_item() -> None:
    """ada saw x first and prefers it; bob saw y first and prefers x."""
    table, left = from_rows([row("x", "y"), row("y", "x", place=(1, 0), annotator="bob")])
    ada, bob = table
    assert not left
    assert (ada.item, ada.names()) == (bob.item, bob.names())
    assert (ada.place, bob.place) == ((0, 1), (0, 1))
    assert (ada.shown, bob.shown) == ((0, 1), (1, 0))


def test_the_order_is_known_only_where_the_file_says_so() -> None:
    """Chosen and rejected tell no order."""
    assert from_rows([row("x", "y", shown=False)])[0][0].shown == ()


def test_a_response_of_two_items_is_one_response() -> None:
    """x-y and y-z share y; under another prompt it would be another."""
    first, second = from_rows([row("x", "y"), row("y", "z")])[0]
    assert len({*first.names(), *second.names()}) == 3


def test_what_is_no_verdict_is_counted() -> None:
    """Nobody's rows, the best of three, and twice the same response."""
    rows = [row("x", "y", annotator=None), row("x", "y", "z", place=(0, 1, 1), best_only=True), row("x", "x")]
    table, left = from_rows(rows)
    assert table == []
    assert left == {
        "rows without an annotator": 1,
        "rows of which only the best is known": 1,
        "rows without different responses": 1,
    }
