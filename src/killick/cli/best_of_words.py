"""What `killick best-of` tells and writes: tables, the winners to be read, files."""

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from killick.cli.output import show, write_csv, write_picture
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.algorithms.best_of_n import Curve
    from killick.recipes.best_of.recipe import Choice

PROMPTS = 20
"""Prompts in the table; winners.jsonl has them all."""


def tell(chosen: Sequence["Choice"], along: "Curve", *, winners: int) -> None:
    """Both tables, what gold says, and so many winners."""
    from killick.recipes.best_of.recipe import overall

    rows = [choice.row() for choice in chosen]
    show(prompts_table(rows, overall(rows)))
    show(curve_table(along, prompts=len(chosen)))
    print(turn_words(along) + "\n")
    tell_winners(chosen, winners)


def prompts_table(rows: Sequence[dict[str, Any]], means: Sequence[tuple[str, float, float | None]]) -> dict[str, Any]:
    """For each prompt the first response, the mean and the best; below them their means."""
    known = "gold" in rows[0]
    head = ["prompt", "responses", "first", "mean", "best", "tied"] + (["gold first", "gold best"] if known else [])
    told = [
        [shortened(prompt_line(row["prompt"]) or "(no prompt)"), row["responses"], row["reward_first"],
         row["reward_mean"], row["reward"], row["tied"], *([row["gold_first"], row["gold"]] if known else [])]
        for row in rows[:PROMPTS]
    ]  # fmt: skip
    note = f"Reward of the first response in the file, of all on average, and of the best. {counted(len(rows))}"
    note += f", of which {PROMPTS} are shown: " if len(rows) > PROMPTS else ": "
    note += ", ".join(f"{name} {reward:.3f}" for name, reward, _ in means) + " over all of them"
    if known:
        note += "; gold " + ", ".join(f"{name} {gold:.3f}" for name, _, gold in means)
    tied = sum(row["tied"] > 0 for row in rows)
    note += f". In {counted(tied)} others have the best score too: the first of them is kept." if tied else "."
    return {"title": "Your prompts", "note": note, "columns": head, "rows": told}


def counted(prompts: int) -> str:
    """How many prompts, in words."""
    return f"{prompts} prompt{'s' * (prompts != 1)}"


def curve_table(along: "Curve", *, prompts: int) -> dict[str, Any]:
    """Best-of-n along n."""
    known = along.top is not None
    note = (
        "Expected score of the best of n, unbiased from the pool of each prompt, with 95 % intervals over prompts. The "
        "KL from whoever wrote the responses is at most the bound, log n - (n - 1)/n nats."
    )
    if along.prompts < prompts:
        note += f" {along.prompts} of {counted(prompts)} have responses enough for n = {along.points[-1].n}."
    if along.prompts == 1:
        note += " One prompt alone has no interval."
    head = ["n", "KL bound", "reward", "low", "high"] + (["gold", "gold low", "gold high"] if known else [])
    none = (None, None)
    rows: list[list[Any]] = []
    for point in along.points:
        interval, others = (none, none) if along.prompts == 1 else (point.proxy_interval, point.gold_interval or none)
        rows.append([point.n, point.kl_bound, point.proxy, *interval, *([point.gold, *others] if known else [])])
    return {"title": "Best of n", "note": note, "columns": head, "rows": rows}


def turn_words(along: "Curve") -> str:
    """What gold says of choosing harder."""
    if along.top is None or along.top_interval is None:
        return "Whether a higher reward is what people want, only --gold or your own eyes can tell."
    if along.level:
        return "Gold is the same at every n: by it, choosing among more neither helps nor harms."
    low, high = along.top_interval
    between = f" (95 % of the resamples put it between {low} and {high})" if along.prompts > 1 else ""
    if along.turns:
        return f"Gold turns: it is highest at n = {along.top}{between}, and choosing among more makes it worse."
    if along.top == along.points[-1].n:
        return f"Gold does not turn up to n = {along.top}: there it is highest{between}."
    unsure = f"the interval reaches n = {high}" if along.prompts > 1 else "one prompt alone has no interval"
    return f"Gold is highest at n = {along.top}{between}, but whether it turns there is not sure: {unsure}."


def tell_winners(chosen: Sequence["Choice"], count: int) -> None:
    """The winners with the highest reward, to be read."""
    if not count:
        return
    from killick.recipes.scores.text_score import as_text

    print("Read the winners: what a reward likes best is where it is most likely to be wrong. Highest reward first.\n")
    for choice in sorted(chosen, key=lambda choice: -float(choice.scores.max()))[:count]:
        tied = f", tied with {choice.tied} more" if choice.tied else ""
        gold = "" if choice.golds is None else f", gold {float(choice.golds[choice.winner]):.3f}"
        prompt = f"  {shortened(as_text(choice.pool.prompt))}" if choice.pool.prompt else ""
        print(f"{float(choice.scores.max()):.3f}{gold}{tied}, line {choice.pool.lines[choice.winner]}{prompt}")
        print(textwrap.indent(printable(choice.pool.responses[choice.winner]), "    ", lambda _: True) + "\n")


def prompt_line(prompt: Any) -> str:
    """A prompt of a row as one text."""
    from killick.recipes.scores.text_score import as_text

    return prompt if isinstance(prompt, str) else as_text([(turn["role"], turn["content"]) for turn in prompt])


def printable(text: str) -> str:
    """A text whose letters cannot steer a terminal; lines stay lines."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


def shortened(text: str) -> str:
    """A prompt on one short line."""
    short = textwrap.shorten(printable(text), 34, placeholder=" …")
    return short if short.strip("… ") else printable(text).strip()[:34]  # a single long word is cut, not left out


def write(out: Path, chosen: Sequence["Choice"], *, along: "Curve") -> None:
    """Write winners.jsonl (in the file's order), curve.csv and the figure."""
    from killick.report.best_of import best_of as drawn
    from killick.rundir.durable import replace_file

    rows = [choice.row() for choice in chosen]
    winners = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    head = ["n", "kl_bound", "reward", "reward_low", "reward_high", "gold", "gold_low", "gold_high"]
    curve = [
        [
            point.n,
            point.kl_bound,
            point.proxy,
            *point.proxy_interval,
            point.gold,
            *(point.gold_interval or (None, None)),
        ]
        for point in along.points
    ]
    try:
        replace_file(out / "winners.jsonl", winners.encode("utf-8", "backslashreplace"))
        write_csv(out / "curve.csv", head, rows=curve)
        write_picture(out / "best_of", drawn(along))
    except OSError as error:
        raise Refusal(f"--out {out} cannot be written ({error.strerror}); name another folder.") from error
    print(f"{out} holds winners.jsonl, curve.csv, best_of.png and best_of.pdf.")
