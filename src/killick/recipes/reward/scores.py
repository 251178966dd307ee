"""Texts of a file, and what a reward model says of each."""

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from killick.models.judging import PretrainedReward
from killick.preferences.formats.cells import from_cells, spoken
from killick.preferences.formats.dialogues import BadField, turns
from killick.preferences.formats.forms import detect
from killick.preferences.formats.lines import layout, records
from killick.preferences.formats.reading import read
from killick.preferences.rows import BadRow, Turn, Turns
from killick.recipes.ledger import Note
from killick.recipes.reward.states import Progress, estimate_words
from killick.stopwatch import moment
from killick.types import Refusal, check_finite

PIECE = 256
"""Texts that are encoded and scored together."""
NAMES = ("response", "text", "completion", "answer")
"""What the column of one response may be called."""
SHOWN = 3
"""Bad rows that a refusal names, out of all that it counts."""


class Asked(NamedTuple):
    """A text to be scored: where it stands, counted from 1, and its number among the responses of that row, from 0."""

    line: int
    place: int
    prompt: Turns
    response: Turns


def read_texts(path: Path) -> list[Asked]:
    """Every response of a file: of rows with `prompt` and `response` (or `responses`), or of a preference file.

    Args:
        path: ends in .jsonl, .csv (either with .gz behind it) or .parquet.

    Raises:
        Refusal: where it cannot be read or holds no response; naming lines, fields and reasons where rows are bad.
    """
    cells = layout(path)[0] == "csv"
    found, bad = list[Asked](), list[BadRow]()
    for line, record in records(path):
        if isinstance(record, BadRow):
            bad.append(record)
            continue
        try:
            prompt, responses = asked(from_cells(record) if cells else record)
        except BadField as error:
            bad.append(BadRow(line, error.field, error.reason))
            continue
        found += [Asked(line, place, prompt, response) for place, response in enumerate(responses)]
    if bad:
        told = "; ".join(f"line {row.line}, {row}" for row in bad[:SHOWN]) + ("; ..." if len(bad) > SHOWN else "")
        raise Refusal(f"{path}: {len(bad)} bad row{'s' * (len(bad) > 1)} ({told}), so nothing was scored.")
    if not found:
        raise Refusal(f"{path} holds no response.")
    return found


def asked(record: dict[str, Any]) -> tuple[Turns, tuple[Turns, ...]]:
    """The prompt of a record and its responses.

    Raises:
        BadField: naming what is missing or cannot be used.
    """
    form = detect(record)
    if form is not None:
        row = read(record, form)
        return row.prompt, row.responses
    if record.get("prompt") is None:
        raise BadField("prompt", f"is missing; the columns are {', '.join(map(str, record))[:200] or 'none'}")
    prompt = turns(record["prompt"], "prompt", role="user")
    several = record.get("responses")
    if isinstance(several, list):
        return prompt, tuple(said(each, f"responses[{place}]") for place, each in enumerate(several))
    name = next((name for name in NAMES if record.get(name) is not None), None)
    if name is None:
        raise BadField("response", f"is missing; the columns are {', '.join(map(str, record))[:200]}")
    return prompt, (said(record[name], name),)


def said(value: Any, field: str) -> Turns:
    """A response, which may be empty: an answer that ended at once."""
    value = spoken(field, value) if isinstance(value, str) else value
    return (Turn("assistant", ""),) if value == "" else turns(value, field, role="assistant")


def score_texts(
    judge: PretrainedReward, texts: Sequence[Asked], *, name: str
) -> Generator[Note | Progress, None, Float[Tensor, "head row"]]:
    """What a model says of each text: its score, and below it those of its members where it has several.

    Args:
        judge: the model.
        texts: to be scored.
        name: of the model, for whoever watches.

    Raises:
        Refusal: at the first text that the model cannot read, with its line.
        NonFinite: where a score is no number.
    """
    found, began, told = list[Tensor](), moment(), False
    for start in range(0, len(texts), PIECE):
        some = texts[start : start + PIECE]
        prompts, responses = [each.prompt for each in some], [each.response for each in some]
        try:
            each = judge.each(prompts, responses)
        except Refusal:
            check_readable(judge, some)
            raise
        check_finite(f"The scores of {name} are", each.T)
        found.append(torch.cat((each.mean(0, keepdim=True), each)) if len(each) > 1 else each)
        done = start + len(some)
        if not told and done < len(texts):
            told = True
            words = estimate_words(moment().wall - began.wall, done, left=len(texts) - done)
            yield from [Note(f"{name}: {words}")] if words else []
        yield Progress(f"scoring with {name}", done, len(texts))
    cut = judge.cut([each.prompt for each in texts], [each.response for each in texts])
    yield from [Note(f"{name}: {cut}")] if cut else []
    return torch.cat(found, 1)


def check_readable(judge: PretrainedReward, texts: Sequence[Asked]) -> None:
    """Name the first text that cannot be read.

    Raises:
        Refusal: with its line.
    """
    for each in texts:
        try:
            judge.read([each.prompt], [each.response])
        except Refusal as error:
            raise Refusal(f"line {each.line}: {error}") from error


def rows(
    texts: Sequence[Asked], scores: dict[str, Float[Tensor, "head row"]], *, members: bool
) -> Iterator[dict[str, Any]]:
    """One row a text: where it stands, what it says, and what each model says of it.

    Args:
        texts: in the file's order.
        scores: name of a model -> its scores, as `score_texts` gives them.
        members: also what each head of an ensemble says.
    """
    for number, each in enumerate(texts):
        row: dict[str, Any] = {"line": each.line, "place": each.place, "prompt": plain(each.prompt, "user")}
        row["response"] = plain(each.response, "assistant")
        for name, found in scores.items():
            column = "score" if len(scores) == 1 else f"score {name}"
            row[column] = float(found[0, number])
            if members and len(found) > 1:
                row[f"{column} members"] = found[1:, number].tolist()
        yield row


def plain(given: Turns, alone: str) -> Any:
    """Turns as they are written: one turn of the role alone as its text, others as messages."""
    if len(given) == 1 and given[0].role == alone:
        return given[0].content
    return [{"role": turn.role, "content": turn.content} for turn in given]
