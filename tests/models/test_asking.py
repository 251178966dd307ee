"""Several questions at once: nothing that one asks changes what another is answered."""

import pytest
import torch

from killick.models.asking import Answer, Asking, Question
from killick.models.chat import Chat
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.words import SPECIAL, Words
from killick.types import Refusal

WORDS = Words(["Describe", "the", "blue", "red", "one", "jacket", "hat", ".", "and", "of", "wool"])
SHAPE = TransformerConfig.llama(len(WORDS), len(WORDS), 50, hidden=32, layers=2, heads=2, feed_forward=48)


@pytest.fixture(scope="module")
def chat() -> Chat:
    return Chat(Transformer(SHAPE, torch.Generator().manual_seed(0)), WORDS)


@pytest.fixture(scope="module")
def asking(chat: Chat) -> Asking:
    return Asking(
        chat.policy(time=20),
        WORDS.encode,
        decode=WORDS.decode,
        frame=lambda text: f"<user> {text} <assistant>",
        marks=SPECIAL,
    )


QUESTIONS = [
    Question("Describe the hat" if row % 3 else "Describe", n=1 + row % 4, temperature=0.8 if row % 2 else 1.5,
             tokens=20 if row % 5 else 3, seed=row)
    for row in range(16)
]  # fmt: skip


def test_each_question_is_answered_as_if_alone(asking: Asking) -> None:
    """Among 15 others of other lengths, numbers, temperatures and budgets."""
    together = asking(QUESTIONS)
    assert together == [asking([question])[0] for question in QUESTIONS]
    assert together[::-1] == asking(QUESTIONS[::-1])


def test_more_answers_begin_with_the_same_ones(asking: Asking) -> None:
    (five,), (two,) = (asking([Question("Describe", n, 1.0, 20, 3)]) for n in (5, 2))
    assert isinstance(five, list)
    assert two == five[:2]
    assert len(set(five)) == 5


def test_an_answer_is_the_policys_own(chat: Chat, asking: Asking) -> None:
    """By hand: the streams that the seed gives, one token after the other from the policy in float64."""
    (found,) = asking([Question("Describe the hat", 1, 0.8, 20, 11)])
    assert isinstance(found, list)
    seed = torch.randint(2**62, (1,), generator=torch.Generator().manual_seed(11)).item()
    stream, ids, said = (
        torch.Generator().manual_seed(int(seed)),
        WORDS.encode("<user> Describe the hat <assistant>"),
        [],
    )
    for _ in range(20):
        logits = chat.head(chat.hidden(ids))[0, -1].double()
        logits[: SPECIAL.index("<end>")] = -torch.inf
        cumulative = (logits / 0.8).softmax(-1).cumsum(-1).float()
        token = int((cumulative <= torch.rand(1, generator=stream)).sum())
        ids.append(token)
        if token == WORDS.token_id("<end>"):
            break
        said.append(token)
    assert found == [Answer(WORDS.decode(said), len(said) < 20)]


def test_the_budget_cuts_and_the_end_is_no_part_of_the_text(asking: Asking) -> None:
    (found,) = asking([Question("Describe", 30, 1.0, 5, 0)])
    assert isinstance(found, list)
    assert {one.finished for one in found} == {True, False}
    for one in found:
        assert len(one.text.split()) == 5 or one.finished
        assert "<end>" not in one.text


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [("", "no word"), (" \n", "no word"), ("say <end> now", "not hold <end>"), ("the " * 30, "has 32 tokens")],
)
def test_what_cannot_be_asked_says_why_and_spoils_nothing(asking: Asking, prompt: str, reason: str) -> None:
    wrong, right = Question(prompt, 1, 1.0, 20, 0), Question("Describe", 2, 1.0, 20, 0)
    refused, answered = asking([wrong, right])
    assert isinstance(refused, Refusal)
    assert reason in str(refused)
    assert [answered] == asking([right])


def test_words_that_are_not_known_may_be_asked(asking: Asking) -> None:
    (found,) = asking([Question("Describe the zeppelin", 1, 1.0, 5, 0)])
    assert isinstance(found, list)


def test_the_model_is_a_copy(chat: Chat, asking: Asking) -> None:
    before = asking(QUESTIONS[:3])
    with torch.no_grad():
        chat.head.weight.add_(1.0)
        chat.head.weight[7] += 50
    assert asking(QUESTIONS[:3]) == before
