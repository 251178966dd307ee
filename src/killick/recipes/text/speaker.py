"""The language model of the text recipe: one trunk, the tokens that are spoken, and answers of the reference."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.algorithms.reference import digest
from killick.models.decoding import joined, sample_in_batches
from killick.models.folders import open_causal
from killick.models.pretrained import PretrainedPolicy
from killick.models.prompting import PromptSet
from killick.models.texts import Texts
from killick.models.trunk import TopPolicy, Trunk
from killick.ops.masked import masked_mean
from killick.recipes.ledger import Note
from killick.recipes.scores.text_score import TextScore
from killick.rundir.cache import cached, cached_parts
from killick.rundir.seeds import stage_generator
from killick.types import Refusal, Rollout

ROWS = 256
"""Answers that are drawn at once."""
STAGE = 512
"""Answers of one stage in the cache."""
CALIBRATION = 2
"""Answers to each prompt from which the spoken tokens are counted."""


@dataclass(frozen=True)
class Speaker:
    """A language model whose top layers may train, before anything has.

    Args:
        trunk: the layers below them.
        texts: its tokenizer, without a chat template: prompts are beginnings of sentences.
        reference: samples the answers that are labelled and anchors every arm; frozen.
        mark: a hash of weights and tokenizer: what is learnt of one model must not be found for another.
        settings: of the distribution, for a policy that begins as the reference.
    """

    trunk: Trunk
    texts: Texts
    reference: TopPolicy
    mark: str
    settings: dict[str, Any]

    def policy(self) -> TopPolicy:
        """One that trains, and says at first what the reference says."""
        return TopPolicy(self.trunk, **self.settings)

    def features(self, rollout: Rollout) -> Float[Tensor, "batch hidden"]:
        """What a reward model reads: the states at the top of the trunk, each divided by its root mean square, averaged
        over the tokens of the answer.
        """
        states = self.trunk.states(rollout)
        return masked_mean(states, rollout.mask[..., None].expand_as(states), dim=1)


def speaker(
    folder: Path, *, prompts: Sequence[str], layers: int, time: int, temperature: float, spoken: int, device: str
) -> Generator[Note, None, tuple[Speaker, float]]:
    """Open a model and find the tokens that it is to speak; returns their share of the printable mass as well.

    Args:
        folder: a model of the Llama layout with its tokenizer.
        prompts: from which the tokens are found.
        layers: at the top, that may train.
        time: tokens of an answer at most.
        temperature: of every distribution.
        spoken: how many tokens; the end token comes on top.
        device: where it computes.
    """
    texts = Texts.load(folder, chat=False)
    model = open_causal(folder, dtype=torch.bfloat16).to(device)
    mark = f"{digest(model.parameters())} {texts.digest}"
    vocabulary = texts.vocabulary(time, size=model.config.get_text_config().vocab_size)
    settings = {"model": mark, "prompts": list(prompts), "time": time, "temperature": temperature, "spoken": spoken,
                "device": device}  # fmt: skip

    def count() -> Generator[Note, None, dict[str, Any]]:
        ids = printable(texts, vocabulary.size)
        if len(ids) < 2:
            raise Refusal(f"{folder} has {len(ids)} printable tokens: nothing could be said with it.")
        allowed = sorted({*ids, *([] if texts.eos is None else [texts.eos])})
        policy = PretrainedPolicy(model, vocabulary, temperature, spoken=allowed)
        mass = mean_mass(policy, PromptSet(prompts, texts, limit=10**6), device=device)
        held = {token: float(share) for token, share in zip(allowed, mass, strict=True) if token != texts.eos}
        kept = sorted(held, key=lambda token: (-held[token], token))[:spoken]
        share = sum(held[token] for token in kept) / sum(held.values())
        yield Note(f"{len(kept):,} of {len(ids):,} printable tokens hold {share:.1%} of their mass")
        return {"spoken": sorted({*kept, *([] if texts.eos is None else [texts.eos])}), "coverage": share}

    found = yield from cached("text-vocabulary", settings, build=count)
    trunk = Trunk(model, layers)
    distribution = {"vocabulary": vocabulary, "temperature": temperature, "spoken": found["spoken"]}
    reference = (
        TopPolicy(trunk, **distribution).requires_grad_(False).to(trunk.dtype)
    )  # as it was read: half the memory
    return Speaker(trunk, texts, reference, mark, distribution), found["coverage"]


def printable(texts: Texts, size: int) -> list[int]:
    """Tokens that stand for whole printable characters: no line break, no mark of a chat, no part of a letter."""
    marks = set(texts.tokenizer.all_special_ids)
    read = ((token, texts.read([token])) for token in range(size) if token not in marks)
    return [token for token, text in read if text and text.isprintable() and "\ufffd" not in text]


@torch.no_grad()
def mean_mass(policy: PretrainedPolicy, prompts: PromptSet, *, device: str) -> Float[Tensor, " spoken"]:
    """The mean probability of each token the policy may say, over the places of a few answers of its own."""
    ids, mask = (part.to(device) for part in prompts.all())
    generator = stage_generator(0, "text vocabulary", device=device)
    total = torch.zeros(len(policy.distribution.spoken or ()), dtype=torch.float64)
    for rows in torch.arange(len(ids)).split(16):
        rollout = policy.sample((ids[rows], mask[rows]), CALIBRATION, generator)
        full = policy.logprobs(rollout)[1]
        assert full is not None
        total += full[rollout.mask].exp().sum(0).double().cpu()
    return total / total.sum()


@dataclass(frozen=True)
class Answers:
    """What the reference says to each of some prompts: the answers to one stand together.

    Args:
        prompts: all of them, in order.
        n: answers to each.
        rollout: the answers.
        features: of each.
        texts: of each.
        gold: of each.
    """

    prompts: PromptSet
    n: int
    rollout: Rollout
    features: Float[Tensor, "batch hidden"]
    texts: list[str]
    gold: Float[Tensor, " batch"]


def answers(
    speaks: Speaker, prompts: Sequence[str], *, n: int, seed: int, part: str, gold: TextScore
) -> Generator[Note, None, Answers]:
    """Answers of the reference with features and gold; drawn and read once, then cached.

    Args:
        speaks: answers.
        prompts: asked.
        n: answers to each.
        seed: of the answers.
        part: what they are for, which is a stream of its own.
        gold: what people want; read off each time, so that another costs no new answers.
    """
    asked = PromptSet(prompts, speaks.texts, limit=10**6)
    device = speaks.trunk.model.device
    pieces = torch.arange(len(asked)).split(max(1, STAGE // n))
    settings = {"seed": seed, "model": speaks.mark, "prompts": list(prompts), "n": n, "for": part,
                "layers": speaks.trunk.depth, "device": str(device),
                **{name: value for name, value in speaks.settings.items() if name != "vocabulary"},
                "time": speaks.reference.vocabulary.time}  # fmt: skip

    def say(rows: Tensor) -> Generator[Note, None, dict[str, Any]]:
        ids, mask = (part.to(device)[rows] for part in asked.all())
        generator = stage_generator(seed, f"text {part} {int(rows[0])}", device=device)
        rollout = sample_in_batches(speaks.reference, (ids, mask), n=n, generator=generator, rows=ROWS)
        features = torch.cat([speaks.features(rollout[some]) for some in torch.arange(len(rollout)).split(ROWS)])
        yield Note(f"{len(rollout):,} answers to {len(rows)} {part} prompts are written and read")
        return {"rollout": vars(rollout), "features": features}

    saved = yield from cached_parts("text-answers", settings, builds=[partial(say, rows) for rows in pieces])
    parts = [{name: x.to(device) for name, x in each["rollout"].items()} for each in saved]
    rollout = joined([Rollout(**each) for each in parts], pad=speaks.texts.pad)
    told = speaks.texts.responses(rollout)
    worth = gold([prompt for prompt in prompts for _ in range(n)], told).float()
    return Answers(
        asked, n, rollout, torch.cat([each["features"] for each in saved]).to(device), told, worth.to(device)
    )
