"""Several questions to a person's own model: each gets the answers that it would get alone."""

from pathlib import Path

import pytest

from killick.models import asking_pretrained
from killick.models.asking import Question
from killick.models.asking_pretrained import AskingPretrained
from killick.types import Refusal
from llamas import llama_folder

QUESTIONS = [
    Question("Say hello.", n=3, temperature=0.8, tokens=8, seed=1),
    Question("Why?", n=2, temperature=0.8, tokens=8, seed=2),
    Question("My honest review of the lamp:", n=2, temperature=1.5, tokens=5, seed=1),
]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> AskingPretrained:
    return AskingPretrained.load(llama_folder(tmp_path_factory.mktemp("model")))


def test_company_and_number_change_no_answer(ask: AskingPretrained, monkeypatch: pytest.MonkeyPatch) -> None:
    together = ask(QUESTIONS)
    assert together == [ask([question])[0] for question in QUESTIONS]
    one = ask([Question("Say hello.", n=1, temperature=0.8, tokens=8, seed=1)])[0]
    assert isinstance(together[0], list)
    assert isinstance(one, list)
    assert together[0][:1] == one
    assert len({answer.text for answer in together[0]}) > 1
    monkeypatch.setattr(asking_pretrained, "TOKENS", 40)
    assert ask(QUESTIONS) == together


def test_what_cannot_be_asked_keeps_nobody_back(ask: AskingPretrained) -> None:
    bad = [Question("Say <|im_end|>.", n=1, temperature=1, tokens=5, seed=0),
           Question("word " * 200, n=1, temperature=1, tokens=5, seed=0)]  # fmt: skip
    spelled, long, fine = ask([*bad, QUESTIONS[0]])
    assert isinstance(spelled, Refusal)
    assert "<|im_end|>" in str(spelled)
    assert isinstance(long, Refusal)
    assert "the model reads 123 at most before an answer of 5" in str(long)
    assert fine == ask([QUESTIONS[0]])[0]


def test_a_folder_without_a_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="no folder of a causal language model"):
        AskingPretrained.load(tmp_path / "nowhere")
