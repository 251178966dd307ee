"""The example notebooks run from their first cell to their last and show what their text says."""

import base64
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    """They would be stale at the first change; a reader makes them in half a minute."""
    for cell in nbformat.read(path, 4).cells:
        assert cell.cell_type == "markdown" or (cell.outputs, cell.execution_count) == ([], None)


@pytest.fixture(scope="module")
def arithmetic(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The outputs of arithmetic.ipynb, run by a kernel of its own in an empty folder."""
    (path,) = (path for path in NOTEBOOKS if path.stem == "arithmetic")
    notebook = nbformat.read(path, 4)
    place = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_arithmetic_page_teaches_what_its_text_says(arithmetic: list[Any]) -> None:
    """Gold of the free arm is -1 at the end; its last answers have no end; the closed form is the hand-computed one."""
    said = "".join(output.text for output in arithmetic if output.output_type == "stream")
    free = next(line for line in said.splitlines() if line.startswith("beta=0: the proxy went"))
    assert "ended at -1.00" in free
    assert "0% of the responses end by themselves" in free
    *_, last = (line for line in said.splitlines() if line.startswith("step "))
    assert last.count("…") == 6
    # 0.2 e^(1/beta) over 0.8 + 0.2 e^(1/beta)
    for beta, second in ((10, "0.216"), (1, "0.405"), (0.5, "0.649"), (0.25, "0.932")):
        assert any(f"beta {beta:5}:" in line and f"and {second} at" in line for line in said.splitlines())


def test_the_arithmetic_page_draws_its_two_figures(arithmetic: list[Any]) -> None:
    pictures = [output.data["image/png"] for output in arithmetic if "image/png" in output.get("data", {})]
    assert len(pictures) == 2
    assert all(base64.b64decode(picture)[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) > 10_000 for picture in pictures)


def test_the_replies_are_what_their_script_makes(tmp_path: Path) -> None:
    """The file beside it, byte for byte."""
    kept = Path(__file__).parent.parent / "examples"
    shutil.copy(kept / "replies.py", tmp_path)
    subprocess.run([sys.executable, tmp_path / "replies.py"], check=True)
    assert (tmp_path / "replies.jsonl").read_bytes() == (kept / "replies.jsonl").read_bytes()
