"""A transformer that speaks: samples with a key-value cache, scores by one full pass, saves as safetensors."""

from dataclasses import asdict
from pathlib import Path
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.models.decoding import Distribution, check_temperature, decode, score, sequence
from killick.models.transformer import Cache, Transformer, TransformerConfig
from killick.models.weights import read, write
from killick.ops.logprobs import Draws
from killick.types import Prompts, Refusal, Rollout, Vocabulary


def check_network(config: TransformerConfig, vocabulary: Vocabulary, *, prompt: int = 1) -> None:
    """Refuse a shape that cannot speak a vocabulary after prompts of a length.

    Raises:
        Refusal: where outputs, inputs or context do not fit.
    """
    if config.outputs != vocabulary.size:
        raise Refusal(
            f"The network has {config.outputs} outputs, the vocabulary {vocabulary.size} tokens; they must agree."
        )
    needed = max(vocabulary.size, vocabulary.pad + 1)
    if config.inputs < needed:
        raise Refusal(f"The network reads {config.inputs} tokens, but the vocabulary needs {needed}; raise inputs.")
    if config.context < prompt + vocabulary.time - 1:
        length = f"{prompt} prompt and {vocabulary.time} response tokens"
        raise Refusal(f"A context of {config.context} is too short for {length}; raise it.")


class TransformerPolicy(nn.Module):
    """A `Policy` over our own transformer.

    Args:
        network: gives states and logits; its outputs are the vocabulary.
        vocabulary: what may be sampled.
        temperature: one for sampling, scoring, entropy and KL.
    """

    def __init__(self, network: Transformer, vocabulary: Vocabulary, temperature: float = 1.0):
        super().__init__()
        check_temperature(temperature)
        check_network(network.config, vocabulary)
        self.network, self.vocabulary, self.temperature = network, vocabulary, temperature

    @property
    def distribution(self) -> Distribution:
        """What it samples from and is scored by."""
        return Distribution(self.vocabulary, self.temperature)

    def sample(self, prompts: Prompts, n: int, generator: Draws) -> Rollout:
        """Draw `n` responses to each prompt; the rows of one prompt stand together.

        Args:
            prompts: ids and mask, padded on the left.
            n: responses to each.
            generator: drawn from; one for each response makes it independent of those beside it.
        """
        ids, prompt_mask = prompts
        if int(ids.max()) >= self.network.config.inputs:
            raise Refusal(
                f"A prompt holds token {int(ids.max())}; the network reads 0..{self.network.config.inputs - 1}."
            )
        batch, length = len(ids) * n, ids.shape[1] + self.vocabulary.time
        like = self.network.head.weight
        caches = [Cache(batch, self.network.config, length, like) for _ in self.network.blocks]
        mask = None
        if not bool(prompt_mask.all()):
            mask = torch.nn.functional.pad(prompt_mask.repeat_interleave(n, 0), (0, self.vocabulary.time), value=True)

        def step(new: Tensor) -> Tensor:
            seen = None if mask is None else mask[:, : caches[0].used + new.shape[1]]
            return cast(Tensor, self.network.head(self.network(new, seen, new.shape[1] - 1, caches)))

        return decode(step, prompts, n=n, distribution=self.distribution, generator=generator)

    def logprobs(self, rollout: Rollout) -> tuple[Float[Tensor, "batch time"], Float[Tensor, "batch time vocab"]]:
        """Log-probs of the response (0 on padding) and the full log-softmax, nats, with gradient."""
        logits = self.network.head(self.network(*sequence(rollout)))
        return score(logits, rollout, distribution=self.distribution)

    def save(self, path: Path) -> None:
        """Write weights and settings as one safetensors file."""
        settings = {
            "network": asdict(self.network.config),
            "vocabulary": asdict(self.vocabulary),
            "temperature": self.temperature,
        }
        write(self, path, settings=settings)

    @classmethod
    def load(cls, path: Path) -> "TransformerPolicy":
        """The policy that `save` wrote.

        Raises:
            Refusal: where the file is no such file, or a tensor is missing or of another shape.
        """
        settings, tensors = read(path)
        try:
            config = TransformerConfig(**settings["network"])
            words = settings["vocabulary"] | {"forbidden": tuple(settings["vocabulary"]["forbidden"])}
            policy = cls(Transformer(config, torch.Generator()), Vocabulary(**words), settings["temperature"])
            policy.load_state_dict(tensors)
        except (KeyError, TypeError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise Refusal(f"{path} does not hold a whole transformer policy: {reason}.") from error
        return policy
