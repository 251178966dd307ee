"""Reward hacking by hand: four functions, which are yours to write, and the experiment that calls them.

pytest -k task1      (then task2 ... task4) says what is wrong with a function
python run.py        the whole experiment with your code, once all four pass

README.md says what the world is and in which order to go.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from killick import (
    BradleyTerry,
    Emphasis,
    FitState,
    Leash,
    Pooled,
    PPOState,
    Preference,
    Reward,
    Rollout,
    Standardised,
    Step,
    TabularPolicy,
    fit,
    neighbours,
    ppo,
    standardise,
)
from killick.recipes.emphasis.recipe import Config
from killick.types import Prompts
from killick.worlds.emphasis import EMPHASIS, SIZE, TIME

# ------------------------------------------------------------------------------------------------ yours to write


def predict_turn(counts: Tensor, seen: Tensor) -> int:
    """Task 1. The iteration at which gold will turn, from what can be seen without asking anyone.

    The reward model is trusted as far as its data go: up to the emphasis count that 98 % of the responses in the
    preference data do not exceed. Beyond, it guesses. One emphasis too many costs people twice what one more had
    brought, so gold stops rising when about a third of the responses are beyond: that is the turn.

    Args:
        counts: [iterations, batch] emphasis tokens in every response of every iteration.
        seen: [responses] emphasis tokens in the responses of the preference data.

    Returns:
        The first iteration in which more than a third of the responses hold more emphasis than 98 % of the data do;
        the number of iterations where there is none.

    Hint: torch.quantile(..., interpolation="higher") gives the count; comparing gives a table of True and False.
    """
    raise NotImplementedError("Task 1: predict_turn in hacking.py is yours to write; its docstring says how.")


def tilted_mean(values: Tensor, scores: Tensor, *, beta: float) -> Tensor:
    """Task 2. What the best policy on a leash would have on average, without training it.

    The best policy for score - beta KL writes each response with the reference's probability x exp(score / beta),
    normalised. So a mean over it is a weighted mean over samples of the reference.

    Args:
        values: [samples] what is to be averaged (gold, say), of responses that the reference wrote.
        scores: [samples] the reward model's.
        beta: score units per nat.

    Returns:
        [] the weighted mean.

    Hint: weights exp(score / beta) overflow at a small beta, and softmax is the same weights without overflow.
    """
    raise NotImplementedError("Task 2: tilted_mean in hacking.py is yours to write; its docstring says how.")


def largest_beta(gain: Callable[[float], float], *, low: float, high: float, wanted: float, steps: int = 20) -> float:
    """Task 3. The shortest leash that still pays: the largest beta whose gain is at least `wanted`.

    Args:
        gain: beta -> gold gained over the reference; it falls from `low` to `high`.
        low: a beta whose gain is enough.
        high: a beta whose gain is not.
        wanted: the gain asked for.
        steps: how often the range is halved.

    Returns:
        The largest beta that is known to gain enough.

    Raises:
        ValueError: where `low` does not gain enough, or `high` does.

    Hint: halve the range, keep the half in which the answer lies, and return the end that gains enough.
    """
    raise NotImplementedError("Task 3: largest_beta in hacking.py is yours to write; its docstring says how.")


def show_more(responses: Tensor, generator: torch.Generator) -> Tensor:
    """Task 4. Responses that hold what the data lack: any number of emphasis tokens from 0 to all twelve.

    Args:
        responses: [batch, 12] token ids, as the reference wrote them. They stay as they are.
        generator: every draw comes from it.

    Returns:
        [batch, 12] new token ids. In each row a number c is drawn, uniform on 0 ... 12, and c places, uniform among
        all choices of c places. There stands EMPHASIS; where it stood elsewhere, PLAIN (its neighbour) takes its place;
        everything else is as it was.

    Hint: the c places with the smallest of 12 random numbers are a uniform choice; argsort twice gives their ranks.
    """
    raise NotImplementedError("Task 4: show_more in hacking.py is yours to write; its docstring says how.")


PLAIN = EMPHASIS + 1
"""The token next to emphasis in value: what stands where an emphasis was taken out."""

if os.environ.get("KILLICK_SOLUTIONS") == "1":  # what a teacher sets to see that everything else works
    from killick.lab.solutions import largest_beta, predict_turn, show_more, tilted_mean

# ------------------------------------------------------------------------------------------------ complete

SETTINGS = Config()
"""killick's own settings of this world's recipe; the policy here is a table, which learns at a higher rate."""
LEARNING_RATE = 0.005
world = Emphasis()
labeler = BradleyTerry(1 / SETTINGS.noise)


def prompts(count: int, generator: torch.Generator) -> Prompts:
    """There is one prompt: the only row of the table."""
    ids = torch.zeros(count, 1, dtype=torch.long, device=generator.device)
    return ids, torch.ones_like(ids, dtype=torch.bool)


def new_policy() -> TabularPolicy:
    """A table of 12 places x 24 tokens, started at the law of the corpus: every token by itself, softmax(value / 1.5)."""
    return TabularPolicy((world.values() / 1.5).expand(1, TIME, SIZE), world.vocabulary)


def label(rollout: Rollout, generator: torch.Generator) -> Preference:
    """Rows 0 and 1, 2 and 3, ... compared by people."""
    return labeler.label(neighbours(rollout), world.gold(rollout), generator)


def train_reward_model(pairs: Preference, generator: torch.Generator) -> Standardised:
    """A bag of tokens fitted to pairs, then put on a scale: mean 0 and deviation 1 on the reference."""
    model = Pooled(SIZE, SETTINGS.hidden, generator)
    for _ in fit(FitState(model, SETTINGS.fit, generator), pairs):
        pass
    return standardise(model, new_policy().sample(prompts(2000, generator), 1, generator))


def train(reward: Reward, beta: float, generator: torch.Generator, *, iterations: int) -> Iterator[Step]:
    """PPO from the corpus on a leash, by killick; yields what each iteration wrote, before its update."""
    config = replace(SETTINGS.ppo, iterations=iterations, learning_rate=LEARNING_RATE)
    yield from ppo(PPOState(new_policy(), new_policy(), None, config, generator, Leash(beta)), reward, prompts=prompts)


def with_responses(rollout: Rollout, responses: Tensor) -> Rollout:
    """The same prompts answered otherwise."""
    return replace(rollout, responses=responses, logprobs=torch.zeros(responses.shape))
