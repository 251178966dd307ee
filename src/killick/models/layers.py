"""Llama-like layers by hand: Llama, SmolLM, Mistral, Qwen2 and Qwen3, computed from the weights of their own modules.

One pass reads whole sequences or one new token after a key-value cache; the numbers are the library's. Weights may be
kept in float32 and computed in bfloat16: they are cast where they are read, and gradients reach what is kept.
Inside, states are rows [batch * time, hidden]: a linear layer on a strided three-axis input can be many times slower.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

Linear: TypeAlias = tuple[Tensor, Tensor | None]
"""Weight and bias."""

KNOWN = ("llama", "mistral", "qwen2", "qwen3")
"""Layouts that these layers compute, by `model_type`."""

ROPES = ("default", "linear", "llama3", "yarn")
"""Rotary positions whose angles hang on the position alone."""


def unlike(model: nn.Module) -> str | None:
    """Why a model's layers are not of the Llama layout, in words that go on after "its"; None where they are."""
    config: Any = model.config
    if config.model_type not in KNOWN:
        return f"layout is {config.model_type}"
    rope = (config.rope_parameters or {}).get("rope_type", "default")
    if rope not in ROPES:
        return f"rotary positions are of the type {rope}"
    if config.hidden_act not in ("silu", "swish"):
        return f"activation is {config.hidden_act}"
    return None


class Layer(NamedTuple):
    """The weights of one layer, in the type that computes: queries, keys and values in one matrix.

    There are `heads` of queries and `few` of keys and values, each `width` wide; `window` is the reach of attention.
    """

    norm_attention: Tensor
    attention: Linear
    norm_queries: Tensor | None
    norm_keys: Tensor | None
    out: Linear
    norm_feed_forward: Tensor
    gate: Linear
    up: Linear
    down: Linear
    eps: float
    heads: int
    few: int
    width: int
    window: int | None


def layer_of(module: Any, dtype: torch.dtype) -> Layer:
    """What a decoder layer of the library holds.

    Args:
        module: a `LlamaDecoderLayer` or its like.
        dtype: what the pass computes in; float32 weights stay the ones that train.
    """
    attention, mlp = module.self_attn, module.mlp

    def linear(part: Any) -> Linear:
        return part.weight.to(dtype), None if part.bias is None else part.bias.to(dtype)

    def norm(part: Any) -> Tensor | None:
        return None if part is None else part.weight.to(dtype)

    parts: list[Any] = [linear(part) for part in (attention.q_proj, attention.k_proj, attention.v_proj)]
    bare, width = parts[0][1] is None, attention.head_dim
    window = getattr(attention, "sliding_window", None)
    if attention.config.model_type == "mistral":
        window = attention.config.sliding_window
    return Layer(
        module.input_layernorm.weight.to(dtype),
        (torch.cat([weight for weight, _ in parts]), None if bare else torch.cat([bias for _, bias in parts])),
        norm(getattr(attention, "q_norm", None)), norm(getattr(attention, "k_norm", None)),
        linear(attention.o_proj),
        module.post_attention_layernorm.weight.to(dtype),
        linear(mlp.gate_proj), linear(mlp.up_proj), linear(mlp.down_proj),
        module.input_layernorm.variance_epsilon, len(parts[0][0]) // width, len(parts[1][0]) // width, width, window,
    )  # fmt: skip


def linear(x: Float[Tensor, "row inner"], part: Linear) -> Float[Tensor, "row outer"]:
    """One linear layer, its weight packed or plain."""
    weight, bias = part
    if weight.is_mkldnn:
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return functional.linear(x, weight, bias)


def packed(part: Linear, *, rows: int) -> Linear:
    """The same layer in the order in which a CPU's bfloat16 product reads it, for the same numbers sooner.

    A product lays its weight out anew each time: of few rows that is more than half of its cost, so whoever multiplies
    by one weight again and again lays it out once. torch's own compiler does so with the same two operators.

    Args:
        part: weight and bias; in another type, or where there are no such products, they stay as they are.
        rows: that will be multiplied at once.
    """
    weight, bias = part
    if weight.dtype != torch.bfloat16 or weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return part
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return part
    return torch.ops.mkldnn._reorder_linear_weight(weight.detach(), rows), bias


def normed(x: Float[Tensor, "*shape width"], weight: Tensor | None, *, eps: float) -> Float[Tensor, "*shape width"]:
    """Each state divided by its root mean square."""
    return functional.rms_norm(x, (x.shape[-1],), weight, eps)


class KeyValues:
    """The keys and values of one layer, written in place as a response grows.

    Args:
        rows: sequences.
        length: most tokens of each.
    """

    def __init__(self, rows: int, length: int):
        self.rows, self.length, self.used = rows, length, 0
        self.store = torch.empty(0)

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append [batch head new width] and return all so far; what one row of a prompt holds serves all its rows."""
        if not self.used:
            self.store = keys.new_empty(2, self.rows, keys.shape[1], self.length, keys.shape[3])
        stop, each = self.used + keys.shape[2], self.rows // len(keys)
        self.store[0, :, :, self.used : stop] = keys if each == 1 else keys.repeat_interleave(each, 0)
        self.store[1, :, :, self.used : stop] = values if each == 1 else values.repeat_interleave(each, 0)
        self.used = stop
        if each > 1:  # the prompt itself still attends as one row
            return keys, values
        return self.store[0, :, :, :stop], self.store[1, :, :, :stop]


class Reach:
    """Where tokens stand, and what each may see.

    Args:
        turn: cosine and sine of each token's position, [row new 1 width].
        mask: True at real tokens, cached ones included; None where no row is padded on the left.
        new: tokens of each row in this pass.
    """

    def __init__(self, turn: tuple[Tensor, Tensor], mask: Bool[Tensor, "batch seen"] | None, new: int):
        self.turn, self.mask, self.new = turn, mask, new
        self.known: dict[int | None, Tensor | None] = {}

    def visible(self, seen: int, window: int | None) -> Bool[Tensor, "batch 1 new seen"] | None:
        """Which of the tokens seen so far each new one attends to; None where causality says it all."""
        window = window if window is not None and seen > window else None
        if window not in self.known:
            self.known[window] = self.seen_by_each(seen, window)
        return self.known[window]

    def seen_by_each(self, seen: int, window: int | None) -> Bool[Tensor, "batch 1 new seen"] | None:
        """The same, computed."""
        if self.mask is None and window is None:
            return None
        place = torch.arange(seen, device=self.turn[0].device)
        now = place[seen - self.new :, None]
        near = place <= now if window is None else (place <= now) & (place > now - window)
        real = near[None] if self.mask is None else near & self.mask[:, None]
        return (real | (place == now))[:, None]  # padding sees itself, so that nothing is divided by zero


def reach(
    rotary: nn.Module, dtype: torch.dtype, *, mask: Bool[Tensor, "batch seen"] | None, new: int, seen: int
) -> Reach:
    """Positions of the last `new` of `seen` columns: real tokens are counted from 0, padding is not.

    Args:
        rotary: the model's own rotary embedding.
        dtype: what the pass computes in.
        mask: True at real tokens, over all columns seen; None where every one is real.
        new: columns of this pass.
        seen: columns so far, these included.
    """
    device = next(rotary.buffers()).device
    if mask is None or bool(mask.all()):
        mask, places = None, torch.arange(seen - new, seen, device=device)[None]
    else:
        places = (mask.cumsum(1) - 1).clamp(min=0)[:, seen - new :]
    cosine, sine = rotary(torch.empty(0, dtype=dtype, device=device), places)
    half = sine.shape[-1] // 2
    signed = torch.cat((-sine[..., :half], sine[..., half:]), -1)
    return Reach((cosine[:, :, None], signed[:, :, None]), mask, new)


def turned(x: Float[Tensor, "batch new head width"], turn: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate by position: pairs stand half a head apart.

    Source: Su et al. 2021, arXiv 2104.09864.
    """
    return x * turn[0] + x.roll(x.shape[-1] // 2, -1) * turn[1]


def attend(
    queries: Float[Tensor, "batch head new width"],
    keys: Float[Tensor, "batch few seen width"],
    *,
    values: Float[Tensor, "batch few seen width"],
    visible: Bool[Tensor, "..."] | None,
) -> Float[Tensor, "batch head new width"]:
    """Mix values by how queries meet keys; several heads of queries may share one of keys."""
    return functional.scaled_dot_product_attention(
        queries, keys, values, visible,
        is_causal=visible is None and queries.shape[2] > 1, enable_gqa=queries.shape[1] != keys.shape[1],
    )  # fmt: skip


def forward_layer(
    x: Float[Tensor, "row hidden"], layer: Layer, *, where: Reach, cache: KeyValues | None = None
) -> Float[Tensor, "row hidden"]:
    """Move states through one layer.

    Args:
        x: rows of [batch * new].
        layer: weights.
        where: positions and padding.
        cache: its keys and values stand before this pass's own.
    """
    before = normed(x, layer.norm_attention, eps=layer.eps)
    read = linear(before, layer.attention).view(-1, where.new, layer.heads + 2 * layer.few, layer.width)
    turning, values = read[:, :, : -layer.few], read[:, :, -layer.few :]
    if layer.norm_queries is not None:
        queries = normed(turning[:, :, : layer.heads], layer.norm_queries, eps=layer.eps)
        turning = torch.cat((queries, normed(turning[:, :, layer.heads :], layer.norm_keys, eps=layer.eps)), 2)
    turning, values = turned(turning, where.turn).transpose(1, 2), values.transpose(1, 2)
    queries, keys = turning[:, : layer.heads], turning[:, layer.heads :]
    if cache is not None:
        keys, values = cache.extend(keys, values)
    mixed = attend(queries, keys, values=values, visible=where.visible(keys.shape[2], layer.window))
    x = x + linear(mixed.transpose(1, 2).reshape(len(x), -1), layer.out)
    inner = normed(x, layer.norm_feed_forward, eps=layer.eps)
    gated = functional.silu(linear(inner, layer.gate)) * linear(inner, layer.up)
    return x + linear(gated, layer.down)


def run(
    x: Float[Tensor, "row hidden"],
    layers: Sequence[Layer],
    *,
    where: Reach,
    caches: Sequence[KeyValues] | None = None,
) -> Float[Tensor, "row hidden"]:
    """Move states through several layers, each with its cache where there are caches."""
    for index, layer in enumerate(layers):
        x = forward_layer(x, layer, where=where, cache=caches[index] if caches else None)
    return x
