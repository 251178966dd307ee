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
      make the bytes that the package holds.
"""

ABOUT = "Train a model that comes with killick anew, into a folder that transformers opens too."


@dataclass(frozen=True)
class Make:
    """What to make, and where.

    Attributes:
        name: one that `killick models list` shows.
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


def remake(given: list[str]) -> None:
    """`killick models make NAME --out DIR`."""
    options = settings("models make", Make, given=given, about=ABOUT)
    import torch

    from killick.models.chat import SHIPPED

    if options.name not in SHIPPED:
        close = nearest(options.name, list(SHIPPED))
        raise Refusal(f"There is no model {options.name!r}{close}; there are {', '.join(SHIPPED)}.")
    if options.out.exists() and not options.out.is_dir():
        raise Refusal(f"--out {options.out} is no folder; name another.")
    torch.set_num_threads(1)
    print(f"Making {options.name}: about 90 CPU seconds.", flush=True)
    for note in train_into(options.out):
        print(note.text, flush=True)
    print(f"{options.name} is in {options.out}.")


def train_into(folder: Path) -> Iterator["Note"]:
    """Make tiny-gpt-chat and put it into a folder."""
    import torch

    from killick.recipes.tiny_gpt_chat import Config, make

    model = yield from make(Config())
    model.save(folder, dtype=torch.bfloat16)
