"""The transformer policy: what it samples is what it scores, whatever its shape, padding or neighbours."""

import itertools
import json
import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor
from torch.testing import assert_close

from killick.models import weights
from killick.models.policy import TransformerPolicy, check_network
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.value import Critic
from killick.types import NonFinite, Prompts, Refusal, Rollout, Vocabulary

modest = settings(max_examples=15, deadline=None, derandomize=True)
WORDS = Vocabulary(size=9, time=5, eos=7, pad=8, forbidden=(8,))
SMALL = TransformerConfig(9, 9, context=12, hidden=16, layers=2, heads=2, feed_forward=24)
SHAPES = [
    replace(SMALL, norm=n, positions=p, activation=a, biases=a != "swiglu")  # type: ignore[arg-type]
    for n, p, a in product(("layer", "rms"), ("learned", "rotary"), ("relu", "gelu", "swiglu"))
]
every_shape = pytest.mark.parametrize("config", SHAPES, ids=lambda c: f"{c.norm}-{c.positions}-{c.activation}")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def speaker(
    config: TransformerConfig = SMALL, words: Vocabulary = WORDS, temperature: float = 1.0, seed: int = 0
) -> TransformerPolicy:
    return TransformerPolicy(Transformer(config, seeded(seed)), words, temperature).requires_grad_(False)


def asked(count: int, length: int = 4, seed: int = 1) -> Prompts:
    """Prompts without padding."""
    ids = torch.randint(0, 7, (count, length), generator=seeded(seed))
    return ids, torch.ones_like(ids, dtype=torch.bool)


def padded(prompts: Prompts, columns: int, fill: int) -> Prompts:
    """The same prompts behind so many columns of padding."""
    ids, mask = prompts
    front = torch.full((len(ids), columns), fill)
    return torch.cat((front, ids), 1), torch.cat((torch.zeros_like(front, dtype=torch.bool), mask), 1)


def with_prompts(rollout: Rollout, prompts: Prompts) -> Rollout:
    return replace(rollout, prompts=prompts[0], prompt_mask=prompts[1])


# One distribution


@every_shape
@pytest.mark.parametrize("columns", [0, 3])
def test_the_samplers_log_probs_are_those_of_one_full_pass(config: TransformerConfig, columns: int) -> None:
    """Through the cache and without it, padded or not, at T = .8: 1e-5, so that the first ratio of PPO is 1."""
    policy = speaker(config, temperature=0.8)
    rollout = policy.sample(padded(asked(20), columns, fill=8), 2, seeded(2))
    found, full = policy.logprobs(rollout)
    assert_close(rollout.logprobs, found, atol=1e-5, rtol=0)
    assert len(rollout.lengths.unique()) > 1
    assert_close(full.exp().sum(-1), torch.ones(full.shape[:2]), atol=1e-5, rtol=0)


@every_shape
def test_padding_on_the_left_changes_neither_tokens_nor_log_probs_nor_values(config: TransformerConfig) -> None:
    """The same generator, three columns of any token in front, rows of different length in one batch."""
    policy, prompts = speaker(config), asked(20)
    critic = Critic.from_network(policy.network)
    torch.nn.init.normal_(critic.network.head.weight, generator=seeded(3))
    plain = policy.sample(prompts, 1, seeded(2))
    longer = padded(prompts, 3, fill=5)
    other = policy.sample(longer, 1, seeded(2))
    assert torch.equal(other.responses, plain.responses)
    assert torch.equal(other.mask, plain.mask)
    assert_close(other.logprobs, plain.logprobs, atol=1e-5, rtol=0)
    for fill in (0, 5):
        moved = with_prompts(plain, padded(prompts, 3, fill))
        assert_close(policy.logprobs(moved)[0], policy.logprobs(plain)[0], atol=1e-5, rtol=0)
        assert_close(critic(moved)[plain.mask], critic(plain)[plain.mask], atol=1e-5, rtol=1e-5)


def test_prompts_of_different_length_in_one_batch_score_as_they_do_alone() -> None:
    """Lengths 4, 3, 1: each row padded to 4, against each prompt by itself without padding (1e-5)."""
    policy, (ids, _) = speaker(), asked(3)
    mask = torch.tensor([[True] * 4, [False] + [True] * 3, [False] * 3 + [True]])
    rollout = policy.sample((ids, mask), 1, seeded(4))
    together = policy.logprobs(rollout)[0]
    for row, length in enumerate((4, 3, 1)):
        alone = with_prompts(
            rollout[row : row + 1], (ids[row : row + 1, 4 - length :], mask[row : row + 1, 4 - length :])
        )
        assert_close(policy.logprobs(alone)[0], together[row : row + 1], atol=1e-5, rtol=0)


@modest
@given(st.integers(0, 8), st.integers(0, 100))
def test_what_stands_behind_the_end_never_matters(fill: int, seed: int) -> None:
    """Any id on the padding, and three more columns of it: log-probs (0 there) bit-equal or within 1e-5."""
    policy = speaker()
    rollout = policy.sample(asked(12, seed=seed), 1, seeded(seed))
    filled = replace(rollout, responses=rollout.responses.where(rollout.mask, fill))
    assert_close(policy.logprobs(filled)[0], policy.logprobs(rollout)[0], atol=1e-6, rtol=0)
    if rollout.responses.shape[1] > 2:
        short = rollout.lengths <= 2
        cut = rollout[short]
        narrow = replace(cut, responses=cut.responses[:, :2], mask=cut.mask[:, :2], logprobs=cut.logprobs[:, :2])
        assert_close(policy.logprobs(narrow)[0], policy.logprobs(cut)[0][:, :2], atol=1e-5, rtol=0)
    assert bool((policy.logprobs(rollout)[0][~rollout.mask] == 0).all())


@every_shape
def test_a_later_token_leaves_earlier_log_probs_alone(config: TransformerConfig) -> None:
    """Change response token 3: its own log-prob and later ones move, 0 to 2 do not (1e-6)."""
    words = replace(WORDS, eos=None)
    policy = speaker(config, words)
    rollout = policy.sample(asked(8), 1, seeded(0))
    other = rollout.responses.clone()
    other[:, 3] = (other[:, 3] + 1) % 7
    before, after = (policy.logprobs(replace(rollout, responses=r))[0] for r in (rollout.responses, other))
    assert_close(after[:, :3], before[:, :3], atol=1e-6, rtol=0)
    assert float((after[:, 3:] - before[:, 3:]).abs().amax(1).min()) > 1e-4


def test_temperature_is_one_for_drawing_and_scoring() -> None:
    """Logits (1, 0) at T = .5: token 0 has -0.126928 in the sample, in the score, and in 20,000 draws."""
    config, words = TransformerConfig(2, 2, context=2, hidden=4, layers=1, heads=1), Vocabulary(size=2, time=1)
    policy = speaker(config, words, temperature=0.5)
    policy.network.head.weight.zero_()
    policy.network.head.bias.copy_(torch.tensor([1.0, 0.0]))
    ids = torch.zeros(20_000, 1, dtype=torch.long)
    rollout = policy.sample((ids, torch.ones_like(ids, dtype=torch.bool)), 1, seeded(0))
    zero = rollout.responses[:, 0] == 0
    for found in (rollout.logprobs, policy.logprobs(rollout)[0]):
        assert_close(found[zero], torch.full((int(zero.sum()), 1), -0.126928), atol=1e-6, rtol=0)
    # exp(-0.126928) = 0.880797, within 4 standard errors.
    assert abs(float(zero.double().mean()) - 0.880797) < 4 * (0.8808 * 0.1192 / 20_000) ** 0.5


def test_a_forbidden_token_is_never_drawn_and_its_log_prob_is_minus_infinity() -> None:
    """The head likes it most by far; 8,000 responses."""
    policy = speaker()
    policy.network.head.bias[8] += 100.0
    rollout = policy.sample(asked(2000), 4, seeded(1))
    assert int((rollout.responses[rollout.mask] == 8).sum()) == 0
    full = policy.logprobs(rollout[:10])[1]
    assert bool((full[..., 8] == -torch.inf).all())
    assert bool(torch.isfinite(full[..., :8]).all())


def test_responses_are_drawn_as_often_as_their_exact_probability_says() -> None:
    """Three tokens, budget 2, one of them the end: 7 possible responses, enumerated and scored; 20,000 draws, each
    share within 4 standard errors."""
    words = Vocabulary(size=3, time=2, eos=2, pad=0)
    policy = speaker(TransformerConfig(3, 3, context=3, hidden=8, layers=1, heads=1, feed_forward=8), words, 1.5)
    every = [(2,), *itertools.product((0, 1), (0, 1, 2))]
    tokens = torch.tensor([[*row, *[0] * (2 - len(row))] for row in every])
    mask = torch.arange(2)[None] < torch.tensor([len(row) for row in every])[:, None]
    ids = torch.ones(7, 1, dtype=torch.long)
    listed = Rollout(ids, ids.bool(), tokens, mask, torch.zeros(7, 2), torch.ones(7, dtype=torch.bool))
    exact = policy.logprobs(listed)[0].sum(1).double().exp()
    assert float(exact.sum()) == pytest.approx(1.0, abs=1e-6)
    rollout = policy.sample((ids[:1], ids[:1].bool()), 20_000, seeded(3))
    drawn = [
        tuple(row[:length]) for row, length in zip(rollout.responses.tolist(), rollout.lengths.tolist(), strict=True)
    ]
    for response, chance in zip(every, exact.tolist(), strict=True):
        assert abs(drawn.count(response) / 20_000 - chance) < 4 * math.sqrt(chance * (1 - chance) / 20_000)


# Rollouts


@modest
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_the_same_seed_gives_the_same_bytes_and_prompts_stand_together(seed: int, n: int) -> None:
    """And another seed gives other responses; the global stream is not touched."""
    policy, prompts, before = speaker(), asked(8), torch.random.get_rng_state()
    first, again, other = (policy.sample(prompts, n, seeded(s)) for s in (seed, seed, seed + 1))
    for name in ("prompts", "responses", "mask", "logprobs", "finished"):
        assert torch.equal(getattr(first, name), getattr(again, name))
    assert first.responses.shape != other.responses.shape or not torch.equal(first.responses, other.responses)
    assert torch.equal(first.prompts, prompts[0].repeat_interleave(n, 0))
    assert torch.equal(before, torch.random.get_rng_state())


def test_finished_rows_hold_one_end_token_at_their_last_real_place() -> None:
    """And unfinished ones none, at the full budget."""
    rollout = speaker(temperature=2.0).sample(asked(200), 1, seeded(0))
    last = rollout.responses.gather(1, rollout.lengths[:, None] - 1)[:, 0]
    assert torch.equal(rollout.finished, last == 7)
    assert torch.equal(((rollout.responses == 7) & rollout.mask).sum(1), rollout.finished.long())
    assert bool((rollout.lengths[~rollout.finished] == 5).all())
    assert 0 < int(rollout.finished.sum()) < 200


def test_a_policy_that_always_ends_at_once_gives_responses_of_length_one() -> None:
    """And they score: log-prob close to 0, no crash, one column."""
    policy = speaker()
    policy.network.head.weight.zero_()
    policy.network.head.bias.copy_(torch.tensor([0.0] * 7 + [50.0, 0.0]))
    rollout = policy.sample(asked(6), 2, seeded(0))
    assert rollout.responses.tolist() == [[7]] * 12
    assert (rollout.lengths.tolist(), bool(rollout.finished.all())) == ([1] * 12, True)
    assert_close(policy.logprobs(rollout)[0], torch.zeros(12, 1), atol=1e-6, rtol=0)


def test_padding_that_equals_the_end_token_hides_no_end() -> None:
    """End = padding = 7: the mask decides, and the samples score as they were drawn."""
    policy = speaker(words=replace(WORDS, pad=7, forbidden=()), temperature=2.0)
    rollout = policy.sample(asked(50), 1, seeded(1))
    assert torch.equal((rollout.responses == 7).int().cumsum(1).clamp(max=1), (rollout.responses == 7).int())
    assert torch.equal(rollout.lengths[rollout.finished], (rollout.responses != 7).sum(1)[rollout.finished] + 1)
    assert_close(policy.logprobs(rollout)[0], rollout.logprobs, atol=1e-5, rtol=0)


# What is no number


def test_nan_weights_stop_the_sampler_by_name() -> None:
    """The first visible sign is the message, not a sampler that fails much later."""
    policy = speaker()
    policy.network.head.weight[0, 0] = math.nan
    with pytest.raises(NonFinite, match=r"log-probs of the sampled tokens are not finite in 4 of 4 rows"):
        policy.sample(asked(4), 1, seeded(0))


def test_a_row_of_minus_infinity_stops_the_sampler_by_name() -> None:
    """No token is possible."""
    policy = speaker()
    policy.network.head.bias.fill_(-torch.inf)
    with pytest.raises(NonFinite, match="sampled tokens"):
        policy.sample(asked(2), 1, seeded(0))


# Gradients


def test_the_gradient_of_a_log_prob_reaches_every_weight_and_matches_a_difference() -> None:
    """One direction at random, in float64: central difference against the gradient, relative 1e-6."""
    policy = speaker(seed=3).requires_grad_(True).double()
    rollout = policy.sample(asked(4), 1, seeded(0))
    policy.logprobs(rollout)[0].sum().backward()
    parameters = list(policy.parameters())
    assert all(p.grad is not None and bool(p.grad.any()) for p in parameters)
    move = [torch.randn(p.shape, generator=seeded(i), dtype=torch.float64) for i, p in enumerate(parameters)]
    slope = sum(float((p.grad * m).sum()) for p, m in zip(parameters, move, strict=True) if p.grad is not None)

    def at(step: float) -> float:
        with torch.no_grad():
            for p, m in zip(parameters, move, strict=True):
                p.add_(m, alpha=step)
            total = float(policy.logprobs(rollout)[0].sum())
            for p, m in zip(parameters, move, strict=True):
                p.sub_(m, alpha=step)
        return total

    assert (at(1e-6) - at(-1e-6)) / 2e-6 == pytest.approx(slope, rel=1e-5)


# Files


def saved(tmp_path, policy: TransformerPolicy):
    policy.save(tmp_path / "policy.safetensors")
    return tmp_path / "policy.safetensors"


@every_shape
def test_a_loaded_policy_is_bit_equal(tmp_path, config: TransformerConfig) -> None:
    """Shape, vocabulary, temperature, weights, samples and log-probs."""
    policy = speaker(config, temperature=0.7)
    copy = TransformerPolicy.load(saved(tmp_path, policy))
    assert (copy.network.config, copy.vocabulary, copy.temperature) == (config, WORDS, 0.7)
    assert all(torch.equal(a, b) for a, b in zip(policy.parameters(), copy.parameters(), strict=True))
    rollout, again = (p.sample(asked(5), 1, seeded(0)) for p in (policy, copy))
    assert torch.equal(rollout.responses, again.responses)
    assert torch.equal(policy.logprobs(rollout)[0], copy.logprobs(rollout)[0])


@pytest.mark.parametrize("name", ["network.head.weight", "network.blocks.1.qkv.bias", "network.embed.weight"])
def test_a_file_without_a_tensor_is_refused_by_its_name(tmp_path, name: str) -> None:
    """Never a fresh random one in its place."""
    path = saved(tmp_path, speaker())
    settings_, tensors = weights.read(path)
    del tensors[name]
    rewrite(path, settings_, tensors)
    with pytest.raises(Refusal, match=f"whole transformer policy.*{name}") as refusal:
        TransformerPolicy.load(path)
    assert "\n" not in str(refusal.value)


def rewrite(path, settings_: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    save_file(tensors, path, {"killick": json.dumps(settings_)})


def test_a_file_with_a_tensor_of_another_shape_or_settings_missing_is_refused(tmp_path) -> None:
    """One sentence each."""
    path = saved(tmp_path, speaker())
    settings_, tensors = weights.read(path)
    rewrite(path, settings_, tensors | {"network.head.bias": torch.zeros(3)})
    with pytest.raises(Refusal, match=r"head\.bias"):
        TransformerPolicy.load(path)
    rewrite(path, {"network": settings_["network"]}, tensors)
    with pytest.raises(Refusal, match="vocabulary"):
        TransformerPolicy.load(path)
    rewrite(path, settings_ | {"network": settings_["network"] | {"depth": 3}}, tensors)
    with pytest.raises(Refusal, match="depth"):
        TransformerPolicy.load(path)


def test_absent_truncated_and_foreign_files_are_refused_in_one_sentence(tmp_path) -> None:
    """Each says which file."""
    path = saved(tmp_path, speaker())
    raw = path.read_bytes()
    for content in (raw[: len(raw) // 2], b"hello", None):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(Refusal, match=r"policy\.safetensors") as refusal:
            TransformerPolicy.load(path)
        assert "\n" not in str(refusal.value)
        path.write_bytes(raw)


def test_a_failed_save_leaves_the_old_policy(tmp_path, monkeypatch) -> None:
    """It still loads bit-equal."""
    old = speaker(seed=1)
    path = saved(tmp_path, old)

    def fail(*_) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(weights, "save_file", fail)
    with pytest.raises(OSError, match="no space left"):
        speaker(seed=2).save(path)
    assert torch.equal(TransformerPolicy.load(path).network.head.weight, old.network.head.weight)


# Refusals


@pytest.mark.parametrize(
    ("config", "words", "sentence"),
    [
        (replace(SMALL, outputs=8), WORDS, "8 outputs, the vocabulary 9 tokens"),
        (replace(SMALL, outputs=10), WORDS, "10 outputs"),
        (replace(SMALL, inputs=8), WORDS, "reads 8 tokens, but the vocabulary needs 9"),
        (SMALL, replace(WORDS, pad=9), "reads 9 tokens, but the vocabulary needs 10"),
        (replace(SMALL, context=4), WORDS, "context of 4 is too short for 1 prompt and 5 response tokens"),
    ],
)
def test_a_network_that_cannot_speak_the_vocabulary_is_refused(config, words, sentence: str) -> None:
    """Outputs must agree; inputs and context must suffice."""
    with pytest.raises(Refusal, match=sentence):
        speaker(config, words)


def test_the_shortest_context_that_suffices_is_accepted_and_used() -> None:
    """Prompts of 4 and 5 response tokens need 8: the last token is written, never read."""
    check_network(replace(SMALL, context=8), WORDS, prompt=4)
    with pytest.raises(Refusal, match="context of 7"):
        check_network(replace(SMALL, context=7), WORDS, prompt=4)
    policy = speaker(replace(SMALL, context=8), replace(WORDS, eos=None))
    rollout = policy.sample(asked(3), 1, seeded(0))
    assert rollout.responses.shape == (3, 5)
    assert policy.logprobs(rollout)[0].shape == (3, 5)


@pytest.mark.parametrize("temperature", [0.0, -0.5, math.inf, math.nan])
def test_a_temperature_without_log_probs_is_refused(temperature: float) -> None:
    """T = 0 is a choice, not a distribution."""
    with pytest.raises(Refusal, match="temperature must be a positive number"):
        speaker(temperature=temperature)
