"""Top layers over a frozen trunk: the model's own numbers, a memo that changes none, and a folder that anyone opens."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

pytest.importorskip("transformers", reason="a trunk is a transformers model (extra hf)")

from killick.models import stack
from killick.models import trunk as module
from killick.models.folders import open_causal
from killick.models.layers import run
from killick.models.pretrained import PretrainedPolicy
from killick.models.prompting import PromptSet
from killick.models.texts import Texts
from killick.models.trunk import TopPolicy, TopValue, Trunk
from killick.types import Prompts, Refusal, Rollout, Vocabulary
from llamas import llama

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
WORDS = Vocabulary(300, time=6, eos=2, pad=0)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def asked(count: int = 6) -> Prompts:
    """Prompts of four tokens, every other one of two."""
    ids = torch.randint(3, 300, (count, 4), generator=seeded(1))
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[1::2, :2] = False
    return ids, mask


def loud() -> Any:
    return llama(layers=4, loud=10.0)


def passes(trunk: Trunk) -> list[int]:
    """Counts the rows of every pass through the bottom from now on."""
    counted: list[int] = []
    plain = trunk.computed

    def computed(ids: Tensor, mask: Tensor | None, layer: int) -> Tensor:
        counted.append(len(ids))
        return plain(ids, mask, layer)

    trunk.computed = computed  # type: ignore[method-assign]
    return counted


@pytest.mark.parametrize("train", [1, 2, 4])
def test_top_layers_speak_as_the_whole_model_does(train: int) -> None:
    """The same draws, log-probs and full distribution as a policy that runs all layers at once."""
    whole = PretrainedPolicy(loud(), WORDS, 0.8)
    top = TopPolicy(Trunk(loud(), train), WORDS, temperature=0.8)
    rollout, other = (policy.sample(asked(), 3, seeded(2)) for policy in (whole, top))
    assert torch.equal(rollout.responses, other.responses)
    assert len(rollout.lengths.unique()) > 1
    for mine, theirs in zip(top.logprobs(rollout), whole.logprobs(rollout), strict=True):
        assert_close(mine, theirs, atol=1e-5, rtol=1e-5)
    assert_close(top.logprobs(rollout)[0].detach(), rollout.logprobs, atol=1e-4, rtol=0)


def test_the_librarys_states_after_each_layer() -> None:
    """Raw states are `hidden_states`, and those handed out are divided by their root mean square."""
    model = loud()
    trunk = Trunk(model, 2)
    rollout = TopPolicy(trunk, WORDS).sample(asked(), 1, seeded(0))
    real = torch.cat((rollout.prompt_mask, rollout.mask), 1)
    ids, places = torch.cat((rollout.prompts, rollout.responses), 1), (real.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        out = model(ids, attention_mask=real.long(), position_ids=places, output_hidden_states=True)
    for layer in (0, 1, 2, 3):
        expected = out.hidden_states[layer]
        assert_close(trunk.whole(rollout, layer=layer)[real], expected[real], atol=1e-5, rtol=1e-4)
        states = trunk.states(rollout, layer=layer)[rollout.mask]
        assert_close(states.square().mean(1), torch.ones(len(states)), atol=1e-3, rtol=0)
        normed = expected[:, 4:][rollout.mask]
        normed = normed / (normed.square().mean(1, keepdim=True) + 1e-5).sqrt()
        assert_close(states, normed, atol=1e-4, rtol=1e-4)
    assert torch.equal(trunk.states(rollout), trunk.states(rollout, layer=2))
    with pytest.raises(Refusal, match="4 layers; there is no state after layer 5"):
        trunk.states(rollout, layer=5)


def test_each_row_is_read_once_for_policy_reference_critic_and_judge() -> None:
    """Whole, in parts, in another order, and behind other padding: no second pass, and the very same bits."""
    trunk = Trunk(loud(), 1)
    policy, reference = TopPolicy(trunk, WORDS), TopPolicy(trunk, WORDS, trains=False)
    value = TopValue(trunk, seeded(0))
    rollout = policy.sample(asked(), 2, seeded(3))
    counted = passes(trunk)
    first = trunk.whole(rollout)
    policy.logprobs(rollout)
    reference.logprobs(rollout)
    value(rollout)
    order = torch.tensor([7, 2, 2, 11])
    part = trunk.whole(rollout[order])
    real = torch.cat((rollout.prompt_mask, rollout.mask), 1)
    assert torch.equal(part[real[order]], first[order][real[order]])
    front = torch.full((12, 3), 9)
    wide = replace(
        rollout,
        prompts=torch.cat((front, rollout.prompts), 1),
        prompt_mask=torch.cat((front < 0, rollout.prompt_mask), 1),
    )
    assert torch.equal(trunk.whole(wide)[:, 3:][real], first[real])
    assert counted == [12]
    policy.sample(asked(), 1, seeded(4))
    assert trunk.held == len(trunk.memo) == 0
    trunk.whole(rollout)
    assert counted == [12, 12]


def test_a_memo_that_is_full_changes_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for a few rows only: the others are computed each time."""
    trunk = Trunk(loud(), 1)
    rollout = TopPolicy(trunk, WORDS).sample(asked(), 2, seeded(3))
    expected = trunk.whole(rollout)
    trunk.forget()
    monkeypatch.setattr(module, "MEMO", 4000)
    for _ in range(2):
        assert_close(trunk.whole(rollout), expected, atol=1e-5, rtol=1e-5)
    assert 0 < trunk.held <= 4000
    assert len(trunk.memo) < 12


@pytest.mark.parametrize(("count", "passed"), [(16, [16]), (40, [16, 16, 16]), (3, [16])])
def test_half_precision_is_scored_sixteen_sequences_at_a_time(
    count: int, passed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Always as many, so that a sequence's log-probs are those of any minibatch bit for bit; float32 goes in one."""
    seen: list[int] = []

    def counted(x: Tensor, layers: Any, *, where: Any, caches: Any = None) -> Tensor:
        seen.append(len(x))
        return run(x, layers, where=where, caches=caches)

    for model, sizes in ((loud().bfloat16(), passed), (loud(), [count])):
        policy = TopPolicy(Trunk(model, 2), WORDS)
        rollout = policy.sample(asked(count), 1, seeded(0))
        policy.trunk.whole(rollout)
        monkeypatch.setattr(stack, "run", counted)
        seen.clear()
        whole = policy.logprobs(rollout)[0]
        length = rollout.prompts.shape[1] + rollout.responses.shape[1] - 1
        assert seen == [size * length for size in sizes]
        assert whole.shape == rollout.responses.shape
        monkeypatch.undo()


def test_a_real_models_first_ratio_is_one_in_half_precision(smollm2: Path) -> None:
    """Old log-probs of 24 rows, then minibatches of 8 and of 5 of them: in products of their own size some would be off
    by a third."""
    texts = Texts.load(smollm2, chat=False)
    prompts = PromptSet(["My honest review of the lamp: I thought it", "Dear diary,", "I"], texts, limit=40)
    policy = TopPolicy(Trunk(open_causal(smollm2, dtype=torch.bfloat16), 2), texts.vocabulary(6), temperature=0.8)
    rollout = policy.sample(prompts.all(), 8, seeded(0))
    with torch.no_grad():
        old = policy.logprobs(rollout)[0]
        for rows in torch.randperm(24, generator=seeded(1)).split([8, 8, 5, 3]):
            assert torch.equal(policy.logprobs(rollout[rows])[0], old[rows])


def test_only_the_top_is_trained_and_kept() -> None:
    """One layer and the norm in float32; the trunk and the head have no gradient, and a copy shares the trunk."""
    model = loud().bfloat16()
    policy = TopPolicy(Trunk(model, 1), WORDS)
    names = dict(policy.named_parameters())
    assert {name.split(".")[0] for name in names} == {"layers", "norm"}
    assert all(tensor.dtype == torch.float32 and tensor.requires_grad for tensor in names.values())
    assert sum(tensor.numel() for tensor in names.values()) == 32 * 32 * 2 + 16 * 32 * 2 + 3 * 48 * 32 + 3 * 32
    rollout = policy.sample(asked(), 1, seeded(0))
    logprobs, full = policy.logprobs(rollout)
    assert full.dtype == torch.float32
    logprobs.sum().backward()
    assert all(tensor.grad is not None and bool(tensor.grad.any()) for tensor in names.values())
    assert all(parameter.grad is None and not parameter.requires_grad for parameter in model.parameters())
    other = deepcopy(policy)
    assert other.trunk is policy.trunk
    assert set(other.state_dict()) == set(names)
    assert not {p.data_ptr() for p in other.parameters()} & {p.data_ptr() for p in model.parameters()}


def test_spoken_tokens_have_the_only_columns() -> None:
    """50 of 300 tokens, the end among them: log-probs are the whole distribution's, normalised over those."""
    spoken = (2, *range(100, 149))
    trunk = Trunk(loud(), 1)
    few, every = TopPolicy(trunk, WORDS, spoken=spoken), TopPolicy(trunk, WORDS)
    rollout = few.sample(asked(), 8, seeded(5))
    assert set(rollout.responses[rollout.mask].tolist()) <= set(spoken)
    picked, full = few.logprobs(rollout)
    assert full.shape == (*rollout.responses.shape, 50)
    expected = every.logprobs(rollout)[1][..., list(spoken)].log_softmax(-1)
    assert_close(full[rollout.mask], expected[rollout.mask], atol=1e-5, rtol=1e-5)
    assert_close(picked.detach(), rollout.logprobs, atol=1e-4, rtol=0)
    columns = torch.tensor(spoken).tolist()
    at = (3, 0)
    assert picked[at] == full[at][columns.index(int(rollout.responses[at]))]


def test_the_written_folder_is_the_whole_model_with_the_trained_layers(tmp_path: Any) -> None:
    """Moved weights, written, opened by the library: the same log-probs; untouched layers bit-equal; bfloat16 stays."""
    loud().save_pretrained(tmp_path / "in")
    model = open_causal(tmp_path / "in", dtype=torch.bfloat16)
    policy = TopPolicy(Trunk(model, 2), WORDS)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=seeded(6)))
    policy.save(tmp_path / "out")
    again = open_causal(tmp_path / "out")
    assert again.dtype == torch.bfloat16
    rollout = policy.sample(asked(), 2, seeded(7))
    copy = PretrainedPolicy(again, WORDS)
    assert torch.equal(copy.sample(asked(), 2, seeded(7)).responses, rollout.responses)
    assert_close(copy.logprobs(rollout)[0], policy.logprobs(rollout)[0], atol=1e-5, rtol=0)
    old, new = model.state_dict(), again.state_dict()
    assert all(torch.equal(new[name], old[name]) for name in old if ".layers.1." in name or "embed" in name)
    assert not any(torch.equal(new[name], old[name]) for name in old if ".layers.2." in name)
    assert torch.equal(new["model.norm.weight"], policy.norm.weight.bfloat16())


def test_a_critic_expects_nothing_at_first_and_learns_from_the_state_before_each_token() -> None:
    """Zeros; then moved weights: the linear head on the states that have not read their token."""
    trunk = Trunk(loud(), 1)
    rollout = TopPolicy(trunk, WORDS).sample(asked(), 1, seeded(0))
    for value in (TopValue(trunk, seeded(0)), TopValue(trunk, seeded(0), width=5)):
        assert not bool(value(rollout).any())
    value = TopValue(trunk, seeded(0))
    with torch.no_grad():
        value.head.weight.fill_(0.1)
        value.head.bias.fill_(2.0)
    before = torch.cat((trunk.whole(rollout)[:, 3:4], trunk.whole(rollout)[:, 4:-1]), 1)
    normed = before / (before.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    assert_close(value(rollout)[rollout.mask], (0.1 * normed.sum(-1) + 2)[rollout.mask], atol=1e-4, rtol=1e-4)
    changed = replace(rollout, responses=rollout.responses.index_fill(1, torch.tensor([rollout.mask.shape[1] - 1]), 7))
    assert torch.equal(value(changed)[:, -1], value(rollout)[:, -1])
    first, again, other = (TopValue(trunk, seeded(seed), width=5).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["inner.weight"], other["inner.weight"])


def test_models_and_numbers_of_layers_that_do_not_fit_are_refused() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    other = GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=8, n_layer=1, n_head=2, n_positions=16))
    with pytest.raises(Refusal, match=r"Llama layout .*; its layout is gpt2"):
        Trunk(other, 1)
    for number in (0, 5, -1):
        with pytest.raises(Refusal, match=f"between 1 and 4 of them can train, not {number}"):
            Trunk(loud(), number)


def test_prompts_that_leave_no_room_are_refused() -> None:
    """Context 128: a prompt of 123 tokens and a response of six are one too many; padding does not count."""
    policy = TopPolicy(Trunk(loud(), 1), WORDS)
    ids = torch.full((2, 140), 5)
    mask = torch.arange(140).expand(2, -1) >= 17
    with pytest.raises(
        Refusal, match=r"prompt of 123 tokens and a response of up to 6 do not fit into .* context of 128"
    ):
        policy.sample((ids, mask), 1, seeded(0))
    mask = torch.arange(140).expand(2, -1) >= 18
    assert isinstance(policy.sample((ids, mask), 1, seeded(0)), Rollout)
    with pytest.raises(Refusal, match=r"token 300; the model reads 0\.\.299"):
        policy.sample((ids.where(ids < 0, 300), mask), 1, seeded(0))
