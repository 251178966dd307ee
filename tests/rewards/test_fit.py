"""Fit: the Bradley-Terry loss with rankings averaged first, weights that come back, scale, and accuracy with ties."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.testing import assert_close

from killick.ops.stats import rank_correlation
from killick.recipes.answers.labels import compare
from killick.rewards.fit import FitConfig, FitState, Standardised, accuracy, fit, standardise
from killick.rewards.head import Head
from killick.rewards.layers import mlp
from killick.types import NonFinite, Preference, Refusal, Rollout
from killick.worlds.answers import Answers

modest = settings(max_examples=30, deadline=None, derandomize=True)
still = FitConfig(steps=1, learning_rate=1e-12)
"""One step that moves nothing which float32 could show: its loss is the loss of the weights as given."""


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(count: int) -> Rollout:
    """So many one-token responses; the token is the row's number."""
    ids = torch.arange(count)[:, None]
    seen = torch.ones_like(ids, dtype=torch.bool)
    return Rollout(torch.zeros_like(ids), seen, ids, seen, torch.zeros(ids.shape), seen[:, 0])


def table(features: Tensor) -> Callable[[Rollout], Tensor]:
    """Each response's row of a table of features."""
    return lambda rollout: features[rollout.responses[:, 0]]


def scoring(*scores: float) -> Head:
    """A reward model that gives these scores: one feature, weight 1, bias 0."""
    network = nn.Linear(1, 1)
    nn.init.ones_(network.weight)
    nn.init.zeros_(network.bias)
    return Head(table(torch.tensor(scores)[:, None]), network)


def given_scores(*scores: float) -> Callable[[Rollout], Tensor]:
    """A reward without weights."""
    return lambda rollout: torch.tensor(scores)[rollout.responses[:, 0]]


def pairs_of(chosen: list[int], rejected: list[int], group: list[int] | None = None, count: int = 0) -> Preference:
    """Hard pairs of row numbers."""
    number = torch.tensor(group) if group else None
    return Preference.hard(
        rows(count or max(chosen + rejected) + 1), torch.tensor(chosen), torch.tensor(rejected), number
    )


def first_loss(model: Head, preference: Preference, config: FitConfig = still, seed: int = 0) -> float:
    """The loss before the first step, in nats per pair."""
    return next(fit(FitState(model, config, seeded(seed)), preference)).loss


# Closed forms: the loss


def test_a_long_ranking_weighs_no_more_than_a_short_one() -> None:
    """Scores in rank order (0, 1) and (3, 2, 1, 0). Means inside: softplus(1) = 1.313262 and 0.207038; their mean is
    0.760150. Pooling all seven pairs would give 0.365070."""
    chosen, rejected, group = [0], [1], [0]
    for better in range(4):
        for worse in range(better + 1, 4):
            chosen.append(2 + better)
            rejected.append(2 + worse)
            group.append(1)
    preference = pairs_of(chosen, rejected, group)
    assert first_loss(scoring(0.0, 1.0, 3.0, 2.0, 1.0, 0.0), preference) == pytest.approx(0.760150, abs=1e-6)
    pooled = replace(preference, group=torch.arange(7))
    assert first_loss(scoring(0.0, 1.0, 3.0, 2.0, 1.0, 0.0), pooled) == pytest.approx(0.365070, abs=1e-6)


def test_the_pairs_of_one_ranking_of_three_are_averaged() -> None:
    """Scores (2, 1, 0) in order: (softplus(-1) + softplus(-2) + softplus(-1)) / 3 = 0.251150."""
    preference = pairs_of([0, 0, 1], [1, 2, 2], [7, 7, 7])
    assert first_loss(scoring(2.0, 1.0, 0.0), preference) == pytest.approx(0.251150, abs=1e-6)


@pytest.mark.parametrize(("margin", "expected"), [(0.0, 0.693147), (1.0, 0.813262), (-1.0, 0.813262), (2.0, 1.126928)])
def test_a_tie_costs_the_mean_of_both_directions(margin: float, expected: float) -> None:
    """Label one half: (softplus(-d) + softplus(d)) / 2."""
    tie = replace(pairs_of([0], [1]), label=torch.tensor([0.5]))
    assert first_loss(scoring(margin, 0.0), tie) == pytest.approx(expected, abs=1e-6)


def test_a_tie_at_equal_scores_pushes_nothing() -> None:
    """One step at a large rate leaves the weight exactly where it was: Adam moves nothing on a gradient of 0."""
    model, tie = scoring(1.5, 1.5), replace(pairs_of([0], [1]), label=torch.tensor([0.5]))
    list(fit(FitState(model, FitConfig(steps=3, learning_rate=1.0), seeded(0)), tie))
    assert [p.item() for p in model.parameters()] == [1.0, 0.0]


def test_a_margin_asks_for_more_distance() -> None:
    """Difference 2, margin 1.5: softplus(-0.5) = 0.474077."""
    wide = replace(pairs_of([0], [1]), margin=torch.tensor([1.5]))
    assert first_loss(scoring(2.0, 0.0), wide) == pytest.approx(0.474077, abs=1e-6)


def test_a_badly_ordered_pair_costs_its_margin_and_nothing_overflows() -> None:
    """Margins -1000, -100 and -2: 1000, 100 and 2.126928."""
    for margin, expected in ((-1000.0, 1000.0), (-100.0, 100.0), (-2.0, 2.126928)):
        assert first_loss(scoring(margin, 0.0), pairs_of([0], [1])) == pytest.approx(expected, abs=1e-5)


def test_the_gradient_does_not_vanish_on_a_badly_ordered_pair() -> None:
    """Margin -1000: Adam's first step is the whole rate, downhill for the weight on a feature of -1000."""
    model = scoring(-1000.0, 0.0)
    list(fit(FitState(model, FitConfig(steps=1, learning_rate=0.01), seeded(0)), pairs_of([0], [1])))
    assert next(model.parameters()).item() == pytest.approx(0.99, abs=1e-6)


# Minibatches


def test_a_minibatch_of_rankings_weighs_each_as_often_as_it_was_drawn() -> None:
    """Two rankings of 1 and 3 pairs with mean losses a and b: a batch of 8 costs (j a + (8 - j) b) / 8 for a whole j.
    Over 400 steps j is binomial(8, 1/2): its mean is within 4 standard errors of 4."""
    preference = pairs_of([0, 2, 2, 3], [1, 3, 4, 4], [5, 9, 9, 9])
    scores = (0.0, 1.0, 3.0, 1.0, 0.5)
    a = float(softplus(torch.tensor(1.0)))
    b = float(softplus(-torch.tensor([2.0, 2.5, 0.5])).mean())
    config = FitConfig(steps=400, batch=8, learning_rate=1e-12)
    losses = torch.tensor([step.loss for step in fit(FitState(scoring(*scores), config, seeded(1)), preference)])
    j = 8 * (losses - b) / (a - b)
    assert_close(j, j.round(), atol=1e-4, rtol=0)
    assert len(j.round().unique()) > 4
    assert abs(float(j.mean()) - 4) < 4 * (8 * 0.25 / 400) ** 0.5


def test_a_minibatch_of_the_only_ranking_costs_what_the_whole_costs() -> None:
    """Drawn five times over, it is still itself (1e-6: rounding of fifths)."""
    preference = pairs_of([0, 0, 1], [1, 2, 2], [0, 0, 0])
    loss = first_loss(scoring(2.0, 1.0, 0.0), preference, replace(still, batch=5))
    assert loss == pytest.approx(0.251150, abs=1e-6)


@modest
@given(st.lists(st.floats(-3, 3, width=32), min_size=6, max_size=6), st.permutations(range(4)))
def test_the_order_of_pairs_and_the_numbers_of_rankings_do_not_matter(scores: list[float], order: list[int]) -> None:
    """Pairs shuffled, groups renamed: the same loss to float32 rounding."""
    preference = pairs_of([0, 2, 2, 3], [1, 3, 4, 5], [0, 1, 1, 1])
    other = replace(preference.pairs(torch.tensor(order)), group=100 - 7 * preference.group[torch.tensor(order)])
    assert first_loss(scoring(*scores), other) == pytest.approx(first_loss(scoring(*scores), preference), abs=1e-5)


def test_each_response_is_encoded_once_for_the_whole_fit() -> None:
    """However many pairs and steps: features may be dear."""
    calls, model = [], scoring(2.0, 1.0, 0.0)
    read = model.encode

    def counted(rollout: Rollout) -> Tensor:
        calls.append(len(rollout))
        return read(rollout)

    model.encode = counted
    list(fit(FitState(model, FitConfig(steps=5), seeded(0)), pairs_of([0, 0, 1], [1, 2, 2])))
    assert calls == [3]


# What is learned


def test_a_known_weight_vector_comes_back_within_its_standard_error() -> None:
    """4,000 Bradley-Terry labels of weights (1, -0.5, 0.25). The covariance of the estimate is the inverse of
    sum p (1 - p) x x'; each weight must be within 4 of its standard errors (about 0.03 to 0.04)."""
    count, truth = 4000, torch.tensor([1.0, -0.5, 0.25])
    features = torch.randn(2 * count, 3, generator=seeded(1))
    difference = features[:count] - features[count:]
    wins = torch.rand(count, generator=seeded(2)) < torch.sigmoid(difference @ truth)
    first, second = torch.arange(count), torch.arange(count, 2 * count)
    preference = Preference.hard(rows(2 * count), first.where(wins, second), second.where(wins, first))
    network = nn.Linear(3, 1)
    nn.init.zeros_(network.weight)
    list(fit(FitState(Head(table(features), network), FitConfig(steps=200, learning_rate=0.05), seeded(0)), preference))
    chance = torch.sigmoid(difference @ truth).double()
    x = difference.double()
    error = torch.linalg.inv((x * (chance * (1 - chance))[:, None]).T @ x).diagonal().sqrt()
    assert float(error.max()) < 0.05
    assert bool(((network.weight[0].detach().double() - truth).abs() < 4 * error).all())


def test_the_answers_recipe_fits_as_published() -> None:
    """2,000 comparisons of stream 2: loss .6805 at the first step and .459 at 400, Spearman .877 (each to 1e-2),
    answer 7 shown 23 times in 4,000."""
    world = Answers()
    preference = compare(world, 2000, seed=2)
    model = Head(world.features, mlp(4, 16, generator=seeded(4), activation="tanh"))
    losses = [
        step.loss for step in fit(FitState(model, FitConfig(steps=400, learning_rate=0.02), seeded(0)), preference)
    ]
    assert losses[0] == pytest.approx(0.6805, abs=1e-4)
    assert losses[-1] == pytest.approx(0.459, abs=1e-2)
    with torch.no_grad():
        spearman = rank_correlation(model(world.everything()), world.golds.flatten())
    assert spearman == pytest.approx(0.877, abs=1e-2)
    shown = preference.rollout.responses[torch.cat((preference.chosen, preference.rejected))]
    assert int((shown == 7).sum()) == 23


def test_a_fit_that_is_resumed_from_a_file_ends_bit_equal(tmp_path) -> None:
    """Three steps, a file of tensors and plain types only (torch's safe loader), three more: six steps in one go."""
    preference = pairs_of([0, 2, 2, 3], [1, 3, 4, 5], [0, 1, 1, 2])
    features = torch.randn(6, 3, generator=seeded(0))

    def start(steps: int) -> FitState:
        model = Head(table(features), mlp(3, 4, generator=seeded(1)))
        return FitState(model, FitConfig(steps=steps, batch=2, learning_rate=0.1), seeded(2))

    whole, half = start(6), start(3)
    losses = [step.loss for step in fit(whole, preference)]
    before = [step.loss for step in fit(half, preference)]
    torch.save(half.state_dict(), tmp_path / "state.pt")
    rest = start(6)
    rest.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    steps = list(fit(rest, preference))
    assert [step.step for step in steps] == [3, 4, 5]
    assert before + [step.loss for step in steps] == losses
    for mine, other in zip(whole.model.parameters(), rest.model.parameters(), strict=True):
        assert torch.equal(mine, other)
    assert torch.equal(whole.generator.get_state(), rest.generator.get_state())


@pytest.mark.parametrize("piece", ["model", "optimiser", "generator", "step"])
def test_a_state_without_a_piece_is_a_key_error(piece: str) -> None:
    """Never a default."""
    state = FitState(scoring(0.0), FitConfig(), seeded(0))
    saved = state.state_dict()
    del saved[piece]
    with pytest.raises(KeyError, match=piece):
        state.load_state_dict(saved)


# Accuracy


@modest
@given(st.lists(st.integers(-2, 2), min_size=6, max_size=6), st.floats(0, 1))
def test_swapping_all_pairs_turns_the_accuracy_round(scores: list[int], credit: float) -> None:
    """acc(swapped) = 1 - acc with half credit, ties or not (exact: multiples of 1/6 in float64 to 1e-12)."""
    reward = given_scores(*map(float, scores))
    preference = pairs_of([0, 2, 4], [1, 3, 5])
    swapped = replace(preference, chosen=preference.rejected, rejected=preference.chosen)
    assert accuracy(reward, swapped) == pytest.approx(1 - accuracy(reward, preference), abs=1e-12)
    ties = sum(scores[i] == scores[i + 1] for i in (0, 2, 4)) / 3
    strict = accuracy(reward, preference, tie_credit=0.0)
    assert accuracy(reward, preference, tie_credit=credit) == pytest.approx(strict + credit * ties, abs=1e-12)


def test_ten_pairs_with_five_right_two_wrong_and_three_equal_are_65_percent_or_50_strictly() -> None:
    """Half credit for each tie: (5 + 1.5) / 10; never .80."""
    margins = [1.0] * 5 + [-1.0] * 2 + [0.0] * 3
    preference = pairs_of(list(range(10)), [10] * 10, count=11)
    reward = given_scores(*margins, 0.0)
    assert accuracy(reward, preference) == 0.65
    assert accuracy(reward, preference, tie_credit=0.0) == 0.5


def test_loss_and_accuracy_follow_when_the_columns_are_swapped() -> None:
    """Margins (1, -2): mean of softplus(-1) and softplus(2) is 1.220095; swapped, 0.720095; accuracy 1/2 both times.
    With margins (1, 2) the accuracy goes from 1 to 0."""
    preference = pairs_of([0, 2], [1, 3])
    swapped = replace(preference, chosen=preference.rejected, rejected=preference.chosen)
    assert first_loss(scoring(1.0, 0.0, -2.0, 0.0), preference) == pytest.approx(1.220095, abs=1e-6)
    assert first_loss(scoring(1.0, 0.0, -2.0, 0.0), swapped) == pytest.approx(0.720095, abs=1e-6)
    reward = given_scores(1.0, 0.0, 2.0, 0.0)
    assert (accuracy(reward, preference), accuracy(reward, swapped)) == (1.0, 0.0)


# Scale


@modest
@given(st.lists(st.integers(-50, 50), min_size=3, max_size=8, unique=True), st.booleans())
def test_a_standardised_reward_has_mean_0_and_deviation_1_on_its_reference(scores: list[int], weighted: bool) -> None:
    """Population deviation, each response once or by its probability; float32 scores leave up to 1e-5."""
    rollout = rows(len(scores))
    weights = torch.rand(len(scores), generator=seeded(len(scores))) + 0.1 if weighted else None
    reward = standardise(scoring(*map(float, scores)), rollout, weights=weights)
    share = (torch.ones(len(scores)) if weights is None else weights).double()
    share = share / share.sum()
    out = reward(rollout).double()
    mean = (share * out).sum()
    assert float(mean) == pytest.approx(0, abs=1e-5)
    assert float((share * (out - mean).square()).sum()) == pytest.approx(1, abs=1e-5)


def test_scores_1_2_3_become_plus_and_minus_the_root_of_three_halves() -> None:
    """Population deviation of (1, 2, 3) is sqrt(2/3), so the scores are (-1.224745, 0, 1.224745)."""
    out = standardise(scoring(1.0, 2.0, 3.0), rows(3))(rows(3))
    assert_close(out, torch.tensor([-1.224745, 0.0, 1.224745]), atol=1e-6, rtol=0)


def test_a_constant_reward_is_refused() -> None:
    """It prefers nothing; also where the differences are rounding of a large mean."""
    for scores in ((0.1,) * 5, (0.0, 0.0), (3e7, 3e7, 3e7)):
        with pytest.raises(Refusal, match="same score"):
            standardise(scoring(*scores), rows(len(scores)))


def test_a_standardised_model_is_frozen_and_its_scale_is_saved_with_it() -> None:
    """Loaded into another scale and other weights, it scores bit-equal."""
    model = standardise(scoring(1.0, 2.0, 4.0), rows(3))
    assert not any(p.requires_grad for p in model.parameters())
    other = Standardised(scoring(1.0, 2.0, 4.0), 5.0, 6.0)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(rows(3)), model(rows(3)))


def test_scores_that_are_no_numbers_are_not_called_equal() -> None:
    """The complaint names what is not finite; "the same score" would send the user the wrong way."""
    with pytest.raises(NonFinite, match="not finite"):
        standardise(scoring(1.0, float("nan"), 2.0), rows(3))


# Refusals


@pytest.mark.parametrize(
    ("config", "word"),
    [
        (FitConfig(steps=0), "steps 0"),
        (FitConfig(batch=0), "batch 0"),
        (FitConfig(learning_rate=0.0), "learning_rate"),
        (FitConfig(learning_rate=-1.0), "learning_rate"),
        (FitConfig(learning_rate=float("inf")), "learning_rate"),
        (FitConfig(learning_rate=float("nan")), "learning_rate"),
    ],
)
def test_settings_that_cannot_fit_are_refused_by_name(config: FitConfig, word: str) -> None:
    """Before anything is trained."""
    with pytest.raises(Refusal, match=word):
        FitState(scoring(0.0), config, seeded(0))


def test_no_pair_is_refused() -> None:
    """Rankings of one response, or of ties only, leave nothing to fit."""
    nothing = torch.zeros(0, dtype=torch.long)
    with pytest.raises(Refusal, match="no pair to fit"):
        next(fit(FitState(scoring(0.0), FitConfig(), seeded(0)), Preference.hard(rows(1), nothing, nothing)))


def test_a_loss_that_is_no_number_stops_the_fit_at_its_step() -> None:
    """The weights have not been touched."""
    model = scoring(float("nan"), 0.0)
    with pytest.raises(NonFinite, match="loss is not finite at step 0"):
        next(fit(FitState(model, FitConfig(learning_rate=0.1), seeded(0)), pairs_of([0], [1])))
    assert [p.item() for p in model.parameters()] == [1.0, 0.0]


# The penalty


def test_a_penalty_pulls_the_weights_together_and_stays_out_of_the_told_loss() -> None:
    """One pair, difference 1, l2 = sigma(-1) / 2: the optimum is w = 1 (sigma(-w) = 2 l2 w), where without it w grows
    for ever; its loss is softplus(-1) = .313262."""
    preference = pairs_of([1], [0])
    model = Head(table(torch.tensor([[0.0], [1.0]])), nn.Linear(1, 1))
    l2 = float(torch.sigmoid(torch.tensor(-1.0)) / 2)
    steps = list(fit(FitState(model, FitConfig(steps=800, learning_rate=0.02, l2=l2), seeded(0)), preference))
    assert model.state_dict()["network.weight"].item() == pytest.approx(1, abs=1e-3)
    assert steps[-1].loss == pytest.approx(0.313262, abs=1e-3)


@pytest.mark.parametrize("l2", [-1.0, float("nan")])
def test_a_penalty_that_cannot_be_is_refused(l2: float) -> None:
    with pytest.raises(Refusal, match="l2 of 0 or more"):
        FitConfig(l2=l2).validate()
