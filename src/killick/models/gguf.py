"""From a GGUF file, quantised, to an ordinary model and its tokenizer (extra `hf`)."""

import struct
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import torch

from killick.types import Refusal

Read = TypeVar("Read")


def gguf_tokenizer(file: Path, *, digits: bool) -> Any:
    """The tokenizer in a GGUF file, chat template included.

    Args:
        file: ending in .gguf.
        digits: the model learnt each digit as a piece of its own, before words were looked for. Files say so by a
            name ("smollm") that transformers 5.24 passes over: without it two line breaks before "1." come out as
            two tokens where the model knows one.

    Raises:
        Refusal: where an extra is missing, or the file holds no tokenizer.
    """
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    def read() -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name, local_files_only=True)

    found = quietly(read, file)
    if digits:
        found.backend_tokenizer.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(False)])
    return found


def gguf_causal(file: Path) -> Any:
    """The language model in a GGUF file, its weights unpacked to bfloat16.

    Raises:
        Refusal: where an extra is missing, or the file holds no language model.
    """

    def read() -> Any:
        from transformers import AutoModelForCausalLM, GgufConfig

        unpacked = GgufConfig(dequantize=True)  # packed weights could not be saved
        return AutoModelForCausalLM.from_pretrained(
            file.parent, gguf_file=file.name, quantization_config=unpacked, dtype=torch.bfloat16, local_files_only=True
        )

    return quietly(read, file)


def quietly(read: Callable[[], Read], file: Path) -> Read:
    """What a call reads from a file, without the library's bars; what goes wrong there is one sentence."""
    try:
        with redirect_stderr(StringIO()):
            return read()
    except ImportError as error:
        raise Refusal(f"A GGUF file needs transformers, gguf and accelerate ({error}); install killick[hf].") from error
    except (OSError, ValueError, LookupError, struct.error) as error:
        raise Refusal(f"{file} cannot be read as a language model ({error}).") from error
