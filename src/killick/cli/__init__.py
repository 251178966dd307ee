"""The commands: find the one that is meant and run it. Nothing heavy is imported before a command is known."""

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper

from killick.flags import nearest
from killick.recipes import RECIPES

COMMANDS = {
    "run": ("runs:run", "RECIPE [options]", "run a recipe into a folder of its own and print its ledger"),
    "report": ("runs:report", "DIR [--open]", "redraw the figures and the page of a run, from its folder alone"),
    "compare": ("runs:compare", "DIR DIR", "lay two runs over each other"),
    "label": (
        "labelling:label",
        "FILE | --world W",
        "people say which is better, on a page; annotators, progress, backup",
    ),
    "reward": ("reward:reward", "WORD ...", "reward models: fit to judgements, score texts, examine before optimising"),
    "prefs": ("prefs:prefs", "WORD FILE ...", "preference files: check, convert, stats, split"),
    "best-of": ("best_of:best_of", "[options]", "the best of n answers of your model, or of variants that you have"),
    "align": ("align:align", "[options]", "optimise your own model for a reward on a leash; watch gold and KL"),
    "tilt": ("tilt:tilt", "[--table FILE]", "the exact leash: reward, gold and KL by beta, best-of-n beside it"),
    "serve": ("serving:serve", "[--port N]", "a small server on this machine"),
    "models": (
        "models:models",
        "[list|get|make]",
        "language models: those that come with killick, a real one to fetch",
    ),
    "lab": ("exercises:lab", "[new DIR]", "exercises: functions to fill in, tests that teach, complete loops around"),
    "cache": ("runs:cache", "[clear]", "stages kept from earlier runs (SFT, reward models)"),
    "list": ("runs:show_list", "", "the recipes, and the runs in ./runs"),
}
"""Word -> where its function is (file:function, in this folder), what it takes, what it does."""

PLAIN = {"report", "compare", "cache", "list"}
"""Commands whose line above is all the help there is; the others have their own."""

HELP = """usage: killick COMMAND ...

RLHF from preferences to policy, with the anchor in view: proxy, gold and KL, side by side.

commands (each has --help):
{commands}

recipes:
{recipes}

options:
  --version              print the version
  --debug                show the whole traceback of an error

start with:  killick run arithmetic
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """The `killick` command. Exit 0 when done, 2 with one sentence for what cannot be done, 130 after Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    signal.signal(signal.SIGTERM, interrupt)
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows ASCII only shows the rest as escapes (O-16)
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = [word for word in given if word != "--debug"]
    try:
        command(given)
    except KeyboardInterrupt as stop:
        if debug:
            raise
        print(f"\nkillick: stopped. {stop}".rstrip(), file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read this has seen enough
    except (ValueError, ArithmeticError, OSError) as error:
        if debug:
            raise
        print(f"killick: {error}", file=sys.stderr)
        sys.exit(2)


def interrupt(*_: object) -> None:
    """A polite request to end is Ctrl-C."""
    raise KeyboardInterrupt


def command(given: list[str]) -> None:
    """Find the command and run it."""
    if not given or given[0] in ("-h", "--help", "help"):
        commands = [(f"{name} {takes}".strip(), does) for name, (_, takes, does) in COMMANDS.items()]
        print(HELP.format(commands=listing(commands), recipes=listing(list(RECIPES.items()))), end="")
    elif given[0] == "--version":
        print(f"killick {version('killick')}")
    elif given[0] in PLAIN and given[1:] in (["-h"], ["--help"]):
        _, takes, does = COMMANDS[given[0]]
        print(f"usage: killick {given[0]} {takes}".rstrip() + f"\n\n{does}")
    elif given[0] in COMMANDS:
        file, function = COMMANDS[given[0]][0].split(":")
        getattr(import_module(f"killick.cli.{file}"), function)(given[1:])
    else:
        raise ValueError(f"There is no command {given[0]!r}{nearest(given[0], list(COMMANDS))}; see killick --help.")


def listing(lines: list[tuple[str, str]]) -> str:
    """Words and what they mean, in two columns."""
    return "\n".join(f"  {words:<22} {meaning}" for words, meaning in lines)
