"""The figures of an alignment run: held-out looks as marks with their errors, through training and by distance."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from killick.report.align_figures import by_distance, makers, points, through_training
from killick.report.page import answers
from killick.report.reading import Shown, read_run


def row(arm: str, step: int, gold: float | None) -> dict[str, Any]:
    """A step whose look is every second one: proxy step, KL step squared."""
    plain = {"arm": arm, "seed": 0, "step": step, "proxy": step + 0.5, "gold": gold, "kl": float(step**2), "beta": 0.0}
    if step % 2:
        return plain
    return plain | {"held_proxy": float(step), "held_gold": gold, "held_gold_error": 0.25, "held_proxy_error": 0.5,
                    "held_kl": float(step**2)}  # fmt: skip


def shown(folder: Path, *, gold: bool = True, recipe: str = "align") -> Shown:
    rows = [row(arm, step, float(4 - step) if gold else None) for arm in ("beta=0", "beta=0.1") for step in range(5)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"recipe": recipe}), encoding="utf-8")
    return read_run(folder)


def painted(picture: Any) -> list[Any]:
    figure = Figure()
    picture.paint(figure)
    return figure.axes


def test_a_look_is_a_mark_at_its_step_with_two_errors(tmp_path: Path) -> None:
    arm = shown(tmp_path).arms[0]
    steps, gold, reach = points(arm, "held_gold")
    assert (steps.tolist(), gold.tolist(), reach.tolist()) == ([0, 2, 4], [4, 2, 0], [0.5] * 3)
    assert points(arm, "held_kl")[2].tolist() == [0, 0, 0]


def test_held_out_prompts_are_drawn_through_training_over_the_training_prompts(tmp_path: Path) -> None:
    made = through_training(shown(tmp_path))
    assert made is not None
    axes = painted(made)
    assert [each.get_ylabel().split(",")[0] for each in axes] == ["proxy", "gold", "KL"]
    assert axes[-1].get_xlabel() == "step"
    assert "Held-out gold, beta=0: 4.00 at first, best 4.00 at step 0, 0.00 at the end" in made.caption


def test_the_distance_is_the_root_of_the_held_out_kl(tmp_path: Path) -> None:
    made = by_distance(shown(tmp_path))
    assert made is not None
    axes = painted(made)
    marks = axes[0].containers[0].lines[0]
    np.testing.assert_allclose(marks.get_xdata(), [0, 2, 4])
    np.testing.assert_allclose(marks.get_ydata(), [0, 2, 4])


def test_without_gold_the_proxy_is_told(tmp_path: Path) -> None:
    found = shown(tmp_path, gold=False)
    for made, count in ((through_training(found), 2), (by_distance(found), 1)):
        assert made is not None
        assert len(painted(made)) == count
    assert "Held-out proxy, beta=0: 0.00 at first" in through_training(found).caption  # type: ignore[union-attr]


def test_other_recipes_and_runs_without_a_look_have_none(tmp_path: Path) -> None:
    assert makers(shown(tmp_path, recipe="text")) == {}
    found = shown(tmp_path)
    assert set(makers(found)) == {"held-out", "held-out-distance"}
    for arm in found.arms:
        arm.columns.pop("held_proxy")
    assert through_training(found) is by_distance(found) is None


def test_the_page_shows_an_answer_beside_the_references(tmp_path: Path) -> None:
    from killick.report.page import page

    found = shown(tmp_path)
    sample = {"arm": "beta=0", "seed": 0, "step": 0, "prompt": "p", "response": "mine", "gold": 1.0, "proxy": 2.0}
    found.samples.append(sample | {"reference": "<theirs>", "reference_gold": 0.5, "reference_proxy": None})
    found.results["verdict"] = "Gold kept its gain."
    told = page(found, [])
    assert "<em>&lt;theirs&gt;</em><small>0.50 · -</small>" in told
    assert "what the reference answered" in told
    assert "Gold kept its gain." in told
    assert len(answers(found.samples)["beta=0"][0]) == 1


@pytest.mark.parametrize("recipe", ["align"])
def test_a_page_without_a_reference_says_nothing_of_one(tmp_path: Path, recipe: str) -> None:
    from killick.report.page import page

    assert "what the reference answered" not in page(shown(tmp_path, recipe=recipe), [])
