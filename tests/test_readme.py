"""The README's Python runs as printed and shows what it promises."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_draws_and_shows_what_the_readme_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxy up to the end; gold peaks near 3.1 and ends near 1.3 (its text); both colours in the picture."""
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block
    names: dict[str, Any] = {}
    exec(compile(block[1], "README.md", "exec"), names)
    names["pyplot"].close("all")
    distance, proxy, gold = np.array([[float(value) for value in at] for at in names["seen"]]).T
    assert len(distance) == 300
    assert distance[0] == 0 < distance[-1]
    assert proxy[-1] > proxy[0] + 1.5
    assert gold.max() == pytest.approx(3.1, abs=0.1)
    assert gold[-1] == pytest.approx(1.3, abs=0.15)
    pixels = image.imread(tmp_path / "answers.png")[..., :3].reshape(-1, 3)
    for colour in ((31, 119, 180), (255, 127, 14)):  # matplotlib's first two
        assert (np.abs(pixels * 255 - colour).max(1) < 3).sum() > 100


def test_the_example_is_about_ten_lines() -> None:
    """Imports aside."""
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block
    assert len(block[1].split("\n\n")[1].strip().splitlines()) <= 12


def test_every_command_of_the_readme_exists() -> None:
    makefile = (Path(__file__).parent.parent / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
