"""Tables of verdicts from where labels are kept: the rows of a store, and the rows of a preference file."""

from collections import Counter
from collections.abc import Iterable

from killick.preferences.rows import PreferenceRow
from killick.preferences.storing.records import Item, Label
from killick.preferences.verdicts import Verdict, place_of


def from_store(rows: Iterable[tuple[Item, Label]]) -> tuple[list[Verdict], Counter[str]]:
    """Labels that hold, as a store exports them; and what was left out: words -> how often."""
    table, left = list[Verdict](), Counter[str]()
    for item, label in rows:
        if label.judgement.skipped:
            left["skips"] += 1
        else:
            table.append(Verdict(label.annotator, str(item.id), place_of(label.judgement.ranking), label.order))
    return table, left


def from_rows(rows: Iterable[PreferenceRow]) -> tuple[list[Verdict], Counter[str]]:
    """Rows of a file; and what was left out: words -> how often.

    The same responses to the same prompt are one item in whatever order the rows name them, and a response that stands
    in several items is one response.
    """
    table, left = list[Verdict](), Counter[str]()
    for row in rows:
        reason = unfit(row)
        if reason:
            left[reason] += 1
            continue
        order = sorted(range(len(row.responses)), key=row.responses.__getitem__)
        names = tuple(repr((row.prompt, row.responses[number])) for number in order)
        shown = tuple(order.index(number) for number in range(len(order))) if row.shown else ()
        place = tuple(row.place[number] for number in order)
        table.append(Verdict(str(row.annotator), " ".join(names), place, shown, names))
    return table, left


def unfit(row: PreferenceRow) -> str | None:
    """Why a row is no verdict; None where it is one."""
    if row.annotator is None:
        return "rows without an annotator"
    if row.best_only and len(row.responses) > 2:
        return "rows of which only the best is known"
    return None if len(set(row.responses)) == len(row.responses) > 1 else "rows without different responses"
