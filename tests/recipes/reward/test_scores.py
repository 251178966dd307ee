"""Texts of a file and their scores: every layout, every response once, and the line of what cannot be read."""

from pathlib import Path
from typing import Any

import pytest
import torch

from killick.models.judging import PretrainedReward
from killick.preferences.formats.saving import save
from killick.recipes.ledger import Note
from killick.recipes.reward.scores import Asked, read_texts, rows, score_texts
from killick.recipes.reward.states import Progress
from killick.types import Refusal
from llamas import END, llama_folder
from preferring import answer, pairs, user, written


def test_texts_of_every_layout(tmp_path: Path) -> None:
    """Columns, lists, messages, an empty answer, a preference file; CSV with messages in a cell."""
    records: list[dict[str, Any]] = [
        {"prompt": "a", "response": "b"},
        {"prompt": "a", "responses": ["b", [{"role": "assistant", "content": "c"}]]},
        {"prompt": [{"role": "user", "content": "a"}], "text": ""},
        {"prompt": "a", "chosen": "c", "rejected": "b"},
    ]
    columns = ["prompt", "response", "responses", "text", "chosen", "rejected"]
    save(tmp_path / "texts.jsonl", records, columns=columns, force=False)
    found = read_texts(tmp_path / "texts.jsonl")
    expected = [(1, 0, "b"), (2, 0, "b"), (2, 1, "c"), (3, 0, ""), (4, 0, "c"), (4, 1, "b")]
    assert found == [Asked(line, place, user("a"), answer(text)) for line, place, text in expected]
    (tmp_path / "texts.csv").write_text('prompt,response\na,b\n"[{""role"":""user"",""content"":""a""}]",\n')
    assert [each[2:] for each in read_texts(tmp_path / "texts.csv")] == [
        (user("a"), answer("b")), (user("a"), answer(""))
    ]  # fmt: skip
    assert len(read_texts(written(tmp_path / "prefs.csv", pairs(3)))) == 24


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"prompt": "a"}', "response: is missing; the columns are prompt"),
        ('{"response": "a"}', "prompt: is missing; the columns are response"),
        ('{"prompt": "a", "response": 7}', "response"),
        ("{", "line 2"),
    ],
)
def test_bad_rows_are_told_with_their_line(tmp_path: Path, line: str, words: str) -> None:
    (tmp_path / "texts.jsonl").write_text('{"prompt": "a", "response": "b"}\n' + line + "\n")
    with pytest.raises(Refusal, match=r"1 bad row .*line 2.*nothing was scored") as told:
        read_texts(tmp_path / "texts.jsonl")
    assert words in str(told.value)


def test_every_text_gets_the_number_that_it_gets_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces of three; with members their mean stands first."""
    monkeypatch.setattr("killick.recipes.reward.scores.PIECE", 3)
    judge = PretrainedReward.begin(llama_folder(tmp_path))
    judge.members = torch.randn(2, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        judge.model.score.weight.copy_(judge.members.mean(0, keepdim=True))
    texts = [Asked(number, 0, user("Hi"), answer("good " * number)) for number in range(1, 8)]
    work = score_texts(judge, texts, name="rm")
    events = []
    while True:
        try:
            events.append(next(work))
        except StopIteration as end:
            scores = end.value
            break
    assert events == [Progress("scoring with rm", done, 7) for done in (3, 6, 7)]
    alone = torch.cat([judge.scores([each.prompt], [each.response]) for each in texts])
    torch.testing.assert_close(scores[0], alone, atol=1e-5, rtol=0)
    told = list(rows(texts, {"rm": scores}, members=True))
    assert told[2] == {
        "line": 3, "place": 0, "prompt": "Hi", "response": "good good good ", "score": float(scores[0, 2]),
        "score members": scores[1:, 2].tolist(),
    }  # fmt: skip
    assert list(next(rows(texts, {"a": scores, "b": scores}, members=False)))[-2:] == ["score a", "score b"]


def test_texts_that_are_too_long_are_counted(tmp_path: Path) -> None:
    """O-19: of 16 tokens eight are kept for an answer; one prompt and one answer have more."""
    judge = PretrainedReward.begin(llama_folder(tmp_path, template=False), limit=16)
    long = "good " * 20
    texts = [Asked(1, 0, user("Hi"), answer("good")), Asked(2, 0, user(long), answer("a")),
             Asked(3, 0, user("Hi"), answer(long))]  # fmt: skip
    events = list(score_texts(judge, texts, name="rm"))
    assert isinstance(events[-1], Note)
    assert events[-1].text == (
        "rm: Of 3 texts 1 have a prompt cut on its left and 1 have an answer cut on its right (16 tokens are read)."
    )


def test_a_text_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    judge = PretrainedReward.begin(llama_folder(tmp_path))
    texts = [Asked(1, 0, user("Hi"), answer("good")), Asked(5, 0, user(END), answer("good"))]
    with pytest.raises(Refusal, match="line 5: A turn of the user spells"):
        list(score_texts(judge, texts, name="rm"))
