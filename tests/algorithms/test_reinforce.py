import math
from dataclasses import replace
from itertools import islice

import pytest
import torch

from killick.algorithms.leash import Leash
from killick.algorithms.reference import digest
from killick.algorithms.reinforce import ReinforceConfig, ReinforceState, reinforce
from killick.algorithms.tilt import tilt
from killick.models.tabular import TabularPolicy
from killick.types import NonFinite, Refusal, Rollout, Vocabulary
from killick.worlds.answers import Answers
from learners import learner

CONFIG = ReinforceConfig(iterations=6, batch=4, n=16, learning_rate=0.05)
ONE = torch.ones(1, 1, dtype=torch.bool)


def start(config: ReinforceConfig = CONFIG, leash: Leash = Leash(0.5)) -> ReinforceState:
    world = Answers()
    policy, reference = (TabularPolicy(world.reference[:, None], world.vocabulary) for _ in range(2))
    return ReinforceState(policy, reference.requires_grad_(False), config, torch.Generator().manual_seed(0), leash)


def test_the_expected_gradient_is_the_exact_one() -> None:
    # On a table the gradient of E[gold] - beta KL with respect to logit a is p_a (r_a - E r), with
    # r = gold - beta log(p / reference), averaged over the 4 prompts. At the start the KL part is 0.
    world, n = Answers(), 20_000
    state = start(ReinforceConfig(iterations=1, batch=4, n=n, learning_rate=1e-9, baseline="leave-one-out"))
    list(reinforce(state, world.gold, prompts=world.prompts))
    p = world.reference.exp()
    exact = p * (world.golds - (p * world.golds).sum(1, keepdim=True)) / 4
    (logits,) = state.policy.parameters()
    assert logits.grad is not None
    sampled = -logits.grad[:, 0]
    # One sample's contribution has a deviation below max |gold - mean| / 4 < 1.7.
    assert float((sampled - exact).abs().max()) < 4 * 1.7 / n**0.5


def test_it_reaches_the_closed_form() -> None:
    world, beta = Answers(), 1.0
    state = start(ReinforceConfig(iterations=300, batch=4, n=64, learning_rate=0.05), Leash(beta))
    for _ in reinforce(state, world.gold, prompts=world.prompts):
        pass
    learned = state.policy.table()[:, 0].exp().detach()  # type: ignore[attr-defined]
    optimum = tilt(world.reference, world.golds, beta=beta).exp()
    assert float((learned - optimum).abs().sum(1).max() / 2) < 0.02


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
@pytest.mark.parametrize("baseline", ["group-mean", "leave-one-out"])
def test_a_split_run_equals_a_whole_one_bit_for_bit(baseline: str, optimiser: str) -> None:
    world = Answers()
    config = replace(CONFIG, baseline=baseline, optimiser=optimiser)  # type: ignore[arg-type]
    leash = Leash(0.5, target=0.01)
    whole, first, second = (start(config, leash) for _ in range(3))
    rows = [float(step.kl_k1.mean()) for step in reinforce(whole, world.gold, prompts=world.prompts)]
    begun = [float(step.kl_k1.mean()) for step in islice(reinforce(first, world.gold, prompts=world.prompts), 3)]
    second.load_state_dict(first.state_dict())
    rest = [float(step.kl_k1.mean()) for step in reinforce(second, world.gold, prompts=world.prompts)]
    assert begun + rest == rows
    assert digest(second.policy.parameters()) == digest(whole.policy.parameters())
    assert second.beta == whole.beta != 0.5


@pytest.mark.parametrize("target", [None, 0.01])
def test_exact_figures_are_measured_where_somebody_looks_and_move_nothing(target: float | None) -> None:
    """Two of six steps are looked at; a leash with a target reads the exact KL at every one."""
    world, seen, blind = Answers(), start(leash=Leash(0.5, target)), start(leash=Leash(0.5, target))
    every = list(reinforce(seen, world.gold, prompts=world.prompts))
    some = list(reinforce(blind, world.gold, prompts=world.prompts, exact=lambda step: step % 3 == 0))
    for a, b in zip(every, some, strict=True):
        assert a.kl is not None
        assert a.entropy is not None
        looked = target is not None or b.step % 3 == 0
        assert b.entropy == (a.entropy if looked else None)
        assert torch.equal(a.kl, b.kl) if b.kl is not None else not looked
        assert (a.beta, a.stats) == (b.beta, b.stats)
        assert torch.equal(a.kl_k1, b.kl_k1)
    assert digest(seen.policy.parameters()) == digest(blind.policy.parameters())


def test_a_transformer_learns_by_it_too() -> None:
    made = learner("transformer")
    reference = learner("transformer").policy.requires_grad_(False)
    config = ReinforceConfig(iterations=15, batch=32, n=4, learning_rate=3e-3)
    state = ReinforceState(made.policy, reference, config, torch.Generator().manual_seed(0), Leash(0.0))
    proxies = [float(step.proxy.mean()) for step in reinforce(state, made.reward, prompts=made.prompts)]
    assert sum(proxies[-3:]) / 3 > sum(proxies[:3]) / 3 + 0.1


def test_scores_and_gradients_that_are_no_numbers_stop_before_the_update() -> None:
    world, state = Answers(), start()
    before = digest(state.policy.parameters())

    def poisoned(rollout: Rollout) -> torch.Tensor:
        return torch.full((len(rollout),), torch.nan)

    with pytest.raises(NonFinite, match="scores are not finite at step 0"):
        next(reinforce(state, poisoned, prompts=world.prompts))
    next(iter(state.policy.parameters())).register_hook(lambda gradient: gradient * torch.nan)
    with pytest.raises(NonFinite, match="gradient norm is nan at step 0"):
        next(reinforce(state, world.gold, prompts=world.prompts))
    assert digest(state.policy.parameters()) == before


def test_a_reference_that_moves_is_found_at_the_next_save() -> None:
    state = start()
    with torch.no_grad():
        state.reference.logits.add_(torch.arange(8.0))  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="reference has moved"):
        state.state_dict()


def test_a_reference_that_is_the_policy_reads_no_distance_however_far_it_goes() -> None:
    # With log-ratio 0 throughout, beta charges nothing: the run is the one without a leash, bit for bit.
    world, moving, free = Answers(), start(leash=Leash(2.0)), start(leash=Leash(0.0))
    moving = ReinforceState(moving.policy, moving.policy, CONFIG, torch.Generator().manual_seed(0), Leash(2.0))
    steps = list(reinforce(moving, world.gold, prompts=world.prompts))
    list(reinforce(free, world.gold, prompts=world.prompts))
    assert all(step.kl is not None and not step.kl.any() and not step.kl_k1.any() for step in steps)
    assert digest(moving.policy.parameters()) == digest(free.policy.parameters()) != digest(start().policy.parameters())
    again = start(leash=Leash(2.0))
    again = ReinforceState(again.policy, again.policy, CONFIG, torch.Generator(), Leash(2.0))
    again.load_state_dict(moving.state_dict())
    assert again.step == CONFIG.iterations


def test_plain_ascent_moves_by_the_rate_times_the_gradient() -> None:
    world, state = Answers(), start(replace(CONFIG, iterations=1, optimiser="sgd", learning_rate=1.2))
    before = next(iter(state.policy.parameters())).detach().clone()
    list(reinforce(state, world.gold, prompts=world.prompts))
    (logits,) = state.policy.parameters()
    assert logits.grad is not None
    assert float(logits.grad.abs().max()) > 1e-3
    assert torch.allclose(logits.detach(), before - 1.2 * logits.grad, atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [{"iterations": 0}, {"batch": 0}, {"n": 1}, {"learning_rate": -1.0}],
)
def test_settings_that_cannot_train_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(Refusal, match=next(iter(settings))):
        start(replace(CONFIG, **settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["optimiser", "baseline"])
def test_a_choice_that_there_is_not_is_refused_by_name(name: str) -> None:
    config = replace(CONFIG)
    object.__setattr__(config, name, "lion")  # the types that tests check would refuse it before
    with pytest.raises(Refusal, match=f"{name} .* not lion"):
        config.validate()


@pytest.mark.parametrize(("baseline", "compared"), [("group-mean", [0.5, -0.5]), ("leave-one-out", [1.0, -1.0])])
def test_one_update_by_hand(baseline: str, compared: list[float]) -> None:
    # Two answers, the policy even between them, the reference at .75 and .25: log-ratios -log 1.5 and log 2. Scores are
    # such that score - beta log-ratio is 1 for answer 0 and 0 for answer 1. Once both were drawn, group mean 1/2 gives
    # +-1/2 and the other one gives +-1. With p = 1/2 the loss -mean(A log p) has gradient -(A0 - A1) / 4 on logit 0,
    # and old gradients are forgotten.
    even = TabularPolicy(torch.zeros(1, 1, 2), Vocabulary(2, time=1))
    reference = TabularPolicy(torch.tensor([[[0.75, 0.25]]]).log(), Vocabulary(2, time=1))
    config = ReinforceConfig(iterations=9, batch=1, n=2, learning_rate=1e-30, baseline=baseline)  # type: ignore[arg-type]
    state = ReinforceState(even, reference, config, torch.Generator().manual_seed(0), Leash(0.5))
    even.logits.grad = torch.full_like(even.logits, 77.0)

    def reward(rollout: Rollout) -> torch.Tensor:
        first = rollout.responses[:, 0] == 0
        return torch.where(first, 1 - 0.5 * math.log(1.5), 0.5 * math.log(2.0))

    for step in reinforce(state, reward, prompts=lambda count, _: (torch.zeros(1, 1, dtype=torch.long), ONE)):
        assert even.logits.grad is not None
        if step.rollout.responses.flatten().unique().numel() == 2:
            expected = -(compared[0] - compared[1]) / 4
            assert even.logits.grad.flatten().tolist() == pytest.approx([expected, -expected], abs=1e-6)
            return
        assert even.logits.grad.abs().max() < 1e-6
    raise AssertionError("nine pairs of equal draws")
