"""Llama-like layers one above the other, from token ids to logits: what samples with a cache, and what scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from killick.models.decoding import Distribution, decode
from killick.models.layers import KeyValues, Layer, Linear, Reach, layer_of, linear, normed, packed, reach, run
from killick.ops.logprobs import Draws
from killick.types import Prompts, Refusal, Rollout

ROWS = 16
"""Sequences that are scored at once in half precision, neither more nor fewer."""


@dataclass(frozen=True)
class Stack:
    """A model's weights in the type that computes.

    Args:
        embed: a row for each token.
        layers: from the bottom to the top.
        norm: of the last state.
        eps: of that norm.
        head: weight and bias, a row for each column of the distribution.
        rotary: the model's own rotary embedding.
    """

    embed: Tensor
    layers: Sequence[Layer]
    norm: Tensor
    eps: float
    head: Linear
    rotary: nn.Module

    def reach(self, mask: Bool[Tensor, "batch seen"] | None, *, new: int, seen: int) -> Reach:
        """Positions and padding of a pass."""
        return reach(self.rotary, self.norm.dtype, mask=mask, new=new, seen=seen)

    def read(self, ids: Int[Tensor, "batch new"]) -> Float[Tensor, "row hidden"]:
        """Embedded tokens as rows."""
        return functional.embedding(ids, self.embed).flatten(0, 1)

    def logits(self, x: Float[Tensor, "row hidden"]) -> Float[Tensor, "row column"]:
        """From states to a number for each column."""
        return linear(normed(x, self.norm, eps=self.eps), self.head)

    def packed(self, rows: int) -> "Stack":
        """The same weights, laid out for many passes of so many rows."""
        lay = partial(packed, rows=rows)
        layers = [
            layer._replace(
                attention=lay(layer.attention), out=lay(layer.out), gate=lay(layer.gate), up=lay(layer.up),
                down=lay(layer.down),
            )
            for layer in self.layers
        ]  # fmt: skip
        return replace(self, layers=layers, head=lay(self.head))

    def scored(
        self, x: Float[Tensor, "batch length hidden"], mask: Bool[Tensor, "batch length"] | None, *, first: int
    ) -> Float[Tensor, "row column"]:
        """Logits after each token from column `first` on, as rows in reading order.

        Products of another size round half precision another way, and then the first ratio of PPO would not be 1: so
        `ROWS` sequences go through together, the last ones repeated where there are fewer, and what is computed of a
        sequence does not depend on its minibatch.

        Args:
            x: states below the layers.
            mask: True at real tokens; None where no row is padded on the left.
            first: column.
        """
        count, length = x.shape[:2]
        size = count if x.dtype == torch.float32 else ROWS
        found = []
        for start in range(0, count, size):
            rows = torch.arange(start, start + size, device=x.device).clamp(max=count - 1)
            where = self.reach(None if mask is None else mask[rows], new=length, seen=length)
            states = run(x[rows].flatten(0, 1), self.layers, where=where).view(size, length, -1)
            found.append(self.logits(states[:, first:].flatten(0, 1))[: (count - start) * (length - first)])
        return torch.cat(found) if len(found) > 1 else found[0]


def head_of(model: Any, distribution: Distribution, *, dtype: torch.dtype) -> Linear:
    """The rows of a model's head that belong to the columns of a distribution."""
    head = model.get_output_embeddings()
    rows = slice(distribution.vocabulary.size) if distribution.ids is None else distribution.ids.to(head.weight.device)
    bias = getattr(head, "bias", None)
    return head.weight[rows].to(dtype), None if bias is None else bias[rows].to(dtype)


def stack_of(model: Any, distribution: Distribution, *, dtype: torch.dtype) -> Stack:
    """A whole model of the Llama layout."""
    body, head = model.base_model, head_of(model, distribution, dtype=dtype)
    return Stack(
        body.embed_tokens.weight.to(dtype), [layer_of(module, dtype) for module in body.layers],
        body.norm.weight.to(dtype), body.norm.variance_epsilon, head, body.rotary_emb,
    )  # fmt: skip


def check_fits(model: Any, prompts: Prompts, *, time: int) -> None:
    """Refuse prompts that the model cannot read, or that leave no room for a response.

    Raises:
        Refusal: where a token does not exist, or prompt and response together are longer than the context.
    """
    config = model.config.get_text_config()
    ids, mask = prompts
    length, context = int(mask.sum(1).max()), getattr(config, "max_position_embeddings", None)
    if int(ids.max()) >= config.vocab_size or int(ids.min()) < 0:
        wrong = int(ids.max()) if int(ids.max()) >= config.vocab_size else int(ids.min())
        raise Refusal(f"A prompt holds token {wrong}; the model reads 0..{config.vocab_size - 1}.")
    if context is not None and length + time > context:
        raise Refusal(
            f"A prompt of {length} tokens and a response of up to {time} do not fit into the model's context of "
            f"{context}; shorten the prompt or lower the budget of the response."
        )


@torch.no_grad()
def sample(stack: Stack, prompts: Prompts, *, n: int, distribution: Distribution, generator: Draws) -> Rollout:
    """Draw `n` responses to each prompt with a key-value cache; each prompt is read once, however many its responses.

    Args:
        stack: speaks.
        prompts: ids and mask, padded on the left.
        n: responses to each.
        distribution: what is drawn from.
        generator: drawn from.
    """
    ids, real = prompts
    rows, width, time = len(ids) * n, ids.shape[1], distribution.vocabulary.time
    stack = stack.packed(rows)
    caches = [KeyValues(rows, width + time) for _ in stack.layers]
    mask = None
    if not bool(real.all()):
        mask = functional.pad(real.repeat_interleave(n, 0), (0, time), value=True)

    def step(new: Tensor) -> Tensor:
        used = caches[0].used
        if not used:
            where = stack.reach(None if mask is None else real, new=width, seen=width)
            x = run(stack.read(ids), stack.layers, where=where, caches=caches)
            return stack.logits(x.view(len(ids), width, -1)[:, -1]).repeat_interleave(n, 0)
        where = stack.reach(None if mask is None else mask[:, : used + 1], new=1, seen=used + 1)
        return stack.logits(run(stack.read(new), stack.layers, where=where, caches=caches))

    return decode(step, prompts, n=n, distribution=distribution, generator=generator)
