"""How a row is read from the columns of each form: every field checked, one type for all. Pure.

Columns that a form does not know are ignored.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from killick.preferences.formats.dialogues import (
    BadField,
    after_prompt,
    clean,
    from_hh,
    kind,
    part_dialogues,
    part_texts,
    response,
    turns,
    without,
)
from killick.preferences.formats.forms import ALIASES
from killick.preferences.rows import PreferenceRow, Turn, Turns, places

Record: TypeAlias = Mapping[str, Any]
Parts: TypeAlias = tuple[Turns, Turns, Turns]
SPOKEN = ("user", "assistant", "assistant")
"""Who says a prompt and its two responses, where each is a text."""


def read(record: Record, form: str) -> PreferenceRow:
    """A row of the form.

    Raises:
        BadField: naming the first field that cannot be used.
    """
    return READERS[form](record)


def needed(record: Record, field: str) -> Any:
    """A field that must be there.

    Raises:
        BadField: where it is missing; a name in another case is told.
    """
    if field in record:
        return record[field]
    close = [name for name in record if isinstance(name, str) and name.casefold() == field]
    raise BadField(field, "is missing" + (f" (there is {close[0]!r}: names are in lower case)" if close else ""))


def number(value: object, field: str) -> float:
    """A finite number.

    Raises:
        BadField: where it is none.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadField(field, f"must be a number, not {kind(value)}")
    if not abs(value) < 1e300:  # so that no difference of two overflows
        raise BadField(field, "must be a finite number")
    return float(value)


def whole(value: object, field: str, *, low: int, high: int) -> int:
    """A whole number between two bounds.

    Raises:
        BadField: where it is none, or lies outside.
    """
    found = number(value, field)
    if not (found.is_integer() and low <= found <= high):
        raise BadField(field, f"must be a whole number in {low}..{high}")
    return int(found)


def traits(record: Record) -> dict[str, Any]:
    """The columns that any form may have; one that is null is as good as absent.

    Raises:
        BadField: where one holds what it cannot.
    """
    found: dict[str, Any] = {}
    for field in ("annotator", "group"):
        value = record.get(field)
        if value is not None:
            if type(value) is int and value.bit_length() <= 64:
                value = str(value)
            if not isinstance(value, str):
                raise BadField(field, f"must be a string or a whole number, not {kind(value)}")
            found[field] = clean(value, field)
    if record.get("margin") is not None:
        found["margin"] = number(record["margin"], "margin")
    return found


def shown(record: Record) -> bool:
    """Whether the responses stand in the order that the annotator saw: true unless told.

    Raises:
        BadField: where it is neither true nor false.
    """
    value = record.get("shown")
    if value is not None and not isinstance(value, bool):
        raise BadField("shown", f"must be true or false, not {kind(value)}")
    return value is not False


def read_pairs(record: Record) -> PreferenceRow:
    """Chosen and rejected, with the prompt, or with what both begin with."""
    chosen, rejected = needed(record, "chosen"), needed(record, "rejected")
    if "prompt" not in record:
        dialogues = all(isinstance(side, str) and side.startswith("\n\nHuman:") for side in (chosen, rejected))
        return read_hh(record) if dialogues else read_implicit(record)
    prompt = turns(record["prompt"], "prompt", role="user")
    better = turns(chosen, "chosen", role="assistant")
    worse = turns(rejected, "rejected", role="assistant")
    return sure(record, after_prompt(prompt, better, second=worse))


def read_implicit(record: Record) -> PreferenceRow:
    """Chosen and rejected, each with the prompt at its beginning: two strings or two lists of messages."""
    chosen, rejected = needed(record, "chosen"), needed(record, "rejected")
    if isinstance(chosen, str) and isinstance(rejected, str):
        parts = part_texts(clean(chosen, "chosen"), clean(rejected, "rejected"))
        prompt, better, worse = ((Turn(role, said),) for role, said in zip(SPOKEN, parts, strict=True))
        return sure(record, (prompt, better, worse))
    if isinstance(chosen, str) or isinstance(rejected, str):
        raise BadField("rejected", "must be of one kind with chosen: two strings or two lists of messages")
    return sure(record, part_dialogues(turns(chosen, "chosen", role="user"), turns(rejected, "rejected", role="user")))


def read_hh(record: Record) -> PreferenceRow:
    """Chosen and rejected, each a dialogue in one text."""
    chosen, rejected = needed(record, "chosen"), needed(record, "rejected")
    return sure(record, part_dialogues(from_hh(chosen, "chosen"), from_hh(rejected, "rejected")))


def sure(record: Record, parts: Parts) -> PreferenceRow:
    """A sure preference; nobody knows which response was shown first."""
    prompt, chosen, rejected = parts
    for field, value in (("chosen", chosen), ("rejected", rejected)):
        if not value:
            raise BadField(field, "is the prompt and nothing else")
        response(value, field)
    if chosen == rejected:
        raise BadField("rejected", "is the same as chosen, so nothing is preferred")
    return PreferenceRow(prompt, (chosen, rejected), (0, 1), shown=False, **traits(record))


def two(record: Record) -> tuple[Turns, tuple[Turns, Turns]]:
    """The prompt, and the responses `first` and `second`."""
    prompt = turns(needed(record, "prompt"), "prompt", role="user")
    first, second = (turns(needed(record, side), side, role="assistant") for side in ("first", "second"))
    prompt, first, second = after_prompt(prompt, first, second=second)
    for field, value in (("first", first), ("second", second)):
        if not value:
            raise BadField(field, "is the prompt and nothing else")
        response(value, field)
    return prompt, (first, second)


def compared(record: Record, value: float, **judged: Any) -> PreferenceRow:
    """Two responses, of which the first is better where `value` is above 0, and the second where it is below.

    Raises:
        BadField: where two equal responses are told apart.
    """
    prompt, responses = two(record)
    if value and responses[0] == responses[1]:
        raise BadField("second", "is the same as first, so neither is preferred")
    place = places([value, 0.0])
    return PreferenceRow(prompt, responses, place, shown=shown(record), **judged, **traits(record))


def read_comparison(record: Record) -> PreferenceRow:
    """first, second, which is preferred, and (where the column is there and not null) how strongly."""
    signs = {"first": 1, "second": -1, "tie": 0}
    preference = needed(record, "preference")
    if not isinstance(preference, str) or preference not in signs:
        raise BadField("preference", 'must be "first", "second" or "tie"')
    sign, strength = signs[preference], None
    if record.get("strength") is not None:
        strength = whole(record["strength"], "strength", low=-3, high=3)
        if (strength < 0) - (strength > 0) != sign:
            raise BadField("strength", "says another than preference; -3 is for the first, 3 for the second")
    return compared(record, float(sign), strength=strength)


def read_soft(record: Record) -> PreferenceRow:
    """first, second, and the probability that the first is preferred."""
    probability = number(needed(record, "probability"), "probability")
    if not 0 <= probability <= 1:
        raise BadField("probability", "must lie in 0..1")
    return compared(record, probability - 0.5, probability=probability)


def read_strength(record: Record) -> PreferenceRow:
    """first, second, and a signed strength; the columns may have HelpSteer3's names."""
    known = {ALIASES.get(name, name): value for name, value in record.items()}
    strength = whole(needed(known, "strength"), "strength", low=-3, high=3)
    return compared(known, float(-strength), strength=strength)


def several(record: Record) -> tuple[Turns, tuple[Turns, ...]]:
    """The prompt, and one or more `responses`."""
    prompt, given = turns(needed(record, "prompt"), "prompt", role="user"), needed(record, "responses")
    if not isinstance(given, list) or not given:
        raise BadField("responses", f"must be a list of responses, not {'empty' if given == [] else kind(given)}")
    responses = []
    for place, value in enumerate(given):
        field = f"responses[{place}]"
        after = without(turns(value, field, role="assistant"), prompt)
        if not after:
            raise BadField(field, "is the prompt and nothing else")
        responses.append(response(after, field))
    return prompt, tuple(responses)


def read_choice(record: Record) -> PreferenceRow:
    """responses, and the number of the best; the others were not compared with each other."""
    prompt, responses = several(record)
    best = whole(needed(record, "choice"), "choice", low=0, high=len(responses) - 1)
    place = tuple(int(index != best) for index in range(len(responses)))
    # Of two, nothing is left uncompared.
    only = len(responses) > 2
    return PreferenceRow(prompt, responses, place, best_only=only, shown=shown(record), **traits(record))


def read_ranking(record: Record) -> PreferenceRow:
    """responses, and their numbers from 0, best first, ties in lists of their own; each stands in it once."""
    prompt, responses = several(record)
    given = needed(record, "ranking")
    if not isinstance(given, list):
        raise BadField("ranking", f"must be a list of numbers and lists of numbers, not {kind(given)}")
    place: dict[int, int] = {}
    for rank, entry in enumerate(given):
        for member in entry if isinstance(entry, list) else [entry]:
            index = whole(member, f"ranking[{rank}]", low=0, high=len(responses) - 1)
            if index in place:
                raise BadField(f"ranking[{rank}]", "names a response for the second time")
            place[index] = rank
        if entry == []:
            raise BadField(f"ranking[{rank}]", "is an empty list")
    if len(place) < len(responses):
        raise BadField("ranking", f"names {len(place)} of {len(responses)} responses")
    ordered = tuple(place[index] for index in range(len(responses)))
    return PreferenceRow(prompt, responses, ordered, shown=shown(record), **traits(record))


def read_scores(record: Record) -> PreferenceRow:
    """responses, and a score for each."""
    prompt, responses = several(record)
    given = needed(record, "scores")
    if not isinstance(given, list) or len(given) != len(responses):
        raise BadField("scores", f"must be a list of {len(responses)} numbers, one for each response")
    scores = tuple(number(value, f"scores[{index}]") for index, value in enumerate(given))
    return PreferenceRow(prompt, responses, places(scores), scores=scores, shown=shown(record), **traits(record))


READERS: dict[str, Callable[[Record], PreferenceRow]] = {
    "pairs": read_pairs,
    "implicit": read_implicit,
    "hh": read_hh,
    "comparison": read_comparison,
    "soft": read_soft,
    "strength": read_strength,
    "choice": read_choice,
    "ranking": read_ranking,
    "scores": read_scores,
}
