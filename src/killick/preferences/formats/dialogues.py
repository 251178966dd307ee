"""Texts, message lists and dialogues: checked, and taken apart into a prompt and what follows it. Pure."""

import re
import unicodedata
from typing import Any

from killick.preferences.rows import Turn, Turns

ROLES = ("system", "developer", "user", "assistant", "tool")
SPEAKERS = {"Human": "user", "Assistant": "assistant"}
MARK = re.compile(r"\n\n(Human|Assistant):")


class BadField(ValueError):
    """A field of a row that cannot be used: its name, and why. It never repeats what the field holds."""

    def __init__(self, field: str, reason: str):
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


def kind(value: object) -> str:
    """What a value is, in the words of JSON."""
    names = {
        type(None): "null", dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "a number",
        float: "a number",
    }  # fmt: skip
    return names.get(type(value), f"a {type(value).__name__}")


def clean(value: str, field: str, *, empty: bool = False) -> str:
    """The text, where it says something and every UTF-8 file and every database can keep it.

    Raises:
        BadField: where it is empty, or holds a null character or half a surrogate pair.
    """
    if not empty and (not value or value.isspace()):
        raise BadField(field, "is empty")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise BadField(field, "holds half of a surrogate pair, which is no character") from error
    if "\0" in value:
        raise BadField(field, "holds a null character")
    return value


def turns(value: object, field: str, *, role: str) -> Turns:
    """Turns of a string (one turn of `role`) or of a list of messages.

    Raises:
        BadField: where it is neither, or one of its messages says nothing.
    """
    if isinstance(value, str):
        return (Turn(role, clean(value, field)),)
    if not isinstance(value, list):
        raise BadField(field, f"must be a string or a list of messages, not {kind(value)}")
    if not value:
        raise BadField(field, "is an empty list of messages")
    return tuple(message(each, f"{field}[{place}]") for place, each in enumerate(value))


def message(value: object, field: str) -> Turn:
    """One message: an object with a role and a content; a system turn may be empty."""
    if not isinstance(value, dict):
        raise BadField(field, f'must be a message, as {{"role": "user", "content": "..."}}, not {kind(value)}')
    role, content = value.get("role"), value.get("content")
    if role not in ROLES:
        raise BadField(f"{field}.role", f"must be one of {', '.join(ROLES)}")
    if not isinstance(content, str):
        raise BadField(f"{field}.content", f"must be a string, not {kind(content)}")
    return Turn(role, clean(content, f"{field}.content", empty=role == "system"))


def response(value: Turns, field: str) -> Turns:
    """What follows a prompt: it begins and ends with the assistant.

    Raises:
        BadField: where it does not.
    """
    if value[0].role != "assistant" or value[-1].role != "assistant":
        raise BadField(field, "must begin and end with a turn of the assistant, after the prompt")
    return value


def after_prompt(prompt: Turns, first: Turns, *, second: Turns) -> tuple[Turns, Turns, Turns]:
    """Prompt and both responses, where a message list may repeat the prompt before its answer (O-11).

    A shared beginning that ends in the prompt (a system turn before it) is the prompt.
    """
    shared = first[: common(first, second)]
    if len(shared) >= len(prompt) and shared[-len(prompt) :] == prompt:
        return shared, first[len(shared) :], second[len(shared) :]
    return prompt, without(first, prompt), without(second, prompt)


def without(dialogue: Turns, prompt: Turns) -> Turns:
    """What follows the prompt, where the dialogue repeats it."""
    return dialogue[len(prompt) :] if dialogue[: len(prompt)] == prompt else dialogue


def common(first: Turns | str, second: Turns | str) -> int:
    """How many turns or characters two share at their beginning: all of the shorter, where it is one (O-10)."""
    both = zip(first, second, strict=False)
    return next((k for k, (one, other) in enumerate(both) if one != other), min(len(first), len(second)))


def part_dialogues(chosen: Turns, rejected: Turns) -> tuple[Turns, Turns, Turns]:
    """The shared beginning of two dialogues, and how each goes on with a turn of the assistant (O-10).

    Raises:
        BadField: where they are equal, share no turn, one has no answer of its own, or the user differs first.
    """
    if chosen == rejected:
        raise BadField("rejected", "is the same dialogue as chosen")
    k = common(chosen, rejected)
    if not k:
        raise BadField("rejected", "shares no first turn with chosen, so there is no prompt")
    for field, dialogue in (("chosen", chosen), ("rejected", rejected)):
        if len(dialogue) == k:
            raise BadField(field, "is the beginning of the other dialogue, so it has no answer of its own")
        if dialogue[k].role != "assistant":
            raise BadField(field, "first differs in a turn that is not the assistant's, so the prompts differ")
    return chosen[:k], chosen[k:], rejected[k:]


def part_texts(chosen: str, rejected: str) -> tuple[str, str, str]:
    """The shared beginning of two texts, up to a whole word, and how each goes on, white space included (O-10).

    Raises:
        BadField: where they are equal, share no whole word, or one has no answer of its own.
    """
    if chosen == rejected:
        raise BadField("rejected", "is the same text as chosen")
    k = common(chosen, rejected)
    while k and not (boundary(chosen, k) and boundary(rejected, k)):
        k -= 1
    prompt = chosen[:k].rstrip()
    if not prompt:
        raise BadField("rejected", "shares no whole word with the beginning of chosen, so there is no prompt")
    first, second = chosen[len(prompt) :], rejected[len(prompt) :]
    for field, answer in (("chosen", first), ("rejected", second)):
        if not answer.strip():
            raise BadField(field, "is the beginning of the other text, so it has no answer of its own")
    return prompt, first, second


def boundary(value: str, place: int) -> bool:
    """Whether a text may be cut here: beside white space, at its end, or beside a letter that is a word by itself.

    Never before a combining mark, nor around a joiner: those belong to the character before.
    """
    if place == len(value):
        return True
    before, after = value[place - 1], value[place]
    if before.isspace() or after.isspace():
        return (before, after) != ("\r", "\n")
    if unicodedata.category(after)[0] == "M" or "Cf" in (unicodedata.category(before), unicodedata.category(after)):
        return False
    return word_alone(before) or word_alone(after)


def word_alone(character: str) -> bool:
    """Whether it is written without spaces around words: Han, hiragana and their punctuation."""
    if unicodedata.east_asian_width(character) not in "WF" or "\uac00" <= character <= "\ud7a3":
        return False
    katakana = "\u30a0" <= character <= "\u30ff"
    return unicodedata.category(character)[0] in "LP" and not katakana


def from_hh(value: object, field: str) -> Turns:
    r"""Turns of a text such as "\n\nHuman: ...\n\nAssistant: ...".

    Raises:
        BadField: where it does not begin so, or a turn says nothing.
    """
    if not isinstance(value, str):
        raise BadField(field, f"must be a string, not {kind(value)}")
    head, *parts = MARK.split(value)
    if head or not parts:
        raise BadField(field, r'must begin with "\n\nHuman:"')
    said = zip(parts[::2], parts[1::2], strict=True)
    return tuple(Turn(SPEAKERS[who], clean(what.removeprefix(" "), field)) for who, what in said)


def to_hh(dialogue: Turns) -> str:
    """A dialogue in the HH form.

    Raises:
        BadField: where it would not read back as the same turns.
    """
    names = {role: name for name, role in SPEAKERS.items()}
    if all(turn.role in names for turn in dialogue):
        told = "".join(f"\n\n{names[turn.role]}: {turn.content}" for turn in dialogue)
        if from_hh(told, "dialogue") == dialogue:
            return told
    raise BadField("dialogue", "has a turn that is neither the human's nor the assistant's, or that spells a mark")


def to_value(dialogue: Turns, *, messages: bool, role: str) -> Any:
    """A string, or a list of messages.

    Raises:
        BadField: where a string was asked for, and it has several turns.
    """
    if messages:
        return [turn._asdict() for turn in dialogue]
    if len(dialogue) != 1 or dialogue[0].role != role:
        raise BadField("dialogue", "has several turns, which no string can keep")
    return dialogue[0].content
