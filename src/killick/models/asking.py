"""Several questions to a chat model at once: each gets the answers that it would get alone.

Every answer draws from a stream of its own, and the network computes in float64, so that the width of a batch, which
moves the last digits of float32, moves no token.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import torch

from killick.models.encoding import encode_prompts
from killick.models.policy import TransformerPolicy
from killick.types import Refusal


@dataclass(frozen=True)
class Question:
    """What is asked.

    Args:
        prompt: plain text.
        n: answers.
        temperature: of the distribution that is sampled.
        tokens: of an answer at most.
        seed: of the draws.
    """

    prompt: str
    n: int
    temperature: float
    tokens: int
    seed: int


@dataclass(frozen=True)
class Answer:
    """A text without its end token, and whether the model ended it."""

    text: str
    finished: bool


@dataclass(frozen=True)
class Unread:
    """Why an answer to a prompt gets no score.

    Args:
        field: prompt or answer, whichever cannot be read.
        reason: one sentence.
    """

    field: str
    reason: str


class Asking:
    """Answers questions, several in one batch.

    Args:
        policy: speaks; it is copied, so training it later changes nothing here.
        encode: text to ids.
        decode: ids to text.
        frame: a prompt as the model reads it, with the marks of the chat around it.
        marks: words that a prompt may not hold, since they are tokens of their own (O-17).
    """

    def __init__(
        self,
        policy: TransformerPolicy,
        encode: Callable[[str], list[int]],
        *,
        decode: Callable[[list[int]], str],
        frame: Callable[[str], str],
        marks: Sequence[str],
    ):
        self.network, self.vocabulary = deepcopy(policy.network).double().eval(), policy.vocabulary
        self.encode, self.decode, self.frame, self.marks = encode, decode, frame, tuple(marks)

    def __call__(self, questions: Sequence[Question]) -> list[list[Answer] | Refusal]:
        """Answers to each question in their order, or why there are none."""
        return in_groups(questions, refusal=self.refusal, sampled=self.sampled)

    def refusal(self, question: Question) -> Refusal | None:
        """Why a question cannot be asked."""
        if spelled := marked({"prompt": question.prompt}, self.marks):
            return Refusal(spelled.reason)
        if not self.encode(question.prompt):
            return Refusal("The prompt holds no word.")
        length, context = len(self.encode(self.frame(question.prompt))), self.network.config.context
        if length + question.tokens - 1 > context:
            return Refusal(
                f"The prompt has {length} tokens with its marks; the model reads {context - question.tokens + 1} at "
                f"most before an answer of {question.tokens}."
            )
        return None

    def sampled(self, questions: Sequence[Question]) -> Iterator[Answer]:
        """The answers to questions of one temperature and budget, all in one batch, in the order of the questions."""
        vocabulary = replace(self.vocabulary, time=questions[0].tokens)
        policy = TransformerPolicy(self.network, vocabulary, questions[0].temperature)
        framed = [self.frame(question.prompt) for question in questions for _ in range(question.n)]
        streams = [stream for question in questions for stream in own_streams(question)]
        rollout = policy.sample(encode_prompts(framed, self.encode, pad=vocabulary.pad), 1, streams)
        for tokens, length, ended in zip(
            rollout.responses.tolist(), rollout.lengths.tolist(), rollout.finished.tolist(), strict=True
        ):
            yield Answer(self.decode(tokens[: length - ended]), ended)


def in_groups(
    questions: Sequence[Question],
    *,
    refusal: Callable[[Question], Refusal | None],
    sampled: Callable[[list[Question]], Iterator[Answer]],
) -> list[list[Answer] | Refusal]:
    """Answers to each question in their order, or why there are none; those of one temperature and budget together.

    Args:
        questions: asked at the same time.
        refusal: why a question cannot be asked.
        sampled: answers to questions of one temperature and budget, in the order of the questions.
    """
    found: list[list[Answer] | Refusal] = [refusal(question) or [] for question in questions]
    groups: dict[tuple[float, int], list[int]] = {}
    for place, question in enumerate(questions):
        if not isinstance(found[place], Refusal):
            groups.setdefault((question.temperature, question.tokens), []).append(place)
    for places in groups.values():
        answers = sampled([questions[place] for place in places])
        for place in places:
            found[place] = [next(answers) for _ in range(questions[place].n)]
    return found


def marked(texts: Mapping[str, str], marks: Sequence[str]) -> Unread | None:
    """The first of some texts, by what it is, that spells a mark of the chat, which would be a token of its own (O-17).

    Args:
        texts: "prompt" or "answer" -> text.
        marks: what may not stand in them.
    """
    for field, text in texts.items():
        for mark in marks:
            if mark in text:
                return Unread(field, f"The {field} is plain text; it may not hold {mark}.")
    return None


def own_streams(question: Question) -> list[torch.Generator]:
    """A stream for each answer, all from the question's seed."""
    first = torch.Generator().manual_seed(question.seed)
    seeds = torch.randint(2**62, (question.n,), generator=first)
    return [torch.Generator().manual_seed(seed) for seed in seeds.tolist()]
