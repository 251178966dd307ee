"""A look at held-out prompts: every number by hand, texts as a person reads them, batches that change nothing."""

from pathlib import Path
from typing import Any

import pytest
import torch

from aligning import brevity, letters, setting, tiny
from killick.algorithms.collecting import Collected
from killick.recipes.align import recipe as align
from killick.recipes.align.look import Asked, Look, OnText, Standing, look, mean_entropy
from killick.types import Rollout
from straight import done


def seen(gold: torch.Tensor | None) -> Look:
    """Two prompts with two answers each."""
    return Look(
        proxy=torch.tensor([1.0, 3.0, 2.0, 6.0]),
        gold=gold,
        kl=torch.tensor([0.0, 2.0, 4.0, 6.0]),
        entropy=1.5,
        lengths=torch.tensor([3, 4, 5, 4]),
        finished=torch.tensor([True, True, False, True]),
        answers=["a", "b", "c", "d"],
        n=2,
    )


def test_a_look_is_means_over_answers_with_the_error_over_prompts() -> None:
    """Gold 1, 0, 3, 4 against 1, 1, 1, 1: above in two, level in one of four; gains by prompt -.5 and 2.5: deviation
    3 / sqrt(2), over sqrt(2): 1.5. Golds by prompt .5 and 3.5: the same. Proxies 2 and 4: 1."""
    before = {"gold": torch.ones(4), "proxy": torch.zeros(4), "answers": [""] * 4}
    row = seen(torch.tensor([1.0, 0.0, 3.0, 4.0])).row(before, ends=True)
    wanted = {
        "proxy": 3.0, "gold": 2.0, "gold_error": 1.5, "gain_error": 1.5, "proxy_error": 1.0, "win": 0.625, "kl": 3.0,
        "entropy": 1.5, "length": 4.0, "finished": 0.75,
    }  # fmt: skip
    assert row == {f"held_{name}": pytest.approx(value) for name, value in wanted.items()}


def test_without_gold_the_proxy_says_which_answer_beats_the_references() -> None:
    row = seen(None).row({"proxy": torch.tensor([2.0, 2.0, 2.0, 2.0]), "answers": [""] * 4}, ends=False)
    assert row["held_win"] == 0.625  # below, above, level, above
    assert row["held_gold"] is row["held_gain_error"] is row["held_finished"] is None


def test_entropy_counts_each_token_once() -> None:
    """Batches of 3 and 1 tokens with entropies 1 and 5: 2, not 3 (O-53)."""

    def part(tokens: int, entropy: float | None) -> Collected:
        mask, zeros = torch.ones(1, tokens, dtype=torch.bool), torch.zeros(1, tokens)
        rollout = Rollout(mask.long(), mask, mask.long(), mask, zeros, mask[:, 0])
        return Collected(rollout, zeros[:, 0], zeros, zeros, zeros[:, 0], entropy)

    assert mean_entropy([part(3, 1.0), part(1, 5.0)]) == 2.0
    assert mean_entropy([part(3, 1.0), part(1, None)]) is None


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place: Path = setting(tmp_path_factory.mktemp("setting"))
    return tiny(place), done(align.prepare(tiny(place), 0))[0]


def test_a_look_scores_what_it_shows_and_puts_no_prompt_twice(prepared: Any) -> None:
    """Five prompts, two at a time, two answers each; against itself a policy is nowhere."""
    config, ready = prepared
    state = align.started(config, align.cells(config)[0], prepared=ready, time=6)
    watched = ready.watched
    at = Standing(state.policy, state.reference, torch.Generator().manual_seed(0), 0, Asked(2, 2))
    found = look(at, watched.held_out.all(), proxy=watched.proxy, gold=watched.gold, texts=watched.texts)
    assert len(found.answers) == len(found.proxy) == 10
    assert found.proxy.tolist() == pytest.approx([letters(text) for text in found.answers])
    assert found.gold is not None
    assert found.gold.tolist() == pytest.approx([brevity(text) for text in found.answers])
    assert found.kl.abs().max() < 1e-5
    assert int(found.lengths.min()) >= 1


def test_a_score_of_text_reads_prompt_and_answer_behind_the_tokens(prepared: Any) -> None:
    _, ready = prepared
    watched, asked = ready.watched, list[tuple[str, str]]()

    def score(prompts: Any, answers: Any) -> torch.Tensor:
        asked.extend(zip(prompts, answers, strict=True))
        return torch.arange(len(answers), dtype=torch.float64)

    ids, mask = watched.train.all()
    spoken = torch.tensor([*watched.texts.answer("a lamp"), watched.texts.eos])
    rows = torch.stack((spoken, spoken))
    finished = torch.tensor([True, True])
    rollout = Rollout(ids[:2], mask[:2], rows, rows >= 0, torch.zeros(rows.shape), finished)
    found = OnText(score, watched.asked, watched.texts)(rollout)
    assert found.dtype == torch.float32
    assert found.tolist() == [0.0, 1.0]
    assert asked == [(prompt, "a lamp") for prompt in list(watched.train.rows.values())[:2]]
