"""`killick reward`: reward models, from judgements to numbers."""

from importlib import import_module

from killick.flags import nearest
from killick.refusal import Refusal

COMMANDS = {"fit": "reward_fit:fit", "score": "reward_score:score", "exam": "reward_exam:exam"}
"""Word -> where its function is (file:function, in this folder)."""
HELP = """usage: killick reward COMMAND ...

Reward models: learned from what people preferred, asked for numbers.

commands (each has --help):
  fit PREFS --model DIR --out DIR     from a preference file and your own language model
  fit --from-store DB --model DIR     the same from the labels of a store
  fit --from-store DB --world W       a world's own reward model from them
  score DIR ... FILE                  what one or several give each text of a file
  exam DIR PREFS --policy DIR         may one optimise against it, and how far?

start with:  killick reward fit prefs.jsonl --model my-model --out rm
then:        killick reward score rm answers.jsonl
"""


def reward(given: list[str]) -> None:
    """`killick reward`: find the command that is meant."""
    if not given or given[0] in ("-h", "--help"):
        print(HELP, end="")
    elif given[0] in COMMANDS:
        file, function = COMMANDS[given[0]].split(":")
        getattr(import_module(f"killick.cli.{file}"), function)(given[1:])
    else:
        raise Refusal(f"killick reward has no command {given[0]!r}{nearest(given[0], list(COMMANDS))}; see --help.")
