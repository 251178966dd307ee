"""A tokenizer of whole words for tests: every word of the catalogue, some that copy needs, and marks of its own."""

from killick.types import Vocabulary
from killick.worlds.catalogue import MATERIALS, PRODUCTS, PROMISES

MARKS = ("<pad>", "<end>", "<user>", "<assistant>")
COPY = "Describe the . , The is made of It has and a Warm warm wool for"
WORDS = (*MARKS, *dict.fromkeys(" ".join((*PRODUCTS, *MATERIALS, *PROMISES, COPY)).split()))
PLACE = {word: place for place, word in enumerate(WORDS)}
VOCABULARY = Vocabulary(len(WORDS), time=30, eos=PLACE["<end>"], pad=PLACE["<pad>"], forbidden=(0, 2, 3))


def encode(text: str) -> list[int]:
    """Words, parted by spaces, as their places."""
    return [PLACE[word] for word in text.split()]


def decode(ids: list[int]) -> str:
    """And back."""
    return " ".join(WORDS[place] for place in ids)
