"""Several questions to a person's own language model at once: each gets the answers that it would get alone.

As in `asking.py`, every answer draws from a stream of its own and the network computes in float64.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from killick.models.asking import Answer, Question, in_groups, own_streams
from killick.models.encoding import encode_ids
from killick.models.folders import open_causal
from killick.models.pretrained import PretrainedPolicy
from killick.models.texts import Texts
from killick.types import Refusal

TOKENS = 16_384
"""Of prompts and answers that are worked on at once; more would only take memory."""


class AskingPretrained:
    """Answers questions, several in one batch.

    Args:
        model: an `AutoModelForCausalLM`; it becomes float64.
        texts: its tokenizer and frame.
    """

    def __init__(self, model: Any, texts: Texts):
        self.model, self.texts = model.double().eval(), texts
        shape = model.config.get_text_config()
        self.size, self.context = shape.vocab_size, getattr(shape, "max_position_embeddings", 1 << 20)

    @classmethod
    def load(cls, folder: Path) -> "AskingPretrained":
        """Read a model folder.

        Raises:
            Refusal: where there is none.
        """
        return cls(open_causal(folder, dtype=torch.float64), Texts.load(folder))

    def __call__(self, questions: Sequence[Question]) -> list[list[Answer] | Refusal]:
        """Answers to each question in their order, or why there are none."""
        return in_groups(questions, refusal=self.refusal, sampled=self.sampled)

    def refusal(self, question: Question) -> Refusal | None:
        """Why a question cannot be asked."""
        try:
            length = len(self.texts.prompt(question.prompt))
        except Refusal as refusal:
            return refusal
        room = self.context - question.tokens
        if length > room:
            return Refusal(
                f"The prompt has {length} tokens with its frame; the model reads {max(0, room)} at most before an "
                f"answer of {question.tokens}."
            )
        return None

    def sampled(self, questions: Sequence[Question]) -> Iterator[Answer]:
        """The answers to questions of one temperature and budget, in the order of the questions."""
        tokens = questions[0].tokens
        policy = PretrainedPolicy(self.model, self.texts.vocabulary(tokens, size=self.size), questions[0].temperature)
        rows = [ids for question in questions for ids in [self.texts.prompt(question.prompt)] * question.n]
        streams = [stream for question in questions for stream in own_streams(question)]
        each = max(1, TOKENS // (max(map(len, rows)) + tokens))
        for first in range(0, len(rows), each):
            asked = encode_ids(rows[first : first + each], pad=self.texts.pad)
            rollout = policy.sample(asked, 1, streams[first : first + each])
            yield from map(Answer, self.texts.responses(rollout), rollout.finished.tolist())
