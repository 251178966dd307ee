"""`killick align`: optimise a person's own model for a reward, on a leash, with gold and KL beside it."""

import os
import shlex
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from killick.flags import gathered, settings

if TYPE_CHECKING:
    from killick.recipes.align.config import Config

ABOUT = """Optimise your own language model for a reward by PPO, and watch proxy, gold and KL together.

  killick align --model DIR --reward DIR --prompts prompts.jsonl --beta 0.1 --out DIR
  killick align ... --beta 0 0.1               two arms side by side: off the leash and on it
  killick align ... --target-kl 10             steer beta so that the policy ends 10 nats away
  killick align ... --reward DIR my:length     several rewards are added up; 0.5*DIR weighs one
  killick align ... --gold vader               what people want, watched and never optimised for

Some prompts are held out by their text; every few steps the policy is asked them, beside the reference. The run is a
folder with a ledger, figures, report.html and the policy as an ordinary model folder. Stopped or killed at any moment,
the same command with --out DIR goes on to the same bytes. docs/align.md says what to look at."""


def align(given: list[str]) -> None:
    """`killick align`: validate, say what it will cost, run the arms, draw the report."""
    import torch

    from killick.cli.align_people import ask_people
    from killick.cli.runs import finish, work
    from killick.recipes.align import recipe
    from killick.recipes.align.config import Config
    from killick.recipes.align.start import contents, measured, resolved
    from killick.recipes.fetching import found
    from killick.rundir.folder import RunFolder

    torch.set_num_threads(1)
    options: Any = settings(
        "align", command(Config), given=gathered(given, "--reward"), about=ABOUT, known=known(Config)
    )
    config = resolved(replace(options.config, model=str(found(options.config.model))))
    out: Path | None = options.out
    begun = out is not None and (out / "config.json").exists()
    workers = config.workers or os.cpu_count() or 1
    cost = None
    if not begun:  # before a folder is made: what cannot run leaves none
        print("Measuring one short step ...", flush=True)
        cost = measured(config).words(min(workers, len(config.leashes())))
    with closing(RunFolder(out, "align", {**asdict(config), "content": contents(config)})) as folder:
        print(f"Run folder: {folder.path}", flush=True)
        if folder.finished:
            print("This run is finished; it is drawn again.")
        else:
            again = f"killick align {shlex.join(word for word in given if word != '--open')}"
            again += "" if out else f" --out {shlex.quote(str(folder.path))}"
            work(recipe, config, folder=folder, name="align", again=again, track=options.track, cost=cost)
        finish(folder.path, show=options.open)
        ask_people(config, folder.path)
    for arm in config.leashes():
        print(f"The policy of {arm} is {recipe.policy_folder(config, arm, folder=folder.path)}.")


def known(kind: "type[Config]") -> list[str]:
    """Every flag, for the nearest to one that is none."""
    return ["--out", "--open", "--track", *("--" + field.name.replace("_", "-") for field in fields(kind))]


def command(kind: "type[Config]") -> type:
    """The recipe's settings, with the run's own flags beside them."""

    @dataclass(frozen=True)
    class Align:
        config: Annotated[kind, tyro.conf.arg(name="")]  # type: ignore[valid-type]
        out: Annotated[Path | None, tyro.conf.arg(help="run folder: a new one, or one to go on with")] = None
        open: Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help="show the report at the end")] = False
        track: Annotated[
            Literal["tensorboard", "trackio"] | None, tyro.conf.arg(help="mirror the ledger there too")
        ] = None

    return Align
