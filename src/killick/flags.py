"""From settings to flags, and from flags to settings; what does not parse is one sentence."""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import fields, is_dataclass, make_dataclass
from io import StringIO
from itertools import dropwhile, takewhile
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, TypeVar, cast

Kind = TypeVar("Kind")


def nearest(word: str, known: Sequence[str]) -> str:
    """Words to put behind an unknown one: the nearest that exists, or nothing."""
    close = difflib.get_close_matches(word, known, 1, 0.5)
    return f" (did you mean {close[0]}?)" if close else ""


def taken(words: Sequence[str], flag: str, *, otherwise: str) -> tuple[list[str], str]:
    """The words without a flag and its value, and that value; a flag at the very end has none and stays."""
    if flag not in words[:-1]:
        return list(words), otherwise
    place = words.index(flag)
    return [*words[:place], *words[place + 2 :]], words[place + 1]


def gathered(words: Sequence[str], flag: str) -> list[str]:
    """The words with every value of a flag behind its first: --reward a --reward b is --reward a b.

    A parser would keep the last alone, and say nothing.
    """
    rest: list[str] = []
    values: list[str] = []
    place = None
    for word in words:
        if word == flag or word.startswith(flag + "="):
            place = len(rest) if place is None else place
            values += [word.removeprefix(flag + "=")] if word != flag else []
            inside = word == flag
        elif place is not None and inside and not word.startswith("--"):
            values.append(word)
        else:
            inside = False
            rest.append(word)
    return rest if place is None else [*rest[:place], flag, *values, *rest[place:]]


def parse(name: str, recipe: ModuleType, *, given: list[str]) -> Any:
    """Settings and the run's own flags; most come from the recipe's dataclass.

    Raises:
        ValueError: one sentence for an unknown flag (with the nearest) or a value that does not parse.
    """
    import tyro

    helps = {
        "quick": "the same path, smaller, to see its shape soon",
        "strict": "exit 1 when a claim does not hold",
        "open": "show the report in the browser at the end",
        "out": "run folder: a new one, or one to go on with under the same settings",
        "track": "mirror the ledger there too",
    }

    def flag(word: str) -> Any:
        return Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help=helps[word])]

    options = make_dataclass(
        "Options",
        [
            ("config", Annotated[recipe.Config, tyro.conf.arg(name="")]),
            *((word, flag(word), False) for word in ("quick", "strict", "open")),
            ("out", Annotated[Path | None, tyro.conf.arg(help=helps["out"])], None),
            ("track", Annotated[Literal["tensorboard", "trackio"] | None, tyro.conf.arg(help=helps["track"])], None),
        ],
    )
    base = recipe.Config().quick() if "--quick" in given else recipe.Config()
    return settings(
        f"run {name}", options, given=given, about=recipe.__doc__ or "", default=options(base), known=list(flags(base))
    )


def settings(
    name: str, kind: type[Kind], *, given: Sequence[str], about: str, default: Kind | None = None,
    known: Sequence[str] | None = None,
) -> Kind:  # fmt: skip
    """The settings of a command, from a dataclass: a flag for each field, tyro's `Positional` for what has none.

    Args:
        name: the command's words, as in "best-of".
        kind: the dataclass; its docstring's `Attributes` (or the fields' own) are the help.
        given: the words behind the command's.
        about: what `--help` begins with.
        default: settings to begin from, where the dataclass's own defaults are not meant.
        known: every flag, to look for the nearest; the fields of `kind` where none are named.

    Raises:
        ValueError: one sentence for an unknown flag (with the nearest) or a value that does not parse.
    """
    import tyro

    said = StringIO()
    try:
        with redirect_stderr(said):
            parsed, unknown = tyro.cli(
                kind, prog=f"killick {name}", args=given, default=default, description=about, return_unknown_args=True
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        # tyro draws a box: a title, what is wrong, a ruler, then help. Only what is wrong is wanted.
        lines = [line.strip("│╭╮╰╯─ ") for line in said.getvalue().splitlines()]
        lines = ["" if line.startswith("---") else line for line in lines]
        body = takewhile(bool, dropwhile(lambda line: not line, lines[1:]))
        sentence = " ".join(body).rstrip(".")
        raise ValueError(f"{sentence}; see killick {name} --help.") from stop
    if unknown:
        word = unknown[0].split("=")[0]
        if not word.startswith("-"):
            raise ValueError(f"killick {name} takes no {word!r} there; see --help.")
        there = known or ["--" + field.name.replace("_", "-") for field in fields(kind)]  # type: ignore[arg-type]
        raise ValueError(f"killick {name} has no option {word}{nearest(word, there)}; see --help.")
    return cast(Kind, parsed)


def flags(config: Any, prefix: str = "--") -> Iterator[str]:
    """Every flag that a settings dataclass gives."""
    yield from ("--out", "--quick", "--strict", "--open", "--track") if prefix == "--" else ()
    for field in fields(config):
        name = prefix + field.name.replace("_", "-")
        value = getattr(config, field.name)
        yield from flags(value, name + ".") if is_dataclass(value) else (name,)
