"""Any `transformers` causal language model as a policy (extra `hf`).

It reads and writes ordinary model folders. The key-value cache is the library's own; the decoding loop is ours, since
`generate` hides its log-probs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from torch import Tensor, nn

from killick.models.decoding import check_temperature, decode, score, sequence
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


class PretrainedPolicy(nn.Module):
    """A `Policy` over an `AutoModelForCausalLM`.

    Args:
        model: the language model.
        vocabulary: size at most the model's; a larger table (padding rows of the head) is cut off.
        temperature: one for sampling and scoring.
    """

    def __init__(self, model: Any, vocabulary: Vocabulary, temperature: float = 1.0):
        super().__init__()
        check_temperature(temperature)
        size = model.config.get_text_config().vocab_size
        if vocabulary.size > size:
            raise Refusal(f"The model has {size} tokens, fewer than the {vocabulary.size} that were asked for.")
        self.model, self.vocabulary, self.temperature = model, vocabulary, temperature

    @classmethod
    def load(
        cls, folder: Path, vocabulary: Vocabulary, temperature: float = 1.0, dtype: torch.dtype = torch.float32
    ) -> "PretrainedPolicy":
        """Read a model folder; nothing is fetched. Weights that train want float32: small steps vanish in bfloat16.

        Raises:
            Refusal: where transformers is not installed, or the folder is no causal language model.
        """
        try:
            from transformers import AutoModelForCausalLM
        except ImportError as error:
            raise Refusal("A pretrained policy needs transformers; install killick[hf].") from error
        try:
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                folder, dtype=dtype, local_files_only=True, output_loading_info=True
            )
        except SafetensorError as error:
            raise Refusal(f"The weights in {folder} are damaged ({error}).") from error
        except (OSError, ValueError) as error:
            raise Refusal(f"{folder} is no folder of a causal language model.") from error
        model, found = loaded
        if found["missing_keys"]:
            missing = ", ".join(sorted(found["missing_keys"]))
            raise Refusal(f"{folder} lacks the weights {missing}; a model with fresh ones in their place is noise.")
        return cls(model, vocabulary, temperature)

    def save(self, folder: Path) -> None:
        """Write an ordinary model folder with safetensors."""
        self.model.save_pretrained(folder)

    def sample(self, prompts: Prompts, n: int, generator: torch.Generator) -> Rollout:
        """Draw `n` responses to each prompt; the rows of one prompt stand together."""
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
            return out.logits[:, -1, : self.vocabulary.size]

        with evaluating(self.model):
            return decode(
                step, prompts, n=n, vocabulary=self.vocabulary, temperature=self.temperature, generator=generator
            )

    def logprobs(self, rollout: Rollout) -> tuple[Float[Tensor, "batch time"], Float[Tensor, "batch time vocab"]]:
        """Log-probs of the response (0 on padding) and the full log-softmax, nats, with gradient."""
        ids, mask, first = sequence(rollout)
        mask = torch.ones_like(ids) if mask is None else mask.long()
        places = (mask.cumsum(1) - 1).clamp(min=0)
        with evaluating(self.model):
            out = self.model(
                ids, attention_mask=mask, position_ids=places, use_cache=False, logits_to_keep=ids.shape[1] - first
            )
        logits = out.logits[..., : self.vocabulary.size].flatten(0, 1)
        return score(logits, rollout, vocabulary=self.vocabulary, temperature=self.temperature)
