"""The figures of the brand recipe, from a made-up folder: what each shows, and that it stands only where it can."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from folders import lines, put
from killick.report.brand_figures import makers
from killick.report.drawing import draw
from killick.report.picture import Picture
from killick.report.reading import read_run
from killick.worlds.catalogue import FLAWS

NS = (1, 2, 4, 8, 16)
ARMS = ("beta=0", "beta=0.1", "beta=0.5", "beta=2")


def curve(top: int, seed: int) -> dict[str, Any]:
    """The proxy rises by a point at each doubling; gold rises to `top` and falls beyond it."""
    points = [
        {"n": n, "kl_bound": math.log(n) - (n - 1) / n, "proxy": place + 0.1 * seed,
         "proxy_interval": [place - 0.2, place + 0.2], "gold": -2 + 0.1 * (place if n <= top else -place),
         "gold_interval": [-2.2, -1.6]}
        for place, n in enumerate(NS)
    ]  # fmt: skip
    return {"points": points, "prompts": 72, "top": top, "top_interval": [2, 8], "turns": top < 16}


def rows(arm: str) -> list[dict[str, Any]]:
    """KL grows with the step; the promise comes, wrong materials come too."""
    return [
        {"arm": arm, "seed": 0, "step": step, "proxy": 0.1 * step, "gold": -2.0, "kl": 0.5 * step,
         **dict(zip((f"flaw_{kind}" for kind in FLAWS), (0.4, 0.5, 0.02 * step, 0.5 - 0.02 * step), strict=True))}
        for step in range(20)
    ]  # fmt: skip


def folder(path: Path, *, arms: tuple[str, ...] = ARMS, seeds: int = 1, top: int = 4) -> Path:
    """Write it."""
    path.mkdir(exist_ok=True)
    put(path / "config.json", {"recipe": "brand"})
    stage = {str(seed): {"curves": {"head": curve(top, seed), "reviewer": curve(16, seed)}} for seed in range(seeds)}
    put(path / "stages.json", stage)
    (path / "metrics.jsonl").write_text(lines([row for arm in arms for row in rows(arm)]), encoding="utf-8")
    return path


def made(path: Path) -> dict[str, Picture | None]:
    return {name: make() for name, make in makers(read_run(path)).items()}


def painted(picture: Picture | None) -> Figure:
    assert picture is not None
    figure = Figure(figsize=(3.5, picture.height), layout="constrained")
    picture.paint(figure)
    return figure


def heights(line: Any) -> list[float]:
    """What a line shows."""
    found: list[float] = np.atleast_1d(line.get_ydata()).tolist()
    return found


def test_a_run_has_both_and_one_without_arms_the_first(tmp_path: Path) -> None:
    assert [name for name, each in made(folder(tmp_path / "whole")).items() if each] == [
        "best-of-n", "flaws-against-kl",
    ]  # fmt: skip
    alone = folder(tmp_path / "alone", arms=())
    assert [name for name, each in made(alone).items() if each] == ["best-of-n"]
    put(tmp_path / "alone" / "stages.json", {"0": {"weights": {"1": 0.4}}})
    assert made(tmp_path / "alone") == {}


def test_the_files_are_written(tmp_path: Path) -> None:
    """PDF and PNG, from the folder alone, without a problem."""
    assert draw(folder(tmp_path)) == []
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names >= {f"{name}.{kind}" for name in ("best-of-n", "flaws-against-kl") for kind in ("pdf", "png")}


def test_best_of_n_shows_proxy_and_gold_with_bands_the_bound_and_the_turn(tmp_path: Path) -> None:
    """n = 4 has the bound log 4 - 3/4 = .64; gold is best at 4, and the interval 2 to 8 is shaded."""
    picture = made(folder(tmp_path))["best-of-n"]
    figure = painted(picture)
    above, below = figure.axes
    assert heights(above.lines[0]) == [0, 1, 2, 3, 4]
    assert heights(below.lines[0]) == pytest.approx([-2, -1.9, -1.8, -2.3, -2.4])
    assert below.get_xscale() == "log"
    assert [text.get_text() for text in below.get_xticklabels()] == [
        "1\n0.00", "2\n0.19", "4\n0.64", "8\n1.20", "16\n1.84",
    ]  # fmt: skip
    shade = below.patches[0].get_extents().transformed(below.transData.inverted())
    assert [shade.x0, shade.x1] == pytest.approx([2, 8])
    assert [4.0, 4.0] in [np.atleast_1d(line.get_xdata()).tolist() for line in below.lines]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "kept by the head", "kept by the reviewer", "the head's best n",
    ]  # fmt: skip
    assert picture is not None
    assert "at n = 4 (95 % interval 2 to 8, shaded) and falls again beyond it" in picture.caption


def test_a_curve_that_has_not_turned_says_so_and_other_seeds_are_faint(tmp_path: Path) -> None:
    picture = made(folder(tmp_path, seeds=3, top=16))["best-of-n"]
    assert picture is not None
    assert "has not surely turned by the end of the pool" in picture.caption
    assert "other 2 seeds" in picture.caption
    faint = [line for line in painted(picture).axes[0].lines if line.get_alpha() is not None]
    assert [heights(line)[0] for line in faint] == pytest.approx([0.1, 0.2])


def test_flaws_stand_against_kl_with_a_panel_an_arm(tmp_path: Path) -> None:
    """Smoothed over five steps at the ends over three: KL .5 (the mean of 0, .5 and 1) at first, 9 at last.
    The caption has the first two steps (.02 x 0 and 1) and the last six (14 to 19)."""
    picture = made(folder(tmp_path))["flaws-against-kl"]
    figure = painted(picture)
    assert [axes.get_title() for axes in figure.axes] == list(ARMS)
    (material,) = [line for line in figure.axes[0].lines if line.get_label() == "material"]
    assert (material.get_xdata()[0], material.get_xdata()[-1]) == pytest.approx((0.5, 9.0))  # type: ignore[index]
    assert (material.get_ydata()[0], material.get_ydata()[-1]) == pytest.approx((0.02, 0.36))  # type: ignore[index]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(FLAWS)
    assert picture is not None
    assert "beta=0: product 0.40 to 0.40, repetition 0.50 to 0.50, material 0.01 to 0.33" in picture.caption


def test_one_arm_has_the_width_to_itself_and_three_leave_no_empty_axes(tmp_path: Path) -> None:
    assert len(painted(made(folder(tmp_path / "one", arms=("beta=0",)))["flaws-against-kl"]).axes) == 1
    three = painted(made(folder(tmp_path / "three", arms=ARMS[:3]))["flaws-against-kl"])
    assert [axes.axison for axes in three.axes] == [True, True, True, False]
