"""The figures of the emphasis recipe, from a made-up folder: what each shows, and that it stands only where it can."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from folders import lines, put
from killick.report.drawing import draw
from killick.report.emphasis_figures import makers
from killick.report.picture import Picture
from killick.report.reading import read_run

SIZES = ("250", "500", "1000", "2000", "4000")
FIGURES = ["fig1_reward_model", "fig2_reward_hacking", "fig3_kl_anchor", "fig4_families"]


def stage(seed: int, families: tuple[str, ...]) -> dict[str, Any]:
    """What a seed found: scores c + seed / 10 for the first family, less for each further one."""
    return {
        "base_gold": 0.38, "beyond": 0.001, "reward_ceiling": 0.86, "reward_pairs": 4000, "gold_deviation": 0.4,
        "gold_by_count": [0.3 + 0.3 * min(c, 3) - 0.55 * max(c - 3, 0) for c in range(13)],
        "coverage": [0.83, 0.53, 0.16, 0.018, 0.002, 0.001, *[0.0] * 7],
        "accuracy_by_pairs": {size: 0.82 + 0.01 * place + 0.002 * seed for place, size in enumerate(SIZES)},
        "families": {
            name: {"accuracy": 0.86, "score_by_count": [(c + 0.1 * seed) / (1 + place) for c in range(13)]}
            for place, name in enumerate(families)
        },
    }  # fmt: skip


def rows(arm: str, seed: int) -> list[dict[str, Any]]:
    """Without a leash KL goes to 38 and gold falls from step 20; half has left the data from step 25."""
    free = arm.startswith("beta=0") and "." not in arm
    return [
        {"arm": arm, "seed": seed, "step": step, "proxy": 0.2 * step + 0.1 * seed, "kl": step if free else 1.0,
         "gold": 0.4 + 0.03 * step - 0.2 * max(0, step - 20) * free, "emphasis": min(12.0, 0.3 * step),
         "beyond": float(step > 24) if free else 0.0}
        for step in range(40)
    ]  # fmt: skip


def folder(
    path: Path, *, arms: tuple[str, ...] = ("beta=0", "beta=0.5", "beta=2"), seeds: tuple[int, ...] = (0, 1),
    shapes: tuple[str, ...] = ("source",), families: tuple[str, ...] = ("relu",),
) -> Path:  # fmt: skip
    """Write it."""
    path.mkdir(exist_ok=True)
    put(path / "config.json", {"recipe": "emphasis"})
    put(path / "stages.json", {str(seed): {shape: stage(seed, families) for shape in shapes} for seed in seeds})
    ledger = [row for arm in sorted(arms) for seed in seeds for row in rows(arm, seed)]
    (path / "metrics.jsonl").write_text(lines(ledger), encoding="utf-8")
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


def words(figure: Figure) -> list[str]:
    """Of the legend below."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_run_has_three_and_a_fourth_where_there_is_something_to_compare(tmp_path: Path) -> None:
    plain = made(folder(tmp_path / "plain"))
    assert list(plain) == FIGURES
    assert [name for name, picture in plain.items() if picture] == FIGURES[:3]
    wide = made(folder(tmp_path / "wide", arms=("beta=0", "beta=0+tanh"), families=("relu", "tanh")))
    assert [name for name, picture in wide.items() if picture] == FIGURES
    put(tmp_path / "plain" / "stages.json", {"0": {"weights": {"1": 0.4}}})
    assert made(tmp_path / "plain") == {}


def test_the_files_are_written_under_the_sources_names(tmp_path: Path) -> None:
    """PDF and PNG, from the folder alone, without a problem."""
    assert draw(folder(tmp_path)) == []
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names >= {f"{name}.{kind}" for name in FIGURES[:3] for kind in ("pdf", "png")}


def test_accuracy_stands_over_the_sizes_with_the_guess_and_scores_over_the_counts(tmp_path: Path) -> None:
    """Means of two seeds: .82 + .001 after 250 pairs; a random guess at .5, the ceiling at .86; the score at c is
    c + .05 on one axis, gold on another; 0 to 3 shaded and named."""
    picture = made(folder(tmp_path))["fig1_reward_model"]
    figure = painted(picture)
    above, below, other = figure.axes
    assert above.get_xscale() == "log"
    assert [text.get_text() for text in above.get_xticklabels()] == ["250", "500", "1,000", "2,000", "4,000"]
    curve, top, guess = above.lines
    assert heights(curve)[0] == pytest.approx(0.821)
    assert [heights(top)[0], heights(guess)[0]] == pytest.approx([0.86, 0.5])
    assert heights(below.lines[0]) == pytest.approx([c + 0.05 for c in range(13)])
    assert heights(other.lines[0])[12] == pytest.approx(0.3 + 0.9 - 0.55 * 9)
    assert below.texts[0].get_text() == "where the\ndata are"
    shade = below.patches[0].get_extents().transformed(below.transData.inverted())
    assert [shade.x0, shade.x1] == pytest.approx([-0.4, 3.4])
    assert words(figure) == ["reward model's score", "gold"]
    assert picture is not None
    assert "12.05 deviations at 12 emphasis tokens" in picture.caption
    assert "over 2 seeds" in picture.caption


def test_proxy_and_gold_have_an_axis_each_and_a_band_where_there_are_seeds(tmp_path: Path) -> None:
    figure = painted(made(folder(tmp_path / "two"))["fig2_reward_hacking"])
    axes, other = figure.axes
    assert heights(axes.lines[0])[-1] == pytest.approx(0.2 * 39 + 0.05)
    assert heights(other.lines[0])[-1] == pytest.approx(0.4 + 0.03 * 39 - 0.2 * 19)
    assert len(axes.collections) == len(other.collections) == 1
    alone = made(folder(tmp_path / "one", seeds=(0,)))["fig2_reward_hacking"]
    assert [len(axes.collections) for axes in painted(alone).axes] == [0, 0]
    assert made(folder(tmp_path / "held", arms=("beta=2",)))["fig2_reward_hacking"] is None


def test_the_anchor_has_a_line_a_leash_and_the_sft_policy_dashed(tmp_path: Path) -> None:
    """Arms of other families stay out; a close look stands inside where one arm falls far below the others."""
    path = folder(tmp_path, arms=("beta=0", "beta=0.5", "beta=2", "beta=0+tanh"), families=("relu", "tanh"))
    figure = painted(made(path)["fig3_kl_anchor"])
    assert words(figure) == ["beta=0", "beta=0.5", "beta=2", "SFT policy"]
    (line,) = [line for line in figure.axes[0].lines if line.get_label() == "SFT policy"]
    assert heights(line)[0] == pytest.approx(0.38)


def test_families_show_coverage_scores_and_gold_against_kl_with_a_cross_where_the_data_are_left(tmp_path: Path) -> None:
    """The cross of beta=0 at KL 25, the first step at which half is beyond; llama's lines are dotted; gold of zero
    emphasis is (.3 - .38) / .4 of a deviation."""
    arms = ("beta=0", "beta=0+llama", "beta=0+tanh", "beta=0.5")
    path = folder(tmp_path, arms=arms, families=("relu", "tanh"), shapes=("source", "llama"))
    picture = made(path)["fig4_families"]
    figure = painted(picture)
    pairs, above, below = figure.axes
    assert [bar.get_bbox().height for bar in pairs.containers[0]][:3] == pytest.approx([0.83, 0.53, 0.16])
    assert [line.get_label() for line in above.lines] == ["relu", "tanh", "gold"]
    assert heights(above.lines[2])[0] == pytest.approx(-0.2)
    shown = [(np.atleast_1d(np.asarray(line.get_xdata())), line) for line in below.lines]
    assert [x.tolist() for x, line in shown if line.get_marker() == "x" and len(x)] == [[25.0]] * 3
    paths = [line for x, line in shown if len(x) == 40]
    assert [line.is_dashed() for line in paths] == [False, True, False]
    assert paths[0].get_color() == paths[1].get_color() != paths[2].get_color()
    assert picture is not None
    assert "beta=0+tanh left the data at 25.00 nats and ended at -2.23" in picture.caption
    assert [text.get_text() for text in pairs.get_yticklabels()] == ["100 %", "10 %", "1 %", ".1 %"]
    assert words(figure) == ["relu", "tanh", "gold", "the source's policy", "Llama's shape", "leaves the data"]
