"""A reward model as `transformers` keeps it: `AutoModelForSequenceClassification` with one label (extra `hf`).

Its score is read off the state after the last token, the end token included. That head has no bias, so a shift of all
scores has to be said by its weights: see `killick.ops.centring`. Several heads on one trunk lie beside the model in
`members.safetensors`; the model's own head is then their mean.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from killick.models.encoding import Encoded, encode_texts
from killick.models.folders import compact, open_judging, quietly, several
from killick.models.prompting import PromptSet
from killick.models.texts import Prompt, Texts
from killick.models.top_reader import TopReader
from killick.models.trunk import Trunk
from killick.types import Refusal, Rollout

LIMIT = 1024
"""Tokens of prompt and answer that are read where a folder says nothing: more is rarely trained on."""
TOKENS = 8192
"""Tokens in one batch, padding included: more would only take memory."""
MEMBERS = "members.safetensors"
"""The heads of an ensemble, beside the model."""


class PooledStates(NamedTuple):
    """States of some rows of a rollout."""

    rows: Int[Tensor, " some"]
    states: Float[Tensor, "some hidden"]


class PretrainedReward(nn.Module):
    """A reward on texts: a language model with one output.

    What is scored is the text, never the tokens that a policy happened to write it with, and every answer is read as
    ended: so the same text gets the same number wherever it comes from (O-09), alone or in any batch (O-07).

    Args:
        model: an `AutoModelForSequenceClassification` with a linear head `score` and one label.
        texts: tokenizer and frame.
        limit: most tokens of prompt and answer that are read.
        time: tokens of them that are kept free for an answer.
        closing: what is read behind an answer; the end token unless told.

    Attributes:
        members: weights of the heads of an ensemble, a row each; None where there is one head.

    Raises:
        Refusal: where the model has several labels, or a head that is no `score`.
    """

    members: Float[Tensor, "member hidden"] | None

    def __init__(
        self,
        model: Any,
        texts: Texts,
        *,
        limit: int | None = None,
        time: int | None = None,
        closing: Sequence[int] | None = None,
    ):
        super().__init__()
        head = getattr(model, "score", None)
        if not isinstance(head, nn.Linear):
            raise Refusal(
                f"A {type(model).__name__} has no linear head named score, so it is no reward model of killick."
            )
        if head.out_features != 1:
            raise Refusal(f"A reward model has one label; this one has {head.out_features}.")
        self.model, self.texts = model.eval(), texts
        self.reader: TopReader | None = None
        self.register_buffer("members", None)
        context = getattr(model.config.get_text_config(), "max_position_embeddings", LIMIT)
        kept = getattr(model.config, "killick", None) or {}
        self.limit = limit or kept.get("limit") or min(LIMIT, context)
        self.time = time or kept.get("time") or self.limit // 2
        if self.limit > context:
            raise Refusal(f"The model reads {context} tokens at most, not {self.limit}.")
        model.config.pad_token_id = texts.pad
        self.closing = kept.get("closing") if closing is None else list(closing)
        model.config.killick = kept | {
            "limit": self.limit,
            "time": self.time,
            "chat": texts.chat,
            "closing": self.closing,
        }

    @classmethod
    def load(cls, folder: Path, *, dtype: torch.dtype = torch.float32) -> "PretrainedReward":
        """Read a folder; nothing is fetched.

        Raises:
            Refusal: where transformers is not installed, the folder holds no such model, or lacks weights: a fresh
                head would score noise (O-08).
        """
        model, missing = open_judging(folder, dtype=dtype)
        if missing:
            raise Refusal(
                f"{folder} lacks the weights {several(missing)}; with fresh ones in their place its scores are noise."
            )
        kept = getattr(model.config, "killick", None) or {}
        texts = Texts.load(folder, chat=kept.get("chat"))
        pad = model.config.get_text_config().pad_token_id
        closing = kept["closing"] if "closing" in kept else foreign_closing(texts, pad=pad)
        found = cls(model, texts, closing=closing)
        if (folder / MEMBERS).exists():
            found.members = read_members(folder / MEMBERS, width=model.score.in_features).to(dtype)
        return found

    @classmethod
    def begin(
        cls, folder: Path, *, limit: int | None = None, time: int | None = None, chat: bool | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> "PretrainedReward":  # fmt: skip
        """A reward model before its fit, from the folder of a language model: its head is all zeros.

        The folder may also hold a reward model: its trunk is taken, its head is not.

        Raises:
            Refusal: where the folder holds no such model, or lacks weights of its trunk.
        """
        model, missing = open_judging(folder, dtype=dtype, num_labels=1)
        if rest := [name for name in missing if name != "score.weight"]:
            raise Refusal(f"{folder} lacks the weights {several(rest)}; a model with fresh ones is noise.")
        model.config.killick = None
        found = cls(model, Texts.load(folder, chat=chat), limit=limit, time=time)
        nn.init.zeros_(model.score.weight)
        return found

    def save(self, folder: Path) -> None:
        """Write an ordinary folder: weights, settings, tokenizer and template.

        A weight that bfloat16 holds exactly is written so, to half the size: the settings say float32, and so it is
        read again, to the same bit.
        """
        with quietly():
            self.model.save_pretrained(folder, state_dict=compact(self.model.state_dict()))
        if self.members is not None:
            save_file({"weight": self.members.float().cpu().contiguous()}, folder / MEMBERS)
        self.texts.save(folder, pads=True)

    def encoded(self, prompts: Sequence[Prompt], answers: Sequence[Prompt]) -> Encoded:
        """Texts as this model reads them, and which of them it reads cut."""
        return encode_texts(prompts, answers, texts=self.texts, limit=self.limit, time=self.time, closing=self.closing)

    def read(self, prompts: Sequence[Prompt], answers: Sequence[Prompt]) -> Rollout:
        """The ids of texts."""
        return self.encoded(prompts, answers).rollout

    def cut(self, prompts: Sequence[Prompt], answers: Sequence[Prompt]) -> str:
        """How many texts are too long to be read whole, in words; empty where none is (O-19)."""
        found = self.encoded(prompts, answers)
        told = {"a prompt cut on its left": found.cut_prompts, "an answer cut on its right": found.cut_answers}
        counts = [f"{int(cut.sum()):,} have {what}" for what, cut in told.items() if bool(cut.any())]
        return f"Of {len(answers):,} texts {' and '.join(counts)} ({self.limit} tokens are read)." if counts else ""

    def on(self, trunk: Trunk) -> "PretrainedReward":
        """Stand on a policy's trunk: read the states that it remembers, and give up the bottom layers of one's own.

        Scores are then computed in the trunk's type: in bfloat16 they are its rounding away from those of the folder.

        Raises:
            Refusal: where this model's bottom layers are not the trunk's.
        """
        self.reader = TopReader(trunk, self.model)
        return self

    def pooled(self, rollout: Rollout) -> Float[Tensor, "batch hidden"]:
        """The state after the last real token of each row, with gradient; rows of any width, padded on either side."""
        ids = torch.cat((rollout.prompts, rollout.responses), 1)
        mask = torch.cat((rollout.prompt_mask, rollout.mask), 1)
        if not bool(rollout.mask.any(1).all()):
            raise Refusal("A response without a token has no last token to be scored at.")  # O-07
        if self.reader is not None:
            states = self.reader(rollout)
        else:
            places = (mask.long().cumsum(1) - 1).clamp(min=0)
            states = self.model.base_model(
                ids, attention_mask=mask.long(), position_ids=places, use_cache=False
            ).last_hidden_state
        last = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).amax(1) - 1
        return states[torch.arange(len(ids), device=ids.device), last]

    def score(self, states: Float[Tensor, "batch hidden"]) -> Float[Tensor, " batch"]:
        """The head's number for each state, float32."""
        return (states.float() @ self.model.score.weight.float().T)[:, 0]

    def forward(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """Scores of rows as `read` gives them, with gradient."""
        return self.score(self.pooled(rollout))

    def batches(self, rollout: Rollout) -> Iterator[PooledStates]:
        """The pooled states of a rollout of any size, float32, without gradient; rows of like length together."""
        device = self.model.score.weight.device
        lengths = rollout.prompt_mask.sum(1) + rollout.lengths
        for rows in batches(lengths.argsort(stable=True), lengths):
            with torch.no_grad():
                yield PooledStates(rows, self.pooled(moved(narrow(rollout[rows]), device)).float().cpu())

    def states(self, prompts: Sequence[Prompt], answers: Sequence[Prompt]) -> Float[Tensor, "row hidden"]:
        """The pooled state of each text, float32."""
        found = list(self.batches(self.read(prompts, answers)))
        return torch.cat([states for _, states in found])[torch.cat([rows for rows, _ in found]).argsort()]

    @torch.no_grad()
    def scores(self, prompts: Sequence[Prompt], answers: Sequence[Prompt]) -> Float[Tensor, " row"]:
        """One number for each text."""
        return self.score(self.states(prompts, answers).to(self.model.score.weight.device)).cpu()

    @torch.no_grad()
    def each(self, prompts: Sequence[Prompt], answers: Sequence[Prompt]) -> Float[Tensor, "member row"]:
        """What every head of an ensemble says of each text; of one head alone, that.

        The numbers of the heads are on one scale, and their mean is what `scores` gives.
        """
        heads = self.model.score.weight if self.members is None else self.members
        return heads.float().cpu() @ self.states(prompts, answers).T

    def over(self, asked: PromptSet, speaks: Texts) -> Callable[[Rollout], Float[Tensor, " batch"]]:
        """This reward for rollouts of a policy, which may have another tokenizer.

        Args:
            asked: the prompts that the rollouts answer.
            speaks: the policy's tokenizer.
        """
        return lambda rollout: self.scores(asked.of(rollout), speaks.responses(rollout))


def foreign_closing(texts: Texts, *, pad: int | None) -> list[int]:
    """What stands behind an answer up to where a model that was trained elsewhere reads its score.

    Trainers frame a whole dialogue by its template, whose line break after the end token is then the last token; and
    `transformers` takes the last token that is no padding, so that with pad = eos a plain text is read before its end.

    Args:
        texts: the folder's tokenizer.
        pad: the padding token in the folder's settings.
    """
    closing = texts.closing
    while closing and closing[-1] == pad:
        closing = closing[:-1]
    return closing


def read_members(path: Path, *, width: int) -> Float[Tensor, "member hidden"]:
    """The heads of an ensemble.

    Raises:
        Refusal: where the file is damaged, or holds heads of another model.
    """
    try:
        heads = load_file(path)["weight"]
    except (SafetensorError, OSError, KeyError) as error:
        raise Refusal(f"{path} holds no heads of an ensemble, or is damaged ({error}).") from error
    if heads.dim() != 2 or heads.shape[1] != width:
        raise Refusal(f"{path} holds heads of shape {tuple(heads.shape)}; this model needs {width} numbers a head.")
    return heads


def moved(rollout: Rollout, device: torch.device) -> Rollout:
    """The same rollout on a device."""
    return Rollout(**{name: tensor.to(device) for name, tensor in vars(rollout).items()})


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
