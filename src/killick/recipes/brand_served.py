"""The reward head as something to keep and to ask: a file of its own, and text in, numbers out."""

from collections.abc import Generator, Sequence
from pathlib import Path

from killick.models.encoding import encode_answers
from killick.models.weights import read, write
from killick.recipes.brand_preferences import Speaker, preferences, speaker, split
from killick.recipes.brand_rewards import FIT, LIMIT, fitted_head, fresh_head, scored
from killick.recipes.ledger import Note
from killick.rewards.fit import Standardised
from killick.types import Refusal
from killick.worlds.brand import chat
from killick.worlds.catalogue import PRODUCTS

NAME = "brand-head"
"""What the head is called where it is one of several."""


class TextReward:
    """Scores answers to prompts, both as text, in deviations of the reference's answers.

    Args:
        reward: scores rollouts.
        speaks: whose tokenizer turns text into tokens; its unknown words are one token, `<unk>`.
    """

    def __init__(self, reward: Standardised, speaks: Speaker):
        self.reward, self.speaks = reward, speaks

    def __call__(self, prompts: Sequence[str], answers: Sequence[str]) -> list[float]:
        """One number for each answer; an answer is read as ended, and beyond 64 tokens it is not read.

        Args:
            prompts: as a person would send them, such as "Describe the Kestrel rain jacket .".
            answers: one for each prompt.

        Raises:
            Refusal: where they do not go together, one is empty, or a prompt leaves no room for its answer.
        """
        policy = self.speaks.policy
        asked = [chat(prompt) for prompt in prompts]
        rollout = encode_answers(asked, answers, encode=self.speaks.tokenizer.encode, vocabulary=policy.vocabulary)
        return scored(self.reward, rollout).tolist()


def text_reward(*, seed: int = 0) -> Generator[Note, None, TextReward]:
    """The reward head as `killick run brand` fits it at a seed, from the cache or in seconds.

    Args:
        seed: of the answers that it learns from.
    """
    speaks = speaker()
    asked = yield from preferences(speaks, seed=seed)
    head, _ = yield from fitted_head(speaks, FIT, pairs=split(asked, PRODUCTS), seed=seed)
    return TextReward(head, speaks)


def opened(file: Path) -> TextReward:
    """The reward head that `save` wrote, ready to be asked.

    Raises:
        Refusal: where the file is none of ours, or belongs to another chat model.
    """
    speaks = speaker()
    return TextReward(load(file, speaks), speaks)


def save(reward: Standardised, path: Path, *, speaks: Speaker) -> None:
    """Write the head with its scale: a few hundred numbers, since the states come from the chat model."""
    write(reward, path, settings={"reward": NAME, "limit": LIMIT, "model": speaks.mark})


def load(path: Path, speaks: Speaker) -> Standardised:
    """The head that `save` wrote.

    Raises:
        Refusal: where it is none, is not whole, or read the states of another chat model.
    """
    settings, tensors = read(path)
    if settings.get("reward") != NAME or settings.get("limit") != LIMIT:
        raise Refusal(f"{path} holds no {NAME} that reads {LIMIT} tokens.")
    if settings.get("model") != speaks.mark:
        raise Refusal(f"{path} was fitted on the states of another chat model; fit the head anew.")
    reward = Standardised(fresh_head(speaks.policy).requires_grad_(False), 0.0, 1.0)
    try:
        reward.load_state_dict(tensors)
    except RuntimeError as error:
        raise Refusal(f"{path} does not hold a whole {NAME}: {' '.join(str(error).split())}.") from error
    return reward
