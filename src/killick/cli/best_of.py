"""`killick best-of`: choose among one's own variants with any rubric, and see what choosing among more would do."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from killick.cli.output import show, write_csv, write_picture
from killick.flags import settings
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.algorithms.best_of_n import Curve
    from killick.recipes.best_of import Choice

ABOUT = """Score your own variants with any rubric, judge or classifier, keep the best, and spot-check the winners.

FILE is JSONL, an object a line: {"prompt": ..., "response": ...} or {"prompt": ..., "responses": [...]}; or CSV with
the columns prompt and response (or text). Without prompts all responses are one pool. The reward is a function of a
text, or of prompt and response, that returns a number, named as module:function; the current folder is importable:

    killick best-of --candidates mails.csv --reward my_rubric:score --show-winners 20

Or it is a folder with the brand's reward head, which killick models make brand-head --out DIR writes.

The table for n = 1, 2, 4, ... estimates what best-of-n gives, unbiased from the pool you have. With --gold, a second
opinion of what people really want, it shows whether choosing by the reward still helps, and at which n it turns."""
PROMPTS = 20
"""Prompts in the table; winners.jsonl has them all."""


@dataclass(frozen=True)
class BestOf:
    """What to choose from, and by what.

    Attributes:
        candidates: JSONL or CSV with the variants.
        reward: module:function, a number for each text (or for prompt and response); or a folder with brand-head.
        gold: module:function or folder, what people really want of it.
        ns: 1, 2, 4, ... as far as half of the prompts have so many responses, where none are given.
        show_winners: how many winners to print, the highest reward first.
        seed: of the intervals' resamples.
        out: a new folder for winners.jsonl, curve.csv, best_of.png and best_of.pdf.
    """

    candidates: Path
    reward: str
    gold: str | None = None
    ns: tuple[int, ...] = ()
    show_winners: int = 0
    seed: int = 0
    out: Path | None = None

    def validate(self) -> None:
        """Refuse what cannot be.

        Raises:
            Refusal: at a number out of range, or a folder that holds winners already.
        """
        if any(n < 1 for n in self.ns):
            raise Refusal(f"--ns must be 1 or more, not {' '.join(map(str, self.ns))}.")
        if self.show_winners < 0:
            raise Refusal(f"--show-winners must be 0 or more, not {self.show_winners}.")
        if not 0 <= self.seed < 2**63:
            raise Refusal(f"--seed must lie in 0..2^63 - 1, not {self.seed}.")
        if self.out is not None and (self.out / "winners.jsonl").exists():
            raise Refusal(f"--out {self.out} holds winners.jsonl already; name another folder.")


def best_of(given: list[str]) -> None:
    """`killick best-of`: score, choose, tell, and write where --out names a folder."""
    options = settings("best-of", BestOf, given=given, about=ABOUT)
    options.validate()
    from killick.recipes.best_of import choices, curve, overall, reach, scored
    from killick.recipes.best_of_candidates import read_pools
    from killick.recipes.scores import load_score
    from killick.rundir.seeds import stage_generator

    try:
        data = options.candidates.read_bytes()
    except OSError as error:
        raise Refusal(f"--candidates {options.candidates} cannot be read ({error.strerror}).") from error
    pools = read_pools(data, name=options.candidates.name)
    reward = load_score(options.reward, flag="--reward")
    gold = None if options.gold is None else load_score(options.gold, flag="--gold")
    if options.out is not None:
        made(options.out)  # before anything is scored: a judge may be dear
    scores = scored(pools, reward)
    golds = None if gold is None else scored(pools, gold)
    chosen = choices(pools, scores, golds=golds)
    ns = options.ns or reach([len(pool.responses) for pool in pools])
    along = curve(chosen, ns=ns, generator=stage_generator(options.seed, "best-of-n resamples"))
    rows = [choice.row() for choice in chosen]
    show(prompts_table(rows, overall(rows)))
    show(curve_table(along, prompts=len(pools)))
    print(turn_words(along) + "\n")
    tell_winners(chosen, options.show_winners)
    if options.out is not None:
        write(options.out, rows, along=along)


def made(folder: Path) -> None:
    """Make a folder that can be written into."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"--out {folder} cannot be made ({error.strerror}); name another folder.") from error


def prompts_table(rows: Sequence[dict[str, Any]], means: Sequence[tuple[str, float, float | None]]) -> dict[str, Any]:
    """For each prompt the first response, the mean and the best; below them their means."""
    known = "gold" in rows[0]
    head = ["prompt", "responses", "first", "mean", "best", "tied"] + (["gold first", "gold best"] if known else [])
    told = [
        [shortened(row["prompt"] or "(no prompt)"), row["responses"], row["reward_first"], row["reward_mean"],
         row["reward"], row["tied"], *([row["gold_first"], row["gold"]] if known else [])]
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
    print("Read the winners: what a reward likes best is where it is most likely to be wrong. Highest reward first.\n")
    for choice in sorted(chosen, key=lambda choice: -float(choice.scores.max()))[:count]:
        tied = f", tied with {choice.tied} more" if choice.tied else ""
        gold = "" if choice.golds is None else f", gold {float(choice.golds[choice.winner]):.3f}"
        prompt = f"  {shortened(choice.pool.prompt)}" if choice.pool.prompt else ""
        print(f"{float(choice.scores.max()):.3f}{gold}{tied}, line {choice.pool.lines[choice.winner]}{prompt}")
        print(textwrap.indent(printable(choice.pool.responses[choice.winner]), "    ", lambda _: True) + "\n")


def printable(text: str) -> str:
    """A text whose letters cannot steer a terminal; lines stay lines."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


def shortened(text: str) -> str:
    """A prompt on one short line."""
    return textwrap.shorten(printable(text), 34, placeholder=" …") or printable(text).strip()[:34]


def write(out: Path, rows: Sequence[dict[str, Any]], *, along: "Curve") -> None:
    """Write winners.jsonl (in the file's order), curve.csv and the figure."""
    from killick.report.best_of import best_of as drawn
    from killick.rundir.durable import replace_file

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
