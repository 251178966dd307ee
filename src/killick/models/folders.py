"""A model's folder as `transformers` keeps it: opened with every fault told by name, written as an ordinary one."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from safetensors import SafetensorError
from torch import Tensor

from killick.types import Refusal


@runtime_checkable
class Written(Protocol):
    """What goes into a model's folder beside the weights: a tokenizer and its template."""

    def save(self, folder: Path) -> None:
        """Write into a folder that exists."""
        ...


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


def open_judging(folder: Path, *, dtype: torch.dtype, **settings: Any) -> tuple[Any, list[str]]:
    """The model of a folder with a head of one label or more, and the weights that the folder lacks.

    Raises:
        Refusal: where there is none.
    """
    try:
        from transformers import AutoModelForSequenceClassification
    except ImportError as error:
        raise Refusal("A reward model needs transformers; install killick[hf].") from error
    if not folder.is_dir():
        raise Refusal(f"There is no model folder {folder}.")
    if not (folder / "config.json").is_file():
        raise Refusal(f"{folder} is no folder of a model (it has no config.json).")
    return read_model(
        AutoModelForSequenceClassification, folder, kind="a model that can judge", dtype=dtype, **settings
    )


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


def compact(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights in bfloat16 where that loses nothing: all of a model that was trained so and stayed as it was."""
    halves = {name: weight.bfloat16() for name, weight in weights.items()}
    return {
        name: half if torch.equal(half.to(weights[name].dtype), weights[name]) else weights[name]
        for name, half in halves.items()
    }
