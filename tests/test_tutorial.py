"""docs/tutorial.md, word for word: every command in its order, on a random little Llama in the place of SmolLM2."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from killick.recipes.fetching import MANIFEST, SOURCES
from llamas import llama_folder

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]

DRIVER = """
import json, sys, time
from killick.cli import main
from killick.report import style
written = style.written
style.written = lambda figure, kind: written(figure, kind) if kind == "svg" else b""
for words in json.load(sys.stdin):
    began = time.process_time()
    print("$", *words, flush=True)
    main(words)
    print(f"# {time.process_time() - began:.1f} CPU s", flush=True)
"""
"""All commands in one process: each would take seconds to import torch and transformers. Pictures are drawn once, for
the page; `test_style.py` writes them for print, which takes three times as long.
"""


def stand_in(cache: Path) -> None:
    """A little model where `killick models get smollm2` would put the real one."""
    folder = llama_folder(cache / "models" / "smollm2", context=256, layers=2)
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    (folder / MANIFEST).write_text(json.dumps({"package": SOURCES["smollm2"].package, "files": sizes}))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which a reader has run every command."""
    place = tmp_path_factory.mktemp("tutorial")
    shutil.copytree(ROOT / "examples", place / "examples")
    stand_in(place / "cache")
    words = [shlex.split(line)[1:] for line in COMMANDS]
    assert {line.split()[0] for line in COMMANDS} == {"killick"}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps(words), text=True, capture_output=True, cwd=place,
        env={**os.environ, "KILLICK_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (place / "said").write_text(done.stdout, encoding="utf-8")
    return place


def test_every_command_runs_and_leaves_what_the_page_promises(place: Path) -> None:
    """Pages, folders that transformers opens, a verdict in words."""
    for page in ("exam", "exam-after", "aligned"):
        assert (place / page / "report.html").stat().st_size > 10_000
    said = (place / "said").read_text(encoding="utf-8")
    assert said.count("VERDICT: ") == 2
    assert "ceiling" in said
    assert (place / "scored.jsonl").read_text(encoding="utf-8").count("\n") > 300
    assert all((place / folder / "winners.jsonl").exists() for folder in ("best", "asked"))
    assert (place / "asked" / "labels.db").exists()


def test_the_files_that_it_leaves_open_in_transformers(place: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    assert AutoModelForSequenceClassification.from_pretrained(place / "judge").config.num_labels == 1
    AutoModelForCausalLM.from_pretrained(place / "aligned" / "policy" / "beta=0.1")


def test_every_page_it_points_to_is_there() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (ROOT / "docs" / target).exists(), target
