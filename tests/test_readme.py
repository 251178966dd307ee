"""The README's Python runs as printed and shows what it promises."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_and_the_optimiser_gets_what_it_sees(capsys: pytest.CaptureFixture[str]) -> None:
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block
    exec(compile(block[1], "README.md", "exec"), {})
    numbers = [[float(x) for x in re.findall(r"-?\d+\.\d+", line)] for line in capsys.readouterr().out.splitlines()]
    assert len(numbers) == 100
    (first_proxy, _, first_kl), (last_proxy, _, last_kl) = numbers[0], numbers[-1]
    assert last_proxy > first_proxy + 0.5
    assert first_kl == 0 < last_kl


def test_every_command_of_the_readme_exists() -> None:
    makefile = (Path(__file__).parent.parent / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
