"""What a reward model is examined on: pairs of a file that it did not learn from, and how right one can be on them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from killick.preferences.files import read_preferences
from killick.preferences.noise import noise
from killick.preferences.rows import PreferenceRow, text
from killick.preferences.text_pairs import TextPairs, text_pairs
from killick.preferences.verdict_tables import from_rows
from killick.recipes.prompts import Prompt, plain, prompt_words
from killick.types import Refusal

FEWEST = 10
"""Held-out pairs below which an exam says nothing."""

Facts = dict[str, Any]


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


def read_held(file: Path, learned: Callable[[PreferenceRow], bool] | None, *, skip_bad: bool = False) -> Held:
    """The pairs of a file that a reward model is examined on.

    Args:
        file: a preference file of any form.
        learned: whether the model learned from a row; None where it never saw the file.
        skip_bad: leave bad rows out instead of refusing the file.

    Raises:
        Refusal: where the file cannot be read, or fewer than ten pairs are left.
    """
    rows, bad = read_preferences(file, skip_bad=skip_bad)
    kept = [row for row in rows if learned is None or not learned(row)]
    pairs = text_pairs(kept, ties="out")
    if len(pairs) < FEWEST:
        side = "" if learned is None else f" that the reward model did not learn from (of {len(rows)} rows)"
        raise Refusal(f"{file} holds {len(pairs)} pairs with a winner{side}; an exam needs {FEWEST} or more.")
    others = pairs if learned is None else text_pairs([row for row in rows if learned(row)], ties="out")
    prompts = [plain(prompt) for prompt in pairs.prompts]
    units: dict[str, int] = {}
    unit = [units.setdefault(prompt_words(prompt).strip().casefold(), len(units)) for prompt in prompts]
    left = pairs.counts + Counter({"bad rows": len(bad)} if bad else {})
    facts = {
        "rows": len(kept), "rows_in_file": len(rows), "pairs": len(pairs), "prompts": len(units),
        "left_out": dict(left), "learned_pairs": None if learned is None else len(others),
        "soft": any(label < 1 for label in pairs.label),
    }  # fmt: skip
    return Held(
        prompts,
        [words(turns) for turns in pairs.responses],
        unit,
        pairs,
        texts_of(others),
        ceiling_of(rows, pairs),
        facts,
    )


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
