"""A brand's copy: prompts ask for a description of a product, and a reviewer counts the guidelines that it breaks.

The four guidelines: the answer names the product that was asked about; no sentence repeats a word; a material that is
named is one that the catalogue uses for that kind of product; the promise to repair is mentioned. Each is a function
from text to the words that break it, and gold is minus the number of guidelines broken. No model is known here: a
tokenizer comes in as two functions.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from jaxtyping import Float, Int
from torch import Tensor

from killick.types import Prompts, Refusal, Rollout, Vocabulary
from killick.worlds.catalogue import KINDS, MATERIALS, PRODUCTS
from killick.worlds.copywriting import QUESTION
from killick.worlds.wording import Phrases, Words, content, sentences, stem

KIND_NAMES, MATERIAL_NAMES, PRODUCT_NAMES = Phrases(KINDS), Phrases(MATERIALS), Phrases(PRODUCTS)
REPAIR = frozenset(["repair", "repaired", "repairing", "repairable"])


@dataclass(frozen=True)
class Flaw:
    """One guideline broken.

    Args:
        kind: the guideline, by its name in `catalogue.FLAWS`.
        words: what broke it: what stands there and should not, or what should and does not.
        reason: the same as a sentence's end.
    """

    kind: str
    words: Words
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


@dataclass(frozen=True)
class Asked:
    """A product as the reviewer reads it: as it was given, its words, and the catalogue's kind that they end in."""

    name: str
    words: Words
    kind: str


def asked(product: str) -> Asked:
    """Read a product's name: any word or words, then a kind of the catalogue.

    Raises:
        Refusal: where it does not end in a kind, holds nothing else, or is longer than 200 characters.
    """
    words = tuple(chain.from_iterable(sentences(product))) if len(product) <= 200 else ()
    for size in range(KIND_NAMES.longest, 0, -1):
        kind = KIND_NAMES.known.get(words[-size:])
        if kind is not None and len(words) > size:
            return Asked(product, words, kind)
    raise Refusal(f"A product is a name and a kind ({', '.join(KINDS)}), as in {PRODUCTS[0]!r}, not {product[:60]!r}.")


def review(product: str, text: str) -> list[Flaw]:
    """The guidelines that a text about a product breaks, at most one flaw for each of the four.

    Case, accents, width, punctuation and plurals do not matter; any text can be read, an empty one too, in time that
    grows with its length alone.

    Args:
        product: name and kind, as in "Kestrel rain jacket".
        text: the copy.

    Raises:
        Refusal: where the product is of no kind that the catalogue knows.
    """
    product_asked, read = asked(product), sentences(text)
    return [flaw for guideline in GUIDELINES if (flaw := guideline(product_asked, read))]


def unnamed(product: Asked, read: Sequence[Words]) -> Flaw | None:
    """The product is not named: in no sentence do its words stand side by side. Others may be named too."""
    wanted = f" {' '.join(product.words)} "
    if any(wanted in f" {' '.join(words)} " for words in read):
        return None
    others = once(chain.from_iterable(map(PRODUCT_NAMES.find, read)))
    reason = f"{product.name} is not named" + (f", but {', '.join(others)}" if others else "")
    return Flaw("product", others or (product.name,), reason)


def repeated(_: Asked, read: Sequence[Words]) -> Flaw | None:
    """A sentence says a word twice, in whatever number or case.

    Words that count have three letters or more and are no function words (`wording.content`): "a", "the", "with" may
    come again, and so may numbers.
    """
    words = once(chain.from_iterable(map(again, read)))
    return Flaw("repetition", words, f"a sentence repeats {', '.join(words)}") if words else None


def misplaced(product: Asked, read: Sequence[Words]) -> Flaw | None:
    """A material of the catalogue is named that this kind of product is not made of. Other words are no materials."""
    right = KINDS[product.kind].materials
    named = once(chain.from_iterable(map(MATERIAL_NAMES.find, read)))
    wrong = tuple(material for material in named if material not in right)
    return Flaw("material", wrong, f"a {product.kind} is not made of {', '.join(wrong)}") if wrong else None


def unpromised(_: Asked, read: Sequence[Words]) -> Flaw | None:
    """Nothing is said of repair: neither the word nor one made from it."""
    if any(not REPAIR.isdisjoint(words) for words in read):
        return None
    return Flaw("repair", ("repair",), "the promise to repair is not mentioned")


GUIDELINES = (unnamed, repeated, misplaced, unpromised)


def once(words: Iterator[str]) -> Words:
    """Each word once, where it came first."""
    return tuple(dict.fromkeys(words))


def again(words: Words) -> list[str]:
    """The content words of a sentence that it says again, as it spells them first."""
    if len({stem(word) if word[-1] in "ez" else word for word in words}) == len(words):
        return []
    count = Counter(content(words))
    spelled: dict[str, list[str]] = {}
    for word in count:
        spelled.setdefault(stem(word), []).append(word)
    return [same[0] for same in spelled.values() if len(same) > 1 or count[same[0]] > 1]


def question(product: str) -> str:
    """The prompt that asks about a product, as a person would send it."""
    return QUESTION.format(product=product)


def described(prompt: str) -> str:
    """The product that a prompt asks about, if it is spelled as `question` does.

    Raises:
        Refusal: where it asks for something else.
    """
    before, after = QUESTION.split("{product}")
    if not (prompt.startswith(before) and prompt.endswith(after) and len(prompt) > len(before + after)):
        raise Refusal(f"A prompt of this world reads {question(PRODUCTS[0])!r}, not {prompt[:80]!r}.")
    return prompt[len(before) : -len(after)]


def chat(prompt: str) -> str:
    """A prompt as the chat model reads it: what comes next is its answer."""
    return f"<user> {prompt} <assistant>"


class Brand:
    """Prompts about the catalogue's products, and the reviewer as gold.

    Attributes:
        vocabulary: of the model that answers.
        products: what is asked about.
    """

    flaw = "A reward model that has learnt how praised copy sounds cannot know what a product is called or made of."
    best = 0.0

    def __init__(
        self,
        encode: Callable[[str], list[int]],
        decode: Callable[[list[int]], str],
        *,
        vocabulary: Vocabulary,
        products: Sequence[str] = PRODUCTS,
    ):
        """Args:
        encode: text to ids; `<user>` and `<assistant>` are tokens of their own.
        decode: ids to text.
        vocabulary: of the model that answers; its `eos` ends an answer.
        products: what is asked about.
        """
        self.vocabulary, self.products, self.decode = vocabulary, tuple(products), decode
        rows = [encode(chat(question(product))) for product in self.products]
        self.ids, self.mask = padded(rows, vocabulary.pad)
        self.row = {tuple(row): product for row, product in zip(rows, self.products, strict=True)}

    def prompts(self, count: int, generator: torch.Generator) -> Prompts:
        """Products drawn uniformly."""
        drawn = torch.randint(len(self.products), (count,), generator=generator, device=generator.device)
        return self.ids.to(drawn.device)[drawn], self.mask.to(drawn.device)[drawn]

    def everything(self) -> Prompts:
        """One prompt for each product, in their order."""
        return self.ids, self.mask

    def asked(self, rollout: Rollout) -> list[str]:
        """The product that each row asks about.

        Raises:
            Refusal: at a prompt that asks about none of them.
        """
        found = []
        for ids, mask in zip(rollout.prompts.tolist(), rollout.prompt_mask.tolist(), strict=True):
            prompt = tuple(token for token, real in zip(ids, mask, strict=True) if real)
            if prompt not in self.row:
                raise Refusal(f"No product of this world is asked about by the prompt {self.decode(list(prompt))!r}.")
            found.append(self.row[prompt])
        return found

    def texts(self, rollout: Rollout) -> list[str]:
        """Each response as text, without its end token."""
        rows = zip(rollout.responses.tolist(), rollout.lengths.tolist(), rollout.finished.tolist(), strict=True)
        return [self.decode(tokens[: length - ended]) for tokens, length, ended in rows]

    def flaws(self, rollout: Rollout) -> list[list[Flaw]]:
        """What the reviewer finds in each response."""
        return [review(*one) for one in zip(self.asked(rollout), self.texts(rollout), strict=True)]

    def gold(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """Minus the number of flaws: 0 at best, -4 at worst."""
        counts = [-float(len(found)) for found in self.flaws(rollout)]
        return torch.tensor(counts, dtype=torch.float32, device=rollout.responses.device)

    def render(self, rollout: Rollout) -> list[str]:
        """Each response as a person reads it; one that did not end closes with an ellipsis."""
        ended = rollout.finished.tolist()
        return [text + ("" if done else "…") for text, done in zip(self.texts(rollout), ended, strict=True)]


def padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[Int[Tensor, "batch prompt"], Tensor]:
    """Rows of ids side by side, filled up on the left, and where they are real."""
    longest = max(map(len, rows))
    ids = torch.tensor([[pad] * (longest - len(row)) + list(row) for row in rows])
    mask = torch.tensor([[False] * (longest - len(row)) + [True] * len(row) for row in rows])
    return ids, mask
