"""Asking in turn: what is asked, how often, and when the time that it takes is told."""

from pathlib import Path

import pytest
import torch

import exams
from killick.recipes.exam.asking import AT_ONCE, Asked, Progress, speaking
from killick.recipes.ledger import Note
from killick.recipes.scores.text_score import Unscored
from killick.types import Refusal


def drained(steps):
    """What is yielded on the way, and what comes of it."""
    events = []
    while True:
        try:
            events.append(next(steps))
        except StopIteration as end:
            return events, end.value


def test_scores_do_not_depend_on_the_batches_that_they_were_asked_in() -> None:
    """O-53: 2 batches and a rest."""
    texts = ["x" * (place % 9) for place in range(2 * AT_ONCE + 1)]
    sizes = []

    def judge(prompts, answers):
        sizes.append(len(answers))
        return torch.tensor([[float(len(answer)) for answer in answers]] * 2, dtype=torch.double)

    events, found = drained(Asked(exams.setup(judge), scored=len(texts), written=0).scores(["p"] * len(texts), texts))
    assert found.shape == (2, len(texts))
    assert found[1].tolist() == [len(text) for text in texts]
    assert sizes == [AT_ONCE, AT_ONCE, 1]
    assert events[-1] == Progress("answers scored", len(texts), len(texts))


def test_a_policy_answers_and_is_scored_row_by_row(tmp_path: Path) -> None:
    held = exams.held(tmp_path / "p.jsonl", 12)
    setup = exams.setup(exams.GOOD, speak=exams.speak(3), n=3, gold=exams.LENGTH)
    _, pool = drained(speaking(held, held.firsts()[:6], asked=Asked(setup, scored=18, written=18)))
    assert [len(row) for row in pool.answers] == [3] * 6
    assert pool.means() == [[exams.quality(text) for text in row] for row in pool.answers]
    assert pool.golds == [[len(text) / 20 for text in row] for row in pool.answers]
    assert len({text for row in pool.answers for text in row}) > 12  # a generator of its own for each few prompts


@pytest.mark.parametrize(("each", "said"), [(0.5, ["This will take about 2 minutes."]), (0.05, [])])
def test_an_exam_of_over_a_minute_says_so_once(each: float, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second an answer, 200 answers to score: 100 s."""
    clock = [0.0]
    monkeypatch.setattr("killick.recipes.exam.asking.time.monotonic", lambda: clock[0])

    def judge(prompts, answers):
        clock[0] += each * len(answers)
        return torch.zeros(1, len(answers), dtype=torch.double)

    events, _ = drained(Asked(exams.setup(judge), scored=200, written=0).scores(["p"] * 200, ["a"] * 200))
    assert [event.text for event in events if isinstance(event, Note)] == said


def test_an_answer_without_a_score_is_named_by_its_text() -> None:
    """O-52: not by its place among the few that were asked about at once."""

    def judge(prompts, answers):
        if "bad" in answers:
            raise Unscored(answers.index("bad"), "the function gave nan", name="REWARD my:judge")
        return torch.zeros(1, len(answers), dtype=torch.double)

    texts = ["good"] * (AT_ONCE + 5) + ["bad"]
    asked = Asked(exams.setup(judge), scored=len(texts), written=0)
    with pytest.raises(Refusal, match="REWARD my:judge, the answer 'bad' to 'p': the function gave nan"):
        drained(asked.scores(["p"] * len(texts), texts))
