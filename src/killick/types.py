"""The floor: what walks through the house, and what each room may ask of the others.

Everything is a token game, so one `Rollout` carries digits, symbols, a choice among eight answers, or sub-words alike.
Gold, a reward model, an ensemble and a remote reviewer are the same thing to their user: a `Reward`.
This module knows no file, no model and no world.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from killick.refusal import Refusal as Refusal


class NonFinite(ArithmeticError):
    """A quantity that must be a number is NaN or infinite; the message names it, its step and its first batch rows."""


def check_finite(name: str, values: Float[Tensor, "batch ..."], *, step: int | None = None) -> None:
    """Stop at the first quantity that is not a number (O-44).

    Args:
        name: what the user knows it by ("scores", "policy log-probs").
        values: any shape with the batch first.
        step: the iteration, where there is one.

    Raises:
        NonFinite: naming the quantity, the step and up to five rows.
    """
    # A finite sum has finite terms, and costs a third of asking each; an infinite one may only have overflowed.
    if math.isfinite(values.sum()) or bool(torch.isfinite(values).all()):
        return
    rows = (~torch.isfinite(values)).reshape(len(values), -1).any(1).nonzero().flatten().tolist()
    where = "" if step is None else f" at step {step}"
    shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
    raise NonFinite(f"{name} not finite{where} in {len(rows)} of {len(values)} rows (row {shown}).")


@dataclass(frozen=True)
class Vocabulary:
    """Which token ids a policy scores, and how long it may speak.

    Args:
        size: ids 0 .. size - 1 have a probability.
        time: the most response tokens (the budget).
        eos: the id that ends a response; None where every response has exactly `time` tokens.
        pad: fills responses and prompts; never read, and free to equal `eos` (the mask decides).
        forbidden: ids with probability 0, in sampling *and* in scoring.
    """

    size: int
    time: int
    eos: int | None = None
    pad: int = 0
    forbidden: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.size < 1 or self.time < 1:
            raise Refusal(f"A vocabulary needs size >= 1 and time >= 1, not size {self.size} and time {self.time}.")
        if self.eos is not None and not 0 <= self.eos < self.size:
            raise Refusal(f"The end token {self.eos} is outside the vocabulary 0..{self.size - 1}.")
        if any(not 0 <= token < self.size for token in self.forbidden) or len(set(self.forbidden)) >= self.size:
            raise Refusal(f"Forbidden tokens {self.forbidden} must lie in 0..{self.size - 1} and leave one allowed.")
        if self.eos in self.forbidden:
            raise Refusal(f"The end token {self.eos} is forbidden, so no response could end; use eos=None instead.")


Prompts: TypeAlias = tuple[Int[Tensor, "batch prompt"], Bool[Tensor, "batch prompt"]]


@dataclass(frozen=True)
class Rollout:
    """Responses to prompts, one a row. `mask` is True at real response tokens, the end token included.

    Args:
        prompts: token ids, padded on the left.
        prompt_mask: True at real prompt tokens.
        responses: token ids, padded on the right.
        mask: True at real response tokens.
        logprobs: nats per token, of the distribution that was sampled; 0 where the mask is False.
        finished: True where the sampler met the end token.
    """

    prompts: Int[Tensor, "batch prompt"]
    prompt_mask: Bool[Tensor, "batch prompt"]
    responses: Int[Tensor, "batch time"]
    mask: Bool[Tensor, "batch time"]
    logprobs: Float[Tensor, "batch time"]
    finished: Bool[Tensor, " batch"]

    def __len__(self) -> int:
        return self.responses.shape[0]

    def __getitem__(self, rows: Tensor | slice) -> "Rollout":
        """The same rollout with these rows only, in this order."""
        return Rollout(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @property
    def lengths(self) -> Int[Tensor, " batch"]:
        """Real response tokens in each row."""
        return self.mask.sum(1)

    def trimmed(self) -> "Rollout":
        """The same rollout without the columns behind its longest response: what would be computed for nothing."""
        stop = max(1, int(self.lengths.max())) if len(self) else 1
        cut = {name: getattr(self, name)[:, :stop] for name in ("responses", "mask", "logprobs")}
        return replace(self, **cut)


@dataclass(frozen=True)
class Comparison:
    """Pairs of responses to one prompt, not yet judged: row numbers into `rollout`."""

    rollout: Rollout
    first: Int[Tensor, " pair"]
    second: Int[Tensor, " pair"]

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class Ranking:
    """Responses to one prompt sorted by a labeler, best first.

    Args:
        rollout: the responses.
        rows: row numbers into `rollout`.
        place: 0 for the best; responses that tie share a place.
    """

    rollout: Rollout
    rows: Int[Tensor, "ranking k"]
    place: Int[Tensor, "ranking k"]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Preference:
    """Judged pairs: row numbers into `rollout`, and how they weigh.

    Args:
        rollout: the responses; one may stand in many pairs and is scored once.
        chosen, rejected: the pairs.
        label: probability that `chosen` is really preferred: 1 for a hard label, 0.5 for a tie.
        margin: score difference that the loss asks for (Llama 2's margin), usually 0.
        group: pairs with the same number come from one ranking and are averaged first.
    """

    rollout: Rollout
    chosen: Int[Tensor, " pair"]
    rejected: Int[Tensor, " pair"]
    label: Float[Tensor, " pair"]
    margin: Float[Tensor, " pair"]
    group: Int[Tensor, " pair"]

    @classmethod
    def hard(cls, rollout: Rollout, chosen: Tensor, rejected: Tensor, group: Tensor | None = None) -> "Preference":
        """Pairs with a sure winner, no margin, and (unless told) no grouping."""
        ones = torch.ones(len(chosen), device=chosen.device)
        group = torch.arange(len(chosen), device=chosen.device) if group is None else group
        return cls(rollout, chosen, rejected, label=ones, margin=torch.zeros_like(ones), group=group)

    def __len__(self) -> int:
        return len(self.chosen)

    def flipped(self) -> "Preference":
        """The same pairs judged the other way round, each with its label, margin and group."""
        return replace(self, chosen=self.rejected, rejected=self.chosen)

    def pairs(self, rows: Tensor | slice) -> "Preference":
        """The same preference with these pairs only; the rollout stays whole."""
        picked = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "rollout"}
        return Preference(self.rollout, **picked)


@runtime_checkable
class Policy(Protocol):
    """What can speak. One distribution serves sampling and every log-prob."""

    vocabulary: Vocabulary

    def sample(self, prompts: Prompts, n: int, generator: torch.Generator) -> Rollout:
        """Draw `n` responses to each prompt; the rows of one prompt stand together."""
        ...

    def logprobs(
        self, rollout: Rollout
    ) -> tuple[Float[Tensor, "batch time"], Float[Tensor, "batch time vocab"] | None]:
        """Log-probs in nats per token (0 on padding) and the full log-softmax where it is at hand."""
        ...

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """What an optimiser may move."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that training changes, as tensors."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Take back what `state_dict` gave; a missing piece is an error."""
        ...


@runtime_checkable
class Value(Protocol):
    """A critic: the expected return at each response token, read before that token is written."""

    def __call__(self, rollout: Rollout, /) -> Float[Tensor, "batch time"]:
        """Score units; what stands on padding means nothing."""
        ...

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """What an optimiser may move."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that training changes, as tensors."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Take back what `state_dict` gave; a missing piece is an error."""
        ...


@runtime_checkable
class Reward(Protocol):
    """One number per response, in the reward's own unit."""

    def __call__(self, rollout: Rollout, /) -> Float[Tensor, " batch"]:
        """Score every response."""
        ...


@runtime_checkable
class World(Protocol):
    """A task whose gold is known exactly."""

    vocabulary: Vocabulary
    flaw: str
    """One sentence: what a proxy can exploit here."""
    best: float
    """The largest gold that any policy can reach."""

    def prompts(self, count: int, generator: torch.Generator) -> Prompts:
        """Draw prompts."""
        ...

    def gold(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """What people want, exactly."""
        ...

    def render(self, rollout: Rollout) -> list[str]:
        """Each response as a person reads it."""
        ...


@runtime_checkable
class Listed(Protocol):
    """One question with every answer listed, so that each expectation is a sum; float64."""

    @property
    def reference(self) -> Float[Tensor, " answer"]:
        """Probabilities, summing to 1."""
        ...

    @property
    def reward(self) -> Float[Tensor, " answer"]:
        """What the optimiser sees."""
        ...

    @property
    def gold(self) -> Float[Tensor, " answer"] | None:
        """What people want; None where nobody knows it."""
        ...

    @property
    def gaming(self) -> Bool[Tensor, " answer"] | None:
        """The answers that game the reward; None where nobody knows them."""
        ...


def check_speaks(policy: Policy, world: World) -> None:
    """Refuse a policy that cannot say what the world's responses are made of.

    Raises:
        Refusal: where the policy has fewer tokens than the world, or ends responses with another token.
    """
    mine, theirs = policy.vocabulary, world.vocabulary
    if mine.size < theirs.size:
        raise Refusal(f"The policy has {mine.size} tokens, fewer than the {theirs.size} of {type(world).__name__}.")
    if mine.eos != theirs.eos:
        raise Refusal(f"The policy ends responses with token {mine.eos}, {type(world).__name__} with {theirs.eos}.")


@runtime_checkable
class Labeler(Protocol):
    """A simulated judge with known noise."""

    def probability(self, first: Float[Tensor, " pair"], second: Float[Tensor, " pair"]) -> Float[Tensor, " pair"]:
        """Exact probability that the first of two golds is put above the second."""
        ...


Demonstrations: TypeAlias = Callable[[int, torch.Generator], Rollout]
PromptSource: TypeAlias = Callable[[int, torch.Generator], Prompts]


@dataclass(frozen=True)
class Step:
    """What one iteration of any optimiser shows: measured on its rollout, before its update.

    Args:
        step: counts from 0.
        rollout: the responses, for the caller to score with gold.
        proxy: the score that the optimiser saw, before any penalty.
        kl: nats per response, KL(policy || reference) of each row: exact per token, summed along the sampled prefix;
            None where the policy gives no full distribution.
        kl_k1: nats per response: the sampled log-ratio, which is what the reward charges.
        beta: reward units per nat, in force during this step.
        entropy: nats per token, None with `kl`.
        stats: what the update did (losses, clip fraction, counts), by name.
    """

    step: int
    rollout: Rollout
    proxy: Float[Tensor, " batch"]
    kl: Float[Tensor, " batch"] | None
    kl_k1: Float[Tensor, " batch"]
    beta: float
    entropy: float | None
    stats: dict[str, float] = field(default_factory=dict)
