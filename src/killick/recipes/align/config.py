"""Settings of an alignment run: the model, what it is optimised for, how far it may go, and how it is watched."""

from dataclasses import dataclass
from typing import Literal

from killick.algorithms.leash import Leash
from killick.algorithms.ppo_config import PPOConfig
from killick.recipes.ledger import arm_name
from killick.recipes.settings import check_betas, check_seeds, find_device
from killick.types import Refusal

ADAPTIVE_START = 0.1
"""Where the beta of an arm with a target KL begins."""
PER_PROMPT = 4
"""Responses to each prompt where they are compared with each other."""


@dataclass(frozen=True)
class Config:
    """Settings of `killick align`.

    Args:
        model: folder of the language model, in the form of transformers, or the name of one that was fetched (smollm2);
            it is the reference, too.
        reward: what the policy is optimised for: a reward folder, module:function, a URL; several are added up.
        prompts: file with prompts: JSONL, CSV, Parquet, a preference file, or text with one prompt a line.
        beta: the leash: reward units per nat of KL; several are arms, side by side. 0 takes it off.
        target_kl: instead of beta: steer it so that the KL comes to this many nats per response.
        gold: what people really want of it: vader, sincere, module:function, a URL, a reward folder, or people:
            then the saved policy's held-out answers are queued at the end, beside the reference's, for killick label.
        held_out: share of the prompts that is held out, by their text; 0 holds out none.
        evaluated: held-out prompts that are asked at most.
        answers: answers to each of them.
        every: steps between two looks at the held-out prompts.
        choose: which policy is saved: the last, or the one with the best gold or reward on held-out prompts. A reward
            model that was kept apart goes in as --gold DIR with held-out-gold; held-out-reward is what is optimised,
            on prompts that are not, and prefers the most optimised.
        baseline: what a response is compared with: a critic's expectation, the other responses to its prompt
            (leave-one-out), all responses to it (group-mean), or the whole batch.
        critic_from: the critic begins as a head of zeros on the policy's states, or as a copy of the reward model.
        steps: rollouts, each followed by an update.
        responses: responses a step.
        per_prompt: responses to each prompt; without, 1 with a critic or a batch mean, 4 otherwise.
        tokens: the most tokens of a response.
        temperature: of the policy, its samples and every log-prob alike.
        train_layers: so many top layers are trained over one frozen trunk; full trains all; auto is 6 on a CPU (at
            most half of the model), full elsewhere.
        learning_rate: Adam's; without, 2e-4 for top layers and 1e-5 for a whole model.
        value_learning_rate: the critic's; without, 3e-3 for a head alone, the policy's otherwise.
        epochs: passes over a rollout.
        minibatches: optimiser steps a pass.
        micro_batches: pieces of a minibatch, one in memory at a time.
        clip_range: of the probability ratio.
        gae_lambda: 0 trusts the critic, 1 the return.
        missing_eos_penalty: subtracted from the score of a response that does not end by itself.
        stop_kl: nats per token; a minibatch that has moved further ends the step's update.
        chat: on frames prompts by the chat template, off takes them as plain text; auto frames where there is one.
        dtype: of the frozen weights and of every forward pass; what trains is kept in float32. auto is float32 on a
            whole model, bfloat16 on a trunk.
        device: auto takes a GPU where there is one.
        workers: processes at once, where there are several arms; 0 takes one a core.
        seed: of everything that is drawn.
    """

    model: str
    reward: tuple[str, ...]
    prompts: str
    beta: tuple[float, ...] = ()
    target_kl: float | None = None
    gold: str | None = None
    held_out: float = 0.2
    evaluated: int = 48
    answers: int = 4
    every: int = 5
    choose: Literal["last", "held-out-gold", "held-out-reward"] = "last"
    baseline: Literal["critic", "leave-one-out", "group-mean", "batch-mean"] = "critic"
    critic_from: Literal["policy", "reward"] = "policy"
    steps: int = 40
    responses: int = 64
    per_prompt: int | None = None
    tokens: int = 64
    temperature: float = 1.0
    train_layers: int | Literal["auto", "full"] = "auto"
    learning_rate: float | None = None
    value_learning_rate: float | None = None
    epochs: int = 2
    minibatches: int = 2
    micro_batches: int = 1
    clip_range: float = 0.2
    gae_lambda: float = 0.95
    missing_eos_penalty: float = 0.0
    stop_kl: float | None = None
    chat: Literal["auto", "on", "off"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    device: str = "auto"
    workers: int = 0
    seed: int = 0

    @property
    def seeds(self) -> tuple[int, ...]:
        """The one seed, as every recipe has them."""
        return (self.seed,)

    @property
    def n(self) -> int:
        """Responses to each prompt."""
        alone = self.baseline in ("critic", "batch-mean")
        return self.per_prompt if self.per_prompt is not None else 1 if alone else PER_PROMPT

    @property
    def framed(self) -> bool | None:
        """Whether prompts are framed by the chat template; None leaves it to the tokenizer."""
        return {"auto": None, "on": True, "off": False}[self.chat]

    def leashes(self) -> dict[str, Leash]:
        """What each arm is on."""
        if self.target_kl is not None:
            leash = Leash(ADAPTIVE_START, self.target_kl)
            return {arm_name(ADAPTIVE_START, f"target={self.target_kl:g}"): leash}
        return {arm_name(beta): Leash(beta) for beta in self.beta}

    def ppo(self) -> PPOConfig:
        """The optimiser's settings."""
        whole = self.train_layers == "full"
        rate = self.learning_rate or (1e-5 if whole else 2e-4)
        alone = self.critic_from == "policy" and not whole
        return PPOConfig(
            iterations=self.steps, batch=self.responses // self.n, n=self.n, epochs=self.epochs,
            minibatches=self.minibatches, micro_batches=self.micro_batches, learning_rate=rate,
            value_learning_rate=self.value_learning_rate or (3e-3 if alone else rate), clip_range=self.clip_range,
            baseline="batch-mean" if self.baseline == "critic" else self.baseline, gae_lambda=self.gae_lambda,
            missing_eos_penalty=self.missing_eos_penalty, stop_kl=self.stop_kl,
        )  # fmt: skip

    def validate(self) -> None:
        """Refuse settings that cannot run; what the files hold is looked at later.

        Raises:
            Refusal: naming the flag.
        """
        if self.beta and self.target_kl is not None:
            raise Refusal("--beta fixes the leash and --target-kl steers it; give one of them.")
        if not self.beta and self.target_kl is None:
            raise Refusal("Name a leash: --beta 0.1 (reward units per nat), or --target-kl 10 (nats per response).")
        if self.beta:
            check_betas(self.beta)
        for leash in self.leashes().values():
            leash.validate()
        check_seeds(self.seeds)
        find_device(self.device)
        self.check_counts()
        if not 0 <= self.held_out < 1:
            raise Refusal(f"--held-out must be a share of 0 or more and below 1, not {self.held_out:g}.")
        if self.critic_from == "reward" and self.baseline != "critic":
            raise Refusal("--critic-from reward needs --baseline critic.")
        self.check_choice()
        self.ppo().validate()

    def check_counts(self) -> None:
        """Refuse numbers of which there must be some.

        Raises:
            Refusal: naming the flag.
        """
        for name in ("steps", "responses", "per_prompt", "tokens", "evaluated", "answers", "every", "train_layers"):
            value = getattr(self, name)
            if isinstance(value, int) and value < 1:
                raise Refusal(f"--{name.replace('_', '-')} must be at least 1, not {value}.")
        if self.workers < 0:
            raise Refusal(f"--workers must be at least 0, not {self.workers}; 0 takes one a core.")
        if self.responses % self.n:
            raise Refusal(
                f"--responses {self.responses} does not divide into {self.n} to each prompt; change it or --per-prompt."
            )
        for name in ("learning_rate", "value_learning_rate"):
            rate = getattr(self, name)
            if rate is not None and not 0 < rate < float("inf"):
                raise Refusal(f"--{name.replace('_', '-')} must be a positive number, not {rate:g}.")

    def check_choice(self) -> None:
        """Refuse a choice by what is not measured.

        Raises:
            Refusal: naming what is missing.
        """
        if self.gold == "people" and not self.held_out:
            raise Refusal("--gold people compares answers to held-out prompts; take --held-out 0 away.")
        if self.choose != "last" and not self.held_out:
            raise Refusal(f"--choose {self.choose} needs held-out prompts; take --held-out 0 away.")
        if self.choose == "held-out-gold" and self.gold in (None, "people"):
            raise Refusal("--choose held-out-gold needs a --gold that gives numbers at once.")
