"""Kinds of policy for one PPO: a table, a transformer with a critic, sequence level, a Hugging Face model, and the top
layers of one over a shared trunk, with a critic on it."""

import os
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState
from killick.algorithms.ppo_config import PPOConfig
from killick.models.policy import TransformerPolicy
from killick.models.pretrained import PretrainedPolicy
from killick.models.speakers import speakers
from killick.models.tabular import TabularPolicy
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.value import Critic
from killick.types import Prompts, Rollout, Vocabulary
from killick.worlds.answers import Answers
from killick.worlds.arithmetic import Arithmetic
from killick.worlds.emphasis import Emphasis

KINDS = ("table", "transformer", "sequence", "hugging face", "top layers")


@dataclass
class Learner:
    """What a test needs to run PPO: a world-like source of prompts and gold, a policy, perhaps a critic, settings."""

    policy: Any
    value: Any
    prompts: Callable[[int, torch.Generator], Prompts]
    reward: Callable[[Rollout], torch.Tensor]
    config: PPOConfig

    def state(self, seed: int = 0, leash: Leash = Leash(0.05), **settings: Any) -> PPOState:
        """A fresh PPO state; the learner itself is copied."""
        policy = deepcopy(self.policy)
        reference = deepcopy(self.policy).requires_grad_(False)
        generator = torch.Generator().manual_seed(seed)
        config = replace(self.config, **settings)
        return PPOState(policy, reference, deepcopy(self.value), config, generator, leash)


def learner(kind: str) -> Learner:
    """One of them, small, the same every time."""
    generator = torch.Generator().manual_seed(1)
    if kind == "table":
        world = Answers()
        policy = TabularPolicy(world.reference[:, None], world.vocabulary)
        config = PPOConfig(iterations=4, batch=8, n=8, minibatches=2, learning_rate=0.02, baseline="leave-one-out")
        return Learner(policy, None, world.prompts, world.gold, config)
    if kind == "transformer":
        arithmetic = Arithmetic()
        shape = TransformerConfig(14, 14, context=16, hidden=16, feed_forward=32)
        speaking = TransformerPolicy(Transformer(shape, generator), arithmetic.vocabulary)
        critic = Critic.from_network(speaking.network)
        config = PPOConfig(iterations=4, batch=32, minibatches=2, learning_rate=1e-3)
        return Learner(speaking, critic, arithmetic.prompts, arithmetic.gold, config)
    if kind == "sequence":
        emphasis = Emphasis()
        shape = TransformerConfig(25, 24, context=20, hidden=16, feed_forward=32, final_norm=False)
        speaking = TransformerPolicy(Transformer(shape, generator), emphasis.vocabulary)
        config = PPOConfig(iterations=4, batch=32, minibatches=2, learning_rate=1e-3, level="sequence")
        return Learner(speaking, None, emphasis.prompts, emphasis.gold, config)
    if kind == "top layers":
        model = llama().model
        with torch.no_grad():
            model.lm_head.weight.mul_(10)  # it stays as it is, and with the library's first weights can say little
        made = speakers(model, Vocabulary(20, time=6, eos=1, pad=1), train_layers=1, generator=generator)
        config = PPOConfig(iterations=3, batch=32, minibatches=2, learning_rate=1e-2)
        return Learner(made.policy, made.value, Arithmetic().prompts, even_tokens, config)
    config = PPOConfig(iterations=3, batch=8, n=4, minibatches=2, learning_rate=1e-3, baseline="leave-one-out")
    return Learner(llama(), None, Arithmetic().prompts, even_tokens, config)


def even_tokens(rollout: Rollout) -> torch.Tensor:
    """Share of even ids among the real tokens of each response."""
    even = (rollout.responses % 2 == 0) & rollout.mask
    return even.sum(1) / rollout.lengths


def llama() -> PretrainedPolicy:
    """A random two-layer Llama that may end its responses."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import LlamaConfig, LlamaForCausalLM
    shape = LlamaConfig(
        vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(shape).eval()
    return PretrainedPolicy(model, Vocabulary(20, time=6, eos=1, pad=1))


def padded(prompts: Callable[..., Prompts], width: int, filler: int = 3) -> Callable[..., Prompts]:
    """The same prompts behind `width` columns of padding that holds real-looking tokens."""

    def source(count: int, generator: torch.Generator) -> Prompts:
        ids, mask = prompts(count, generator)
        ids = torch.nn.functional.pad(ids, (width, 0), value=filler)
        return ids, torch.nn.functional.pad(mask, (width, 0), value=False)

    return source


class RightPadded:
    """A policy whose rollouts carry extra columns of padding on the right, full of real-looking tokens."""

    def __init__(self, policy: Any, width: int):
        self.policy, self.width, self.vocabulary = policy, width, policy.vocabulary

    def sample(self, *arguments: Any) -> Rollout:
        found = self.policy.sample(*arguments)

        def pad(x: torch.Tensor, value: float) -> torch.Tensor:
            return torch.nn.functional.pad(x, (0, self.width), value=value)

        responses = pad(found.responses, 0).where(pad(found.mask, False), 4)
        return replace(found, responses=responses, mask=pad(found.mask, False), logprobs=pad(found.logprobs, 0.0))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)
