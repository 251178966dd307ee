"""A Hugging Face model as a policy: a random two-layer Llama, nothing fetched."""

import math
import os
import warnings
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import llamas
from killick.models.folders import open_causal
from killick.models.pretrained import PretrainedPolicy, evaluating
from killick.models.texts import Texts
from killick.models.transformer import Transformer, TransformerConfig
from killick.types import NonFinite, Prompts, Refusal, Vocabulary

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("transformers", reason="a pretrained policy needs transformers (extra hf)")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
WORDS = Vocabulary(size=20, time=6, eos=7, pad=0)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def llama(dropout: float = 0.0):
    """A Llama of 2 layers, 4 heads and 24 tokens (four more than are spoken); weights from a seed of its own."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=24, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=32, rms_norm_eps=1e-5, attention_dropout=dropout,
        tie_word_embeddings=False, bos_token_id=1, eos_token_id=7, pad_token_id=0,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(10)  # a deviation of .2 instead of .02, so that distributions are far from flat
    return model


def asked(count: int = 12, length: int = 4) -> Prompts:
    ids = torch.randint(1, 20, (count, length), generator=seeded(1))
    return ids, torch.ones_like(ids, dtype=torch.bool)


def padded(prompts: Prompts, columns: int, fill: int) -> Prompts:
    ids, mask = prompts
    front = torch.full((len(ids), columns), fill)
    return torch.cat((front, ids), 1), torch.cat((torch.zeros_like(front, dtype=torch.bool), mask), 1)


@pytest.mark.parametrize("columns", [0, 3])
def test_the_samplers_log_probs_are_those_of_one_full_pass(columns: int) -> None:
    """Through the library's cache and without it, padded or not (1e-4: another order of sums in each layer)."""
    policy = PretrainedPolicy(llama(), WORDS, temperature=0.9)
    rollout = policy.sample(padded(asked(), columns, fill=0), 2, seeded(2))
    found, full = policy.logprobs(rollout)
    assert_close(found.detach(), rollout.logprobs, atol=1e-4, rtol=0)
    assert full.shape == (24, rollout.responses.shape[1], 20)
    assert len(rollout.lengths.unique()) > 1
    assert torch.equal(rollout.prompts, padded(asked(), columns, fill=0)[0].repeat_interleave(2, 0))


def test_padding_on_the_left_changes_neither_tokens_nor_log_probs() -> None:
    """The same generator, three columns of any token in front."""
    policy, prompts = PretrainedPolicy(llama(), WORDS), asked()
    plain, other = (policy.sample(p, 1, seeded(3)) for p in (prompts, padded(prompts, 3, fill=9)))
    assert torch.equal(plain.responses, other.responses)
    assert_close(other.logprobs, plain.logprobs, atol=1e-4, rtol=0)
    for fill in (0, 9):
        ids, mask = padded(prompts, 3, fill)
        moved = replace(plain, prompts=ids, prompt_mask=mask)
        assert_close(policy.logprobs(moved)[0], policy.logprobs(plain)[0], atol=1e-4, rtol=0)


def test_what_stands_behind_the_end_never_matters_and_scores_nothing() -> None:
    """Any token of the vocabulary on the padding."""
    policy = PretrainedPolicy(llama(), WORDS)
    rollout = policy.sample(asked(), 2, seeded(2))
    assert not bool(rollout.mask.all())
    filled = replace(rollout, responses=rollout.responses.where(rollout.mask, 5))
    found = policy.logprobs(filled)[0]
    assert_close(found, policy.logprobs(rollout)[0], atol=1e-5, rtol=0)
    assert not bool(found[~rollout.mask].any())


def test_tokens_beyond_the_vocabulary_and_forbidden_ones_are_never_said() -> None:
    """The model has 24 tokens, 20 are spoken, one of those is forbidden: 3,000 tokens and the scored distribution."""
    policy = PretrainedPolicy(llama(), replace(WORDS, eos=None, forbidden=(3,)))
    rollout = policy.sample(asked(50), 10, seeded(0))
    said = set(rollout.responses.unique().tolist())
    assert said <= set(range(20)) - {3}
    full = policy.logprobs(rollout[:4])[1].detach()
    assert bool((full[..., 3] == -torch.inf).all())
    assert_close(full.exp().sum(-1), torch.ones(4, 6), atol=1e-5, rtol=0)


def test_with_dropout_the_log_probs_are_still_one_distribution_and_modes_come_back() -> None:
    """Dropout .1 in training mode: sampler, first score and second score agree, so that the first ratio is 1."""
    policy = PretrainedPolicy(llama(dropout=0.1), WORDS)
    policy.model.train()
    policy.model.model.layers[1].eval()
    modes = [module.training for module in policy.model.modules()]
    rollout = policy.sample(asked(), 1, seeded(4))
    first, second = (policy.logprobs(rollout)[0].detach() for _ in range(2))
    assert torch.equal(first, second)
    assert_close(first, rollout.logprobs, atol=1e-4, rtol=0)
    assert [module.training for module in policy.model.modules()] == modes
    assert len(set(modes)) == 2


def test_modes_come_back_after_an_error_too() -> None:
    """A sampler that fails must not leave a model without dropout."""
    model = torch.nn.Sequential(torch.nn.Dropout(0.5))

    def fail() -> None:
        with evaluating(model):
            assert not model[0].training
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert model[0].training


def test_gradients_flow_in_evaluation_mode() -> None:
    """Every weight that a response depends on has one."""
    policy = PretrainedPolicy(llama(), WORDS)
    policy.logprobs(policy.sample(asked(), 1, seeded(0)))[0].sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in policy.parameters())


def test_nan_weights_stop_the_sampler_by_name() -> None:
    """As in every policy."""
    policy = PretrainedPolicy(llama(), WORDS)
    torch.nn.init.constant_(policy.model.lm_head.weight, math.nan)
    with pytest.raises(NonFinite, match="sampled tokens"):
        policy.sample(asked(2), 1, seeded(0))


# Our own Llama shape beside the library's


def test_our_llama_shape_computes_what_transformers_computes() -> None:
    """Copied weights: q, k, v in one matrix, gate and up in one. Their rotary pairs are halves of a head, ours are
    neighbours, so row 2 j of a head is theirs j, and row 2 j + 1 theirs j + 4 (width 8). Log-probs agree to 1e-4."""
    model = llama()
    theirs = model.state_dict()
    mine = Transformer(TransformerConfig.llama(24, 24, 32, hidden=32, layers=2, heads=4, feed_forward=48), seeded(0))
    order = torch.arange(8).view(2, 4).T.flatten()
    assert order.tolist() == [0, 4, 1, 5, 2, 6, 3, 7]

    def neighbours(weight):
        return weight.view(4, 8, 32)[:, order].reshape(32, 32)

    state = {"embed.weight": theirs["model.embed_tokens.weight"], "final_norm.weight": theirs["model.norm.weight"],
             "head.weight": theirs["lm_head.weight"]}  # fmt: skip
    for layer in range(2):
        old, new = f"model.layers.{layer}.", f"blocks.{layer}."
        q, k, v, o = (theirs[f"{old}self_attn.{name}_proj.weight"] for name in "qkvo")
        gate, up, down = (theirs[f"{old}mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
        state |= {
            f"{new}norm_attention.weight": theirs[f"{old}input_layernorm.weight"],
            f"{new}norm_feed_forward.weight": theirs[f"{old}post_attention_layernorm.weight"],
            f"{new}qkv.weight": torch.cat((neighbours(q), neighbours(k), v)),
            f"{new}out.weight": o,
            f"{new}up.weight": torch.cat((gate, up)),
            f"{new}down.weight": down,
        }
    mine.load_state_dict(state)
    ids = torch.randint(0, 24, (3, 10), generator=seeded(5))
    model.eval()
    with torch.no_grad():
        expected = model(ids).logits.log_softmax(-1)
        found = mine.head(mine(ids)).view(3, 10, 24).log_softmax(-1)
    assert float(expected.std()) > 0.5
    assert_close(found, expected, atol=1e-4, rtol=0)


# Any layout: by hand, or through the library's forward pass


def other_layout() -> Any:
    """A small GPT-2 with dropout, which only the library computes; its distributions are far from flat."""
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config(vocab_size=24, n_embd=16, n_layer=2, n_head=2, n_positions=32))
    with torch.no_grad():
        model.transformer.wte.weight.mul_(20)
    return model


@pytest.mark.parametrize("make", [llama, other_layout], ids=["llama", "gpt2"])
@pytest.mark.parametrize(
    "settings",
    [
        {"top_k": 3},
        {"top_p": 0.7},
        {"temperature": 0.6, "top_k": 8, "top_p": 0.8},
        {"spoken": (3, 7, 8, 19)},
        {"spoken": (3, 7, 8, 19), "top_k": 2},
    ],
    ids=str,
)
def test_what_is_sampled_is_what_is_scored(make: Any, settings: dict[str, Any]) -> None:
    """O-29: the sampler's log-probs are those of one full pass, under any filter, on either side of padding."""
    policy = PretrainedPolicy(make(), WORDS, **settings)
    rollout = policy.sample(padded(asked(), 2, fill=9), 3, seeded(2))
    found, full = policy.logprobs(rollout)
    assert_close(found.detach(), rollout.logprobs, atol=1e-4, rtol=0)
    spoken = settings.get("spoken", tuple(range(20)))
    assert full.shape == (*rollout.responses.shape, len(spoken))
    assert_close(full.exp().sum(-1)[rollout.mask], torch.ones(int(rollout.mask.sum())), atol=1e-5, rtol=0)
    assert set(rollout.responses[rollout.mask].tolist()) <= set(spoken)
    if "top_k" in settings:
        assert int((full > -torch.inf).sum(-1).max()) <= settings["top_k"]
    found.sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in policy.parameters() if p.grad is not None)


def test_by_hand_and_through_the_library_are_one_policy() -> None:
    """The same Llama both ways: the same tokens, the same log-probs to 1e-5."""
    ours, theirs = PretrainedPolicy(llama(), WORDS, 0.8), PretrainedPolicy(llama(), WORDS, 0.8)
    assert ours.by_hand
    theirs.by_hand = False
    rollouts = [policy.sample(padded(asked(), 2, fill=9), 2, seeded(2)) for policy in (ours, theirs)]
    assert torch.equal(rollouts[0].responses, rollouts[1].responses)
    real = rollouts[0].mask
    for mine, other in zip(ours.logprobs(rollouts[0]), theirs.logprobs(rollouts[0]), strict=True):
        assert_close(mine[real], other[real], atol=1e-5, rtol=1e-5)


def test_where_the_end_is_also_the_padding_it_is_a_real_token_once() -> None:
    """O-20: end = pad = 7; each finished response holds it exactly once, as its last real token, and it is scored."""
    policy = PretrainedPolicy(llama(), replace(WORDS, pad=7))
    rollout = policy.sample(asked(40), 4, seeded(3))
    ended = rollout[rollout.finished.nonzero()[:, 0]]
    assert len(ended) > 10
    assert bool((((ended.responses == 7) & ended.mask).sum(1) == 1).all())
    last = ended.lengths[:, None] - 1
    assert bool((ended.responses.gather(1, last) == 7).all())
    assert bool((policy.logprobs(ended)[0].gather(1, last) < 0).all())


@pytest.mark.parametrize("make", [llama, other_layout], ids=["llama", "gpt2"])
def test_a_prompt_that_leaves_no_room_is_refused(make: Any) -> None:
    """Both read 32 tokens; a prompt of 27 and a response of 6 are one too many."""
    ids = torch.full((1, 27), 5)
    with pytest.raises(Refusal, match="prompt of 27 tokens and a response of up to 6 do not fit"):
        PretrainedPolicy(make(), WORDS).sample((ids, ids > 0), 1, seeded(0))
    assert len(PretrainedPolicy(make(), WORDS).sample((ids[:, 1:], ids[:, 1:] > 0), 1, seeded(0))) == 1


# Folders


def test_the_tokenizer_goes_with_the_weights_and_the_folder_generates_in_transformers(tmp_path) -> None:
    """Weights kept in float32 and computed in bfloat16 are written in bfloat16; the library says what we say."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = llamas.llama_folder(tmp_path / "in")
    texts, model = Texts.load(folder), open_causal(folder, dtype=torch.float32)
    words = texts.vocabulary(6, size=300)
    policy = PretrainedPolicy(model, words, top_k=1, compute=torch.bfloat16)
    policy.save(tmp_path / "out", texts)
    ids = torch.tensor([texts.prompt("My honest review of the lamp")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copy = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
        tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
        asked = tokenizer.apply_chat_template(
            [{"role": "user", "content": "My honest review of the lamp"}], add_generation_prompt=True, return_dict=False
        )
        said = copy.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=6)
    assert asked == ids[0].tolist()
    assert copy.dtype == torch.bfloat16
    rollout = policy.sample((ids, ids >= 0), 1, seeded(0))
    assert said[0, ids.shape[1] :].tolist()[: int(rollout.lengths)] == rollout.responses[0][rollout.mask[0]].tolist()


def test_more_tokens_than_the_model_has_and_a_temperature_of_zero_are_refused() -> None:
    """Both before anything is sampled."""
    model = llama()
    with pytest.raises(Refusal, match="24 tokens, fewer than the 25"):
        PretrainedPolicy(model, replace(WORDS, size=25))
    with pytest.raises(Refusal, match="temperature"):
        PretrainedPolicy(model, WORDS, temperature=0.0)


def test_the_global_stream_is_left_alone() -> None:
    """Sampling draws from the given generator only."""
    policy = PretrainedPolicy(llama(), WORDS)
    before = torch.random.get_rng_state()
    first, again = (policy.sample(asked(), 1, seeded(9)) for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(first.responses, again.responses)
    assert torch.equal(first.logprobs, again.logprobs)
