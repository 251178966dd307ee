"""`killick models`: the language models that come with killick, and how each is made."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from killick.flags import nearest, settings
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.recipes.ledger import Note

HELP = """usage: killick models list
       killick models make NAME --out DIR

list: the models that come with killick; killick.load(NAME) opens one in Python.
make: train one anew into a folder of its own, which transformers opens too. The same sort of machine and the same torch
      make the bytes that the package holds. brand-head is the reward head of killick run brand at seed 0, as
      reward.safetensors: killick best-of --reward DIR asks it.
"""

ABOUT = """Train a model that comes with killick anew, into a folder that transformers opens too; or the brand's reward
head (brand-head), into a folder that killick best-of --reward DIR opens."""


@dataclass(frozen=True)
class Make:
    """What to make, and where.

    Attributes:
        name: one that `killick models list` shows: tiny-gpt-chat or brand-head.
        out: a folder; what it holds of an earlier model is written over.
    """

    name: Annotated[str, Positional, arg(metavar="NAME")]
    out: Annotated[Path, arg(metavar="DIR")]


def models(given: list[str]) -> None:
    """`killick models list | make`."""
    words = {"list": show, "make": remake}
    if not given or given[0] in ("-h", "--help"):
        print(HELP, end="")
    elif given[0] not in words:
        raise Refusal(f"killick models has no {given[0]!r}{nearest(given[0], list(words))}; see killick models --help.")
    else:
        words[given[0]](given[1:])


def show(given: list[str]) -> None:
    """`killick models list`."""
    from killick.models.chat import SHIPPED, load

    if given:
        raise Refusal(f"killick models list takes nothing; {given[0]!r} is too much.")
    for name, folder in SHIPPED.items():
        model, words = load(name)
        size = sum(parameter.numel() for parameter in model.parameters())
        print(f"{name}: {size / 1e6:.2f} million parameters, {len(words)} tokens, in {folder}")
    print("brand-head: the reward head of killick run brand, made by killick models make brand-head --out DIR")


def remake(given: list[str]) -> None:
    """`killick models make NAME --out DIR`."""
    options = settings("models make", Make, given=given, about=ABOUT)
    import torch

    made = {"tiny-gpt-chat": (train_into, 90), "brand-head": (head_into, 20)}
    if options.name not in made:
        close = nearest(options.name, list(made))
        raise Refusal(f"There is no model {options.name!r}{close}; there are {', '.join(made)}.")
    if options.out.exists() and not options.out.is_dir():
        raise Refusal(f"--out {options.out} is no folder; name another.")
    torch.set_num_threads(1)
    make, seconds = made[options.name]
    print(f"Making {options.name}: about {seconds} CPU seconds.", flush=True)
    for note in make(options.out):
        print(note.text, flush=True)
    print(f"{options.name} is in {options.out}.")


def train_into(folder: Path) -> Iterator["Note"]:
    """Make tiny-gpt-chat and put it into a folder."""
    import torch

    from killick.recipes.tiny_gpt_chat import Config, make

    model = yield from make(Config())
    model.save(folder, dtype=torch.bfloat16)


def head_into(folder: Path) -> Iterator["Note"]:
    """Fit the brand's reward head, or take it from the cache, and put it into a folder."""
    from killick.models.weights import REWARD_FILE
    from killick.recipes.brand_served import save, text_reward

    judge = yield from text_reward()
    folder.mkdir(parents=True, exist_ok=True)
    save(judge.reward, folder / REWARD_FILE, speaks=judge.speaks)
