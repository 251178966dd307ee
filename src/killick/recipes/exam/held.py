"""What a reward model is examined on: pairs of a file that it did not learn from, and how right one can be on them."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from killick.preferences.noise import noise
from killick.preferences.rows import PreferenceRow, prompt_key, text
from killick.preferences.text_pairs import TextPairs, text_pairs
from killick.preferences.verdict_tables import from_rows
from killick.recipes.prompts import Prompt, plain
from killick.recipes.reward.data import Placed
from killick.recipes.reward.sources import from_file
from killick.recipes.scores.text_score import as_text
from killick.types import Refusal

FEWEST = 10
"""Held-out pairs below which an exam says nothing."""

Facts = dict[str, Any]
Reader: TypeAlias = Callable[[Prompt], object]
"""Takes a prompt apart, and refuses one that it cannot read."""


@dataclass(frozen=True)
class Held:
    """Held-out pairs, as plain lists.

    Args:
        prompts, answers: one entry for each distinct answer to a prompt.
        unit: the number of each entry's prompt; prompts that differ in case or outer spaces only share one.
        pairs: numbers of entries, labels, strengths; no ties and no equal answers.
        taught: chosen and rejected answers that the model may have learned from; else those of the pairs themselves.
        ceiling: how right a model can be, or why that is not known.
        facts: what is examined, and what was left out.
    """

    prompts: list[Prompt]
    answers: list[str]
    unit: list[int]
    pairs: TextPairs
    taught: list[tuple[str, str]]
    ceiling: Facts
    facts: Facts

    def firsts(self) -> list[int]:
        """Of each prompt, the number of the answer that is chosen in its first pair."""
        found: dict[int, int] = {}
        for entry in self.pairs.chosen:
            found.setdefault(self.unit[entry], entry)
        return list(found.values())


def read_held(
    file: Path, learned: Collection[str] | None, *, readers: Sequence[Reader] = (), skip_bad: bool = False
) -> Held:
    """The pairs of a file that a reward model is examined on.

    Args:
        file: a preference file of any form.
        learned: hashes (`prompt_key`, in hex) of the prompts that it learned from; None where nobody knows.
        readers: what has to read each prompt, before any work is done.
        skip_bad: leave out (and count) rows that are bad, or whose prompts a reader refuses, instead of refusing the
            file.

    Raises:
        Refusal: where the file cannot be read, naming the line where there is one, or fewer than ten pairs are left.
    """
    source = from_file(file, skip_bad=skip_bad)
    seen = [learned is not None and prompt_key(row).hex() in learned for _, row in source.placed]
    known = [row for (_, row), was in zip(source.placed, seen, strict=True) if was]
    examined = [each for each, was in zip(source.placed, seen, strict=True) if not was]
    kept, unread = legible(examined, readers, file=file if not skip_bad else None)
    rows = known + kept
    pairs = text_pairs(kept, ties="out")
    if len(pairs) < FEWEST:
        side = f" whose prompts the reward model did not learn from (it knows {len(known)} of {len(rows)} rows)"
        raise Refusal(
            f"{file} holds {len(pairs)} pairs with a winner{side * bool(known)}; an exam needs {FEWEST} or more"
            + (
                "."
                if not known
                else ": give pairs of other prompts, or fit with a larger last share (--shares .7 .1 .2)."
            )
        )
    others = text_pairs(known, ties="out") if known else pairs
    prompts = [plain(prompt) for prompt in pairs.prompts]
    units: dict[str, int] = {}
    unit = [units.setdefault(as_text(prompt).strip().casefold(), len(units)) for prompt in prompts]
    left = pairs.counts + source.left + Counter({"rows whose prompt a model cannot read": unread})
    facts = {
        "rows": len(kept), "rows_known": len(known), "pairs": len(pairs), "prompts": len(units), "left_out": dict(left),
        "phrases_from": "pairs that it learned from" if known else "the held-out pairs themselves",
        **told(len(pairs), len(units), learned=learned, known=len(known)),
    }  # fmt: skip
    answers = [words(turns) for turns in pairs.responses]
    return Held(prompts, answers, unit, pairs, texts_of(others), ceiling_of(rows, pairs), facts)


def legible(
    placed: Sequence[Placed], readers: Sequence[Reader], *, file: Path | None
) -> tuple[list[PreferenceRow], int]:
    """The rows whose prompts all readers read, and how many others there are.

    Raises:
        Refusal: at the first of the others, where a file is given to be named.
    """
    faults: dict[str, Refusal | None] = {}
    good = []
    for where, row in placed:
        said = str(row.prompt)
        if said not in faults:
            faults[said] = fault(plain(row.prompt), readers)
        if faults[said] is None:
            good.append(row)
        elif file is not None:
            raise Refusal(f"{file}, {where}: {faults[said]} (--skip-bad leaves such rows out.)")
    return good, len(placed) - len(good)


def fault(prompt: Prompt, readers: Sequence[Reader]) -> Refusal | None:
    """Why one of the readers refuses a prompt."""
    try:
        for read in readers:
            read(prompt)
    except Refusal as error:
        return error
    return None


def told(pairs: int, prompts: int, *, learned: Collection[str] | None, known: int) -> dict[str, str]:
    """Which pairs are examined, and what is not sure about that."""
    first = f"Examined on {pairs} pairs of {prompts} prompts"
    if learned is None:
        return {
            "told": f"{first}: all of the file, since nothing says what the reward model learned from.",
            "unsure": "Whether it has seen these pairs: nothing says what it learned from. If it has, it is less often "
            "right than it seems here.",
        }  # fmt: skip
    if known:
        return {"told": f"{first}, all of the file but {known} rows whose prompts it learned from, or was chosen by."}
    return {"told": f"{first}: all of the file, whose prompts it neither learned from nor was chosen by."}


def words(turns: Any) -> str:
    """An answer as one text."""
    return text(turns, "assistant")


def texts_of(pairs: TextPairs) -> list[tuple[str, str]]:
    """Chosen and rejected answer of each pair."""
    return [
        (words(pairs.responses[chosen]), words(pairs.responses[rejected]))
        for chosen, rejected in zip(pairs.chosen, pairs.rejected, strict=True)
    ]


def ceiling_of(rows: Sequence[PreferenceRow], pairs: TextPairs) -> Facts:
    """The largest accuracy that any reward model can have on these labels.

    Soft labels tell it themselves: a label drawn from them agrees with the likelier side in the mean of the labels.
    Else the annotators' agreement does, over the whole file (`preferences.noise`).
    """
    facts: Facts = {"ceiling": None, "low": None, "high": None, "source": None, "reason": None}
    if any(label < 1 for label in pairs.label):
        mean = sum(pairs.label) / len(pairs)
        return facts | {"ceiling": mean, "low": mean, "high": mean, "source": "soft labels"}
    table, _ = from_rows(rows)
    _, pooled = noise(table)
    if pooled is not None:
        low, high = pooled.ceiling_interval
        return facts | {
            "ceiling": pooled.ceiling, "low": low, "high": high, "source": "agreement of annotators",
            "kappa": pooled.kappa,
        }  # fmt: skip
    names = len({verdict.annotator for verdict in table})
    if not names:
        why = "the file names no annotators and has no soft labels"
    elif names == 1:
        why = "one annotator alone shows no noise"
    else:
        why = f"its {names} annotators judged too few of the same pairs to show how noisy they are"
    return facts | {"reason": why}
