"""A random little language model as an ordinary folder: what a person's own model looks like, in a second."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

END, START, PAD = "<|im_end|>", "<|im_start|>", "<|pad|>"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TRAINED_ON = (
    "My honest review of the lamp: I thought it was good. Dear diary, today I went to the park and saw a bird. "
    "The answer is more than that, and the other one is the better of the two. I feel happy about this and that."
)


@lru_cache
def backend() -> str:
    """A byte-level tokenizer of 300 tokens, as JSON: it reads any text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([TRAINED_ON], trainer)
    return made.to_str()


def tokenizer(*, template: bool = True, pad: str | None = PAD) -> Any:
    """That tokenizer; `pad` may be the end token, as in many models, or None."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(backend()),
        bos_token=START,
        eos_token=END,
        pad_token=pad,
        chat_template=TEMPLATE if template else None,
    )


def llama(*, layers: int = 3, vocabulary: int = 300, context: int = 128, seed: int = 0, loud: float = 4.0) -> Any:
    """A Llama of width 32 with grouped queries and a tied head, its distributions far from flat."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=32, intermediate_size=48, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=context, rms_norm_eps=1e-5, tie_word_embeddings=True,
        bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(loud)
    return model.eval()


def llama_folder(
    folder: Path, *, template: bool = True, pad: str | None = PAD, layers: int = 3, context: int = 128, seed: int = 0
) -> Path:
    """That model and tokenizer in a folder."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    llama(layers=layers, context=context, seed=seed).save_pretrained(folder)
    tokenizer(template=template, pad=pad).save_pretrained(folder)
    return folder
