"""The RLHF exercise: unsolved it teaches, solved it passes, and each mistake of a learner is called by its name."""

import importlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from exercises import check_unsolved, opened, plant, run
from killick.lab import solutions
from killick.lab.writing import write
from killick.recipes.arithmetic.claims import CLAIMS

TRAINING = (
    "test_task2_the_reward_model_learns_that_even_is_good",
    "test_task5_twelve_iterations_of_ppo_raise_the_reward",
)


def test_solved_every_test_passes_and_a_first_run_leaves_picture_and_claims(tmp_path: Path) -> None:
    """As a teacher would: the tests, which teach the SFT model, then four iterations of two arms."""
    folder = tmp_path / "rlhf"
    write("rlhf", folder)
    done = run(folder, "pytest", solved=True)
    assert done.returncode == 0, done.stdout
    assert "22 passed" in done.stdout
    done = run(folder, "run.py", "--iterations", "4", "--arms", "beta=0", "beta=0.1+ptx", solved=True)
    assert done.returncode == 0, done.stderr
    assert "SFT step" not in done.stdout  # it was kept
    assert (folder / "rlhf_runs.png").read_bytes().startswith(b"\x89PNG")
    claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    assert {claim["id"] for claim in claims} == {c.id for c in CLAIMS if c.arm in (None, "beta=0", "beta=0.1+ptx")}
    rows = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    assert [row["step"] for row in rows] == [0, 1, 2, 3] * 2
    assert rows[0]["kl"] == 0 < rows[3]["kl"]
    assert re.search(r"\d+ of \d+ claims hold", done.stdout)


def test_unsolved_each_task_says_what_is_to_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("rlhf", tmp_path / "new", monkeypatch, solved=False) as (_, tests):
        check_unsolved(tests, tasks=5)


# Mistakes that learners make: "task: words of the message" -> (function, the mistaken one)


def sigmoid_loss(chosen: Tensor, rejected: Tensor) -> Tensor:
    return -torch.sigmoid(chosen - rejected).log().mean()


def paid(change: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Task 3 with a change."""

    def wrong(scores: Tensor, logprobs: Tensor, *, reference_logprobs: Tensor, mask: Tensor, beta: float) -> Tensor:
        return change(scores.detach(), (logprobs - reference_logprobs).detach(), mask, beta)

    return wrong


def on_the_pad(scores: Tensor, log_ratio: Tensor, mask: Tensor, beta: float) -> Tensor:
    rewards = -beta * log_ratio * mask
    rewards[:, -1] += scores
    return rewards


def flipped_fine(scores: Tensor, log_ratio: Tensor, mask: Tensor, beta: float) -> Tensor:
    rewards = beta * log_ratio * mask
    rewards[torch.arange(len(mask)), mask.sum(1) - 1] += scores
    return rewards


def fined_padding(scores: Tensor, log_ratio: Tensor, mask: Tensor, beta: float) -> Tensor:
    rewards = -beta * log_ratio
    rewards[torch.arange(len(mask)), mask.sum(1) - 1] += scores
    return rewards


def not_detached(scores: Tensor, logprobs: Tensor, *, reference_logprobs: Tensor, mask: Tensor, beta: float) -> Tensor:
    last = torch.nn.functional.one_hot(mask.sum(1) - 1, mask.shape[1])
    return scores[:, None] * last - beta * (logprobs - reference_logprobs) * mask


def estimated(
    known: Tensor | None = None, *, one_step: bool = False, forget: bool = False
) -> Callable[..., tuple[Tensor, Tensor]]:
    """Task 4 by a loop that believes the critic on padding, does one step, or forgets lambda."""

    def wrong(
        rewards: Tensor, values: Tensor, *, mask: Tensor, gamma: float = 1.0, gae_lambda: float = 0.95
    ) -> tuple[Tensor, Tensor]:
        believed = values * mask if one_step or forget else values
        advantages, ahead = torch.zeros_like(rewards), torch.zeros(len(rewards))
        for t in reversed(range(rewards.shape[1])):
            following = believed[:, t + 1] if t + 1 < rewards.shape[1] else torch.zeros(len(rewards))
            delta = rewards[:, t] + gamma * following - believed[:, t]
            decay = 0.0 if one_step else gamma if forget else gamma * gae_lambda
            ahead = torch.where(mask[:, t], delta + decay * ahead, 0.0)
            advantages[:, t] = ahead
        return advantages, torch.where(mask, advantages + values, 0.0)

    return wrong


def lost(
    ratio: Callable[..., Tensor] = lambda new, old, mask: (new - old).exp(),
    low: float | None = 0.8,
    *,
    larger: Callable[[Tensor, Tensor], Tensor] = torch.maximum,
    mean: Callable[[Tensor, Tensor], Tensor] = lambda x, mask: (x * mask).sum() / mask.sum(),
    critic_mean: Callable[[Tensor, Tensor], Tensor] = lambda x, mask: (x * mask).sum() / mask.sum(),
    sign: float = 1.0,
) -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """Task 5, written out, with one piece exchanged."""

    def wrong(
        logprobs: Tensor, values: Tensor, *, old_logprobs: Tensor, advantages: Tensor, returns: Tensor, mask: Tensor,
        clip_range: float = 0.2,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        r = ratio(logprobs, old_logprobs, mask)
        losses = larger(-advantages * r, -advantages * r.clamp(low, 1 + clip_range))
        held = ((advantages > 0) & (r > 1 + clip_range)) | ((advantages < 0) & (r < 1 - clip_range))
        share = (held & mask).sum() / mask.sum()
        return sign * mean(losses, mask), critic_mean((values - returns) ** 2 / 2, mask), share

    return wrong


def ratio_of_sums(new: Tensor, old: Tensor, mask: Tensor) -> Tensor:
    return ((new - old) * mask).sum(1, keepdim=True).exp().expand_as(new)


def over_pads(x: Tensor, mask: Tensor) -> Tensor:
    return (x * mask).mean()


MISTAKES: dict[str, tuple[str, Callable[..., Any]]] = {
    "task1: the sign is flipped": ("bt_loss", lambda chosen, rejected: solutions.bt_loss(rejected, chosen)),
    "task1: take the mean": ("bt_loss", lambda chosen, rejected: solutions.bt_loss(chosen, rejected) * len(chosen)),
    "task1: sigmoid or exp left float32": ("bt_loss", sigmoid_loss),
    "task2: the order is lost": ("ranking_to_pairs", lambda ranking: torch.combinations(ranking.sort().values)),
    "task2: every pair is the wrong way round": (
        "ranking_to_pairs",
        lambda ranking: solutions.ranking_to_pairs(ranking).flip(1),
    ),
    "task2: only neighbours are paired": (
        "ranking_to_pairs",
        lambda ranking: torch.stack((ranking[:-1], ranking[1:]), 1),
    ),
    "task3: the sign of the fine is flipped": ("kl_penalized_rewards", paid(flipped_fine)),
    "task3: the score stands on the padding": ("kl_penalized_rewards", paid(on_the_pad)),
    "task3: padding is fined too": ("kl_penalized_rewards", paid(fined_padding)),
    "task3: the reference is not detached": ("kl_penalized_rewards", not_detached),
    "task4: it bootstraps past the end": ("gae_per_token", estimated()),
    "task4: the recursion is missing": ("gae_per_token", estimated(one_step=True)),
    "task4: gae_lambda is not used": ("gae_per_token", estimated(forget=True)),
    "task5: the sign is flipped": ("ppo_rlhf_loss", lost(sign=-1.0)),
    "task5: min for max": ("ppo_rlhf_loss", lost(larger=torch.minimum)),
    "task5: a one-sided clip": ("ppo_rlhf_loss", lost(low=None)),
    "task5: the mean is over pads too": ("ppo_rlhf_loss", lost(mean=over_pads)),
    "task5: padding is averaged in": ("ppo_rlhf_loss", lost(mean=lambda x, _: x.mean())),
    "task5: the mean of the value loss is over pads too": ("ppo_rlhf_loss", lost(critic_mean=over_pads)),
    "task5: a ratio of sums": ("ppo_rlhf_loss", lost(ratio_of_sums)),
}


def test_each_mistake_fails_its_own_task_in_words_that_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("rlhf", tmp_path / "planted", monkeypatch) as (module, tests):
        assert plant(module, tests, mistakes=MISTAKES, leave=TRAINING) == []


def test_the_written_out_task_5_is_right_where_no_piece_is_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that each planted mistake is one mistake."""
    with opened("rlhf", tmp_path / "planted", monkeypatch) as (module, tests):
        wrong = plant(module, tests, mistakes={"task5: none": ("ppo_rlhf_loss", lost())}, leave=TRAINING)
    assert wrong == ["task5: none: noticed by []"]


def test_the_given_parts_agree_with_killicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gold on every kind of response, and the reading of log-probs: of what was written, 0 on padding."""
    with opened("rlhf", tmp_path / "parts", monkeypatch) as (module, _):
        prefs, tinylm = (importlib.import_module(name) for name in ("prefs", "tinylm"))
        generator = torch.Generator().manual_seed(0)
        policy = tinylm.TinyLM(0)
        rollout = policy.sample(module.world.prompts(2000, generator), 1, generator)
        assert set(prefs.gold(rollout).tolist()) == {-1.0, 0.0, 1.0}
        assert torch.equal(prefs.gold(rollout), module.world.gold(rollout))
        critic = prefs.Critic(policy.requires_grad_(False))
        assert bool((critic(rollout) == 0).all())
        assert all(parameter.requires_grad for parameter in critic.parameters())
        assert not {id(p) for p in critic.parameters()} & {id(p) for p in policy.parameters()}
        logprobs, full = policy.logprobs(rollout)
        assert full.shape == (2000, 4, 13)
        assert bool((logprobs[~rollout.mask] == 0).all())
        assert torch.allclose(full.exp().sum(-1), torch.ones(2000, 4), atol=1e-5)
        # The sampler draws from the distribution that `logprobs` reads: frequencies of the first token within 5 sd.
        share = torch.stack([(rollout.responses[:, 0] == token).float().mean() for token in range(13)])
        expected = full[:, 0].exp().mean(0).detach()
        assert bool(((share - expected).abs() < 5 * (expected / 2000).sqrt() + 1e-3).all())


@pytest.mark.slow
def test_the_whole_exercise_takes_less_than_four_minutes_and_tells_the_story(tmp_path: Path) -> None:
    write("rlhf", tmp_path / "rlhf")
    before = os.times()
    assert run(tmp_path / "rlhf", "pytest", solved=True).returncode == 0
    done = run(tmp_path / "rlhf", "run.py", solved=True)
    after = os.times()
    assert done.returncode == 0, done.stderr
    assert after.children_user + after.children_system - before.children_user - before.children_system < 240
    holds = {c["id"]: c["holds"] for c in json.loads((tmp_path / "rlhf" / "claims.json").read_text(encoding="utf-8"))}
    for story in ("free-finished", "free-gold", "free-accuracy", "rm-even", "rm-odd", "loose-gold"):
        assert holds[story], story
