"""Any `transformers` causal language model as a policy (extra `hf`), and how its folder is opened.

The decoding loop is ours, since `generate` hides its log-probs. Models of the Llama layout are computed by hand
(`layers.py`), others by the library's own forward pass and key-value cache.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from torch import Tensor, nn

from killick.models.decoding import Distribution, decode, score, sequence
from killick.models.layers import unlike
from killick.models.stack import check_fits, sample, stack_of
from killick.ops.logprobs import Draws
from killick.types import Prompts, Refusal, Rollout, Vocabulary


@runtime_checkable
class Written(Protocol):
    """What goes into a model's folder beside the weights: a tokenizer and its template."""

    def save(self, folder: Path) -> None:
        """Write into a folder that exists."""
        ...


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


@contextmanager
def quietly() -> Iterator[None]:
    """The library says nothing on the console inside: what matters is a refusal."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def open_causal(folder: Path, *, dtype: torch.dtype | None = None) -> Any:
    """Read the folder of a causal language model; nothing is fetched.

    Args:
        folder: with `config.json` and safetensors.
        dtype: of the weights; None takes what the folder says. What trains as a whole wants float32: small steps
            vanish in bfloat16.

    Raises:
        Refusal: where transformers is not installed, or the folder holds no such model or not a whole one.
    """
    try:
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        raise Refusal("A pretrained model needs transformers; install killick[hf].") from error
    if not folder.is_dir():
        raise Refusal(f"{folder} is no folder of a causal language model: there is no such folder.")
    if judge := [name for name in architectures(folder) if name.endswith("ForSequenceClassification")]:
        raise Refusal(f"{folder} holds a model that judges ({judge[0]}), not one that speaks.")
    model, missing = read_model(
        AutoModelForCausalLM, folder, kind="a causal language model", dtype="auto" if dtype is None else dtype
    )
    if missing:
        raise Refusal(
            f"{folder} lacks the weights {several(missing)}; a model with fresh ones in their place is noise."
        )
    return model.eval()


def read_model(auto: Any, folder: Path, *, kind: str, **settings: Any) -> tuple[Any, list[str]]:
    """The model of a folder, and the weights that the folder lacks; nothing is fetched, no pickle is opened (O-46).

    A head of another size than is asked for (`score.weight`) counts as lacking.

    Args:
        auto: which of the library's classes opens it.
        folder: with `config.json` and safetensors.
        kind: what it ought to be, in words.
        settings: for `from_pretrained`.

    Raises:
        Refusal: where the folder holds no such model, or a damaged one.
    """
    try:
        with quietly():
            loaded: Any = auto.from_pretrained(
                folder, local_files_only=True, output_loading_info=True, use_safetensors=True,
                ignore_mismatched_sizes=True, **settings,
            )  # fmt: skip
    except SafetensorError as error:
        raise Refusal(f"The weights in {folder} are damaged ({error}).") from error
    except Exception as error:  # a damaged file may raise anything
        raise Refusal(f"{folder} is no folder of {kind}: {first_sentence(error)}") from error
    model, found = loaded
    sizes = {name: (list(there), list(due)) for name, there, due in found["mismatched_keys"]}
    missing = set(found["missing_keys"]) | (sizes.keys() & {"score.weight"})
    for name in sorted(sizes.keys() - missing):
        there, due = sizes[name]
        raise Refusal(f"The weights in {folder} do not fit its config.json: {name} is {there}, not {due}.")
    return model, sorted(missing)


def several(names: Sequence[str]) -> str:
    """The first five names, and how many more there are."""
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + rest


def architectures(folder: Path) -> list[str]:
    """What a folder says that it holds; nothing where it says nothing."""
    try:
        named = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [str(name) for name in named] if isinstance(named, list) else []


def first_sentence(error: Exception) -> str:
    """What a library's error begins with, on one line."""
    text = " ".join(str(error).split()).split(". ")[0].rstrip(".")
    return f"{text}."


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


def write_folder(
    model: Any,
    folder: Path,
    *,
    dtype: torch.dtype,
    texts: Written | None,
    trained: dict[str, Tensor] | None = None,
) -> None:
    """Write a model as an ordinary folder.

    Args:
        model: the library's.
        folder: made where it is not there.
        dtype: of the weights in the file: what computed.
        texts: tokenizer and template, or None.
        trained: weights by the model's own names that stand in for the model's.
    """
    tensors = {name: tensor.to(dtype) for name, tensor in (model.state_dict() | (trained or {})).items()}
    if model.config.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    before = model.config.dtype
    try:
        with quietly():
            model.save_pretrained(folder, state_dict=tensors)
        model.config.dtype = dtype  # the library writes the type that the weights are kept in, not that of the file
        model.config.save_pretrained(folder)
    finally:
        model.config.dtype = before
    if texts is not None:
        texts.save(folder)
