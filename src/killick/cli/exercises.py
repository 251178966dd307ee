"""`killick lab`: exercises for a learner."""

import shlex
from pathlib import Path

from killick.flags import nearest, taken


def lab(given: list[str]) -> None:
    """`killick lab new DIR [--lab NAME]`: write an exercise; `killick lab` alone says which there are."""
    from killick.lab.writing import LABS, write

    if not given or given[0] in ("-h", "--help"):
        print("usage: killick lab new DIR [--lab NAME]\n")
        print("Writes an exercise into a new folder: functions to fill in, tests that say what is wrong with them, and")
        print("complete training loops that call them. Begin with the README.md that it holds.\n")
        print("\n".join(f"  {name:<9} {about}" for name, about in LABS.items()))
        print(f"\nWithout --lab it is {next(iter(LABS))}. Start with:  killick lab new my-rlhf")
        return
    words, name = taken(given, "--lab", otherwise=next(iter(LABS)))
    if len(words) != 2 or words[0] != "new" or words[1].startswith("-"):
        raise ValueError("killick lab new takes one new folder, and --lab NAME; killick lab lists the names.")
    if name not in LABS:
        raise ValueError(f"There is no lab {name!r}{nearest(name, list(LABS))}; there are {', '.join(LABS)}.")
    files = write(name, Path(words[1]))
    print(f"{LABS[name]}\n{words[1]} holds {', '.join(files)}.\nNow: cd {shlex.quote(words[1])}, and read README.md.")
