"""The state of an alignment run: taken up after any step, it tells the same rows and leaves the same policy."""

from pathlib import Path
from typing import Any

import pytest
import torch

from aligning import setting, tiny
from killick.recipes.align import recipe as align
from killick.recipes.align.look import Look
from killick.recipes.align.watch import AlignState
from killick.recipes.cells import Seen
from killick.rundir.durable import load_state, save_state
from straight import done


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return setting(tmp_path_factory.mktemp("setting"))


def begun(config: Any) -> tuple[AlignState, list[Seen]]:
    prepared, _ = done(align.prepare(config, 0))
    state, seen = align.begin(config, align.cells(config)[0], prepared=prepared)
    assert isinstance(state, AlignState)
    return state, seen  # type: ignore[return-value]


def same(one: Any, other: Any) -> bool:
    """Two states, bit for bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.mark.parametrize(
    "settings",
    [
        {"choose": "held-out-gold"},
        {"beta": (), "target_kl": 1.0, "baseline": "leave-one-out"},
        {"train_layers": "full", "steps": 2},
    ],
    ids=["best", "adaptive", "full"],
)
def test_a_run_taken_up_after_any_step_tells_the_same_rows(
    place: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    """Through the disk, in a fresh process's stead with the model read anew (O-45)."""
    config = tiny(place, **settings)
    state, seen = begun(config)
    whole = list(seen)
    end = state.state_dict()
    state, seen = begun(config)
    for step, _ in enumerate(seen):
        save_state(tmp_path, str(step), state=state.state_dict())
    for step in range(len(whole)):
        again, rest = begun(config)
        again.load_state_dict(load_state(tmp_path / str(step)))
        assert again.step == step + 1
        assert [(event.row, event.samples) for event in rest] == [
            (event.row, event.samples) for event in whole[step + 1 :]
        ]
        assert same(again.state_dict(), end)


def test_a_state_that_lacks_a_part_is_refused_before_anything_is_changed(place: Path) -> None:
    state, _ = begun(tiny(place))
    saved = state.state_dict()
    for part in saved:
        with pytest.raises(KeyError, match=part):
            state.load_state_dict({name: value for name, value in saved.items() if name != part})
    assert same(state.state_dict(), saved)


def test_only_what_trains_is_put_down(place: Path) -> None:
    """One layer of three, the final norm and a linear head: an eighth of a state with the embedding and all layers."""
    state, seen = begun(tiny(place))
    list(seen)
    saved = state.state_dict()["ppo"]
    names = {name.split(".")[0] for name in saved["policy"]}
    assert names == {"layers", "norm"}
    assert {tuple(tensor.shape) for tensor in saved["value"].values()} == {(1, 32), (1,)}


def test_the_first_of_equals_is_kept_and_the_last_look_where_nothing_is_chosen(place: Path) -> None:
    state, _ = begun(tiny(place))

    def seen(gold: float) -> Look:
        one = torch.tensor([gold])
        return Look(-one, one, one, 0.0, torch.ones(1), torch.ones(1, dtype=torch.bool), [f"gold {gold}"], 1)

    for step, gold in enumerate((1.0, 3.0, 3.0, 2.0)):
        state.step = step
        state.keep(seen(gold), "held-out-gold")
    assert (state.kept["step"], state.kept["score"], state.kept["answers"]) == (1, 3.0, ["gold 3.0"])
    state.keep(seen(2.0), "last")
    assert state.kept == {"step": 3, "answers": ["gold 2.0"]}
