"""One small causal transformer for every toy: its shape is a config, since the architecture is part of the experiment.

It knows token ids and padding, nothing of worlds or rewards. `policy.py` makes one speak, `value.py` makes one judge.
Inside, states are rows [batch * length, hidden]: a linear layer on a strided three-axis input can be many times slower.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from killick.models.attention import attend
from killick.types import Refusal


@dataclass(frozen=True)
class TransformerConfig:
    """The shape of a transformer.

    Args:
        inputs: token ids that can be read (prompt symbols included).
        outputs: numbers per position: a vocabulary, or 1 for a critic.
        context: most tokens in a sequence, prompt and response together.
        hidden: width of a state.
        layers: attention and feed-forward blocks.
        heads: parts into which attention cuts a state.
        feed_forward: width inside a block.
        norm: layer norm, or root mean square (Llama).
        positions: learned vectors, or rotary (Llama).
        activation: of the feed-forward part; swiglu has a gate (Llama).
        biases: whether linear layers (and layer norms) have biases.
        final_norm: whether the last state is normed before the head.
        initialisation: "torch" starts embeddings at N(0, 1) and layers as `nn.TransformerEncoderLayer` does, every
            layer a copy of the first, as `nn.TransformerEncoder` does; "normal" draws all weights from N(0, 0.02^2).
    """

    inputs: int
    outputs: int
    context: int
    hidden: int = 64
    layers: int = 2
    heads: int = 4
    feed_forward: int = 256
    norm: Literal["layer", "rms"] = "layer"
    positions: Literal["learned", "rotary"] = "learned"
    activation: Literal["relu", "gelu", "swiglu"] = "relu"
    biases: bool = True
    final_norm: bool = True
    initialisation: Literal["torch", "normal"] = "torch"

    def validate(self) -> None:
        """Refuse sizes that cannot work.

        Raises:
            Refusal: naming the field.
        """
        choices = {"norm": ("layer", "rms"), "positions": ("learned", "rotary"),
                   "activation": ("relu", "gelu", "swiglu"), "initialisation": ("torch", "normal")}  # fmt: skip
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise Refusal(f"A transformer's {name} is one of {', '.join(known)}, not {getattr(self, name)}.")
        for name, value in asdict(self).items():
            if isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise Refusal(f"A transformer's {name} must be at least 1, not {value}.")
        if self.hidden % (2 * self.heads):
            raise Refusal(f"hidden {self.hidden} must be a multiple of twice the heads ({self.heads}).")

    @classmethod
    def llama(cls, inputs: int, outputs: int, context: int, **sizes: Any) -> "TransformerConfig":
        """The Llama shape: root-mean-square norms, rotary positions, swiglu, no biases."""
        return cls(
            inputs, outputs, context, norm="rms", positions="rotary", activation="swiglu", biases=False,
            initialisation="normal", **sizes,
        )  # fmt: skip


def norm(config: TransformerConfig) -> nn.Module:
    """The config's norm over hidden states."""
    if config.norm == "rms":
        return nn.RMSNorm(config.hidden, eps=1e-5)
    return nn.LayerNorm(config.hidden, eps=1e-5, bias=config.biases)


class Block(nn.Module):
    """One pre-norm layer: attention, then feed-forward, each added to its input."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        gated = config.activation == "swiglu"
        self.heads, self.activation = config.heads, config.activation
        self.norm_attention = norm(config)
        self.qkv = nn.Linear(config.hidden, 3 * config.hidden, config.biases)
        self.out = nn.Linear(config.hidden, config.hidden, config.biases)
        self.norm_feed_forward = norm(config)
        self.up = nn.Linear(config.hidden, config.feed_forward * (2 if gated else 1), config.biases)
        self.down = nn.Linear(config.feed_forward, config.hidden, config.biases)

    def forward(
        self,
        x: Float[Tensor, "rows hidden"],
        batch: int,
        rotation: Complex[Tensor, "..."] | None,
        visible: Bool[Tensor, "batch 1 query key"] | None,
        cache: "Cache | None",
    ) -> Float[Tensor, "rows hidden"]:
        """Move states through the layer; with a cache, its keys and values stand before this call's own."""
        qkv = self.qkv(self.norm_attention(x)).view(batch, -1, 3, self.heads, x.shape[1] // self.heads)
        if rotation is not None:
            # Neighbours form a complex number; values turn by 0, so that one multiplication serves all three.
            qkv = torch.view_as_real(torch.view_as_complex(qkv.unflatten(-1, (-1, 2))) * rotation).flatten(-2)
        # Taken apart where the three stand, their gradients are put together without another copy.
        queries, keys, values = (part.transpose(1, 2) for part in qkv.unbind(2))
        if cache is not None:
            keys, values = cache.extend(keys, values)
        mixed = attend(queries, keys, values=values, visible=visible)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        inner = self.up(self.norm_feed_forward(x))
        if self.activation == "swiglu":
            gate, up = inner.chunk(2, -1)
            inner = functional.silu(gate) * up
        else:
            inner = functional.relu_(inner) if self.activation == "relu" else functional.gelu(inner)
        return x + self.down(inner)


class Cache:
    """The keys and values of one layer, written in place as a response grows."""

    def __init__(self, batch: int, config: TransformerConfig, length: int, like: Tensor):
        shape = (2, batch, config.heads, length, config.hidden // config.heads)
        self.store, self.used = like.new_empty(shape), 0

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append [batch heads new width] and return all so far."""
        stop = self.used + keys.shape[2]
        self.store[0, :, :, self.used : stop], self.store[1, :, :, self.used : stop] = keys, values
        self.used = stop
        return self.store[0, :, :, :stop], self.store[1, :, :, :stop]


class Transformer(nn.Module):
    """Token ids in, hidden states out; `head` turns chosen states into logits or a value."""

    rotation: Tensor

    def __init__(self, config: TransformerConfig, generator: torch.Generator):
        super().__init__()
        config.validate()
        self.config = config
        # torch fills new layers from its global stream, which is put back; its meta device would spare that, but
        # imports symbolic algebra at the first random fill: seconds in every process.
        with torch.random.fork_rng(devices=[]):
            self.embed = nn.Embedding(config.inputs, config.hidden)
            self.place = nn.Embedding(config.context, config.hidden) if config.positions == "learned" else None
            self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
            self.final_norm = norm(config) if config.final_norm else nn.Identity()
            self.head = nn.Linear(config.hidden, config.outputs, config.biases)
        self.to(generator.device)
        initialise(self, generator)
        if config.positions == "rotary":
            self.register_buffer("rotation", rotations(config).to(generator.device), persistent=False)

    def forward(
        self,
        ids: Int[Tensor, "batch new"],
        mask: Bool[Tensor, "batch seen"] | None = None,
        first: int = 0,
        caches: "list[Cache] | None" = None,
    ) -> Float[Tensor, "rows hidden"]:
        """Normed states of columns `first` onwards, as rows [batch * (new - first), hidden].

        Args:
            ids: the new tokens, padded on either side; padding on the right is harmless: attention looks back only.
            mask: True at real tokens, cached ones included; None where no row is padded on the left (faster).
            first: the first column of `ids` whose state is wanted.
            caches: one a layer; what they hold stands before `ids`.

        Raises:
            Refusal: where the sequence is longer than the context.
        """
        batch, new = ids.shape
        start = caches[0].used if caches else 0
        if start + new > self.config.context:
            raise Refusal(f"A sequence of {start + new} tokens is longer than the context of {self.config.context}.")
        x, positions = self.read(ids, mask, start)
        rotation = None if self.place is not None else self.rotation[positions]
        if mask is None and start and new > 1:  # a causal flag would align the queries with the first keys
            mask = torch.ones(batch, start + new, dtype=torch.bool, device=ids.device)
        visible = None if mask is None else visibility(mask, new)
        for layer, block in enumerate(self.blocks):
            x = block(x, batch, rotation, visible, caches[layer] if caches else None)
        if first:
            x = x.view(batch, new, -1)[:, first:].reshape(-1, x.shape[1])
        return self.final_norm(x)

    def read(
        self, ids: Int[Tensor, "batch new"], mask: Bool[Tensor, "batch seen"] | None, start: int
    ) -> tuple[Float[Tensor, "rows hidden"], Int[Tensor, "..."]]:
        """Embed new tokens that stand at columns `start` onwards, and say which position each has."""
        if mask is None:
            positions = torch.arange(start, start + ids.shape[1], device=ids.device)
        else:
            positions = (mask.cumsum(1) - 1).clamp(min=0)[:, start : start + ids.shape[1]]
        x = self.embed(ids)
        if self.place is not None:
            x = x + self.place(positions)
        return x.view(-1, x.shape[-1]), positions


def visibility(mask: Bool[Tensor, "batch key"], queries: int) -> Bool[Tensor, "batch 1 query key"]:
    """Which keys the last `queries` positions may see: real ones up to themselves (and themselves, even if padding)."""
    length = mask.shape[1]
    place = torch.arange(length, device=mask.device)
    now = place[length - queries :, None]
    return (((place <= now) & mask[:, None]) | (place == now))[:, None]


def rotations(config: TransformerConfig, theta: float = 10_000.0) -> Complex[Tensor, "context 3 1 pair"]:
    """exp(i position / theta^(2 j / width)) for queries and keys, 1 for values.

    Source: Su et al. 2021, arXiv 2104.09864. Pairs are neighbours here and halves in Llama's files; export reorders.
    """
    width = config.hidden // config.heads
    speed = theta ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.outer(torch.arange(config.context, dtype=torch.float64), speed)
    turn = torch.polar(torch.ones_like(angle), angle).to(torch.complex64)
    return torch.stack((turn, turn, torch.ones_like(turn)), 1)[:, :, None]


def initialise(model: Transformer, generator: torch.Generator) -> None:
    """Fill all weights from `generator`, as `config.initialisation` says."""
    torch_like = model.config.initialisation == "torch"
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, 0.0, 1.0 if torch_like else 0.02, generator)
        elif isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
            module.reset_parameters()
        elif isinstance(module, nn.Linear):
            if not torch_like:
                nn.init.normal_(module.weight, 0.0, 0.02, generator)
            else:
                nn.init.kaiming_uniform_(module.weight, math.sqrt(5), generator=generator)
            if module.bias is not None:
                width = 1 / math.sqrt(module.in_features) if torch_like else 0.0
                nn.init.uniform_(module.bias, -width, width, generator)
    if torch_like:
        first, *others = cast(list[Block], list(model.blocks))
        nn.init.xavier_uniform_(first.qkv.weight, generator=generator)
        for linear in (first.qkv, first.out):
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        for block in others:
            block.load_state_dict(first.state_dict())
