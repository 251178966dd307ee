"""Answers of a person's own model: drawn in chunks, kept in a file, scored as text."""

from pathlib import Path

import pytest
import torch

from killick.models.judging import PretrainedReward
from killick.recipes.best_of import sampling as best_of_sampling
from killick.recipes.best_of.candidates import read_pools
from killick.recipes.best_of.sampling import Sampler, Sampling, pools, scores
from killick.recipes.growing import grow
from killick.recipes.scores.loading import load_score
from killick.recipes.scores.text_score import Prompt
from killick.rundir.ledger import read_rows
from killick.types import Refusal
from llamas import llama_folder
from recipes.scores.test_loading import judge_folder

PROMPTS: list[Prompt] = [
    "Say hello.",
    "My honest review of the lamp: I thought",
    (("system", "Be kind."), ("user", "Say more.")),
    "Why?",
    "The answer is",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return llama_folder(tmp_path_factory.mktemp("model"))


def test_each_prompt_has_its_answers_and_a_chunk_knows_nothing_of_the_others(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(best_of_sampling, "ROWS", 6)
    sampler = Sampler(folder, PROMPTS, Sampling(n=3, tokens=8, seed=1))
    assert (len(sampler), sampler.each) == (5, 2)
    path = tmp_path / "candidates.jsonl"
    done = [seen.done for seen in grow(path, len(sampler), each=sampler.each, make=sampler.answers)]
    assert done == [0, 2, 4, 5]
    rows = read_rows(path)
    assert rows[2:4] == sampler.answers(2, 4)
    assert rows[2]["prompt"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Say more."}]
    assert {len(row["responses"]) for row in rows} == {len(row["finished"]) for row in rows} == {3}
    other = Sampler(folder, PROMPTS, Sampling(n=3, tokens=8, seed=2))
    assert other.answers(0, 2) != rows[:2]
    found = pools(path, sampler.prompts)
    assert [pool.prompt for pool in found] == PROMPTS
    assert [pool.lines for pool in found] == [(line,) * 3 for line in range(1, 6)]
    assert read_pools(path.read_bytes(), name=path.name) == found
    with pytest.raises(Refusal, match="answers to other prompts"):
        pools(path, sampler.prompts[::-1])


def test_more_answers_than_are_drawn_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_of_sampling, "ROWS", 4)
    sampler = Sampler(folder, PROMPTS[:2], Sampling(n=10, tokens=6))
    assert sampler.each == 1
    (row,) = sampler.answers(1, 2)
    assert len(row["responses"]) == 10
    assert len(set(row["responses"])) > 1


def test_the_scores_are_those_of_the_text_alone(folder: Path, tmp_path: Path) -> None:
    """What was sampled as other tokens than the text would have is scored as text (O-09)."""
    judge = judge_folder(tmp_path / "judge")
    sampler = Sampler(folder, PROMPTS, Sampling(n=4, tokens=8))
    path = tmp_path / "candidates.jsonl"
    list(grow(path, 5, each=sampler.each, make=sampler.answers))
    there = pools(path, sampler.prompts)
    rows = scores(there, load_score(str(judge), flag="--reward"), gold=load_score("vader", flag="--gold"))(0, 5)
    alone = PretrainedReward.load(judge)
    for pool, row in zip(there, rows, strict=True):
        for text, reward in zip(pool.responses, row["rewards"], strict=True):
            assert reward == pytest.approx(alone.scores([pool.prompt], [text]).item(), abs=1e-6)
        assert len(row["golds"]) == 4
    assert scores(there, load_score("vader", flag="--reward"), gold=None)(1, 2)[0]["golds"] is None


def test_an_answer_that_ended_at_once_is_one(folder: Path, tmp_path: Path) -> None:
    """O-43: the text is empty, and has a score."""
    sampler = Sampler(folder, ["Why?"], Sampling(n=4, tokens=3))
    eos = sampler.texts.eos
    assert eos is not None
    with torch.no_grad():  # the tied head now says nothing but the end
        sampler.policy.model.lm_head.weight.zero_()
        sampler.policy.model.lm_head.weight[eos] = 50 * sampler.policy.model.model.norm.weight.sign()
    rows = [{"prompt": "Why?", "responses": [""] * 4, "finished": [True] * 4}]
    states = sampler.answers(0, 1)
    if states != rows:  # the sign of a state is not ours to choose: the other sign then ends
        with torch.no_grad():
            sampler.policy.model.lm_head.weight[eos] *= -1
        states = sampler.answers(0, 1)
    assert states == rows


def test_it_says_what_the_drawing_will_take(folder: Path) -> None:
    few, many = (Sampler(folder, PROMPTS, Sampling(n=n, tokens=20)).seconds() for n in (2, 400))
    assert 0 < few < many


@pytest.mark.parametrize(
    ("how", "part"),
    [
        (Sampling(n=0), "--n must be 1 or more, not 0"),
        (Sampling(tokens=0), "--tokens must be 1 or more"),
        (Sampling(top_k=0), "--top-k must be 1 or more"),
        (Sampling(temperature=0), "--temperature must be a positive number, not 0"),
        (Sampling(temperature=float("nan")), "--temperature must be a positive number, not nan"),
        (Sampling(top_p=1.5), "--top-p must lie above 0 and be at most 1"),
        (Sampling(seed=-1), "--seed must lie"),
    ],
)
def test_settings_that_cannot_be(how: Sampling, part: str) -> None:
    with pytest.raises(Refusal, match=part):
        how.validate()


def test_prompts_and_folders_that_cannot_be(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"Prompt 2 has .* tokens"):
        Sampler(folder, ["Why?", "word " * 200], Sampling())
    with pytest.raises(Refusal, match="--tokens 128 leaves no room for a prompt: the model reads 128 tokens"):
        Sampler(folder, ["Why?"], Sampling(tokens=128))
    with pytest.raises(Refusal, match="no model folder"):
        Sampler(tmp_path / "nowhere", ["Why?"], Sampling())
    with pytest.raises(Refusal, match="has no chat template"):
        Sampler(llama_folder(tmp_path / "plain", template=False), ["Why?"], Sampling(chat="on"))
