"""A reward model as `transformers` keeps it: `AutoModelForSequenceClassification` with one label (extra `hf`).

Its score is read off the state after the last token, the end token included. That head has no bias, so a shift of all
scores has to be said by its weights: see `killick.ops.centring`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.models.encoding import encode_texts
from killick.models.prompting import PromptSet
from killick.models.texts import Prompt, Texts
from killick.types import Refusal, Rollout

LIMIT = 1024
"""Tokens of prompt and answer that are read where a folder says nothing: more is rarely trained on."""
TOKENS = 8192
"""Tokens in one batch, padding included: more would only take memory."""


class PretrainedReward(nn.Module):
    """A reward on texts: a language model with one output.

    What is scored is the text, never the tokens that a policy happened to write it with, and every answer is read as
    ended: so the same text gets the same number wherever it comes from (O-09), alone or in any batch (O-07).

    Args:
        model: an `AutoModelForSequenceClassification` with a linear head `score` and one label.
        texts: tokenizer and frame.
        limit: most tokens of prompt and answer that are read.
        time: tokens of them that are kept free for an answer.

    Raises:
        Refusal: where the model has several labels, or a head that is no `score`.
    """

    def __init__(self, model: Any, texts: Texts, *, limit: int | None = None, time: int | None = None):
        super().__init__()
        head = getattr(model, "score", None)
        if not isinstance(head, nn.Linear):
            raise Refusal(
                f"A {type(model).__name__} has no linear head named score, so it is no reward model of killick."
            )
        if head.out_features != 1:
            raise Refusal(f"A reward model has one label; this one has {head.out_features}.")
        self.model, self.texts = model.eval(), texts
        context = getattr(model.config.get_text_config(), "max_position_embeddings", LIMIT)
        kept = getattr(model.config, "killick", None) or {}
        self.limit = limit or kept.get("limit") or min(LIMIT, context)
        self.time = time or kept.get("time") or self.limit // 2
        if self.limit > context:
            raise Refusal(f"The model reads {context} tokens at most, not {self.limit}.")
        model.config.pad_token_id = texts.pad
        model.config.killick = kept | {"limit": self.limit, "time": self.time, "chat": texts.chat}

    @classmethod
    def load(cls, folder: Path, *, dtype: torch.dtype = torch.float32) -> "PretrainedReward":
        """Read a folder; nothing is fetched.

        Raises:
            Refusal: where transformers is not installed, the folder holds no such model, or lacks weights: a fresh
                head would score noise (O-08).
        """
        try:
            from transformers import AutoConfig, AutoModelForSequenceClassification
        except ImportError as error:
            raise Refusal("A reward model needs transformers; install killick[hf].") from error
        if not (folder / "config.json").is_file():
            raise Refusal(f"{folder} is no folder of a reward model (it has no config.json).")
        try:
            config = AutoConfig.from_pretrained(folder, local_files_only=True)
            loaded: Any = AutoModelForSequenceClassification.from_pretrained(
                folder, config=config, dtype=dtype, local_files_only=True, output_loading_info=True
            )
        except Exception as error:  # a damaged file may raise anything
            said = " ".join(str(error).split())[:200]
            raise Refusal(f"{folder} cannot be read as a reward model: {said}") from error
        model, found = loaded
        if found["missing_keys"]:
            missing = ", ".join(sorted(found["missing_keys"]))
            raise Refusal(f"{folder} lacks the weights {missing}; with fresh ones in their place its scores are noise.")
        kept = getattr(config, "killick", None) or {}
        return cls(model, Texts.load(folder, chat=kept.get("chat")))

    def save(self, folder: Path) -> None:
        """Write an ordinary folder: weights, settings, tokenizer and template."""
        self.model.save_pretrained(folder)
        self.texts.save(folder, pads=True)

    def read(self, prompts: Sequence[Prompt], answers: Sequence[Prompt]) -> Rollout:
        """Texts as this model reads them."""
        return encode_texts(prompts, answers, texts=self.texts, limit=self.limit, time=self.time).rollout

    def pooled(self, rollout: Rollout) -> Float[Tensor, "batch hidden"]:
        """The state after the last real token of each row, with gradient; rows of any width, padded on either side."""
        ids = torch.cat((rollout.prompts, rollout.responses), 1)
        mask = torch.cat((rollout.prompt_mask, rollout.mask), 1)
        if not bool(rollout.mask.any(1).all()):
            raise Refusal("A response without a token has no last token to be scored at.")  # O-07
        places = (mask.long().cumsum(1) - 1).clamp(min=0)
        states = self.model.base_model(
            ids, attention_mask=mask.long(), position_ids=places, use_cache=False
        ).last_hidden_state
        last = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).amax(1) - 1
        return states[torch.arange(len(ids), device=ids.device), last]

    def score(self, states: Float[Tensor, "batch hidden"]) -> Float[Tensor, " batch"]:
        """The head's number for each state."""
        return self.model.score(states)[:, 0].float()

    def forward(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """Scores of rows as `read` gives them, with gradient."""
        return self.score(self.pooled(rollout))

    @torch.no_grad()
    def states(self, prompts: Sequence[Prompt], answers: Sequence[Prompt]) -> Float[Tensor, "row hidden"]:
        """The pooled state of each text, float32; rows of like length are read together."""
        rollout = self.read(prompts, answers)
        lengths = rollout.prompt_mask.sum(1) + rollout.mask.sum(1)
        order = lengths.argsort(stable=True)
        found = [self.pooled(narrow(rollout[rows])).float() for rows in batches(order, lengths)]
        return torch.cat(found)[order.argsort()]

    @torch.no_grad()
    def scores(self, prompts: Sequence[Prompt], answers: Sequence[Prompt]) -> Float[Tensor, " row"]:
        """One number for each text."""
        return self.score(self.states(prompts, answers).to(self.model.score.weight.dtype))

    def over(self, asked: PromptSet, speaks: Texts) -> Callable[[Rollout], Float[Tensor, " batch"]]:
        """This reward for rollouts of a policy, which may have another tokenizer.

        Args:
            asked: the prompts that the rollouts answer.
            speaks: the policy's tokenizer.
        """
        return lambda rollout: self.scores(asked.of(rollout), speaks.responses(rollout))


def narrow(rollout: Rollout) -> Rollout:
    """The same rows without columns that are padding alone, on either side."""
    longest = max(1, int(rollout.prompt_mask.sum(1).max()))
    kept = rollout.trimmed()
    return Rollout(
        kept.prompts[:, -longest:],
        kept.prompt_mask[:, -longest:],
        kept.responses,
        kept.mask,
        kept.logprobs,
        kept.finished,
    )


def batches(order: Tensor, lengths: Tensor) -> list[Tensor]:
    """Rows in order of their lengths, as many at once as `TOKENS` allows."""
    found: list[Tensor] = []
    first = 0
    while first < len(order):
        last = first + 1
        while last < len(order) and int(lengths[order[last]]) * (last + 1 - first) <= TOKENS:
            last += 1
        found.append(order[first:last])
        first = last
    return found
