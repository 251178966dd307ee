"""What annotators said, as a plain table: whoever keeps labels, in a file or in a store, turns them into this."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from killick.types import Refusal


@dataclass(frozen=True)
class Verdict:
    """What one annotator said of one item.

    Args:
        annotator: the name.
        item: whose responses are judged; all verdicts of an item name its responses in one order.
        place: of each response, 0 for the best; responses that tie share a place.
        shown: numbers of the responses in the order in which the annotator saw them; empty where nobody knows.
        responses: a name for each response, where one may stand in several items; empty where none does.
    """

    annotator: str
    item: str
    place: tuple[int, ...]
    shown: tuple[int, ...] = ()
    responses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.place)
        if count < 2:
            raise Refusal(f"A verdict on item {self.item} needs 2 responses or more, not {count}.")
        if self.shown and sorted(self.shown) != list(range(count)):
            raise Refusal(f"The verdict of {self.annotator} on item {self.item} shows {self.shown} of {count}.")
        if self.responses and len(self.responses) != count:
            raise Refusal(f"Item {self.item} has {len(self.responses)} names for {count} responses.")

    def names(self) -> tuple[str, ...]:
        """A name for each response: its own, or the item's with a number."""
        return self.responses or tuple(f"{self.item} #{number}" for number in range(len(self.place)))

    def order(self, first: int, second: int) -> int:
        """1 where the first of two responses is preferred, -1 where the second is, 0 at a tie."""
        return (self.place[first] < self.place[second]) - (self.place[first] > self.place[second])


def latest(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """One verdict for each annotator and item, the last that was given."""
    return list({(verdict.annotator, verdict.item): verdict for verdict in verdicts}.values())


def place_of(groups: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Places from groups of ties, best first: ((2,), (0, 1)) gives (1, 1, 0)."""
    return tuple(
        place for _, place in sorted((number, place) for place, group in enumerate(groups) for number in group)
    )


def by_item(verdicts: Iterable[Verdict]) -> list[list[Verdict]]:
    """The verdicts on each item.

    Raises:
        Refusal: where two verdicts on one item differ in their responses.
    """
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.item, []).append(verdict)
    for item, mine in found.items():
        if len({verdict.names() for verdict in mine}) > 1:
            raise Refusal(f"The verdicts on item {item} are about different responses, or name them in another order.")
    return list(found.values())
