"""A reward model in the form of transformers: the same number everywhere."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from killick.models.judging import PretrainedReward, narrow
from killick.models.prompting import PromptSet
from killick.models.texts import Texts
from killick.types import Refusal, Rollout
from llamas import END, PAD, llama_folder, tokenizer

PROMPTS = ["Hi", "My honest review of the lamp: I thought", "Hi", "x"]
ANSWERS = ["it was good.", "", "no", "a much longer answer, since lengths differ " * 2]


def judge(pad: str | None = None, **settings: Any) -> PretrainedReward:
    from transformers import LlamaConfig, LlamaForSequenceClassification

    config = LlamaConfig(
        vocab_size=300, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256
    )  # fmt: skip
    config.num_labels = settings.pop("labels", 1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForSequenceClassification(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4 if parameter.dim() > 1 else 1)
    return PretrainedReward(model, Texts(tokenizer(pad=pad)), **settings)


def test_a_text_alone_scores_as_in_any_batch_on_either_padding_side() -> None:
    """O-07, in float32 to 1e-5: rows padded left, right and on both sides."""
    model = judge()
    together = model.scores(PROMPTS, ANSWERS)
    alone = torch.cat([model.scores([p], [a]) for p, a in zip(PROMPTS, ANSWERS, strict=True)])
    assert_close(together, alone, atol=1e-5, rtol=0)
    wide = model.read(PROMPTS, ANSWERS)
    assert_close(model(wide).detach(), alone, atol=1e-5, rtol=0)
    assert_close(model(narrow(wide[:3])).detach(), alone[:3], atol=1e-5, rtol=0)
    assert together.std() > 0.1


@pytest.mark.parametrize("pad", [END, None])
def test_plain_transformers_gives_the_same_number(tmp_path: Path, pad: str | None) -> None:
    """Right-padded by the tokenizer's own padding; pad = eos in the tokenizer that it came from (O-20)."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = judge(pad=pad)
    model.save(tmp_path)
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    reads = AutoTokenizer.from_pretrained(tmp_path)
    asked = [[{"role": "user", "content": prompt}] for prompt in PROMPTS]
    framed: Any = reads.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    texts = [before + answer + END for before, answer in zip(framed, ANSWERS, strict=True)]
    rows = reads(texts, padding=True, return_tensors="pt", add_special_tokens=False)
    with torch.no_grad():
        logits = theirs(rows.input_ids, attention_mask=rows.attention_mask).logits[:, 0]
    assert_close(model.scores(PROMPTS, ANSWERS), logits, atol=1e-5, rtol=0)


def test_a_saved_model_scores_bit_for_bit_in_a_new_process(tmp_path: Path) -> None:
    """O-08."""
    model = judge(limit=40, time=8)
    model.save(tmp_path)
    code = (
        "import sys, json, pathlib; from killick.models.judging import PretrainedReward;"
        "model = PretrainedReward.load(pathlib.Path(sys.argv[1]));"
        f"print(json.dumps([model.limit, model.time, model.scores({PROMPTS!r}, {ANSWERS!r}).tolist()]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [40, 8, model.scores(PROMPTS, ANSWERS).tolist()]


@pytest.mark.parametrize(
    ("template", "pad", "closing"), [(True, PAD, [2, 201]), (True, END, [2, 201]), (False, PAD, [2]), (False, END, [])]
)
def test_a_folder_from_elsewhere_is_read_where_its_trainer_read_it(tmp_path: Path, template, pad, closing) -> None:
    """A whole dialogue as the template writes it (the line break behind the end token is 201), or a plain text with its
    end token, scored at the last token that is no padding; so again after the folder was written anew."""
    model = judge().model
    reads = tokenizer(template=template, pad=pad)
    model.config.pad_token_id = reads.pad_token_id
    del model.config.killick
    model.save_pretrained(tmp_path / "theirs")
    reads.save_pretrained(tmp_path / "theirs")
    found = PretrainedReward.load(tmp_path / "theirs")
    assert found.closing == closing
    turns = [[("user", prompt), ("assistant", answer)] for prompt, answer in zip(PROMPTS, ANSWERS, strict=True)]
    whole = [found.texts.rendered(turn, asks=False) if template else turn[0][1] + turn[1][1] + END for turn in turns]
    rows = reads(
        [text for text, answer in zip(whole, ANSWERS, strict=True) if answer], padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        theirs = model(**rows).logits[:, 0]
    mine = found.scores(PROMPTS, ANSWERS)
    assert_close(mine[torch.tensor([bool(answer) for answer in ANSWERS])], theirs, atol=1e-5, rtol=0)
    found.save(tmp_path / "again")
    assert_close(PretrainedReward.load(tmp_path / "again").scores(PROMPTS, ANSWERS), mine, atol=0, rtol=0)


def test_a_folder_without_its_head_is_refused_by_name(tmp_path: Path) -> None:
    """O-08: a fresh head would be noise."""
    judge().save(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["score.weight"]
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(Refusal, match=r"lacks the weights score\.weight"):
        PretrainedReward.load(tmp_path)


def test_a_language_model_is_no_reward_model(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"lacks the weights score\.weight"):
        PretrainedReward.load(llama_folder(tmp_path))


@pytest.mark.parametrize(
    ("broken", "words"),
    [("none", "no config.json"), ("json", "no folder of a model that can judge"), ("cut", "damaged")],
)
def test_what_is_no_reward_model_is_refused(tmp_path: Path, broken: str, words: str) -> None:
    if broken != "none":
        judge().save(tmp_path)
    if broken == "json":
        (tmp_path / "config.json").write_text("{", encoding="utf-8")
    if broken == "cut":
        weights = tmp_path / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(Refusal, match=words):
        PretrainedReward.load(tmp_path)


def test_several_labels_and_a_limit_beyond_the_context_are_refused() -> None:
    with pytest.raises(Refusal, match="one label; this one has 3"):
        judge(labels=3)
    with pytest.raises(Refusal, match="256 tokens at most, not 300"):
        judge(limit=300)


def test_a_rollout_is_scored_as_its_text(tmp_path: Path) -> None:
    """O-09: tokens that no tokenizer would choose, an answer that is cut, and one that ended at once."""
    model, speaks = judge(), Texts(tokenizer(template=False))
    asked = PromptSet(["Hi", "x"], speaks, limit=20)
    letters = [speaks.answer(letter)[0] for letter in "good"]
    assert letters != speaks.answer("good")
    said = torch.tensor([[*letters, 2], [2, 0, 0, 0, 0], [*letters, letters[0]]])
    mask = torch.tensor([[True] * 5, [True] + [False] * 4, [True] * 5])
    ids, prompt_mask = (x[torch.tensor([0, 1, 1])] for x in asked.all())
    rollout = Rollout(ids, prompt_mask, said, mask, torch.zeros(3, 5), torch.tensor([True, True, False]))
    assert torch.equal(model.over(asked, speaks)(rollout), model.scores(["Hi", "x", "x"], ["good", "", "goodg"]))
