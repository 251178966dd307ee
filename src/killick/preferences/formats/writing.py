"""How a row is written in the columns of each form, and what that loses: found by reading it back. Pure."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from killick.preferences.formats.dialogues import BadField, to_hh, to_value
from killick.preferences.formats.reading import read
from killick.preferences.rows import PreferenceRow, judged_pairs

Columns: TypeAlias = dict[str, Any]
SURE = ("pairs", "implicit", "hh")
"""Forms that say which response was chosen, and not which was shown first."""
TOGETHER = ("choice", "ranking", "scores")
"""Forms that hold all responses to a prompt in one row; the others hold two."""


@dataclass(frozen=True)
class Written:
    """The rows that one judgement became, and what they no longer say: words -> how often."""

    records: list[Columns]
    lost: Counter[str] = field(default_factory=Counter)


def write(row: PreferenceRow, form: str, *, messages: bool = False) -> Written:
    """A judgement in a form; what was ranked together becomes all its pairs, where the form has two responses.

    Args:
        row: what is written.
        form: a name of `FORMS`.
        messages: lists of messages; else strings, where the form has both.

    Raises:
        BadField: where nothing sensible can be written, or it would not read back as the same texts.
    """
    if form in TOGETHER:
        return one(row, form, messages=messages)
    lost: Counter[str] = Counter()
    records = []
    parts = list(judged_pairs(row))
    if len(row.responses) == 1:
        lost["rows with one response, which give no pair, are left out"] += 1
    elif len(row.responses) > 2:
        lost["rows with several responses became pairs, those of a row with one group"] += 1
    for part in parts:
        if part.place[0] == part.place[1] and form in SURE:
            lost["ties have no chosen response and are left out"] += 1
            continue
        if part.responses[0] == part.responses[1] and part.place[0] != part.place[1]:
            lost["pairs of equal responses are left out"] += 1
            continue
        found = one(part, form, messages=messages)
        records += found.records
        lost += found.lost
    return Written(records, lost)


def one(row: PreferenceRow, form: str, *, messages: bool) -> Written:
    """One row in one record, read back to see what it says now."""
    try:
        record = {**WRITERS[form](row, messages), **traits(row, form)}
        back = read(record, form)
    except BadField as error:
        raise BadField(form, f"this row {error.reason}") from error
    if back.prompt != row.prompt or sorted(back.responses) != sorted(row.responses):
        raise BadField(form, "this row would be read back with another prompt or other responses")
    return Written([record], differences(row, back))


def differences(row: PreferenceRow, back: PreferenceRow) -> Counter[str]:
    """What a row said that it does not say when it is read back."""
    named = {"scores": "scores are lost", "probability": "probability is lost", "strength": "strength is lost"}
    lost = Counter(
        words for name, words in named.items() if getattr(row, name) is not None and getattr(back, name) is None
    )
    if row.shown and not back.shown:
        lost["the order in which responses were shown is lost"] += 1
    if back.best_only and not row.best_only:
        lost["the order of the responses below the best is lost"] += 1
    if row.best_only and not back.best_only:
        lost["responses that nobody compared are written as tied"] += 1
    return lost


def traits(row: PreferenceRow, form: str) -> Columns:
    """The columns beside a form's own: only those that say something."""
    found: Columns = {name: getattr(row, name) for name in ("annotator", "group", "margin")}
    if form not in SURE and not row.shown:
        found["shown"] = False
    return {name: value for name, value in found.items() if value is not None}


def sides(row: PreferenceRow) -> tuple[int, int]:
    """Which of two responses is chosen, and which rejected.

    Raises:
        BadField: at a tie.
    """
    if row.place[0] == row.place[1]:
        raise BadField("pairs", "is a tie, so no response is chosen")
    return (0, 1) if row.place[0] < row.place[1] else (1, 0)


def write_pairs(row: PreferenceRow, messages: bool) -> Columns:
    """prompt, chosen, rejected."""
    chosen, rejected = (to_value(row.responses[side], messages=messages, role="assistant") for side in sides(row))
    return {"prompt": asked(row, messages), "chosen": chosen, "rejected": rejected}


def write_implicit(row: PreferenceRow, messages: bool) -> Columns:
    """Chosen and rejected, each with the prompt: messages one after the other, strings joined as they are."""
    prompt = asked(row, messages)
    chosen, rejected = (to_value(row.responses[side], messages=messages, role="assistant") for side in sides(row))
    return {"chosen": prompt + chosen, "rejected": prompt + rejected}


def write_hh(row: PreferenceRow, _: bool) -> Columns:
    """Chosen and rejected as dialogues in one text."""
    chosen, rejected = (to_hh(row.prompt + row.responses[side]) for side in sides(row))
    return {"chosen": chosen, "rejected": rejected}


def asked(row: PreferenceRow, messages: bool) -> Any:
    """The prompt as a string or as messages."""
    return to_value(row.prompt, messages=messages, role="user")


def two(row: PreferenceRow, messages: bool) -> Columns:
    """prompt, first, second."""
    first, second = (to_value(each, messages=messages, role="assistant") for each in row.responses)
    return {"prompt": asked(row, messages), "first": first, "second": second}


def write_comparison(row: PreferenceRow, messages: bool) -> Columns:
    """first, second, which is preferred, and a strength where there is one."""
    tie = row.place[0] == row.place[1]
    preference = "tie" if tie else ("first", "second")[sides(row)[0]]
    strength = {} if row.strength is None else {"strength": row.strength}
    return {**two(row, messages), "preference": preference, **strength}


def write_soft(row: PreferenceRow, messages: bool) -> Columns:
    """first, second, and the probability that the first is preferred: 1, 0 or 0.5 where none was given."""
    tie = row.place[0] == row.place[1]
    certain = 0.5 if tie else float(1 - sides(row)[0])
    return {**two(row, messages), "probability": certain if row.probability is None else row.probability}


def write_strength(row: PreferenceRow, messages: bool) -> Columns:
    """first, second, and the strength; a tie has strength 0, and no other row gets one from nowhere."""
    if row.strength is None and row.place[0] != row.place[1]:
        raise BadField("strength", "has no strength")
    return {**two(row, messages), "strength": row.strength or 0}


def several(row: PreferenceRow, messages: bool) -> Columns:
    """prompt, responses."""
    responses = [to_value(each, messages=messages, role="assistant") for each in row.responses]
    return {"prompt": asked(row, messages), "responses": responses}


def write_choice(row: PreferenceRow, messages: bool) -> Columns:
    """responses, and the number of the best."""
    if row.place.count(0) > 1:
        raise BadField("choice", "has no single best response")
    return {**several(row, messages), "choice": row.place.index(0)}


def write_ranking(row: PreferenceRow, messages: bool) -> Columns:
    """responses, and their numbers best first, those that tie in lists of their own; lists throughout."""
    groups = [[i for i, at in enumerate(row.place) if at == place] for place in sorted(set(row.place))]
    return {**several(row, messages), "ranking": groups}


def write_scores(row: PreferenceRow, messages: bool) -> Columns:
    """responses, and the score of each, where they were scored."""
    if row.scores is None:
        raise BadField("scores", "has no scores")
    return {**several(row, messages), "scores": list(row.scores)}


WRITERS: dict[str, Callable[[PreferenceRow, bool], Columns]] = {
    "pairs": write_pairs,
    "implicit": write_implicit,
    "hh": write_hh,
    "comparison": write_comparison,
    "soft": write_soft,
    "strength": write_strength,
    "choice": write_choice,
    "ranking": write_ranking,
    "scores": write_scores,
}
