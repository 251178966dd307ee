"""What the practice API offers on this machine: the brand's chat model, its preferences, and who judges answers.

Nothing is loaded or computed before somebody asks for it; then it is kept.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Generic, TypeVar

from killick.models.asking import Answer, Asking, Question, Unread, marked
from killick.models.words import SPECIAL
from killick.recipes.brand.preferences import Speaker, preference_rows, preferences, speaker
from killick.recipes.brand.served import NAME, text_reward
from killick.refusal import Refusal
from killick.web.practice import Judge, Practice, Speak
from killick.worlds.brand import chat, described, review

CHAT = "tiny-gpt-chat"
TAKEN = (CHAT, "reviewer", NAME)
"""Names that a person's own models cannot have."""
SEED = 0
"""Of the pairs and of the reward head: the one that `killick run brand` begins with."""

Made = TypeVar("Made")


class Once(Generic[Made]):
    """Something that is made when it is first asked for; whoever asks meanwhile waits for it.

    Args:
        make: called once, or again after it failed.
    """

    def __init__(self, make: Callable[[], Made]):
        self.make, self.lock = make, Lock()

    def __call__(self) -> Made:
        """What was made."""
        with self.lock:
            if not hasattr(self, "made"):
                self.made = self.make()
        return self.made


def outcome(stage: Generator[object, None, Made]) -> Made:
    """What a stage returns; what it tells on the way is left unsaid."""
    while True:
        try:
            next(stage)
        except StopIteration as end:
            made: Made = end.value
            return made


def offers(
    speaks: Callable[[], Speaker] = speaker,
    *,
    models: Mapping[str, Speak] = MappingProxyType({}),
    rewards: Mapping[str, Judge] = MappingProxyType({}),
) -> Practice:
    """The brand's practice, and beside it a person's own models.

    Args:
        speaks: gives the chat model.
        models: language models by name.
        rewards: reward models by name.
    """
    model = Once(speaks)

    def asking() -> Asking:
        words = model().tokenizer
        return Asking(model().policy, words.encode, decode=words.decode, frame=chat, marks=SPECIAL)

    def rows() -> Sequence[Mapping[str, str]]:
        return preference_rows(outcome(preferences(model(), seed=SEED)), model().world())

    ask, head = Once(asking), Once(lambda: outcome(text_reward(seed=SEED)))

    def answers(questions: list[Question]) -> list[list[Answer] | Refusal]:
        return ask()(questions)

    def by_head(prompts: Sequence[str], texts: Sequence[str]) -> list[float | Unread]:
        return head().each(prompts, texts)

    brand: dict[str, Judge] = {"reviewer": reviewer, NAME: by_head}
    return Practice(Once(rows), {CHAT: answers, **models}, {**brand, **rewards})


def reviewer(prompts: Sequence[str], answers: Sequence[str]) -> list[float | Unread]:
    """Gold of each answer, or why it has none."""
    return [gold(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]


def gold(prompt: str, answer: str) -> float | Unread:
    """Minus the number of flaws; none where a mark of the chat is spelled, or the prompt asks about no product."""
    if spelled := marked({"prompt": prompt, "answer": answer}, SPECIAL):
        return spelled
    try:
        return -float(len(review(described(prompt), answer)))
    except Refusal as refusal:
        return Unread("prompt", str(refusal))
