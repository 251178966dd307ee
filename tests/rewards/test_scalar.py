"""A language model with one output: it reads the last real token, learns, and lends a critic nothing but copies."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.models.policy import TransformerPolicy
from killick.models.reader import Reader
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.value import Critic
from killick.preferences.labelers import BradleyTerry
from killick.preferences.pairing import neighbours
from killick.rewards.fit import FitConfig, FitState, accuracy, fit
from killick.rewards.scalar import Scalar
from killick.types import Refusal, Rollout
from killick.worlds.arithmetic import Arithmetic

world = Arithmetic()
SMALL = TransformerConfig(14, 14, context=14, hidden=16, layers=1, heads=2, feed_forward=32)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def speaker() -> TransformerPolicy:
    return TransformerPolicy(Transformer(SMALL, seeded(0)), world.vocabulary)


def model() -> Scalar:
    return Scalar(Reader(speaker().network), 16, seeded(1))


def said(count: int, seed: int = 2) -> Rollout:
    return speaker().sample(world.prompts(count, seeded(seed)), 2, seeded(seed))


class Ids(nn.Module):
    """A backbone whose state after a token is the token."""

    def forward(self, rollout: Rollout) -> Tensor:
        return rollout.responses[..., None].float()


def reading() -> Scalar:
    """A reward that is the last token it reads."""
    found = Scalar(Ids(), 1, seeded(0))
    nn.init.ones_(found.head.weight)
    return found


def rows(tokens: list[list[int]], mask: list[list[int]]) -> Rollout:
    ids, real = torch.tensor(tokens), torch.tensor(mask).bool()
    prompts = torch.zeros(len(ids), 1, dtype=torch.long)
    return Rollout(prompts, prompts == 0, ids, real, torch.zeros(ids.shape), real[:, -1])


def test_the_last_real_token_is_read_wherever_the_padding_stands() -> None:
    """7 8 EOS then two pads, two pads then 7 8 EOS, and a full row: positions 2, 4, 4 (O-07)."""
    tokens = [[7, 8, 2, 0, 0], [0, 0, 7, 8, 3], [7, 8, 9, 4, 5]]
    mask = [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]
    assert reading()(rows(tokens, mask)).tolist() == [2, 3, 5]


def test_a_row_of_padding_alone_is_refused() -> None:
    """Never position -1."""
    with pytest.raises(Refusal, match=r"no last token to be scored at \(row \[1\]\)"):
        reading()(rows([[7, 8], [7, 8]], [[1, 0], [0, 0]]))


def test_a_score_is_the_same_behind_padded_prompts_of_any_width() -> None:
    """Two columns of real-looking tokens in front: 1e-5."""
    rollout, judge = said(20), model()
    front = torch.full((40, 2), 5)
    longer = replace(
        rollout,
        prompts=torch.cat((front, rollout.prompts), 1),
        prompt_mask=torch.cat((torch.zeros_like(front, dtype=torch.bool), rollout.prompt_mask), 1),
    )
    assert_close(judge(longer), judge(rollout), atol=1e-5, rtol=1e-5)


def test_a_score_depends_on_order_prompt_and_end() -> None:
    """All of which a count is blind to."""
    judge, ids, ones = model(), torch.tensor([[3, 4, 13]]), torch.ones(1, 3, dtype=torch.bool)
    prompts, mask = world.prompts(1, seeded(0))
    base = Rollout(prompts, mask, ids, ones, torch.zeros(1, 3), ones[:, 0])
    others = (
        replace(base, responses=ids[:, [1, 0, 2]]),
        replace(base, prompts=(prompts + 1) % 10),
        replace(base, mask=torch.tensor([[True, True, False]])),
    )
    for other in others:
        assert float((judge(other) - judge(base)).detach().abs()) > 1e-4


def test_the_head_starts_small_and_unbiased_and_takes_only_its_own_stream() -> None:
    """N(0, 1 / (hidden + 1)): at 4,095 inputs a deviation of 1/64, to 5 %."""
    before = torch.random.get_rng_state()
    head = Scalar(Ids(), 4095, seeded(3)).head.requires_grad_(False)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert float(head.weight.std()) == pytest.approx(1 / 64, rel=0.05)
    assert float(head.bias) == 0
    assert torch.equal(head.weight, Scalar(Ids(), 4095, seeded(3)).head.weight)


def test_it_learns_a_preference_that_counts_cannot_express() -> None:
    """Answers that end against answers that do not, judged without noise: from a coin flip to .95 on other pairs."""

    def judged(seed: int):
        rollout = said(300, seed)
        pairs = neighbours(rollout)
        golds = rollout.finished.float()
        keep = golds[pairs.first] != golds[pairs.second]
        pairs = replace(pairs, first=pairs.first[keep], second=pairs.second[keep])
        return BradleyTerry(50.0).label(pairs, golds, seeded(seed))

    learned, held, judge = judged(4), judged(5), model()
    assert len(learned) > 50
    losses = [step.loss for step in fit(FitState(judge, FitConfig(60, 32, 3e-3), seeded(6)), learned)]
    assert losses[-1] < 0.3 * losses[0]
    assert accuracy(judge, held) > 0.95


def test_a_fit_moves_the_backbone_too() -> None:
    judge = model()
    before = deepcopy(judge.state_dict())
    rollout = said(8)
    labels = BradleyTerry(1.0).label(neighbours(rollout), world.gold(rollout), seeded(0))
    list(fit(FitState(judge, FitConfig(1, None, 1e-3), seeded(0)), labels))
    moved = {name for name, tensor in judge.state_dict().items() if not torch.equal(tensor, before[name])}
    assert {"head.weight", "backbone.network.embed.weight", "backbone.network.blocks.0.qkv.weight"} <= moved


# The critic that starts from it (O-41)


@pytest.fixture
def started() -> tuple[Scalar, Critic]:
    judge = model().requires_grad_(False)
    return judge, Critic.from_network(judge.backbone.network, head=judge.head)  # type: ignore[arg-type]


def test_the_critic_is_the_reward_model_read_one_token_earlier(started: tuple[Scalar, Critic]) -> None:
    """Its value before token t + 1 is the score of the answer cut after token t (1e-5)."""
    judge, critic = started
    rollout = said(20)
    values = critic(rollout)
    for cut in range(1, rollout.responses.shape[1]):
        here = rollout.lengths > cut
        short = replace(rollout, mask=rollout.mask & (torch.arange(rollout.mask.shape[1]) < cut))
        assert_close(values[here, cut], judge(short)[here], atol=1e-5, rtol=1e-5)


def test_the_critic_shares_nothing_and_trains_though_the_reward_model_is_frozen(started: tuple[Scalar, Critic]) -> None:
    judge, critic = started
    places = {p.untyped_storage().data_ptr() for p in judge.parameters()}
    assert not places & {p.untyped_storage().data_ptr() for p in critic.parameters()}
    assert all(p.requires_grad for p in critic.parameters())
    assert not any(p.requires_grad for p in judge.parameters())


def test_five_iterations_leave_the_judge_bit_equal_and_move_the_critic(started: tuple[Scalar, Critic]) -> None:
    """The judge is the proxy here as well, which is the case that goes wrong."""
    judge, critic = started
    policy, rollout = speaker(), said(20)
    scores, values = judge(rollout), critic(rollout).detach()
    config = PPOConfig(iterations=5, batch=16, epochs=2, learning_rate=1e-3)
    state = PPOState(policy, deepcopy(policy), critic, config, seeded(7), Leash(0.1))
    assert len(list(ppo(state, judge, prompts=world.prompts))) == 5
    assert torch.equal(judge(rollout), scores)
    assert float((critic(rollout).detach() - values).abs().max()) > 1e-3
