"""The house holds itself to its plan: twins, sizes, the tree in the README, public names, checked shapes."""

import ast
import re
from pathlib import Path

import pytest
import torch

import killick
from killick.lab.writing import LABS
from killick.ops.masked import masked_sum
from mutations import stale

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "killick"
EXERCISES = sorted(SOURCE / "lab" / name for name in LABS)
"""Folders that are data: copied for a learner, never imported, and one line each in the tree."""
CODE = sorted(path for path in SOURCE.rglob("*.py") if path.parent not in EXERCISES)
TOLD = ("cli/__init__.py", "recipes/__init__.py")
"""Files that open a room and do more than name it."""
MODULES = [path for path in CODE if path.name not in ("__init__.py", "__main__.py")]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_has_a_twin_test(module: Path) -> None:
    place = module.relative_to(SOURCE)
    assert (ROOT / "tests" / place.parent / f"test_{place.name}").exists()


@pytest.mark.parametrize("module", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_says_what_it_is(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))


@pytest.mark.parametrize("room", ["src", "tests", "benchmarks"])
def test_no_file_is_longer_than_400_lines(room: str) -> None:
    for path in (ROOT / room).rglob("*.py"):
        assert path.read_text(encoding="utf-8").count("\n") <= 400, path


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_functions_take_at_most_seven_parameters_and_two_by_position(module: Path) -> None:
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            assert len(node.args.args) <= 2, node.name
            assert len(node.args.args) + len(node.args.kwonlyargs) <= 7, node.name
            assert (node.end_lineno or 0) - node.lineno <= 50, node.name


def test_ppo_is_under_250_lines() -> None:
    assert (SOURCE / "algorithms" / "ppo.py").read_text(encoding="utf-8").count("\n") < 250


def test_the_tree_in_the_readme_is_the_disk() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```\nsrc/killick/\n(.*?)```", readme, re.DOTALL)
    assert block, "README.md has no tree that begins with src/killick/"
    shown, folders = set(), {2: ""}
    for line in block[1].splitlines():
        found = re.match(r"( +)([\w/.]+)\s+(\S.*)$", line)
        assert found, f"a line of the tree without a purpose: {line!r}"
        name = folders[len(found[1])] + found[2]
        folders[len(found[1]) + 2] = name
        shown.add(name)
    shown -= {name for name in shown if any(other.startswith(name) for other in shown - {name})}
    disk = {str(path.relative_to(SOURCE)) for path in CODE} | {f"{path.relative_to(SOURCE)}/" for path in EXERCISES}
    rooms = {name for name in disk if name.endswith("/__init__.py") and name not in TOLD}
    assert shown == disk - rooms


def test_public_names_are_sorted_and_complete() -> None:
    assert list(killick._HOMES) == sorted(killick._HOMES) == killick.__all__
    for name in killick.__all__:
        assert getattr(killick, name).__module__ == f"killick.{killick._HOMES[name]}"
    # What a user builds with: every class of the rooms and every loop, but for what they hand each other.
    private = {
        "Answer", "Asked", "Block", "Cache", "Collected", "Encoded", "FitStep", "FlawRates", "KeyValues", "Kind",
        "Layer", "Leashed", "Letters", "Phrases", "Question", "Reach", "RewardModel", "Rows", "SFTStep", "Stack",
        "Targets",
    }  # fmt: skip
    private |= {"Block", "Cache", "Collected", "FitStep", "Leashed", "RewardModel", "Rows", "SFTStep", "Targets"}
    private |= {"BadField", "FormSpec", "Scanned", "Split", "Strict", "Summary", "Written"}
    private |= {"PooledStates", "Scale", "resampled"}
    private |= {"csv_records", "json_records", "lines", "parquet_records", "picked", "records", "replacing"}
    for room in ("algorithms", "models", "preferences", "rewards", "worlds"):
        for path in (SOURCE / room).glob("*.py"):
            if path.stem.startswith("store"):  # needs an extra: from killick.preferences.store import Store
                continue
            names = {
                node.name
                for node in ast.parse(path.read_text(encoding="utf-8")).body
                if isinstance(node, ast.ClassDef)
                or (isinstance(node, ast.FunctionDef) and "Iterator" in ast.unparse(node.returns or ast.Constant("")))
            }
            assert names - private - {"evaluating", "quietly"} <= set(killick.__all__), path


def test_nothing_names_where_it_was_made() -> None:
    banned = re.compile(r"/work/|/root/|farm-|pypi\.org|pytorch\.org")
    for path in [*ROOT.glob("[!.]*"), *SOURCE.rglob("*.*"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".ci").iterdir()]:
        if path.is_file() and path.suffix in ("", ".py", ".md", ".toml", ".txt") and not path.name.startswith(".git"):
            assert not banned.search(path.read_text(encoding="utf-8")), path


def test_a_wrong_shape_is_caught_while_tests_run() -> None:
    with pytest.raises(Exception, match="mask"):
        masked_sum(torch.zeros(2, 3), torch.ones(2, 4, dtype=torch.bool))


def test_every_planted_fault_still_has_its_place_in_the_source() -> None:
    assert stale() == []
