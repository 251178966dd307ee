"""A small chat model by name, and what a learner's script does with it: encode, generate, read its states.

`lm, tok = load("tiny-gpt-chat")`. The same network speaks as a `Policy` through `lm.policy(...)`; there is one decoder.
"""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from killick.models.decoding import check_temperature
from killick.models.llama import read_llama, write_llama
from killick.models.policy import TransformerPolicy
from killick.models.transformer import Transformer
from killick.models.words import SPECIAL, Words
from killick.types import Refusal, Vocabulary

SHIPPED = {"tiny-gpt-chat": Path(__file__).parent / "tiny_gpt_chat"}
"""Models that come with the package: name -> folder."""

UNSPOKEN = tuple(range(SPECIAL.index("<end>")))
"""What is read and never said: the special tokens but `<end>`."""

Ids = TypeVar("Ids", Tensor, Sequence[int])


class Chat(nn.Module):
    """A transformer whose tokens are words.

    Args:
        network: reads and writes the tokenizer's vocabulary.
        tokenizer: text to ids and back.
    """

    def __init__(self, network: Transformer, tokenizer: Words):
        super().__init__()
        if network.config.outputs != len(tokenizer):
            raise Refusal(f"The network has {network.config.outputs} tokens, the tokenizer {len(tokenizer)}.")
        self.network, self.tokenizer = network, tokenizer

    @property
    def head(self) -> nn.Linear:
        """The layer from states to logits; its weight is [vocab hidden]."""
        return self.network.head

    def policy(self, *, temperature: float = 1.0, time: int = 60) -> TransformerPolicy:
        """The same network as a `Policy` that ends at `<end>`; training it trains this model.

        Args:
            temperature: one for sampling and scoring.
            time: the most response tokens.
        """
        end, pad = (self.tokenizer.token_id(word) for word in ("<end>", "<pad>"))
        return TransformerPolicy(self.network, Vocabulary(len(self.tokenizer), time, end, pad, UNSPOKEN), temperature)

    def hidden(self, ids: Sequence[int] | Tensor) -> Float[Tensor, "batch time hidden"]:
        """The normed state after each token, which the head reads.

        Args:
            ids: a list, one row, or rows padded on the right; what stands on padding means nothing.

        Raises:
            Refusal: where there is no token, one does not exist, or they are more than the context.
        """
        rows = self.rows(ids)
        return self.network(rows).view(*rows.shape, -1)

    def generate(
        self,
        ids: Ids,
        max_tokens: int,
        *,
        temperature: float = 1.0,
        stop_id: int | None = None,
        generator: torch.Generator | None = None,
    ) -> Ids:
        """Prompt and sampled answer, of the kind that was given: a list, one row, or rows filled up with `<pad>`.

        Args:
            ids: the prompt; several must be of one length.
            max_tokens: the most tokens of an answer.
            temperature: of the distribution.
            stop_id: the token that ends an answer and is its last; None for answers of exactly `max_tokens`.
            generator: drawn from; None takes torch's global stream, so that `torch.manual_seed` decides.

        Raises:
            Refusal: where a token does not exist, or the answer cannot be drawn or does not fit.
        """
        rows = self.rows(ids)
        check_temperature(temperature)
        free = self.network.config.context - rows.shape[1] + 1
        if free < 1:
            raise Refusal(
                f"A prompt of {rows.shape[1]} tokens leaves no room in a context of {free + rows.shape[1] - 1}."
            )
        if not 1 <= max_tokens <= free:
            raise Refusal(f"generate can draw 1 to {free} tokens after this prompt, not {max_tokens}.")
        unspoken = tuple(token for token in UNSPOKEN if token != stop_id)
        vocabulary = Vocabulary(len(self.tokenizer), max_tokens, stop_id, self.tokenizer.token_id("<pad>"), unspoken)
        speaker = TransformerPolicy(self.network, vocabulary, temperature)
        prompts = (rows, torch.ones_like(rows, dtype=torch.bool))
        rollout = speaker.sample(prompts, 1, torch.default_generator if generator is None else generator)
        out = torch.cat((rows, rollout.responses), 1)
        if isinstance(ids, Tensor):
            return out if ids.dim() == 2 else out[0]
        return cast(Ids, out[0].tolist())

    def rows(self, ids: Sequence[int] | Tensor) -> Int[Tensor, "batch time"]:
        """Token ids as rows.

        Raises:
            Refusal: where they are no ids of this model.
        """
        rows = torch.as_tensor(ids, device=self.head.weight.device)
        if rows.dim() not in (1, 2) or not rows.numel():
            raise Refusal(f"Ids are one row of tokens or several, at least one token long, not {list(rows.shape)}.")
        if rows.is_floating_point() or rows.is_complex() or rows.dtype == torch.bool:
            raise Refusal(f"Ids are whole numbers, not {rows.dtype}.")
        wrong = rows[(rows < 0) | (rows >= len(self.tokenizer))]
        if len(wrong):
            raise Refusal(f"There is no token {int(wrong[0])}; ids lie in 0..{len(self.tokenizer) - 1}.")
        return rows.long() if rows.dim() == 2 else rows.long()[None]

    def save(self, folder: Path, *, dtype: torch.dtype = torch.float32) -> None:
        """Write a folder that `AutoModelForCausalLM` and `AutoTokenizer` open.

        Args:
            folder: made where it is not there.
            dtype: of the weights in the file.
        """
        folder.mkdir(parents=True, exist_ok=True)
        end, pad = (self.tokenizer.token_id(word) for word in ("<end>", "<pad>"))
        write_llama(self.network, folder, eos=end, pad=pad, dtype=dtype)
        self.tokenizer.save(folder)

    @classmethod
    def load(cls, folder: Path) -> "Chat":
        """The model that `save` wrote.

        Raises:
            Refusal: where the folder holds none, or not a whole one.
        """
        return cls(read_llama(folder), Words.load(folder))


def load(name: str) -> tuple[Chat, Words]:
    """A model that comes with killick, and its tokenizer.

    Raises:
        Refusal: where none has this name.
    """
    if name not in SHIPPED:
        close = difflib.get_close_matches(name, SHIPPED, 1, 0.5)
        guess = f" (did you mean {close[0]}?)" if close else ""
        raise Refusal(f"There is no model {name!r}{guess}; there are {', '.join(SHIPPED)}.")
    model = Chat.load(SHIPPED[name])
    return model, model.tokenizer
