import math

import pytest
import torch
from torch.testing import assert_close

import killick
from killick.models.chat import SHIPPED, Chat
from killick.models.encoding import encode_prompts
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.words import Words
from killick.types import Policy, Refusal
from killick.worlds.brand import chat, question
from killick.worlds.catalogue import HELD_OUT, KINDS, NAMES, PRODUCTS
from killick.worlds.copywriting import texts

ASKED = chat(question("Kestrel rain jacket"))


@pytest.fixture(scope="module")
def shipped() -> tuple[Chat, Words]:
    """tiny-gpt-chat, as a learner's script opens it; tests leave it as it is."""
    model, words = killick.load("tiny-gpt-chat")
    model.requires_grad_(False)
    return model, words


def small(context: int = 12) -> Chat:
    """Ten words, fresh weights."""
    words = Words("abcde")
    shape = TransformerConfig.llama(10, 10, context, hidden=16, layers=1, heads=2, feed_forward=24)
    return Chat(Transformer(shape, torch.Generator().manual_seed(0)), words).requires_grad_(False)


# The model that comes with the package


def test_it_is_a_million_parameters_in_less_than_eight_megabytes(shipped) -> None:
    model, words = shipped
    assert 0.8e6 < sum(parameter.numel() for parameter in model.parameters()) < 1.3e6
    assert sum(path.stat().st_size for path in SHIPPED["tiny-gpt-chat"].iterdir()) < 8_000_000
    assert words.words == Words.of(texts()).words


def test_names_kinds_and_questions_are_known_word_by_word(shipped) -> None:
    _, words = shipped
    for name in NAMES:
        assert len(words.encode(name)) == 1
    for product in PRODUCTS:
        assert words.decode(words.encode(chat(question(product)))) == f"<user> Describe the {product} . <assistant>"
        assert len(words.encode(chat(question(product)))) == 8


def test_a_script_as_the_source_has_it(shipped) -> None:
    """Prompt, answer that ends at <end>, states that the head reads."""
    model, words = shipped
    end = words.token_id("<end>")
    prompt = words.encode(ASKED)
    torch.manual_seed(0)
    ids = model.generate(prompt, 60, temperature=0.8, stop_id=end)
    assert isinstance(ids, list)
    assert ids[: len(prompt)] == prompt
    assert ids.count(end) == 1
    assert ids[-1] == end
    answer = words.decode(ids[len(prompt) :])
    assert answer.count(" .") >= 3
    assert "<" not in answer
    states = model.hidden(ids)
    assert states.shape == (1, len(ids), model.head.weight.shape[1])
    torch.manual_seed(0)
    assert model.generate(prompt, 60, temperature=0.8, stop_id=end) == ids


def test_what_follows_a_state_is_what_its_policy_says(shipped) -> None:
    """States, head and the policy's log-probs are one distribution, at temperature .8 over what may be said."""
    model, words = shipped
    policy = model.policy(temperature=0.8)
    prompts = encode_prompts([ASKED], words.encode)
    rollout = policy.sample(prompts, 1, torch.Generator().manual_seed(1))
    states = model.hidden(torch.cat((rollout.prompts, rollout.responses), 1))[:, 7:-1]
    logits = states @ model.head.weight.T / 0.8
    logits[..., list(policy.vocabulary.forbidden)] = -math.inf
    assert_close(logits.log_softmax(-1), policy.logprobs(rollout)[1], atol=1e-4, rtol=1e-4)


def test_it_answers_about_products_without_copy_and_most_answers_end(shipped) -> None:
    """72 held-out products: well-formed, of the right kind, and often by the right name."""
    model, words = shipped
    products = [f"{name} {kind}" for name in HELD_OUT for kind in KINDS]
    prompts = encode_prompts([chat(question(product)) for product in products], words.encode)
    rollout = model.policy(temperature=0.8).sample(prompts, 1, torch.Generator().manual_seed(2))
    said = [words.decode(ids) for ids in rollout.responses]
    assert rollout.finished.float().mean() > 0.97
    assert sum(product in text for product, text in zip(products, said, strict=True)) > 24
    assert sum(product.split(" ", 1)[1] in text for product, text in zip(products, said, strict=True)) > 55
    assert len(set(said)) > 65


def test_transformers_and_its_tokenizer_open_the_folder_and_agree(shipped) -> None:
    transformers = pytest.importorskip("transformers")
    model, words = shipped
    folder = SHIPPED["tiny-gpt-chat"]
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for product in PRODUCTS[::60]:
        ids = tokenizer(chat(question(product)), return_tensors="pt")["input_ids"]
        assert ids[0].tolist() == words.encode(chat(question(product)))
        with torch.no_grad():
            assert_close(theirs(ids).logits, model.hidden(ids) @ model.head.weight.T, atol=1e-5, rtol=0)
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.unk_token) == ("<end>", "<pad>", "<unk>")


# Its surface


def test_generate_answers_in_kind() -> None:
    model = small()
    draws = [torch.Generator().manual_seed(3) for _ in range(3)]
    listed = model.generate([5, 6], 4, generator=draws[0])
    row = model.generate(torch.tensor([5, 6]), 4, generator=draws[1])
    rows = model.generate(torch.tensor([[5, 6]]), 4, generator=draws[2])
    assert len(listed) == 6
    assert isinstance(listed, list)
    assert listed == row.tolist() == rows[0].tolist()
    assert rows.shape == (1, 6)


def test_rows_that_end_early_are_filled_up() -> None:
    """Word a (5) ends a row; behind it stands padding."""
    rows = small().generate(torch.tensor([[6], [7]]).repeat(20, 1), 6, stop_id=5, generator=torch.Generator())
    after = (rows[:, 1:] == 5).int().cumsum(1).roll(1, 1)
    after[:, 0] = 0
    assert bool(after.any())
    assert torch.equal(after == 1, rows[:, 1:] == 0)


def test_the_global_stream_is_drawn_from_only_without_a_generator() -> None:
    model = small()
    torch.manual_seed(5)
    first = model.generate([5], 8)
    torch.manual_seed(5)
    model.generate([5], 8, generator=torch.Generator().manual_seed(9))
    assert model.generate([5], 8) == first


def test_marks_are_never_said_unless_they_stop() -> None:
    model = small()
    model.head.weight[:5] += 3 * model.head.weight.abs().max()
    said = model.generate(torch.full((50, 1), 6), 10, generator=torch.Generator())[:, 1:]
    assert set(said.unique().tolist()) <= set(range(4, 10))
    stopped = model.generate([6], 10, stop_id=2, generator=torch.Generator())
    assert set(stopped) <= {2, *range(4, 10)}


def test_its_policy_is_a_policy_over_the_same_weights_and_takes_prompts_of_unequal_length() -> None:
    model = small()
    policy = model.policy(temperature=0.7, time=5)
    assert isinstance(policy, Policy)
    assert policy.network is model.network
    assert (policy.vocabulary.eos, policy.vocabulary.forbidden) == (4, (0, 1, 2, 3))
    together = policy.sample(
        encode_prompts(["a", "b c d"], model.tokenizer.encode), 3, torch.Generator().manual_seed(1)
    )
    alone = policy.logprobs(together[:3])[0]
    assert_close(alone, together.logprobs[:3], atol=1e-5, rtol=0)


def test_a_saved_model_comes_back(tmp_path) -> None:
    model = small()
    model.save(tmp_path / "new" / "folder")
    again = Chat.load(tmp_path / "new" / "folder")
    assert torch.equal(again.hidden([5, 6, 7]), model.hidden([5, 6, 7]))
    assert again.tokenizer.words == model.tokenizer.words


# What cannot be done


def test_an_unknown_model_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refusal, match=r"no model 'tiny-gtp' \(did you mean tiny-gpt-chat\?\)"):
        killick.load("tiny-gtp")
    with pytest.raises(Refusal, match="there are tiny-gpt-chat"):
        killick.load("/etc/passwd")


@pytest.mark.parametrize("call", ["hidden", "generate"])
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "at least one token long"),
        (torch.zeros(0, 3, dtype=torch.long), "at least one token long"),
        (torch.zeros(1, 1, 1, dtype=torch.long), r"not \[1, 1, 1\]"),
        ([3, 10], "no token 10; ids lie in 0..9"),
        ([-1], "no token -1"),
        (torch.tensor([1.5]), "whole numbers, not torch.float32"),
    ],
)
def test_ids_that_are_none_are_refused(call: str, ids, message: str) -> None:
    model = small()
    with pytest.raises(Refusal, match=message):
        model.hidden(ids) if call == "hidden" else model.generate(ids, 3)


@pytest.mark.parametrize("count", [0, -1, 12])
def test_answers_that_cannot_fit_are_refused(count: int) -> None:
    """A context of 12 holds 2 of prompt and 11 of answer: the last token is written and never read."""
    model = small()
    assert len(model.generate([5, 6], 11, generator=torch.Generator())) == 13
    with pytest.raises(Refusal, match=f"1 to 11 tokens after this prompt, not {count}"):
        model.generate([5, 6], count)
    with pytest.raises(Refusal, match="longer than the context of 12"):
        model.hidden([5] * 13)
    with pytest.raises(Refusal, match="leaves no room"):
        model.generate([5] * 13, 1)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_a_temperature_that_is_none_is_refused(temperature: float) -> None:
    with pytest.raises(Refusal, match="temperature must be a positive number"):
        small().generate([5], 3, temperature=temperature)


def test_a_stop_that_is_no_token_is_refused() -> None:
    with pytest.raises(Refusal, match="end token 10"):
        small().generate([5], 3, stop_id=10)


def test_a_network_and_a_tokenizer_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(Refusal, match="10 tokens, the tokenizer 11"):
        Chat(small().network, Words("abcdef"))
