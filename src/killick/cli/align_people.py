"""People as the gold of `killick align`: what they are asked once a run is finished, and what they have said since."""

import json
import shlex
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from killick.recipes.align.config import Config

STORE = "labels.db"
"""Where people's answers are kept, in the run's folder."""


def ask_people(config: "Config", folder: Path) -> None:
    """Put the saved policy's held-out answers on the labelling page, and tell what people have said so far.

    Args:
        config: the run's; where its gold is not people there is nothing to do.
        folder: of a run that is finished.
    """
    if config.gold != "people":
        return
    from killick.recipes.align.people import questions
    from killick.recipes.scores.people import queue, win_rates
    from killick.rundir.ledger import read_rows

    place = str(folder / STORE)
    asked = questions(config, read_rows(folder / "metrics.jsonl"), samples=read_rows(folder / "samples.jsonl"))
    new = queue(asked, place)
    for rate in win_rates(asked, place):
        print(rate.words())
    print(f"{new} questions are new. People answer them with: killick label --store {shlex.quote(place)}; "
          f"killick report {shlex.quote(str(folder))} tells what they said.")  # fmt: skip


def told_again(folder: Path) -> None:
    """What people have said by now of a run that asked them: the end of `killick report DIR`."""
    from killick.recipes.align.config import Config

    kept = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if (folder / "results.json").exists():
        given = {field.name: kept[field.name] for field in fields(Config)}
        ask_people(Config(**given | {"beta": tuple(given["beta"]), "reward": tuple(given["reward"])}), folder)
