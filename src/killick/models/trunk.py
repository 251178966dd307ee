"""One frozen trunk under several speakers and judges: embedding and bottom layers, read once for all of them.

Policy, reference and critic differ in their top layers and heads only, so what lies below is computed once for each
rollout and remembered. The memo holds the last rollout, is found by the content of a row, and is emptied whenever
something is sampled: a run that goes on from a saved state computes what the unbroken run computed.
"""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from killick.models.decoding import Distribution, score, sequence
from killick.models.folders import Written, write_folder
from killick.models.layers import Layer, layer_of, normed, reach, run, unlike
from killick.models.pretrained import check_vocabulary
from killick.models.stack import Stack, check_fits, head_of, sample
from killick.types import Prompts, Refusal, Rollout, Vocabulary

MEMO = 2**29
"""Bytes of states that are remembered at most; what comes after is computed each time."""

ROWS = 64
"""Sequences read at once: more would only take memory."""


class Trunk:
    """The embedding and the bottom layers of a language model, frozen.

    It is no module, so that whoever stands on it neither trains nor saves it. A copy is the trunk itself.

    Args:
        model: of the Llama layout; its weights are frozen.
        train_layers: how many layers at the top are left to whoever stands on the trunk.

    Raises:
        Refusal: where the layout is another, or there are not so many layers.
    """

    def __init__(self, model: Any, train_layers: int):
        if (why := unlike(model)) is not None:
            raise Refusal(
                f"Top layers over a trunk need a model of the Llama layout (Llama, SmolLM, Mistral, Qwen2, Qwen3); "
                f"its {why}. Train the whole model instead."
            )
        depth = len(model.base_model.layers)
        if type(train_layers) is not int or not 1 <= train_layers <= depth:
            raise Refusal(f"The model has {depth} layers; between 1 and {depth} of them can train, not {train_layers}.")
        self.model, self.body, self.depth = model.eval().requires_grad_(False), model.base_model, depth - train_layers
        self.dtype: torch.dtype = model.dtype
        self.layers = [layer_of(module, self.dtype) for module in self.body.layers]
        self.memo: dict[tuple[int, bytes], Float[Tensor, "length hidden"]] = {}
        self.held = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> "Trunk":
        return self

    @property
    def hidden(self) -> int:
        """The width of a state."""
        return self.body.embed_tokens.weight.shape[1]

    def forget(self) -> None:
        """Empty the memo."""
        self.memo.clear()
        self.held = 0

    @torch.no_grad()
    def whole(self, rollout: Rollout, *, layer: int | None = None) -> Float[Tensor, "batch length hidden"]:
        """The state of every token of prompt and response after a layer, raw, as the next layer reads it.

        Args:
            rollout: what is read; what stands on padding means nothing.
            layer: how many layers have been passed; None is the top of the trunk.
        """
        layer = self.depth if layer is None else layer
        if not 0 <= layer <= len(self.layers):
            raise Refusal(f"The model has {len(self.layers)} layers; there is no state after layer {layer}.")
        ids, mask, _ = sequence(rollout, after=True)
        real = torch.cat((rollout.prompt_mask, rollout.mask), 1)
        keys = row_keys(rollout, layer)
        missing = {key: row for row, key in reversed(list(enumerate(keys))) if key not in self.memo}
        fresh: dict[tuple[int, bytes], Tensor] = {}
        for rows in torch.tensor(sorted(missing.values()), dtype=torch.long).split(ROWS) if missing else ():
            states = self.computed(ids[rows], None if mask is None else mask[rows], layer)
            for row, state in zip(rows.tolist(), states, strict=True):
                fresh[keys[row]] = state[real[row]]
                self.remember(keys[row], fresh[keys[row]])
        out = torch.zeros(*ids.shape, self.hidden, dtype=self.dtype, device=ids.device)
        out[real] = torch.cat([self.memo[key] if key in self.memo else fresh[key] for key in keys])
        return out

    def remember(self, key: tuple[int, bytes], states: Float[Tensor, "length hidden"]) -> None:
        """Keep a row's states while there is room."""
        size = states.numel() * states.element_size()
        if key not in self.memo and self.held + size <= MEMO:
            self.memo[key] = states
            self.held += size

    def computed(
        self, ids: Int[Tensor, "batch length"], mask: Bool[Tensor, "batch length"] | None, layer: int
    ) -> Float[Tensor, "batch length hidden"]:
        """One pass through the bottom."""
        x = functional.embedding(ids, self.body.embed_tokens.weight).flatten(0, 1)
        where = reach(self.body.rotary_emb, self.dtype, mask=mask, new=ids.shape[1], seen=ids.shape[1])
        return run(x, self.layers[:layer], where=where).view(*ids.shape, -1)

    def states(self, rollout: Rollout, *, layer: int | None = None) -> Float[Tensor, "batch time hidden"]:
        """The state after each response token, having read it, divided by its root mean square; float32, frozen.

        Args:
            rollout: what is read; what stands on padding means nothing.
            layer: how many layers have been passed; None is the top of the trunk, which costs nothing once a policy
                has been asked about the same rollout.
        """
        whole = self.whole(rollout, layer=layer)[:, rollout.prompts.shape[1] :]
        return normed(whole.float(), None, eps=self.body.norm.variance_epsilon)


def row_keys(rollout: Rollout, layer: int) -> list[tuple[int, bytes]]:
    """What tells rows apart: the layer, and the real tokens of prompt and response, wherever padding stands."""
    ids = torch.cat((rollout.prompts, rollout.responses), 1).cpu()
    real = torch.cat((rollout.prompt_mask, rollout.mask), 1).cpu()
    return [(layer, row[kept].numpy().tobytes()) for row, kept in zip(ids, real, strict=True)]


class TopPolicy(nn.Module):
    """A `Policy` that owns the top layers and the final norm of a model, over a frozen trunk; the head stays as it is.

    Weights are kept in float32 and cast to the trunk's type where they are read.

    Args:
        trunk: what stands below.
        vocabulary: size at most the model's.
        temperature: one for sampling and scoring, as are all that follow.
        top_k: only so many of the most probable tokens stay possible.
        top_p: only the nucleus of this mass stays possible.
        spoken: sorted ids, the only tokens that are ever said; logits of others are not computed.
        trains: False stands on the model's own layers, without a copy.
    """

    def __init__(
        self,
        trunk: Trunk,
        vocabulary: Vocabulary,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        spoken: Sequence[int] | None = None,
        trains: bool = True,
    ):
        super().__init__()
        check_vocabulary(trunk.model, vocabulary)
        chosen = None if spoken is None else tuple(map(int, spoken))
        self.vocabulary, self.temperature = vocabulary, temperature
        self.trunk, self.distribution = trunk, Distribution(vocabulary, temperature, top_k, top_p, chosen)
        self.layers, self.norm = trunk.body.layers[trunk.depth :], trunk.body.norm
        if trains:
            self.layers, self.norm = (deepcopy(part).float().requires_grad_() for part in (self.layers, self.norm))
        self.head = head_of(trunk.model, self.distribution, dtype=trunk.dtype)

    def own(self) -> list[Layer]:
        """The top layers in the type that computes."""
        return [layer_of(module, self.trunk.dtype) for module in self.layers]

    def stack(self, layers: Sequence[Layer]) -> Stack:
        """Layers between the model's embedding and its head, under this policy's norm."""
        body, dtype = self.trunk.body, self.trunk.dtype
        norm, eps = self.norm.weight.to(dtype), body.norm.variance_epsilon
        return Stack(body.embed_tokens.weight, layers, norm, eps, self.head, body.rotary_emb)

    def sample(self, prompts: Prompts, n: int, generator: torch.Generator) -> Rollout:
        """Draw `n` responses to each prompt; the rows of one prompt stand together. The trunk's memo is emptied."""
        check_fits(self.trunk.model, prompts, time=self.vocabulary.time)
        self.trunk.forget()
        with torch.no_grad():
            stack = self.stack(self.trunk.layers[: self.trunk.depth] + self.own())
        return sample(stack, prompts, n=n, distribution=self.distribution, generator=generator)

    def logprobs(self, rollout: Rollout) -> tuple[Float[Tensor, "batch time"], Float[Tensor, "batch time column"]]:
        """Log-probs of the response (0 on padding) and the full log-softmax, nats, with gradient."""
        ids, mask, first = sequence(rollout)
        states = self.trunk.whole(rollout)[:, : ids.shape[1]]
        logits = self.stack(self.own()).scored(states, mask, first=first)
        return score(logits, rollout, distribution=self.distribution)

    def save(self, folder: Path, texts: Written | None = None) -> None:
        """Write the whole model as an ordinary folder, the trained layers in their place.

        Args:
            folder: made where it is not there.
            texts: tokenizer and template; None writes the weights alone.
        """
        prefix = f"{self.trunk.model.base_model_prefix}."
        trained = {f"{prefix}norm.weight": self.norm.weight.detach()}
        for name, tensor in self.layers.state_dict().items():
            index, rest = name.split(".", 1)
            trained[f"{prefix}layers.{int(index) + self.trunk.depth}.{rest}"] = tensor
        write_folder(self.trunk.model, folder, dtype=self.trunk.dtype, texts=texts, trained=trained)


class TopValue(nn.Module):
    """A critic on the trunk: a linear head, or a small network, on the state before each response token.

    States are divided by their root mean square first. It starts by expecting 0 everywhere.

    Args:
        trunk: what is read.
        generator: fills the hidden layer, where there is one.
        width: of a hidden layer; None is a linear head.
    """

    def __init__(self, trunk: Trunk, generator: torch.Generator, *, width: int | None = None):
        super().__init__()
        self.trunk = trunk
        with torch.random.fork_rng(devices=[]):
            self.inner = None if width is None else nn.Linear(trunk.hidden, width)
            self.head = nn.Linear(trunk.hidden if width is None else width, 1)
        if self.inner is not None:
            nn.init.normal_(self.inner.weight, 0.0, trunk.hidden**-0.5, generator)
            nn.init.zeros_(self.inner.bias)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, rollout: Rollout) -> Float[Tensor, "batch time"]:
        """Expected return at each response token, in score units; what stands on padding means nothing."""
        first = rollout.prompts.shape[1] - 1
        whole = self.trunk.whole(rollout)[:, first:-1]
        x = normed(whole.float(), None, eps=self.trunk.body.norm.variance_epsilon).flatten(0, 1)
        if self.inner is not None:
            x = torch.tanh(self.inner(x))
        return self.head(x).view(rollout.responses.shape)
