"""A refusal is one class under every name, and costs no import of torch."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import killick
from killick import refusal, types
from killick.preferences.files import BadRows
from killick.preferences.rows import BadRow
from killick.recipes.scores.text_score import Unscored


def test_it_is_one_class_under_every_name() -> None:
    assert killick.Refusal is types.Refusal is refusal.Refusal


def test_what_needs_no_tensors_loads_no_torch() -> None:
    """Preference files are read in a fraction of the second that torch takes to load."""
    code = "import sys, killick.preferences.files, killick.preferences.text_pairs; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_commands_on_preference_files_load_no_torch(tmp_path: Path) -> None:
    """`prefs check` and `prefs stats` to their end, as a user gives them."""
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"prompt": "p", "chosen": "x", "rejected": "y"}\n' * 2, encoding="utf-8")
    for word, said in (("check", "0 of 2 rows bad"), ("stats", "rows   ")):
        code = f"import sys; from killick.cli import main; main(['prefs', {word!r}, {str(file)!r}]);"
        code += "sys.exit('torch' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (done.returncode, said in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize(
    "made",
    [
        types.Refusal("It cannot be."),
        Unscored(3, "the function gave nan", name="--reward my:score"),
        BadRows(Path("p.jsonl"), [BadRow(2, "chosen", "is missing")]),
    ],
    ids=lambda made: type(made).__name__,
)
def test_a_process_hears_the_refusal_of_another(made: types.Refusal) -> None:
    """Kinds that are made from more than their sentence too: the sentence stays, and so does what they hold."""
    told = pickle.loads(pickle.dumps(made))
    assert (type(told), str(told), vars(told)) == (type(made), str(made), vars(made))
