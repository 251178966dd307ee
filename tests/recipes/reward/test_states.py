"""States of responses: the same as read at once, from the cache the second time, a word beforehand where it is long."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from killick.models.judging import PretrainedReward
from killick.recipes.ledger import Note
from killick.recipes.reward.states import Progress, estimate_words, ids_mark, read_states
from killick.rundir.cache import entries
from killick.types import Rollout
from llamas import llama_folder

PROMPTS, ANSWERS = ["Hi", "My honest review"] * 5, ["good" * number for number in range(1, 11)]


@pytest.fixture(name="judge")
def judging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretrainedReward:
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("killick.recipes.reward.states.PIECE", 4)
    return PretrainedReward.begin(llama_folder(tmp_path / "model"))


def run(work: Generator[Any, None, Any]) -> tuple[list[Any], Any]:
    events = []
    while True:
        try:
            events.append(next(work))
        except StopIteration as end:
            return events, end.value


def test_piece_by_piece_gives_the_states_of_all_at_once(judge: PretrainedReward) -> None:
    rollout = judge.read(PROMPTS, ANSWERS)
    events, states = run(read_states(judge, rollout))
    assert_close(states, judge.states(PROMPTS, ANSWERS), atol=1e-5, rtol=0)
    total = int(rollout.prompt_mask.sum() + rollout.mask.sum())
    assert events[-1] == Progress("tokens of responses read", total, total)
    assert [event.done for event in events] == sorted(event.done for event in events)


def test_what_was_read_is_not_read_again(judge: PretrainedReward, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after one piece of three: the second time only the others are read; other weights find nothing."""
    rollout = judge.read(PROMPTS, ANSWERS)
    work = read_states(judge, rollout)
    while not entries():
        next(work)
    work.close()
    read: list[int] = []
    pooled = judge.pooled

    def counted(rows: Rollout) -> Tensor:
        read.append(len(rows))
        return pooled(rows)

    monkeypatch.setattr(judge, "pooled", counted)
    _, states = run(read_states(judge, rollout))
    assert sum(read) == 6
    _, again = run(read_states(judge, rollout))
    assert sum(read) == 6
    assert torch.equal(states, again)
    with torch.no_grad():
        next(judge.model.base_model.parameters())[0, 0] += 1
    run(read_states(judge, rollout))
    assert sum(read) == 16


def test_a_long_read_is_told_beforehand(judge: PretrainedReward, monkeypatch: pytest.MonkeyPatch) -> None:
    assert estimate_words(2.0, 10, left=50) == ""
    assert estimate_words(2.0, 10, left=900) == "what is left to read takes about 3 min here."
    monkeypatch.setattr("killick.recipes.reward.states.LONG", 0.0)
    events, _ = run(read_states(judge, judge.read(PROMPTS, ANSWERS)))
    (note,) = [event for event in events if isinstance(event, Note)]
    assert note.text.startswith("10 responses: what is left to read takes about")
    assert events.index(note) == 0


def test_padding_does_not_change_the_mark(judge: PretrainedReward) -> None:
    alone, wide = judge.read(PROMPTS[:1], ANSWERS[:1]), judge.read(PROMPTS, ANSWERS)
    assert ids_mark(alone) == ids_mark(wide[:1]) != ids_mark(wide[1:2])
