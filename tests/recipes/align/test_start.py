"""Before a run: what auto means, what stands behind the paths, what one short step says of the whole."""

import json
from pathlib import Path

import pytest

from aligning import setting, tiny
from killick.recipes.align.start import Cost, contents, measured, resolved, scaled, short_step
from killick.types import Refusal


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return setting(tmp_path_factory.mktemp("setting"), layers=4)


def test_auto_trains_at_most_half_of_a_model_on_a_cpu(place: Path) -> None:
    found = resolved(tiny(place, train_layers="auto", dtype="auto", device="auto"))
    assert (found.train_layers, found.dtype, found.device) == (2, "bfloat16", "cpu")
    found = resolved(tiny(place, train_layers="full", dtype="auto"))
    assert (found.train_layers, found.dtype) == ("full", "float32")
    found = resolved(tiny(place, train_layers=3, dtype="float32"))
    assert (found.train_layers, found.dtype) == (3, "float32")


def test_auto_trains_the_whole_of_a_layout_without_a_trunk(place: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    assert resolved(tiny(place, model=str(tmp_path), train_layers="auto")).train_layers == "full"


def test_a_folder_that_is_no_model_is_refused(place: Path, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"--model .* has no config.json"):
        resolved(tiny(place, model=str(tmp_path)))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(Refusal, match="no folder of a language model"):
        resolved(tiny(place, model=str(tmp_path)))


def test_contents_name_what_stands_behind_each_path(place: Path) -> None:
    found = contents(tiny(place, reward=("aligning:letters", str(place / "model")), gold="vader"))
    assert set(found) == {"model", "prompts", f"reward {place / 'model'}"}
    assert found["model"] == found[f"reward {place / 'model'}"]


def test_a_short_step_is_scaled_to_answers_and_looks(place: Path) -> None:
    """Answers three times as long over prompts of 10: decoding x 3, the rest x (10 + 6) / (10 + 2). A look asks 5
    prompts twice where a step has 8 responses, and does not update. Memory: what the step added x 4 / 3, and three
    log-softmaxes of 8 responses with 4 more tokens each, 4 bytes for each of 100 columns."""
    config = tiny(place, steps=4, every=2, tokens=6, beta=(0.0, 1.0))
    parts = {"sampling": 1.0, "proxy": 3.0, "old log-probs": 3.0, "reference": 1.0, "update": 6.0, "set-up": 5.0}
    cost = scaled(
        config, parts | {"before": 100.0, "after": 400.0, "time": 2, "prompt": 10.0, "evaluated": 5, "columns": 100}
    )
    assert cost.step == pytest.approx(3 + 4 + 4 + 3 + 8)
    assert cost.look == pytest.approx(10 / 8 * (3 + 4 + 4 + 3))
    assert cost.arm == pytest.approx(5 + 4 * 22 + 3 * 17.5)
    assert cost.peak == pytest.approx(400 + 300 / 3 + 3 * 8 * 4 * 4 * 100)
    assert cost.arms == 2


def test_what_a_run_costs_is_told_as_a_person_plans() -> None:
    words = Cost(step=11.0, look=8.0, arm=600.0, peak=2.0 * 2**30, arms=2).words(2)
    assert words.startswith("about 1200 CPU seconds (11.0 a step, 8.0 a look at the held-out prompts), 10 minutes")
    assert "2.0 GB of memory a process" in words
    assert "20 minutes" in Cost(11.0, 8.0, 600.0, 1.0, 2).words(1)
    assert ", 40 seconds" in Cost(1.0, 1.0, 40.0, 1.0, 1).words(2)


def test_a_step_is_measured_in_a_process_of_its_own(place: Path) -> None:
    found = short_step(tiny(place))
    assert found["time"] == 2
    assert found["evaluated"] == 5
    assert found["after"] >= found["before"] > 1e7
    cost = measured(tiny(place))
    assert 0 < cost.step < 10
    assert cost.peak > 1e7


def test_what_stops_the_short_step_stops_the_run_in_its_own_words(place: Path) -> None:
    with pytest.raises(Refusal, match="cannot be read"):
        measured(tiny(place, prompts=str(place / "none.txt")))
