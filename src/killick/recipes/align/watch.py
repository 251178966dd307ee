"""An alignment run as it goes: its state, its steps, the looks in between, and the policy that is kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from killick.algorithms.collecting import collect
from killick.algorithms.ppo import PPOState, ppo
from killick.models.prompting import PromptSet
from killick.models.texts import Texts
from killick.recipes.align.config import Config
from killick.recipes.align.look import Asked, Look, OnText, Standing, look
from killick.recipes.cells import Cell, Seen
from killick.recipes.ledger import Row, ledger_row
from killick.recipes.scores.text_score import as_text
from killick.rundir.seeds import stage_generator
from killick.state import copied, restore, snapshot
from killick.stopwatch import stopwatch
from killick.types import Refusal, Step

SHOWN = 6
"""Answers of a step that are shown where no prompt is held out."""


@dataclass(frozen=True)
class Watched:
    """What a run is watched by, the same for every arm.

    Args:
        texts: the model's tokenizer.
        asked: every prompt.
        train: those that are learned from.
        held_out: those that are only asked; None where none are held out.
        proxy: what is optimised for.
        gold: what people want; None where nobody says.
    """

    texts: Texts
    asked: PromptSet
    train: PromptSet
    held_out: PromptSet | None
    proxy: OnText
    gold: OnText | None


class AlignState:
    """Everything that changes: PPO's own state, how many rows are told, the reference's answers, the policy to keep.

    Args:
        ppo: not yet moved.

    Attributes:
        step: rows told: one more than PPO has steps, since the last row shows the policy that the last update left.
        before: scores and answers of the reference on the held-out prompts, as the first look found them.
        kept: the look whose policy is saved: its step, score and answers, and the weights where it is not the last.
    """

    PARTS = ("ppo", "step", "before", "kept")

    def __init__(self, ppo: PPOState):
        self.ppo, self.step = ppo, 0
        self.before: dict[str, Any] = {}
        self.kept: dict[str, Any] = {}

    def state_dict(self) -> dict[str, Any]:
        """All of it, as tensors and plain types."""
        return snapshot(self, self.PARTS)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there; a missing part is a KeyError (O-45)."""
        restore(self, self.PARTS, saved=state)

    def keep(self, seen: Look, choose: str) -> None:
        """Keep this look's answers, and its policy's weights where it is the best so far by what is chosen by."""
        found: dict[str, Any] = {"step": self.step, "answers": seen.answers}
        if choose == "last":
            self.kept = found
            return
        score = seen.gold if choose == "held-out-gold" and seen.gold is not None else seen.proxy
        mean = float(score.mean())
        if not self.kept or mean > self.kept["score"]:
            self.kept = found | {"score": mean, "weights": copied(self.ppo.policy.state_dict())}


def watch(cell: Cell, state: AlignState, *, config: Config, watched: Watched) -> Iterator[Seen]:
    """The cell's steps with a look every so often, and a last row for the policy that comes out.

    Raises:
        Refusal: where a reward or a gold gives no number, with the step.
    """
    loop = ppo(state.ppo, watched.proxy, prompts=watched.train.source)
    while state.step < cell.steps:
        last = state.step == cell.steps - 1
        try:
            seen = (
                looked(cell, state, config=config, watched=watched) if last or not state.step % config.every else None
            )
            if last:
                step = collect(state.ppo, watched.proxy, prompts=watched.train.source).record(
                    state.step, state.ppo.beta, {}
                )
            else:
                step = next(loop)
            gold = None if watched.gold is None else watched.gold(step.rollout)
        except Refusal as error:
            raise Refusal(f"At step {state.step}: {error}") from error
        ends = watched.texts.eos is not None
        more = {} if seen is None else seen.row(state.before, ends=ends)
        vocabulary = state.ppo.policy.vocabulary
        row = ledger_row(cell.arm, cell.seed, step=step, gold=gold, vocabulary=vocabulary, **more)
        shown = answers(cell, step, seen=seen, state=state, watched=watched, every=config.every)
        state.step += 1
        yield Seen(row, shown)


def looked(cell: Cell, state: AlignState, *, config: Config, watched: Watched) -> Look | None:
    """A look at the held-out prompts, with the same draws each time: what differs is the policy."""
    if watched.held_out is None:
        return None
    generator = stage_generator(cell.seed, "held-out answers", device=config.device)
    batch = max(1, config.responses // config.answers)
    at = Standing(state.ppo.policy, state.ppo.reference, generator, state.step, Asked(batch, config.answers))
    ids, mask = watched.held_out.all()
    prompts = ids.to(config.device), mask.to(config.device)
    seen = look(at, prompts, proxy=watched.proxy, gold=watched.gold, texts=watched.texts)
    state.before = state.before or seen.scores()
    state.keep(seen, config.choose)
    stopwatch.lap("held-out")
    return seen


def answers(cell: Cell, step: Step, *, seen: Look | None, state: AlignState, watched: Watched, every: int) -> list[Row]:
    """Every answer of a look beside the reference's, the first of each prompt before the second; or a few of a step's
    own where no prompt is held out.
    """
    if seen is None or watched.held_out is None:
        due = watched.held_out is None and (not step.step % every or not step.stats)
        return few(cell, step, watched=watched) if due else []
    words = [as_text(prompt) for prompt in watched.held_out.rows.values()]
    order = [place * seen.n + take for take in range(seen.n) for place in range(len(words))]
    mine, theirs = seen.scores(), state.before
    return [
        {"arm": cell.arm, "seed": cell.seed, "step": step.step, "prompt": words[row // seen.n],
         "response": seen.answers[row], "gold": value(mine, "gold", row=row), "proxy": value(mine, "proxy", row=row),
         "reference": theirs["answers"][row], "reference_gold": value(theirs, "gold", row=row),
         "reference_proxy": value(theirs, "proxy", row=row)}
        for row in order
    ]  # fmt: skip


def value(scores: dict[str, Any], name: str, *, row: int) -> float | None:
    """One answer's score, where there is one."""
    return float(scores[name][row]) if name in scores else None


def few(cell: Cell, step: Step, *, watched: Watched) -> list[Row]:
    """Some answers of a step's own rollout."""
    rollout = step.rollout[:SHOWN]
    gold: Sequence[Any] = [None] * SHOWN if watched.gold is None else watched.gold(rollout).tolist()
    texts = watched.texts.responses(rollout)
    asked = watched.asked.of(rollout)
    return [
        {"arm": cell.arm, "seed": cell.seed, "step": step.step, "prompt": as_text(prompt), "response": text,
         "gold": one, "proxy": float(proxy)}
        for prompt, text, one, proxy in zip(asked, texts, gold, step.proxy[:SHOWN], strict=False)
    ]  # fmt: skip
