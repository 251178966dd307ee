"""The forms of a preference file: the columns that each has, and an example row. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

TRAITS = ("annotator", "group", "margin", "shown")
"""Columns that any form may have beside its own: who judged, which ranking a pair is from, a margin for the loss, and
whether the responses stand as they were shown (true unless told)."""
ALIASES = {"context": "prompt", "response1": "first", "response2": "second", "overall_preference": "strength"}
"""Names that HelpSteer3 gives to the columns of signed strengths (Wang et al. 2025, arXiv 2505.11475)."""


@dataclass(frozen=True)
class FormSpec:
    """The columns that show a form, what it says, and a row of it."""

    marks: tuple[str, ...]
    about: str
    example: str


FormName: TypeAlias = Literal[
    "pairs", "implicit", "hh", "comparison", "soft", "strength", "choice", "ranking", "scores"
]  # fmt: skip
"""The names of `FORMS`, for flags."""
FORMS = {
    "pairs": FormSpec(
        ("chosen", "rejected"),
        "the better and the worse response; strings or lists of messages; without prompt: what both begin with",
        '{"prompt": "Name a bird.", "chosen": "A heron.", "rejected": "A trout."}',
    ),
    "implicit": FormSpec(
        (),
        "the same, the prompt standing at the beginning of both",
        '{"chosen": [{"role": "user", "content": "Name a bird."}, {"role": "assistant", "content": "A heron."}], '
        '"rejected": [{"role": "user", "content": "Name a bird."}, {"role": "assistant", "content": "A trout."}]}',
    ),
    "hh": FormSpec(
        (),
        "two whole dialogues as text",
        r'{"chosen": "\n\nHuman: Name a bird.\n\nAssistant: A heron.", '
        r'"rejected": "\n\nHuman: Name a bird.\n\nAssistant: A trout."}',
    ),
    "comparison": FormSpec(
        ("preference",),
        'two responses as they were shown; preference is "first", "second" or "tie"; strength may stand beside it',
        '{"prompt": "Name a bird.", "first": "A trout.", "second": "A heron.", "preference": "second"}',
    ),
    "soft": FormSpec(
        ("probability",),
        "two responses, and the probability that the first is preferred (0.5 is a tie)",
        '{"prompt": "Name a bird.", "first": "A heron.", "second": "A gull.", "probability": 0.6}',
    ),
    "strength": FormSpec(
        ("strength", "overall_preference"),
        "two responses, and how much better one is: -3 the first much, 0 a tie, 3 the second much",
        '{"prompt": "Name a bird.", "first": "A heron.", "second": "A trout.", "strength": -3}',
    ),
    "choice": FormSpec(
        ("choice",),
        "K responses, and the number of the best, counted from 0",
        '{"prompt": "Name a bird.", "responses": ["A trout.", "A heron.", "A bat."], "choice": 1}',
    ),
    "ranking": FormSpec(
        ("ranking",),
        "K responses, and their numbers from 0, best first; those that tie in a list of their own",
        '{"prompt": "Name a bird.", "responses": ["A trout.", "A heron.", "A bat."], "ranking": [1, [0, 2]]}',
    ),
    "scores": FormSpec(
        ("scores",),
        "K responses, and a score for each; the higher, the better",
        '{"prompt": "Name a bird.", "responses": ["A trout.", "A heron."], "scores": [0.5, 2]}',
    ),
}


def detect(columns: Collection[str]) -> str | None:
    """The form that has these columns; None where none has. A strength beside `responses` alone marks none."""
    marks = set(columns)
    if "responses" in marks and "first" not in marks:
        marks -= {"strength"}
    return next((name for name, form in FORMS.items() if marks.intersection(form.marks)), None)
