"""`killick best-of --model`: n answers of a person's own model to each prompt, and the best of them."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from killick.cli.best_of_settings import BestOf
from killick.cli.best_of_words import tell, write
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.recipes.best_of.recipe import Choice
    from killick.recipes.best_of.sampling import Sampler, Sampling
    from killick.recipes.growing import Progress
    from killick.recipes.scores.text_score import TextScore
    from killick.rundir.folder import RunFolder

CANDIDATES, SCORES, ASKED, ANSWERED = "candidates.jsonl", "scores.jsonl", "asked.jsonl", "people.json"
SCORED = 256
"""Answers that are scored between two looks at the clock."""
SHOWN = 5.0
"""Seconds between two lines that say how far it is."""


def sampled(options: BestOf, given: Sequence[str]) -> None:
    """Draw, score, choose, tell and write, into a folder that may hold some of it already."""
    import torch

    from killick.recipes.best_of.sampling import Sampler
    from killick.recipes.fetching import found
    from killick.recipes.prompts import read_prompts
    from killick.rundir.folder import RunFolder

    torch.set_num_threads(1)
    how = sampling(options)
    how.validate()
    if options.ns and max(options.ns) > how.n:
        raise Refusal(f"--ns goes to {max(options.ns)}, but each prompt gets only {how.n} answers; raise --n.")
    reward, gold = loaded(options)
    sampler = Sampler(found(str(options.model)), read_prompts(Path(str(options.prompts))), how)
    with closing(RunFolder(options.out, "best-of", config(options, how))) as folder:
        print(f"Run folder: {folder.path}", flush=True)
        again = shlex.join(["killick", "best-of", *given])
        again += "" if options.out else f" --out {shlex.quote(str(folder.path))}"
        try:
            chosen = filled(folder, sampler, reward=reward, gold=gold)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(f"What is drawn is kept; go on with: {again}") from stop
        finished(folder, chosen, options=options, again=again)


def sampling(options: BestOf) -> "Sampling":
    """How answers are drawn."""
    from killick.recipes.best_of.sampling import Sampling

    names = ("tokens", "temperature", "top_k", "top_p", "chat", "dtype", "seed")
    return Sampling(16 if options.n is None else options.n, **{name: getattr(options, name) for name in names})


def loaded(options: BestOf) -> tuple["TextScore", "TextScore | None"]:
    """Reward and gold; people are no score."""
    from killick.recipes.scores.loading import load_score, load_scores

    gold = None if options.gold in (None, "people") else load_score(str(options.gold), flag="--gold")
    return load_scores(options.reward, flag="--reward"), gold


def config(options: BestOf, how: "Sampling") -> dict[str, Any]:
    """What the folder's files depend on."""
    from killick.recipes.contents import digests
    from killick.recipes.fetching import found

    specs = {"model": str(found(str(options.model))), "prompts": str(options.prompts), "gold": options.gold or ""}
    specs |= {f"reward {spec}": spec for spec in options.reward}
    named = {"model": str(options.model), "prompts": specs["prompts"], "reward": options.reward, "gold": options.gold}
    return named | asdict(how) | {"content": digests(specs)}


def filled(folder: "RunFolder", sampler: "Sampler", *, reward: "TextScore", gold: "TextScore | None") -> list["Choice"]:
    """What the folder's answers and scores choose; what is not there yet is drawn and scored."""
    import torch

    from killick.recipes.best_of.recipe import choices
    from killick.recipes.best_of.sampling import pools, scores
    from killick.recipes.growing import grow
    from killick.rundir.ledger import read_rows

    n, count = sampler.how.n, len(sampler)
    answers = folder.path / CANDIDATES
    drawing = grow(answers, count, each=sampler.each, make=sampler.answers)
    follow(drawing, "drawn", n=n, first=lambda left: cost(sampler, left))
    there = pools(answers, sampler.prompts)
    each = max(1, SCORED // n)
    follow(grow(folder.path / SCORES, count, each=each, make=scores(there, reward, gold=gold)), "scored", n=n)
    rows = read_rows(folder.path / SCORES)
    told = [torch.tensor(row["rewards"], dtype=torch.float64) for row in rows]
    golds = None if gold is None else [torch.tensor(row["golds"], dtype=torch.float64) for row in rows]
    return choices(there, told, golds=golds)


def cost(sampler: "Sampler", prompts: int) -> str:
    """What drawing will take, in a sentence."""
    from killick.console import duration

    how = sampler.how
    return (
        f"{prompts * how.n} answers of up to {how.tokens} tokens to {prompts} prompts: about "
        f"{duration(sampler.seconds() * prompts / len(sampler))}, by five tokens of each in the first "
        f"{min(sampler.each, len(sampler))} prompts."
    )


def follow(progress: Iterator["Progress"], done: str, *, n: int, first: Any = None) -> None:
    """Tell how far it is, every few seconds; before the first row, what it will take."""
    import time

    from killick.console import duration

    begun = next(progress)
    if begun.done == begun.of:
        return
    if begun.done:
        print(f"{begun.done * n} of {begun.of * n} answers are {done} already.", flush=True)
    if first is not None:
        print(first(begun.of - begun.done), flush=True)
    last = time.monotonic()
    for seen in progress:
        if time.monotonic() - last >= SHOWN and seen.left:
            last = time.monotonic()
            print(f"{seen.done * n} of {seen.of * n} answers {done}, {duration(seen.left)} left", flush=True)


def finished(folder: "RunFolder", chosen: list["Choice"], *, options: BestOf, again: str) -> None:
    """Tell what came of it, and write it."""
    from killick.recipes.best_of.recipe import curve, reach
    from killick.rundir.seeds import stage_generator

    ns = options.ns or reach([len(choice.scores) for choice in chosen])
    along = curve(chosen, ns=ns, generator=stage_generator(options.seed, "best-of-n resamples"))
    tell(chosen, along, winners=options.show_winners)
    write(folder.path, chosen, along=along)
    print(f"Another reward chooses among the same answers by --candidates {folder.path / CANDIDATES}.")
    if options.gold == "people":
        people(folder.path, chosen, place=options.store or str(folder.path / "labels.db"), again=again)


def people(out: Path, chosen: list["Choice"], *, place: str, again: str) -> None:
    """Queue each winner beside the model's first answer, and tell what people have said so far."""
    from killick.recipes.scores.people import Asked, queue, win_rates, write_asked
    from killick.rundir.durable import write_json

    asked = [
        Asked(choice.pool.prompt, choice.pool.responses[choice.winner], choice.pool.responses[0],
              f"best of {len(choice.scores)} against the first answer")
        for choice in chosen
    ]  # fmt: skip
    write_asked(out / ASKED, asked)
    new = queue(asked, place)
    (rate,) = win_rates(asked, place)
    write_json(out / ANSWERED, asdict(rate))
    print(f"\n{new} new pairs are queued in {place}." if new else "")
    print(rate.words())
    if rate.judged < rate.pairs - rate.same:
        print(f"People answer on the page of: killick label --store {place}\nRead what they said by: {again}")
