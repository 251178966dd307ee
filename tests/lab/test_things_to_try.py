"""Every thing to try, done: the README's own diff is made, the exercise is run, and what comes out is what it says.

`pytest -m slow tests/lab -s` prints the figures, for the README.
"""

import json
import re
import shutil
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from exercises import edit, edits, run
from killick.lab.writing import write

pytestmark = pytest.mark.slow


def readme(folder: Path) -> str:
    """What the learner reads."""
    return (folder / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The RLHF exercise with its SFT model."""
    folder = tmp_path_factory.mktemp("labs") / "rlhf"
    write("rlhf", folder)
    assert run(folder, "-c", "import tinylm; tinylm.load_sft()", solved=True).returncode == 0
    return folder


def tried(taught: Path, number: int, *arms: str) -> tuple[str, dict[str, dict[str, float]]]:
    """What a run says after edit `number`, and the mean of each arm's last ten iterations."""
    folder = taught.parent / str(number)
    shutil.copytree(taught, folder)
    edit(folder, edits(readme(folder))[number])
    done = run(folder, "run.py", "--arms", *arms, solved=True)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    ends = {}
    for arm in arms:
        last = [row for row in rows if row["arm"] == arm][-10:]
        columns = ("proxy", "gold", "kl", "beta", "accuracy", "finished")
        ends[arm] = {column: fmean(row[column] for row in last) for column in columns}
        print(number, arm, {column: round(value, 3) for column, value in ends[arm].items()})
    print("\n".join(line for line in done.stdout.splitlines() if re.match("Reward model|Its weights|alpha", line)))
    return done.stdout, ends


def test_adaptive_beta_steers_the_kl_to_its_target(taught: Path) -> None:
    end = tried(taught, 0, "beta=0.1")[1]["beta=0.1"]
    assert end["kl"] == pytest.approx(1, abs=0.4)
    assert end["beta"] > 0.15
    assert end["gold"] > 0.75
    assert end["accuracy"] > 0.2


def test_gold_against_distance_bends_but_not_like_a_cliff(taught: Path) -> None:
    said = tried(taught, 1, "beta=0")[0]
    found = re.search(r"alpha ([-\d.]+), b ([-\d.]+), residual ([-\d.]+)", said)
    assert found
    alpha, b, residual = map(float, found.groups())
    assert 0.2 < alpha < 1.2
    assert 0.2 < b < 1
    assert residual > 0.08


def test_a_reward_model_that_sees_the_end_is_not_hacked_there(taught: Path) -> None:
    end = tried(taught, 2, "beta=0")[1]["beta=0"]
    assert end["gold"] > 0.9
    assert end["finished"] > 0.9
    assert end["accuracy"] < 0.05


@pytest.mark.parametrize("number", [3, 4, 5])
def test_the_amount_of_data_matters_little(taught: Path, number: int) -> None:
    said, ends = tried(taught, number, "beta=0.1")
    found = re.search(r"Reward model: ([\d.]+) of held-out pairs, ceiling ([\d.]+)", said)
    assert found
    assert float(found[1]) > float(found[2]) - 0.06
    assert ends["beta=0.1"]["gold"] > 0.7


def test_without_a_critic_the_story_is_the_same(taught: Path) -> None:
    ends = tried(taught, 6, "beta=0", "beta=0.1")[1]
    assert ends["beta=0"]["gold"] < -0.9
    assert ends["beta=0.1"]["gold"] > 0.7


def hacked(folder: Path, number: int) -> dict[str, Any]:
    """What the hacking exercise finds after edit `number`."""
    write("hacking", folder)
    edit(folder, edits(readme(folder))[number])
    done = run(folder, "run.py", solved=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    found: dict[str, Any] = json.loads((folder / "hacking.json").read_text(encoding="utf-8"))
    return found


def test_little_of_the_right_data_closes_the_blind_spot_and_much_of_the_wrong_does_not(tmp_path: Path) -> None:
    few = hacked(tmp_path / "few", 0)
    assert few["closed"]["gold"] > 0.9
    more = hacked(tmp_path / "more", 1)
    assert more["free"]["gold"] < -4


def test_half_a_point_asks_for_a_longer_leash(tmp_path: Path) -> None:
    assert hacked(tmp_path / "half", 2)["beta"] < 0.55


@pytest.mark.parametrize(("number", "gold", "better"), [(0, 0.7893, "best of 8"), (1, 0.6519, "no best of n")])
def test_the_exact_leash_changes_as_its_readme_says(tmp_path: Path, number: int, gold: float, better: str) -> None:
    write("leash", tmp_path / "leash")
    edit(tmp_path / "leash", edits(readme(tmp_path / "leash"))[number])
    said = run(tmp_path / "leash", "run.py", solved=True).stdout
    assert f"No beta gives more gold than {gold}" in said
    assert better in said
