"""The reward head as something to keep and to ask: a file of its own, and text in, numbers out."""

from collections.abc import Generator, Sequence
from copy import deepcopy
from pathlib import Path

from killick.models.asking import Unread, marked
from killick.models.encoding import encode_answers
from killick.models.policy import TransformerPolicy
from killick.models.weights import read, write
from killick.models.words import SPECIAL
from killick.recipes.brand.preferences import Speaker, preferences, speaker, split
from killick.recipes.brand.rewards import FIT, LIMIT, fitted_head, fresh_head, scored
from killick.recipes.ledger import Note
from killick.rewards.fit import Standardised
from killick.types import Refusal
from killick.worlds.brand import chat
from killick.worlds.catalogue import PRODUCTS

NAME = "brand-head"
"""What the head is called where it is one of several."""


class TextReward:
    """Scores answers to prompts, both as text, in deviations of the reference's answers.

    It computes in float64, so that who else is scored in the same batch moves no digit that anybody sees.

    Args:
        reward: the head; it is copied.
        speaks: whose tokenizer turns text into tokens; its unknown words are one token, `<unk>`.
    """

    def __init__(self, reward: Standardised, speaks: Speaker):
        self.reward, self.speaks = unfitted(deepcopy(speaks.policy).double()).double(), speaks
        self.reward.load_state_dict(reward.state_dict())

    def __call__(self, prompts: Sequence[str], answers: Sequence[str]) -> list[float]:
        """One number for each answer; an answer is read as ended, and beyond 64 tokens it is not read.

        Args:
            prompts: as a person would send them, such as "Describe the Kestrel rain jacket .".
            answers: one for each prompt; an empty one is an answer that ended at once.

        Raises:
            Refusal: where they do not go together, or for the first that `each` cannot read.
        """
        scores = self.each(prompts, answers)
        for row, score in enumerate(scores):
            if isinstance(score, Unread):
                raise Refusal(f"Row {row}, {score.field}: {score.reason}")
        return [score for score in scores if not isinstance(score, Unread)]

    def each(self, prompts: Sequence[str], answers: Sequence[str]) -> list[float | Unread]:
        """The same, or in the place of a number why there is none: an answer that cannot be read keeps no other back.

        Raises:
            Refusal: where prompts and answers do not go together.
        """
        if len(prompts) != len(answers):
            raise Refusal(f"Each answer needs its prompt; there are {len(prompts)} prompts and {len(answers)} answers.")
        found: list[float | Unread | None] = [self.unread(*one) for one in zip(prompts, answers, strict=True)]
        rows = [row for row, unread in enumerate(found) if unread is None]
        if rows:
            words, policy = self.speaks.tokenizer, self.speaks.policy
            asked = [chat(prompts[row]) for row in rows]
            rollout = encode_answers(
                asked, [answers[row] for row in rows], encode=words.encode, vocabulary=policy.vocabulary
            )
            for row, score in zip(rows, scored(self.reward, rollout).tolist(), strict=True):
                found[row] = score
        return [one for one in found if one is not None]

    def unread(self, prompt: str, answer: str) -> Unread | None:
        """Why this answer cannot be scored: a mark of the chat in it, a prompt without a word, or one too long."""
        encode = self.speaks.tokenizer.encode
        if spelled := marked({"prompt": prompt, "answer": answer}, SPECIAL):
            return spelled
        if not encode(prompt):
            return Unread("prompt", "The prompt holds no word.")
        if (length := len(encode(chat(prompt)))) >= LIMIT:
            return Unread(
                "prompt",
                f"The prompt has {length} tokens with its marks; of prompt and answer the first {LIMIT} are read.",
            )
        return None


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
    reward = unfitted(speaks.policy)
    try:
        reward.load_state_dict(tensors)
    except RuntimeError as error:
        raise Refusal(f"{path} does not hold a whole {NAME}: {' '.join(str(error).split())}.") from error
    return reward


def unfitted(policy: TransformerPolicy) -> Standardised:
    """A head over a model's states, for weights and scale to be loaded into."""
    return Standardised(fresh_head(policy).requires_grad_(False), 0.0, 1.0)
