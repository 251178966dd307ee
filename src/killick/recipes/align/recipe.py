"""Align: a person's own model and prompts, optimised for a reward on a leash, with gold and KL beside it.

PPO with a critic, or with a baseline of other responses, moves the top layers of a language model (or all of it). Every
few steps the policy is asked held-out prompts; what it answers stands beside what it would have answered before.
"""

import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from killick.algorithms.ppo import PPOState
from killick.models.critics import check_reads, critic_from_judge
from killick.models.folders import open_causal
from killick.models.judging import PretrainedReward
from killick.models.prompting import PromptSet
from killick.models.speakers import Speakers, speakers
from killick.models.texts import Texts
from killick.recipes.align import words as align_words
from killick.recipes.align.config import Config as Config
from killick.recipes.align.look import OnText
from killick.recipes.align.watch import AlignState, Watched, watch
from killick.recipes.cells import Begun, Cell
from killick.recipes.ledger import Note, Row
from killick.recipes.prompts import Divided, divide, read_prompts
from killick.recipes.scores.loading import load_scores
from killick.recipes.tables import Table
from killick.rundir.durable import exchange, settle
from killick.rundir.seeds import stage_generator
from killick.types import Refusal

QUESTION = "Does gold keep up while the policy is optimised for the proxy, and how far from its start is that safe?"
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Prepared(NamedTuple):
    """What all arms begin with: the language model, and what it is watched by."""

    model: Any
    watched: Watched
    judge: PretrainedReward | None = None
    """Where the critic begins, if it is not the policy."""


def cells(config: Config) -> list[Cell]:
    """Every leash; a row for each step and one for the policy that the last step leaves."""
    return [Cell(arm, seed, config.steps + 1) for arm in config.leashes() for seed in config.seeds]


def seconds(config: Config) -> float:
    """Rough CPU seconds where nothing was measured: a run that is taken up says how long it has left by itself."""
    return 10.0 * config.steps * len(config.leashes())


def prepare(config: Config, seed: int) -> Generator[Note, None, tuple[Prepared, dict[str, Any]]]:
    """Read model, prompts and rewards.

    Raises:
        Refusal: where one of them cannot be read, or they do not go together.
    """
    texts = Texts.load(Path(config.model), chat=config.framed)
    divided = divide(read_prompts(Path(config.prompts)), share=config.held_out, seed=seed)
    model = open_causal(Path(config.model), dtype=TYPES[config.dtype]).to(config.device)
    watched = watching(config, texts, divided=divided, context=context(model))
    held = 0 if watched.held_out is None else len(watched.held_out)
    found = {
        "prompts": len(watched.train),
        "held_out": len(divided.held_out),
        "evaluated": held,
        "longest_prompt": watched.asked.ids.shape[1],
        "chat": texts.chat,
    }
    framed = "in the model's chat template" if texts.chat else "as plain text"
    yield Note(f"{len(watched.train)} prompts to learn from, {held} held out to look at, {framed}.")
    return Prepared(model, watched, judging(config, texts)), found


def judging(config: Config, texts: Texts) -> PretrainedReward | None:
    """The reward model that the critic begins from, read apart from the one that scores.

    Raises:
        Refusal: where the reward is no such model, or reads other tokens.
    """
    if config.critic_from == "policy":
        return None
    if len(config.reward) != 1 or not Path(config.reward[0]).is_dir():
        given = " ".join(config.reward)
        raise Refusal(f"--critic-from reward needs one --reward that is the folder of a reward model, not {given}.")
    judge = PretrainedReward.load(Path(config.reward[0]))
    check_reads(judge, texts, name=f"--reward {config.reward[0]}")
    return judge


def context(model: Any) -> int | None:
    """The most tokens that a model reads, where its settings say so."""
    return getattr(model.config.get_text_config(), "max_position_embeddings", None)


def watching(config: Config, texts: Texts, *, divided: Divided, context: int | None) -> Watched:
    """Prompts as ids, and the scores.

    Raises:
        Refusal: where a prompt leaves no room for an answer, or a score cannot be loaded.
    """
    limit = 10**9 if context is None else context - config.tokens
    if limit < 1:
        raise Refusal(f"The model reads {context} tokens, so no prompt fits beside --tokens {config.tokens}; lower it.")
    asked = PromptSet([*divided.train, *divided.held_out], texts, limit=limit)
    train = PromptSet(divided.train, texts, limit=limit)
    looked = divided.held_out[: config.evaluated]
    held_out = PromptSet(looked, texts, limit=limit) if looked else None
    proxy = OnText(load_scores(config.reward, flag="--reward"), asked, texts)
    seen = config.gold is not None and config.gold != "people"
    gold = OnText(load_scores([str(config.gold)], flag="--gold"), asked, texts) if seen else None
    return Watched(texts, asked, train, held_out, proxy, gold)


def speaking(config: Config, model: Any, *, texts: Texts, time: int) -> Speakers:
    """Policy, reference and, where it begins from the policy, the critic, not yet moved.

    Args:
        config: which layers train.
        model: as it was read.
        texts: end and padding.
        time: the most tokens of a response.
    """
    size = model.config.get_text_config().vocab_size
    own = config.baseline == "critic" and config.critic_from == "policy"
    return speakers(
        model,
        texts.vocabulary(time, size=size),
        train_layers=None if config.train_layers == "full" else int(config.train_layers),
        generator=stage_generator(config.seed, "critic") if own else None,
        temperature=config.temperature,
    )


def begin(config: Config, cell: Cell, *, prepared: Prepared) -> Begun:
    """PPO of one leash, not yet moved."""
    state = AlignState(started(config, cell, prepared=prepared, time=config.tokens))
    return state, watch(cell, state, config=config, watched=prepared.watched)


def started(config: Config, cell: Cell, *, prepared: Prepared, time: int) -> PPOState:
    """The optimiser's state before its first step, for responses of so many tokens."""
    who: Any = speaking(config, prepared.model, texts=prepared.watched.texts, time=time)
    critic = who.value
    if prepared.judge is not None:
        judge = prepared.judge.model.to(config.device)
        critic = critic_from_judge(judge, who.trunk, compute=TYPES[config.dtype])
    critic = critic if critic is None else critic.to(config.device)
    generator = stage_generator(cell.seed, f"ppo {cell.arm}", device=config.device)
    return PPOState(who.policy, who.reference, critic, config.ppo(), generator, config.leashes()[cell.arm])


def deliver(config: Config, cell: Cell, *, state: AlignState, prepared: Prepared, folder: Path) -> None:
    """Write the policy as a model folder, whole or not at all; done again, it writes the same bytes."""
    policy: Any = state.ppo.policy
    if "weights" in state.kept:
        policy.load_state_dict(state.kept["weights"])
    target = policy_folder(config, cell.arm, folder=folder)
    target.parent.mkdir(exist_ok=True)
    partial = folder / f".{cell.name}.{os.getpid()}.partial"
    try:
        policy.save(partial, prepared.watched.texts)
        settle(partial)
        exchange(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def policy_folder(config: Config, arm: str, *, folder: Path) -> Path:
    """Where an arm's policy goes: `policy` where there is one arm, a folder in it for each where there are several."""
    return folder / "policy" if len(config.leashes()) == 1 else folder / "policy" / arm


def tables(rows: list[Row], _: dict[str, Any]) -> list[Table]:
    """What each look at the held-out prompts found."""
    return align_words.tables(rows)


def verdict(config: Config, rows: list[Row]) -> str:
    """Whether gold kept its gain, and how far is safe, in plain words."""
    return align_words.verdict(config, rows)
