"""A tokenizer of `transformers` and how it frames text: which ids a prompt is, and an answer, and back (extra `hf`)."""

import hashlib
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeAlias

from killick.types import Refusal, Rollout, Vocabulary

Prompt: TypeAlias = str | Sequence[tuple[str, str]]
"""A text, or a dialogue so far as (role, content) turns."""

ANY = "ANSWER"
"""Stands for an answer where only what is around it matters."""


class Texts:
    """Text to ids and back, for training, scoring and sampling alike; prompt and answer are joined as ids (O-18).

    Args:
        tokenizer: of `transformers`.
        chat: frame prompts by the tokenizer's chat template; None does so where there is one.

    Raises:
        Refusal: where a chat is asked for and there is no template.

    Attributes:
        eos: the id that ends an answer, None where the tokenizer has none.
        pad: fills rows; never equal to `eos`, so that who looks for padding by its id finds padding only (O-20).
    """

    def __init__(self, tokenizer: Any, *, chat: bool | None = None):
        if chat and not tokenizer.chat_template:
            raise Refusal("This tokenizer has no chat template; give plain prompts, or a model that has one.")
        self.tokenizer, self.chat = tokenizer, bool(tokenizer.chat_template) if chat is None else chat
        self.eos: int | None = tokenizer.eos_token_id
        self.pad = filler(tokenizer)
        first = tokenizer("a").input_ids[:1]
        self.start: list[int] = first if first == [tokenizer.bos_token_id] else []

    @classmethod
    def load(cls, folder: Path, *, chat: bool | None = None) -> "Texts":
        """Read the tokenizer of a model folder; nothing is fetched.

        Raises:
            Refusal: where transformers is not installed, or the folder holds no tokenizer.
        """
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise Refusal("A language model needs transformers; install killick[hf].") from error
        if not folder.is_dir():
            raise Refusal(f"There is no model folder {folder}.")
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # a damaged file may raise anything
            if not (folder / "config.json").is_file():
                raise Refusal(f"{folder} is no folder of a model (it has no config.json).") from error
            raise Refusal(
                f"{folder} holds no tokenizer that transformers can read; copy one beside the model."
            ) from error
        return cls(tokenizer, chat=chat)

    def prompt(self, prompt: Prompt) -> list[int]:
        """What a model reads before it answers: one start token where it uses one, and the frame of a chat.

        Raises:
            Refusal: where a dialogue meets a tokenizer without template, a chat's turn spells a special token (O-17),
                or there is nothing to read.
        """
        turns = [("user", prompt)] if isinstance(prompt, str) else [tuple(turn) for turn in prompt]
        if self.chat:
            ids = self.framed(turns)
        elif [role for role, _ in turns] == ["user"]:
            ids = self.start + self.plain(turns[0][1])
        else:
            raise Refusal(
                "A dialogue needs a tokenizer with a chat template; this one has none, so give each prompt as one text."
            )
        if not ids:
            raise Refusal("A prompt must hold at least one token.")
        return ids

    def framed(self, turns: Sequence[tuple[str, ...]]) -> list[int]:
        """A dialogue in the frame of its template, up to where the assistant speaks."""
        for role, content in turns:
            for token in self.tokenizer.all_special_tokens:
                if token in content:
                    raise Refusal(
                        f"A turn of the {role} spells {token}, which would be a mark of the chat; take it out."
                    )
        shown = self.rendered(turns, asks=True)
        ids = self.tokenizer(shown, add_special_tokens=False).input_ids
        return ids if ids[:1] == self.start else self.start + ids

    def rendered(self, turns: Sequence[tuple[str, ...]], *, asks: bool) -> str:
        """A dialogue as the template writes it; up to where the assistant speaks, if it `asks`."""
        messages = [{"role": role, "content": content} for role, content in turns]
        try:
            shown: str = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=asks)
        except Exception as error:  # a template is a program and may refuse roles or their order
            said = " ".join(str(error).split())
            raise Refusal(f"The chat template refuses the turns {[role for role, _ in turns]}: {said}") from error
        return shown

    def answer(self, answer: Prompt) -> list[int]:
        """An answer's ids, without start and end; what spells a special token is plain text here (O-17).

        Raises:
            Refusal: where it is more than one turn of the assistant.
        """
        if isinstance(answer, str):
            return self.plain(answer)
        if [role for role, _ in answer] != ["assistant"]:
            raise Refusal("An answer must be a text, or one turn of the assistant.")
        return self.plain(answer[0][1])

    @property
    def closing(self) -> list[int]:
        """What stands behind an answer where somebody framed a whole dialogue: the end of the turn, and what the
        template writes after it; in plain text the end token alone.
        """
        if not self.chat:
            return [] if self.eos is None else [self.eos]
        shown = self.rendered([("user", "?"), ("assistant", ANY)], asks=False)
        return self.tokenizer(shown.rpartition(ANY)[2], add_special_tokens=False).input_ids

    def plain(self, text: str) -> list[int]:
        """A text's ids and nothing else."""
        return self.tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids

    def read(self, ids: Sequence[int]) -> str:
        """Ids as text."""
        return self.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def responses(self, rollout: Rollout) -> list[str]:
        """Each response as a person reads it, without its end token."""
        stops = (rollout.lengths - rollout.finished.long()).tolist()
        return [self.read(row[:stop]) for row, stop in zip(rollout.responses.tolist(), stops, strict=True)]

    def vocabulary(self, time: int, *, size: int | None = None) -> Vocabulary:
        """What a policy may say: all tokens, up to `time` of them.

        Args:
            time: the most response tokens.
            size: of the model's table, where it is smaller than the tokenizer.
        """
        size = len(self.tokenizer) if size is None else min(size, len(self.tokenizer))
        return Vocabulary(size=size, time=time, eos=self.eos, pad=self.pad)

    @property
    def digest(self) -> str:
        """Equal where two tokenizers read and frame alike."""
        parts = (self.tokenizer.backend_tokenizer.to_str(), str(self.tokenizer.chat_template), str(self.chat))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def save(self, folder: Path, *, pads: bool = False) -> None:
        """Write the tokenizer and its template beside a model.

        Args:
            folder: the model's.
            pads: make `pad` its padding token: whoever looks for a last token by its id needs that (O-20).
        """
        saved = deepcopy(self.tokenizer) if pads else self.tokenizer
        if pads:
            saved.pad_token = saved.convert_ids_to_tokens(self.pad)
        saved.save_pretrained(folder)


def filler(tokenizer: Any) -> int:
    """An id to pad with that no answer ends with: the tokenizer's own where it may be, else another special one."""
    specials = (
        tokenizer.pad_token_id,
        tokenizer.unk_token_id,
        tokenizer.bos_token_id,
        *tokenizer.all_special_ids,
        0,
        1,
    )
    return next(token for token in specials if token is not None and token != tokenizer.eos_token_id)
