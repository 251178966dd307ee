"""The command line as a user meets it: help at once, a run folder, and one sentence for whatever cannot be done."""

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from killick import cli
from killick.recipes import RECIPES, answers
from killick.recipes.ledger import Note, Row
from killick.rewards.fit import standardise
from killick.types import Refusal, Rollout

SHORT = [
    "--quick", "--device", "cpu", "--comparisons", "40", "--fit.steps", "5", "--reinforce.iterations", "4",
    "--ppo.iterations", "3",
]  # fmt: skip
COMMON = ["arm", "seed", "step", "proxy", "gold", "kl", "kl_k1", "beta", "entropy", "length", "finished"]


class Said(NamedTuple):
    """What a command left: exit status, and both outputs."""

    status: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def killick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Said:
        status: object = 0
        try:
            cli.main(list(words))
        except SystemExit as stop:
            status = stop.code or 0
        return Said(int(str(status)), *capsys.readouterr())

    return run


def strict(line: str) -> dict[str, Any]:
    """One line of a ledger; NaN and Infinity are no JSON."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    found: dict[str, Any] = json.loads(line, parse_constant=refuse)
    return found


def ledger(folder: Path) -> list[dict[str, Any]]:
    return [strict(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


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
    for flag in cli.flags(load(recipe).Config()):
        assert flag in said.out
    assert {"--out", "--quick", "--betas", "--seed", "--device"} < set(cli.flags(load(recipe).Config()))
    assert not list(tmp_path.iterdir())


# A run


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said, set[str]]:
    """`killick run answers --quick --out DIR` as another process, its output in pipes; what it imported, too."""
    place = tmp_path_factory.mktemp("cli")
    code = (
        "import sys; from killick.cli import main; main(sys.argv[2:]);"
        "open(sys.argv[1], 'w').write(' '.join(sys.modules))"
    )
    words = ["run", "answers", "--quick", "--device", "cpu", "--comparisons", "200", "--out", str(place / "run")]
    command = [sys.executable, "-c", code, str(place / "modules"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return place / "run", Said(done.returncode, done.stdout, done.stderr), set((place / "modules").read_text().split())


def test_a_run_leaves_settings_environment_and_ledger(quick: tuple[Path, Said, set[str]]) -> None:
    """Exit 0, nothing on standard error; strict JSON in every file."""
    folder, said, _ = quick
    assert (said.status, said.err) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "environment.json", "metrics.jsonl"]
    config = strict((folder / "config.json").read_text())
    assert (config["recipe"], config["comparisons"], config["betas"], config["device"]) == (
        "answers",
        200,
        [0.5],
        "cpu",
    )
    assert config["ppo"]["iterations"] == answers.Config().quick().ppo.iterations
    assert set(strict((folder / "environment.json").read_text())["packages"]) >= {"killick", "torch", "numpy"}


def test_the_ledger_has_a_row_for_every_step_sorted_with_the_same_columns(quick: tuple[Path, Said, set[str]]) -> None:
    """Arm by arm, steps from 0; the common columns in front of every row, and one set of columns in each arm."""
    rows = ledger(quick[0])
    steps = answers.Config().quick().ppo.iterations
    assert [(row["arm"], row["step"]) for row in rows] == [
        (arm, step) for arm in ("beta=0.5+reinforce", "beta=0.5+ppo") for step in range(steps)
    ]
    for arm in ("beta=0.5+reinforce", "beta=0.5+ppo"):
        shapes = {tuple(row) for row in rows if row["arm"] == arm}
        assert len(shapes) == 1
        assert list(shapes.pop())[: len(COMMON)] == COMMON


def test_in_a_pipe_there_are_plain_lines_only(quick: tuple[Path, Said, set[str]]) -> None:
    """No carriage return, no escape code; the question first, where the run is, and the arms in words at the end."""
    folder, said, _ = quick
    assert "\r" not in said.out
    assert "\x1b" not in said.out
    lines = said.out.splitlines()
    assert lines[0] == RECIPES["answers"]
    assert lines[1] == f"Run folder: {folder}"
    assert lines[-1] == f"The ledger is {folder / 'metrics.jsonl'}."
    assert lines[-2].startswith("beta=0.5+ppo: the proxy went from ")
    assert lines[-3].startswith("beta=0.5+reinforce: the proxy went from ")
    assert max(map(len, lines)) < 250


def test_a_run_never_imports_torchs_compiler(quick: tuple[Path, Said, set[str]]) -> None:
    """It would cost as much as torch itself, in every worker, and nothing here is compiled."""
    assert "torch" in quick[2]
    assert "torch._dynamo" not in quick[2]


def test_a_run_never_imports_symbolic_algebra(quick: tuple[Path, Said, set[str]]) -> None:
    """sympy comes with the first random number drawn on torch's meta device: two CPU seconds for nothing."""
    assert "sympy" not in quick[2]


def test_flags_reach_the_settings(killick: Command, tmp_path: Path) -> None:
    """Flat and nested ones, several betas; --quick underneath, not on top."""
    said = killick(
        "run", "answers", *SHORT, "--betas", "0", "0.25", "--ppo.clip-range", "0.1", "--seed", "3", "--out", "r"
    )
    assert (said.status, said.err) == (0, "")
    config = strict((tmp_path / "r" / "config.json").read_text())
    assert (config["betas"], config["seed"], config["ppo"]["clip_range"], config["ppo"]["iterations"]) == (
        [0, 0.25],
        3,
        0.1,
        3,
    )
    assert [row["arm"] for row in ledger(tmp_path / "r")][::7] == ["beta=0+reinforce", "beta=0.25+reinforce"]
    assert {row["seed"] for row in ledger(tmp_path / "r")} == {3}


def test_without_out_a_run_gets_a_folder_of_its_own_and_is_listed(killick: Command, tmp_path: Path) -> None:
    """Twice the same command: two folders; before them the list says how to start."""
    assert "start with: killick run" in killick("list").out
    for _ in range(2):
        assert killick("run", "answers", *SHORT).status == 0
    folders = sorted((tmp_path / "runs" / "answers").iterdir())
    assert len(folders) == 2
    said = killick("list")
    assert "2 runs in ./runs" in said.out
    assert all(str(folder.relative_to(tmp_path)) in said.out for folder in folders)
    assert (folders[0] / "metrics.jsonl").read_text() == (folders[1] / "metrics.jsonl").read_text()


# One sentence


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["rum"], ["no command 'rum'", "did you mean run?"]),
        (["lst"], ["did you mean list?"]),
        (["zzz"], ["no command 'zzz'", "see killick --help"]),
        (["run", "aritmetic"], ["no recipe 'aritmetic'", "did you mean arithmetic?"]),
        (["run", "zzz"], ["no recipe 'zzz'", "answers, arithmetic, emphasis"]),
        (["run", "answers", "--beta", "1"], ["no option --beta", "did you mean --betas?"]),
        (["run", "answers", "--ppo.itrations=3"], ["--ppo.itrations", "did you mean --ppo.iterations?"]),
        (["run", "answers", "extra"], ["no option extra"]),
        (["run", "answers", "--seed", "1.5"], ["--seed", "1.5"]),
        (["run", "answers", "--betas", "x"], ["--betas", "x"]),
        (["run", "answers", "--betas"], ["No beta was given"]),
        (["run", "answers", "--betas", "-1"], ["beta must be 0 or more", "-1"]),
        (["run", "answers", "--betas", "nan"], ["beta must be 0 or more", "nan"]),
        (["run", "answers", "--betas", "1", "1"], ["twice"]),
        (["run", "answers", "--seed", "-1"], ["seed must be 0 or more", "-1"]),
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


def test_an_existing_folder_is_refused_and_left_alone(killick: Command, tmp_path: Path) -> None:
    """Whatever is in it."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    said = killick("run", "answers", *SHORT, "--out", "mine")
    assert said == Said(2, "", "killick: mine exists already; name a new folder with --out.\n")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


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
        killick("run", "answers", "--seed", "-1", "--debug")


def poisoned(monkeypatch: pytest.MonkeyPatch, healthy: int) -> None:
    """Give the answers recipe a reward that scores the table once and so many rollouts, then says NaN."""

    class Poisoned(torch.nn.Module):
        def __init__(self, model: torch.nn.Module):
            super().__init__()
            self.model, self.calls = model, 0

        def forward(self, rollout: Rollout) -> torch.Tensor:
            self.calls += 1
            scores: torch.Tensor = self.model(rollout)
            return scores if self.calls <= 1 + healthy else scores * float("nan")

    monkeypatch.setattr(answers, "standardise", lambda *given, **named: Poisoned(standardise(*given, **named)))


def test_scores_that_are_no_numbers_stop_the_run_and_say_where(
    killick: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quantity, its step, its rows and its arm; what came before is in the ledger."""
    poisoned(monkeypatch, healthy=2)
    said = killick("run", "answers", *SHORT, "--out", "r")
    assert said.status == 2
    assert len(said.err.splitlines()) == 1
    for part in ("scores are not finite", "at step 2", "256 of 256 rows", "beta=0.5+reinforce", "r"):
        assert part in said.err
    assert [row["step"] for row in ledger(tmp_path / "r")] == [0, 1]


@pytest.mark.parametrize(("healthy", "arm"), [(0, "beta=0.5+reinforce"), (4, "beta=0.5+ppo")])
def test_the_arm_that_broke_is_named_even_at_its_first_step(
    killick: Command, monkeypatch: pytest.MonkeyPatch, healthy: int, arm: str
) -> None:
    """Step 0 of an arm belongs to it, and not to a time before it or to the arm before; only that arm is named."""
    poisoned(monkeypatch, healthy)
    said = killick("run", "answers", *SHORT, "--out", "r")
    assert said.status == 2
    assert "at step 0" in said.err
    assert f"arm {arm}" in said.err
    assert "or the one after" not in said.err


def test_ctrl_c_stops_at_once_and_says_where_the_ledger_is(
    killick: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 130; the rows so far can be read."""
    whole = answers.run

    def interrupted(config: answers.Config) -> Iterator[Note | Row]:
        for event in whole(config):
            if isinstance(event, dict) and event["step"] == 2:
                raise KeyboardInterrupt
            yield event

    monkeypatch.setattr(answers, "run", interrupted)
    said = killick("run", "answers", *SHORT, "--out", "r")
    assert said.status == 130
    assert "stopped" in said.err
    assert str(Path("r", "metrics.jsonl")) in said.err
    assert "Traceback" not in said.err
    assert [row["step"] for row in ledger(tmp_path / "r")] == [0, 1]


# Words


def test_the_nearest_word_is_offered_only_if_it_is_near() -> None:
    """Edit distance decides."""
    assert cli.nearest("answer", ["answers", "emphasis"]) == " (did you mean answers?)"
    assert cli.nearest("zebra", ["answers", "emphasis"]) == ""


def test_an_arm_is_told_in_one_sentence() -> None:
    """Gold smoothed over five steps, at the edge over what there is: (0, 1, 2, 1, -1) has its best mean, 1, at step 1
    ((0 + 1 + 2 + 1) / 4) and at step 0 ((0 + 1 + 2) / 3): the first wins."""
    rows = [
        {"step": i, "proxy": float(i), "gold": g, "kl": 0.5 * i, "finished": 0.25}
        for i, g in enumerate((0.0, 1.0, 2.0, 1.0, -1.0))
    ]
    assert cli.verdict("beta=0", rows) == (
        "beta=0: the proxy went from +0.00 to +4.00 at a KL of 2.00 nats; gold began at +0.00, was best around step 0 "
        "(+1.00) and ended at -1.00, and 25% of the responses end by themselves."
    )
    for row in rows:
        row["kl"] = row["finished"] = None  # type: ignore[assignment]
    assert cli.verdict("a", rows).endswith(
        "+4.00; gold began at +0.00, was best around step 0 (+1.00) and ended at -1.00."
    )
