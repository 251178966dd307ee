"""Any `transformers` causal language model as a policy (extra `hf`).

The decoding loop is ours, since `generate` hides its log-probs. Models of the Llama layout are computed by hand
(`layers.py`), others by the library's own forward pass and key-value cache.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.models.decoding import Distribution, decode, score, sequence
from killick.models.folders import Written, open_causal, write_folder
from killick.models.layers import unlike
from killick.models.stack import check_fits, sample, stack_of
from killick.ops.logprobs import Draws
from killick.types import Prompts, Refusal, Rollout, Vocabulary


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Dropout off inside, each module's mode restored after (O-28)."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def check_vocabulary(model: Any, vocabulary: Vocabulary) -> None:
    """Refuse more tokens than a model has.

    Raises:
        Refusal: naming both numbers.
    """
    size = model.config.get_text_config().vocab_size
    if vocabulary.size > size:
        raise Refusal(f"The model has {size} tokens, fewer than the {vocabulary.size} that were asked for.")


class PretrainedPolicy(nn.Module):
    """A `Policy` over an `AutoModelForCausalLM`.

    Args:
        model: the language model.
        vocabulary: size at most the model's; a larger table (padding rows of the head) is cut off.
        temperature: one for sampling and scoring, as are all that follow.
        top_k: only so many of the most probable tokens stay possible.
        top_p: only the nucleus of this mass stays possible.
        spoken: sorted ids, the only tokens that are ever said; logits of others are not computed.
        compute: the type of the forward pass, where weights are kept in another (Llama layouts only).
    """

    def __init__(
        self,
        model: Any,
        vocabulary: Vocabulary,
        temperature: float = 1.0,
        *,
        top_k: int | None = None,
        top_p: float = 1.0,
        spoken: Sequence[int] | None = None,
        compute: torch.dtype | None = None,
    ):
        super().__init__()
        check_vocabulary(model, vocabulary)
        chosen = None if spoken is None else tuple(map(int, spoken))
        self.distribution = Distribution(vocabulary, temperature, top_k, top_p, chosen)
        self.vocabulary, self.temperature = vocabulary, temperature
        self.model, self.compute = model, model.dtype if compute is None else compute
        self.by_hand = unlike(model) is None

    @classmethod
    def load(
        cls, folder: Path, vocabulary: Vocabulary, temperature: float = 1.0, dtype: torch.dtype = torch.float32
    ) -> "PretrainedPolicy":
        """Read a model folder; nothing is fetched. Weights that train want float32: small steps vanish in bfloat16.

        Raises:
            Refusal: as `open_causal`.
        """
        return cls(open_causal(folder, dtype=dtype), vocabulary, temperature)

    def save(self, folder: Path, texts: Written | None = None) -> None:
        """Write an ordinary model folder with safetensors, the tokenizer beside it.

        Args:
            folder: made where it is not there.
            texts: tokenizer and template; None writes the weights alone.
        """
        write_folder(self.model, folder, dtype=self.compute, texts=texts)

    def sample(self, prompts: Prompts, n: int, generator: Draws) -> Rollout:
        """Draw `n` responses to each prompt, which stand together; from one stream, or from one for each response."""
        check_fits(self.model, prompts, time=self.vocabulary.time)
        if self.by_hand:
            with torch.no_grad():
                stack = stack_of(self.model, self.distribution, dtype=self.compute)
            return sample(stack, prompts, n=n, distribution=self.distribution, generator=generator)
        from transformers import DynamicCache

        cache, mask = DynamicCache(config=self.model.config), prompts[1].repeat_interleave(n, 0).long()

        def step(new: Tensor) -> Tensor:
            nonlocal mask
            if cache.get_seq_length():
                mask = nn.functional.pad(mask, (0, 1), value=1)
            places = (mask.cumsum(1) - 1).clamp(min=0)[:, -new.shape[1] :]
            out = self.model(
                new, attention_mask=mask, position_ids=places, cache=cache, use_cache=True, logits_to_keep=1
            )
            return self.columns(out.logits[:, -1])

        with evaluating(self.model):
            return decode(step, prompts, n=n, distribution=self.distribution, generator=generator)

    def columns(self, logits: Float[Tensor, "*shape vocab"]) -> Float[Tensor, "*shape column"]:
        """Those of the distribution."""
        ids = self.distribution.ids
        return logits[..., : self.vocabulary.size] if ids is None else logits[..., ids.to(logits.device)]

    def logprobs(self, rollout: Rollout) -> tuple[Float[Tensor, "batch time"], Float[Tensor, "batch time column"]]:
        """Log-probs of the response (0 on padding) and the full log-softmax, nats, with gradient."""
        ids, mask, first = sequence(rollout)
        if self.by_hand:
            stack = stack_of(self.model, self.distribution, dtype=self.compute)
            logits = stack.scored(stack.read(ids).view(*ids.shape, -1), mask, first=first)
            return score(logits, rollout, distribution=self.distribution)
        mask = torch.ones_like(ids) if mask is None else mask.long()
        places = (mask.cumsum(1) - 1).clamp(min=0)
        with evaluating(self.model):
            out = self.model(
                ids, attention_mask=mask, position_ids=places, use_cache=False, logits_to_keep=ids.shape[1] - first
            )
        return score(self.columns(out.logits).flatten(0, 1), rollout, distribution=self.distribution)
