"""Settings of PPO, and what is refused among them."""

from dataclasses import dataclass
from typing import Literal

from killick.types import Refusal, Vocabulary


@dataclass(frozen=True)
class PPOConfig:
    """Settings of PPO. The leash (beta) is apart: it is what tells one arm of a study from another.

    Args:
        iterations: rollouts, each followed by an update.
        batch: prompts per rollout.
        n: responses per prompt.
        epochs: passes over a rollout.
        minibatches: optimiser steps per pass.
        micro_batches: pieces of a minibatch whose gradients are added up, to save the update's memory; the objective
            is the same.
        learning_rate: Adam's.
        value_learning_rate: Adam's for the critic; None takes the policy's.
        adam_betas: what stays of Adam's moments at each step, policy and critic alike.
        weight_decay: of AdamW, for both; 0 is plain Adam.
        warmup: iterations over which the policy's rate rises linearly; the critic's is full at once and leads.
        decay: lower the rate linearly to 0 over all planned optimiser steps.
        clip_range: of the probability ratio.
        level: one ratio per token, or one per sequence (the KL charge then joins the score).
        baseline: what the score is compared with where there is no critic: the mean of the rollout, of the other
            responses to the same prompt, or of all responses to it.
        gamma: discount per token.
        gae_lambda: 0 trusts the critic, 1 the return.
        whiten: centre and scale the advantages of a rollout.
        value_coefficient: weight of the critic's loss.
        value_clip_range: in score units; None clips nothing.
        max_grad_norm: over policy and critic together.
        ptx_coefficient: weight of the supervised loss that is added to every optimiser step.
        ptx_batch: demonstrations an iteration, reused like the rollout by each of its optimiser steps.
        missing_eos_penalty: subtracted from the score of a response that did not end.
        ratio_limit: a minibatch in which any ratio, or its inverse, exceeds this is skipped and counted.
        stop_kl: nats per unit (token or sequence); a minibatch beyond it ends the iteration's update, before its step.
    """

    iterations: int = 120
    batch: int = 64
    n: int = 1
    epochs: int = 4
    minibatches: int = 1
    micro_batches: int = 1
    learning_rate: float = 1e-4
    value_learning_rate: float | None = None
    adam_betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    warmup: int = 0
    decay: bool = False
    clip_range: float = 0.2
    level: Literal["token", "sequence"] = "token"
    baseline: Literal["batch-mean", "leave-one-out", "group-mean"] = "batch-mean"
    gamma: float = 1.0
    gae_lambda: float = 0.95
    whiten: bool = True
    value_coefficient: float = 0.5
    value_clip_range: float | None = None
    max_grad_norm: float = 1.0
    ptx_coefficient: float = 0.0
    ptx_batch: int = 64
    missing_eos_penalty: float = 0.0
    ratio_limit: float | None = None
    stop_kl: float | None = None

    def validate(self) -> None:
        """Refuse settings that cannot train.

        Raises:
            Refusal: naming the field, its value and its range.
        """
        for name in ("iterations", "batch", "n", "epochs", "minibatches", "micro_batches", "ptx_batch"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise Refusal(f"PPO needs a whole {name} of at least 1, not {value}.")
        if type(self.warmup) is not int or self.warmup < 0:
            raise Refusal(f"PPO needs a whole warmup of 0 or more iterations, not {self.warmup}.")
        baselines = ("batch-mean", "leave-one-out", "group-mean")
        for name, known in (("level", ("token", "sequence")), ("baseline", baselines)):
            if getattr(self, name) not in known:
                raise Refusal(f"PPO knows the {name} {' and '.join(known)}, not {getattr(self, name)}.")
        positive = ("clip_range", "max_grad_norm", "value_clip_range", "ratio_limit", "stop_kl")
        for name in ("learning_rate", "value_learning_rate", *positive):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise Refusal(f"PPO needs a positive {name}, not {value:g}.")
        for name in ("value_coefficient", "ptx_coefficient", "missing_eos_penalty", "weight_decay"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise Refusal(f"PPO needs {name} of 0 or more, not {getattr(self, name):g}.")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise Refusal(f"PPO needs {name} between 0 and 1, not {getattr(self, name):g}.")
        if not all(0 <= beta < 1 for beta in self.adam_betas):
            raise Refusal(f"PPO needs adam_betas of 0 or more and below 1, not {self.adam_betas}.")
        rows = self.batch * self.n
        if self.minibatches * self.micro_batches > rows:
            pieces = f"{self.minibatches} minibatches of {self.micro_batches} micro-batches"
            raise Refusal(f"PPO cannot cut {rows} responses into {pieces}; raise batch or n.")
        if rows == 1 and self.whiten and self.level == "sequence":
            raise Refusal("One response per rollout has no spread to whiten; raise batch or n, or turn whiten off.")
        if self.baseline != "batch-mean" and self.n < 2:
            raise Refusal(f"A {self.baseline} baseline needs n of at least 2 responses per prompt, not {self.n}.")

    def check(self, vocabulary: Vocabulary, critic: bool, demonstrations: bool = True) -> None:
        """Refuse settings that do not fit what is optimised.

        Args:
            vocabulary: the policy's.
            critic: whether there is one.
            demonstrations: whether there are any to learn from.

        Raises:
            Refusal: naming what does not go together.
        """
        if self.missing_eos_penalty and vocabulary.eos is None:
            raise Refusal("A missing_eos_penalty needs a vocabulary with an end token; responses here never end early.")
        if critic and self.level == "sequence":
            raise Refusal("A critic reads every token, so it does not go with the level sequence; use the level token.")
        if not critic and self.batch * self.n == 1:
            raise Refusal(
                "One response per rollout has nothing to be compared with; raise batch or n, or use a critic."
            )
        if self.ptx_coefficient and not demonstrations:
            raise Refusal("A ptx term needs demonstrations to learn from; there are none here.")
