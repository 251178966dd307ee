"""A word-level tokenizer: words and punctuation marks are tokens, case matters, and what is unknown is `<unk>`.

Its file is the `tokenizer.json` of the tokenizers library, written and read here as plain JSON, so that the library is
not needed.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from killick.types import Refusal

SPECIAL = ("<pad>", "<unk>", "<user>", "<assistant>", "<end>")
"""Padding, an unknown word, the two who speak, the end of what one says: ids 0 to 4."""

WORD = r"\w+|[^\w\s]"


class Words:
    """Words to ids and back.

    Args:
        words: all that are known, beside the special tokens; their order gives the ids.
    """

    def __init__(self, words: Iterable[str]):
        known = dict.fromkeys([*SPECIAL, *words])
        self.words = tuple(known)
        self.ids = {word: place for place, word in enumerate(known)}
        self.pattern = re.compile("|".join(map(re.escape, SPECIAL)) + "|" + WORD)

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Words":
        """Every word of some texts, in alphabetical order."""
        return cls(sorted({word for text in texts for word in re.findall(WORD, text)}))

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> list[int]:
        """Ids of a text; a special token is one wherever its name stands."""
        unknown = self.ids["<unk>"]
        return [self.ids.get(word, unknown) for word in self.pattern.findall(text)]

    def decode(self, ids: Sequence[int] | Tensor) -> str:
        """Words of one sequence of ids, a space between; the marks of its end, `<end>` and `<pad>`, are left out.

        Raises:
            Refusal: where an id is none of this tokenizer, or there are several sequences.
        """
        if isinstance(ids, Tensor):
            if ids.dim() > 1 and len(ids) != 1:
                raise Refusal(f"decode takes one sequence of ids, not {len(ids)}; call it for each.")
            ids = ids.flatten().tolist()
        wrong = [token for token in ids if not 0 <= token < len(self)]
        if wrong:
            raise Refusal(f"There is no token {wrong[0]}; ids lie in 0..{len(self) - 1}.")
        return " ".join(word for word in (self.words[token] for token in ids) if word not in ("<end>", "<pad>"))

    def token_id(self, word: str) -> int:
        """The id of one token.

        Raises:
            Refusal: where there is no such token.
        """
        if word not in self.ids:
            raise Refusal(f"The vocabulary has no {word!r}; its special tokens are {', '.join(SPECIAL)}.")
        return self.ids[word]

    def save(self, folder: Path) -> None:
        """Write the two files that `AutoTokenizer` reads."""
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        split = {"type": "Split", "pattern": {"Regex": WORD}, "behavior": "Removed", "invert": True}
        added = [{"id": self.ids[word], "content": word, **flags} for word in SPECIAL]
        tokenizer = {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": split, "post_processor": None, "decoder": None,
            "model": {"type": "WordLevel", "vocab": self.ids, "unk_token": "<unk>"},
        }  # fmt: skip
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "unk_token": "<unk>",
            "eos_token": "<end>", "padding_side": "left", "clean_up_tokenization_spaces": False,
        }  # fmt: skip
        write_json(folder / "tokenizer.json", tokenizer)
        write_json(folder / "tokenizer_config.json", config)

    @classmethod
    def load(cls, folder: Path) -> "Words":
        """The tokenizer that `save` wrote.

        Raises:
            Refusal: where there is none, or it is of another sort.
        """
        model = read_json(folder / "tokenizer.json").get("model", {})
        ids = model.get("vocab") or {}
        if model.get("type") != "WordLevel" or sorted(ids.values()) != list(range(len(ids))):
            raise Refusal(f"{folder} holds no word-level tokenizer.")
        words = sorted(ids, key=ids.__getitem__)
        if tuple(words[: len(SPECIAL)]) != SPECIAL:
            raise Refusal(f"The tokenizer in {folder} does not begin with the tokens {', '.join(SPECIAL)}.")
        return cls(words[len(SPECIAL) :])


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people and machines."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        Refusal: where the file is absent or damaged.
    """
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} cannot be read as JSON ({error}).") from error
    return content
