"""Judgements as a model reads them: what it cannot tell apart, what it cannot read, what falls where."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from killick.models.judging import PretrainedReward
from killick.models.texts import Texts
from killick.preferences.pairing import part
from killick.preferences.rows import PreferenceRow, Turn, prompt_key
from killick.recipes.reward.data import Judged, Placed, Reading, judge_rows
from killick.types import Refusal
from llamas import END, llama_folder, tokenizer
from preferring import answer, pair, pairs, user

READING = Reading(limit=100, time=40)


def read(rows: list[PreferenceRow], *, template: bool = True, **settings: Any) -> Judged:
    placed = [Placed(f"line {number}", row) for number, row in enumerate(rows, 1)]
    return judge_rows(placed, Texts(tokenizer(template=template)), reading=replace(READING, **settings))


def test_each_response_is_listed_once_and_all_pairs_of_a_prompt_are_on_one_side() -> None:
    """O-12: the side is that of the prompt's text and the seed, as `killick prefs split` has it."""
    rows = pairs(30)
    judged = read([*rows, pair(rows[0].prompt[0].content.upper() + " ", "more", "that")])
    assert len(judged.preference) == 121
    assert len(judged.preference.rollout) == len(judged.texts) == len(set(judged.texts))
    for number, (chosen, unit) in enumerate(zip(judged.preference.chosen.tolist(), judged.unit.tolist(), strict=True)):
        prompt = judged.texts[chosen][0][0].content
        assert int(judged.part[number]) == part(prompt, 0, shares=READING.shares)
        assert unit == int(judged.unit[0]) or number not in (0, 120)
    assert judged.unit[0] == judged.unit[120]
    assert sum(len(prompts) for prompts in judged.prompts) == 30
    keys = {prompt_key(row).hex() for row, side in zip(rows, judged.part.tolist(), strict=False) if side != 2}
    assert set(judged.learned) == keys


def test_pairs_that_are_equal_after_truncation_are_left_out_and_counted() -> None:
    """O-04: the difference lies past the tokens that are read; and a pair of one text twice."""
    long = "good " * 60
    rows = [*pairs(30), pair("x", long + "more", long + "that"), pair("x", "same", "same")]
    judged = read(rows)
    assert judged.counts["equal responses"] == 2
    assert len(judged.preference) == 120
    assert read([*pairs(30), pair("x", "b" * 200, "c" * 200)]).counts["responses cut on their right"] == 2


def test_long_prompts_lose_their_beginning_and_no_answer_is_emptied() -> None:
    """O-19: the same ids of a prompt for both answers; the count of what was cut."""
    judged = read([*pairs(30), pair("bird " * 80, "good", "that " * 30)])
    rows = [number for number, (prompt, _) in enumerate(judged.texts) if prompt[0].content.startswith("bird")]
    prompts = judged.preference.rollout.prompts[rows]
    assert torch.equal(prompts[0], prompts[1])
    assert judged.counts["responses whose prompt was cut on its left"] == 2
    assert int(judged.preference.rollout.lengths.min()) >= 2


def test_the_ids_are_those_that_the_reward_model_reads_when_it_scores(tmp_path: Path) -> None:
    """O-09: the text of a pair through the fit, and through scoring; cut and uncut, with a template and without."""
    for template in (True, False):
        judge = PretrainedReward.begin(llama_folder(tmp_path / str(template), template=template), limit=60, time=24)
        rows = [*pairs(30), pair("bird " * 60, "good " * 40, "that")]
        judged = read(rows, template=template, limit=60, time=24)
        prompts, answers = zip(*judged.texts, strict=True)
        scored, fitted = judge.read(prompts, answers), judged.preference.rollout
        assert torch.equal(fitted.prompts, scored.prompts)
        assert torch.equal(fitted.responses, scored.responses)
        assert int((fitted.responses == 2).any(1).sum()) == len(fitted) - 1  # all but the one that was cut have an end


def test_rankings_ties_and_soft_labels_keep_what_they_say() -> None:
    """O-05, O-06: three ranked responses are three pairs of one group; a tie is one half; a margin stays."""
    ranked = PreferenceRow(user("r"), (answer("a"), answer("b"), answer("c")), (0, 1, 1))
    rows = [*pairs(30), ranked, pair("s", "a", "b", probability=0.7), pair("m", "a", "b", margin=1.5)]
    judged = read(rows)
    preference = judged.preference
    assert preference.label[-5:].tolist() == pytest.approx([1, 1, 0.5, 0.7, 1])
    assert len(set(preference.group[-5:-2].tolist())) == 1
    assert preference.margin[-1] == 1.5
    assert read(rows, ties="out").counts["ties"] == 1
    alone = PreferenceRow(user("k"), (answer("a"),), (0,))
    assert read([*rows, alone]).counts["rows with one response"] == 1


def test_what_the_model_cannot_read_is_refused_at_once_or_left_out() -> None:
    """O-17: a turn that spells a mark of the chat; an answer of several turns. A spelled end in an answer is text."""
    several = PreferenceRow(
        user("several"), ((Turn("assistant", "a"), Turn("user", "b"), Turn("assistant", "c")), answer("d")), (0, 1)
    )
    rows = [*pairs(30), pair(f"say {END}", "good", "that"), several]
    with pytest.raises(Refusal, match=r"2 of 122 judgements .*first at line 121.*spells .*--skip-bad"):
        read(rows)
    judged = read(rows, skip=True)
    assert judged.counts["judgements that the model cannot read"] == 2
    assert len(judged.preference) == 120
    assert len(read([*pairs(30), pair("say", f"good {END} more", "that")]).preference) == 121


def test_dialogues_need_a_template() -> None:
    dialogue = replace(pair("x", "good", "that"), prompt=(Turn("user", "a"), Turn("assistant", "b"), Turn("user", "c")))
    assert len(read([*pairs(30), dialogue]).preference) == 121
    with pytest.raises(Refusal, match=r"first at line 121: A dialogue needs a tokenizer with a chat template"):
        read([*pairs(30), dialogue], template=False)
    assert len(read(pairs(30), template=False).preference) == 120


def test_a_split_that_leaves_a_side_empty_is_refused() -> None:
    with pytest.raises(Refusal, match="All pairs answer one prompt"):
        read(pairs(1, each=20))
    with pytest.raises(Refusal, match=r"Of 9 prompts, 9 fell .* and 0 to .*seed 0, shares 1 0 0"):
        read(pairs(9), shares=(1.0, 0.0, 0.0))
    with pytest.raises(Refusal, match=r"There is no pair to learn from \(1 equal responses\)"):
        read([pair("x", "same", "same")])
