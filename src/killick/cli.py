"""The commands: parse, run the recipe, keep its folder. Nothing heavy is imported before a command is known."""

import difflib
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, fields, is_dataclass, make_dataclass, replace
from importlib.metadata import version
from io import StringIO
from itertools import dropwhile, takewhile
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Annotated, Any

from killick.recipes import RECIPES

HELP = """usage: killick COMMAND ...

RLHF from preferences to policy, with the anchor in view: proxy, gold and KL, side by side.

commands:
  run RECIPE [options]   run a recipe into a folder of its own and print its ledger
  run RECIPE --help      what the recipe asks, and every setting it has
  list                   the recipes, and the runs in ./runs

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


def command(given: list[str]) -> None:
    """Find the command and run it."""
    if not given or given[0] in ("-h", "--help", "help"):
        print(HELP.format(recipes="\n".join(f"  {name:<22} {question}" for name, question in RECIPES.items())), end="")
    elif given[0] == "--version":
        print(f"killick {version('killick')}")
    elif given[0] == "list":
        show_list()
    elif given[0] == "run":
        run(given[1:])
    else:
        raise ValueError(f"There is no command {given[0]!r}{nearest(given[0], ['run', 'list'])}; see killick --help.")


def nearest(word: str, known: Sequence[str]) -> str:
    """Words to put behind an unknown one: the nearest that exists, or nothing."""
    close = difflib.get_close_matches(word, known, 1, 0.5)
    return f" (did you mean {close[0]}?)" if close else ""


def show_list() -> None:
    """Recipes with their questions, then past runs."""
    for name, question in RECIPES.items():
        print(f"{name:<12} {question}")
    runs = sorted(Path("runs").glob("*/*/config.json"))
    print(f"\n{len(runs)} runs in ./runs" + (":" if runs else "; start with: killick run arithmetic"))
    for path in runs:
        print(f"  {path.parent}")


def run(given: list[str]) -> None:
    """`killick run RECIPE`: validate, open a folder, write each row as it comes."""
    if not given or given[0] in ("-h", "--help"):
        print("usage: killick run RECIPE [options]\n")
        show_list()
        return
    name = given[0]
    if name not in RECIPES:
        raise ValueError(f"There is no recipe {name!r}{nearest(name, list(RECIPES))}; there are {', '.join(RECIPES)}.")
    import torch

    from killick.recipes import load
    from killick.recipes.settings import find_device
    from killick.rundir import Run, new_folder
    from killick.types import Refusal

    torch.set_num_threads(1)
    recipe = load(name)
    config, out = parse(name, recipe, given=given[1:])
    config.validate()
    config = replace(config, device=find_device(config.device))
    settings, kept = asdict(config), []
    with Run(out or new_folder(name, settings), name, config=settings) as folder:
        print(f"{RECIPES[name]}\nRun folder: {folder.folder}")
        print(f"About {recipe.seconds(config):.0f} s on one core.", flush=True)
        ledger = folder.folder / "metrics.jsonl"
        try:
            for row in narrate(recipe, config):
                folder.log(row)
                kept.append(row)
        except KeyboardInterrupt as stop:
            again = f"killick run {' '.join(given)}"
            raise KeyboardInterrupt(f"The ledger so far is {ledger}. To start anew: {again}") from stop
        except ArithmeticError as error:
            raise ArithmeticError(f"{error} The ledger so far is {ledger}.") from error
        except Refusal:
            if not kept:
                shutil.rmtree(folder.folder)
            raise
    print()
    for arm in dict.fromkeys(row["arm"] for row in kept):
        print(verdict(arm, [row for row in kept if row["arm"] == arm]))
    print(f"The ledger is {ledger}.")


def parse(name: str, recipe: ModuleType, *, given: list[str]) -> tuple[Any, Path | None]:
    """Settings and --out from flags; the flags come from the recipe's dataclass.

    Raises:
        ValueError: one sentence for an unknown flag (with the nearest) or a value that does not parse.
    """
    import tyro

    help_quick, help_out = "the same path, smaller, in under a minute", "run folder; must not exist"
    options = make_dataclass(
        "Options",
        [
            ("config", Annotated[recipe.Config, tyro.conf.arg(name="")]),
            ("quick", Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help=help_quick)], False),
            ("out", Annotated[Path | None, tyro.conf.arg(help=help_out)], None),
        ],
    )
    base = recipe.Config().quick() if "--quick" in given else recipe.Config()
    said = StringIO()
    try:
        with redirect_stderr(said):
            parsed, unknown = tyro.cli(
                options, prog=f"killick run {name}", args=given, default=options(base), description=recipe.__doc__,
                return_unknown_args=True,
            )  # fmt: skip
    except SystemExit as stop:
        if not stop.code:
            raise
        # tyro draws a box: a title, what is wrong, a ruler, then help. Only what is wrong is wanted.
        lines = [line.strip("│╭╮╰╯─- ") for line in said.getvalue().splitlines()]
        body = takewhile(bool, dropwhile(lambda line: not line, lines[1:]))
        sentence = " ".join(body).rstrip(".")
        raise ValueError(f"{sentence}; see killick run {name} --help.") from stop
    if unknown:
        flag = unknown[0].split("=")[0]
        raise ValueError(f"killick run {name} has no option {flag}{nearest(flag, list(flags(base)))}; see --help.")
    return parsed.config, parsed.out


def flags(config: Any, prefix: str = "--") -> Iterator[str]:
    """Every flag that a settings dataclass gives."""
    yield from ("--out", "--quick") if prefix == "--" else ()
    for field in fields(config):
        name = prefix + field.name.replace("_", "-")
        value = getattr(config, field.name)
        yield from flags(value, name + ".") if is_dataclass(value) else (name,)


def narrate(recipe: ModuleType, config: Any) -> Iterator[dict[str, Any]]:
    """Pass the rows on, printing notes, every tenth row, and the time left."""
    total, done, began = recipe.rows(config), 0, None
    columns = ("arm", "step", "proxy", "gold", "kl", "entropy", "length", "finished", "left")
    for event in recipe.run(config):
        if not isinstance(event, dict):
            print(event.text, flush=True)
            continue
        if began is None:
            began = time.monotonic()
            print("  ".join(f"{column:>18}" if column == "arm" else f"{column:>8}" for column in columns))
        left = f"{(time.monotonic() - began) / done * (total - done):.0f} s" if done else "-"
        done += 1
        if event["step"] % 10 == 0 or done == total:
            shown = [f"{event['arm']:>18}", f"{event['step']:>8}"]
            shown += [f"{'-' if event[c] is None else format(event[c], '.3f'):>8}" for c in columns[2:-1]]
            print("  ".join([*shown, f"{left:>8}"]), flush=True)
        yield event


def verdict(arm: str, rows: list[dict[str, Any]]) -> str:
    """One arm in one sentence: the three numbers, and where gold (smoothed over five steps) was at its best."""
    gold = [row["gold"] for row in rows]
    smooth = [fmean(gold[max(0, i - 2) : i + 3]) for i in range(len(gold))]
    best = max(range(len(rows)), key=smooth.__getitem__)
    last = rows[-1]
    kl = "" if last["kl"] is None else f" at a KL of {last['kl']:.2f} nats"
    ended = "" if last["finished"] is None else f", and {last['finished']:.0%} of the responses end by themselves"
    return (
        f"{arm}: the proxy went from {rows[0]['proxy']:+.2f} to {last['proxy']:+.2f}{kl}; gold began at "
        f"{gold[0]:+.2f}, was best around step {rows[best]['step']} ({smooth[best]:+.2f}) and ended at "
        f"{gold[-1]:+.2f}{ended}."
    )
