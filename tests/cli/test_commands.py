"""The command line as a user meets it: help at once, and one sentence for whatever cannot be done."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from commands import SHORT, Command, command
from killick.flags import flags
from killick.recipes import RECIPES
from killick.types import Refusal

killick = pytest.fixture(command)


# Help


def test_help_comes_at_once_and_without_torch() -> None:
    """Well under a second of CPU time, the interpreter's start included; every recipe with its question."""
    code = (
        "import sys; from killick.cli import main; main(['--help']);"
        "sys.exit('torch' in sys.modules or 'tyro' in sys.modules)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
    for name, question in RECIPES.items():
        assert f"{name}" in done.stdout
        assert question in done.stdout
    assert done.stdout.startswith("usage: killick COMMAND")
    assert done.stderr == ""


def test_the_module_is_the_command() -> None:
    """`python -m killick --version`."""
    done = subprocess.run([sys.executable, "-m", "killick", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("killick 0.")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("words", [(), ("-h",), ("--help",), ("help",)])
def test_help_has_many_names(killick: Command, words: tuple[str, ...]) -> None:
    """No command is a call for help, not a fault."""
    said = killick(*words)
    assert said.status == 0
    assert "run RECIPE" in said.out
    assert said.err == ""


@pytest.mark.parametrize("words", [("run",), ("run", "--help"), ("run", "-h")])
def test_run_without_a_recipe_lists_them(killick: Command, words: tuple[str, ...]) -> None:
    """With their questions."""
    said = killick(*words)
    assert said.status == 0
    assert all(name in said.out and question in said.out for name, question in RECIPES.items())


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipes_help_shows_every_setting_it_has(killick: Command, tmp_path: Path, recipe: str) -> None:
    """And starts no run."""
    from killick.recipes import load

    said = killick("run", recipe, "--help")
    assert said.status == 0
    for flag in flags(load(recipe).Config()):
        assert flag in said.out
    assert {"--out", "--quick", "--strict", "--open", "--betas", "--seeds", "--device", "--workers"} < set(
        flags(load(recipe).Config())
    )
    assert not list(tmp_path.iterdir())


# One sentence


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["rum"], ["no command 'rum'", "did you mean run?"]),
        (["lst"], ["did you mean list?"]),
        (["zzz"], ["no command 'zzz'", "see killick --help"]),
        (["run", "aritmetic"], ["no recipe 'aritmetic'", "did you mean arithmetic?"]),
        (["run", "zzz"], ["no recipe 'zzz'", "answers, arithmetic, brand, emphasis"]),
        (["run", "answers", "--beta", "1"], ["no option --beta", "did you mean --betas?"]),
        (["run", "answers", "--ppo.itrations=3"], ["--ppo.itrations", "did you mean --ppo.iterations?"]),
        (["run", "answers", "extra"], ["takes no 'extra'", "--help"]),
        (["run", "answers", "--seeds", "1.5"], ["--seeds", "1.5"]),
        (["run", "answers", "--betas", "x"], ["--betas", "x"]),
        (["run", "answers", "--betas"], ["No beta was given"]),
        (["run", "answers", "--betas", "-1"], ["beta must be 0 or more", "-1"]),
        (["run", "answers", "--betas", "nan"], ["beta must be 0 or more", "nan"]),
        (["run", "answers", "--betas", "1", "1"], ["twice"]),
        (["run", "answers", "--seeds", "-1"], ["seed must be 0 or more", "-1"]),
        (["run", "answers", "--seeds", "3", "3"], ["--seeds", "3 3"]),
        (["run", "answers", "--seeds"], ["--seeds needs at least one seed"]),
        (["run", "answers", "--workers", "two"], ["--workers", "two"]),
        (["run", "answers", "--track", "paper"], ["--track", "paper", "tensorboard"]),
        (["report"], ["takes one run folder"]),
        (["report", "a", "b"], ["takes one run folder"]),
        (["report", "nowhere"], ["nowhere is no run folder", "killick list"]),
        (["report", "a", "--opne"], ["takes one run folder", "--open"]),
        (["compare", "a"], ["takes two run folders"]),
        (["compare", "nowhere", "here"], ["nowhere is no run folder"]),
        (["cache", "claer"], ["'claer' is neither"]),
        (["run", "answers", "--ppo.level", "word"], ["--ppo.level", "word", "token", "sequence"]),
        (["run", "answers", "--ppo.learning-rate", "0"], ["learning_rate"]),
        (["run", "answers", "--device", "tpu"], ["--device", "tpu"]),
        (["run", "answers", "--out"], ["--out"]),
        (["run", "arithmetic", "--k", "1"], ["--k", "at least 2"]),
        (["run", "arithmetic", "--network.context", "5"], ["context of 5"]),
        (["run", "emphasis", "--noise", "0"], ["--noise"]),
        (["run", "emphasis", "--network.norm", "batch"], ["--network.norm", "batch"]),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_no_folder(
    killick: Command, tmp_path: Path, words: list[str], parts: list[str]
) -> None:
    """Exit 2, one line on standard error that says what was given, no traceback."""
    said = killick(*words)
    assert said.status == 2
    assert said.err.startswith("killick: ")
    assert said.err.endswith("\n")
    assert len(said.err.splitlines()) == 1
    assert "Traceback" not in said.err
    for part in parts:
        assert part in said.err
    assert not list(tmp_path.iterdir())


def test_a_seed_that_torch_cannot_hold_is_refused_before_there_is_a_folder(killick: Command, tmp_path: Path) -> None:
    """10^20 does not fit into 64 bits."""
    said = killick("run", "answers", *SHORT, "--reward-seed", str(10**20))
    assert said.status == 2
    assert "seed" in said.err
    assert not list(tmp_path.iterdir())


def test_a_sentence_is_not_said_twice(killick: Command) -> None:
    """Of a value that is none of the choices, and of a value that is missing: one help line, no doubled
    words, no ruler of the parser's box."""
    for words in (("--ppo.level", "word"), ("--out",)):
        said = killick("run", "answers", *words)
        assert said.err.count("--help") == 1
        assert "----" not in said.err
        assert "Invalid choice invalid choice" not in said.err
        assert "Missing argument Missing" not in said.err


def test_debug_shows_the_whole_traceback(killick: Command) -> None:
    """The error itself comes through, wherever the flag stands."""
    for words in (("--debug", "run", "zzz"), ("run", "zzz", "--debug")):
        with pytest.raises(ValueError, match="no recipe 'zzz'"):
            killick(*words)
    with pytest.raises(Refusal, match="seed"):
        killick("run", "answers", "--seeds", "-1", "--debug")
