"""`killick prefs agreement`: how far annotators agree, and how noisy each of them is."""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from killick.cli.stores import absent
from killick.flags import settings
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.preferences.agreement import Agreement, Leaning
    from killick.preferences.noise import Noise
    from killick.preferences.verdicts import Verdict

ABOUT = """How far annotators agree with each other, how noisy each of them is, and the ceiling that follows.

A file needs a column `annotator`; a store has it. Kappa is 1 / noise of the Bradley-Terry labeler, per deviation of
quality, found without any gold from how far annotators agree; the ceiling is the largest share of an annotator's labels
on pairs drawn at random that any reward model can foresee. A leaning is a preference for what was shown first."""


@dataclass(frozen=True)
class Asked:
    """Whose labels.

    Attributes:
        file: a preference file with a column `annotator`: .jsonl, .csv or .parquet.
        store: a store instead: an SQLite file or a postgresql:// URL.
        skip_bad: leave bad rows of the file out instead of refusing it.
    """

    file: Annotated[Path | None, tyro.conf.Positional] = None
    store: str | None = None
    skip_bad: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False


def agreement(given: list[str]) -> None:
    """`killick prefs agreement FILE|--store DB`: print the tables."""
    asked = settings("prefs agreement", Asked, given=given, about=ABOUT)
    if (asked.file is None) == (asked.store is None):
        raise Refusal("Name a preference file or a --store, one of them.")
    import torch

    from killick.preferences.agreement import agreement as measured

    torch.set_num_threads(1)
    table, left = of_store(asked.store) if asked.store is not None else of_file(asked)
    for words, count in left.items():
        print(f"{words} left out: {count}")
    if not table:
        raise Refusal(
            f"{asked.store or asked.file} holds no label of a named annotator, so there is nothing to compare."
        )
    print("\n".join(told(measured(table))))


def of_store(place: str) -> tuple[list["Verdict"], Counter[str]]:
    """The labels that hold in a store.

    Raises:
        Refusal: where the extra or the store is missing.
    """
    try:
        from killick.preferences.store import Store
    except ImportError as error:
        raise Refusal(
            f"killick prefs agreement --store needs the extra prefs ({error.name} is missing): "
            "pip install 'killick[prefs]'."
        ) from error
    from killick.preferences.verdict_tables import from_store

    if absent(place):
        raise Refusal(f"There is no store {place}; killick label begins one.")
    with Store(place) as store:
        return from_store(store.export())


def of_file(asked: Asked) -> tuple[list["Verdict"], Counter[str]]:
    """The rows of a file that an annotator signed."""
    from killick.preferences.files import read_preferences
    from killick.preferences.verdict_tables import from_rows

    assert asked.file is not None
    rows, bad = read_preferences(asked.file, skip_bad=asked.skip_bad)
    table, left = from_rows(rows)
    left.update({"bad rows": len(bad)} if bad else {})
    return table, left


def told(found: "Agreement") -> list[str]:
    """Everything, in lines."""
    width = max(9, *map(len, found.annotators))
    lines = [
        f"{found.items} items, {found.shared} of them judged by two annotators or more",
        f"agreement {number(found.percent)}   Krippendorff's alpha {number(found.alpha_nominal)} nominal, "
        f"{number(found.alpha_ordinal)} ordinal",
        "",
        f"{'annotator':<{width}}  labels  agrees  first shown          p  kappa                ceiling",
    ]
    for name, one in found.annotators.items():
        agrees = number(one.agreed / one.met if one.met else math.nan)
        lines.append(f"{name:<{width}}  {one.labels:>6}  {agrees:>6}  {leaning(one.leaning)}  {noise(one.noise)}")
    labels = sum(one.labels for one in found.annotators.values())
    lines.append(
        f"{'as one':<{width}}  {labels:>6}  {number(found.percent):>6}  {leaning(found.leaning)}  {noise(found.noise)}"
    )
    if found.cohen:
        lines += ["", "Cohen's kappa of each two (pairs that both judged):"]
        lines += [f"  {a}, {b}: {number(kappa)} ({pairs})" for (a, b), (pairs, kappa) in found.cohen.items()]
    return [*lines, "", *notes(found)]


def notes(found: "Agreement") -> list[str]:
    """What the columns mean, and what is missing."""
    said = [
        "Brackets are 95 % intervals. First shown: share of choices that went to what was shown first; p is the chance"
    ]
    said.append(
        f"that somebody without a leaning strays as far. Ties among them, not counted there: {found.leaning.ties}."
    )
    if found.ties:
        said.append(f"Kappa and ceiling are of preferences; ties, left out of them: {found.ties}.")
    if any(one.noise is None for one in found.annotators.values()):
        said.append(
            "A kappa that is not known takes more overlap: three annotators or more on the same items tell each one's."
        )
    return said


def number(value: float) -> str:
    """Three decimals; a dash for what is no number."""
    return "-" if math.isnan(value) else f"{value:.3f}"


def leaning(found: "Leaning") -> str:
    """Share of firsts with its interval and test."""
    if not found.chosen:
        return f"{'-':<19}  {'-':>5}"
    low, high = found.interval
    return f"{found.share:.3f} [{low:.2f}, {high:.2f}]  {found.p:>5.3f}"


def noise(found: "Noise | None") -> str:
    """Kappa and ceiling, each with its interval."""
    if found is None:
        return f"{'not known':<19}  not known"
    (low, high), (least, most) = found.interval, found.ceiling_interval
    kappa = f"{found.kappa:.2f} [{low:.2f}, {high:.2f}]"
    return f"{kappa:<19}  {found.ceiling:.3f} [{least:.2f}, {most:.2f}]"
