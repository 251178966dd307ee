"""The brand's preferences: the reviewer's best against its worst, the same for whoever asks, split by name."""

from typing import Any

import pytest
import torch

from chatter import chatter
from killick.models.chat import load
from killick.recipes.brand.preferences import BUDGET, TEMPERATURE, preference_rows, preferences, speaker, split
from killick.recipes.brand.rewards import fresh_head
from killick.types import Refusal
from killick.worlds.brand import review
from killick.worlds.catalogue import HELD_OUT, PRODUCTS
from straight import done

SOME = ("Kestrel rain jacket", "Alder camp mug", "Willow day pack", "Wren work shirt")


def test_the_chosen_answer_has_the_fewest_flaws_of_four_and_the_rejected_one_the_most() -> None:
    speaks = chatter()
    world, pairs = speaks.world(SOME), done(preferences(speaks, seed=0, products=SOME))
    assert len(pairs.rollout) == 16
    gold = world.gold(pairs.rollout)
    for chosen, rejected, number in zip(pairs.chosen, pairs.rejected, pairs.group, strict=True):
        four = gold[4 * int(number) : 4 * int(number) + 4]
        assert (gold[chosen], gold[rejected]) == (four.max(), four.min())
        assert gold[chosen] > gold[rejected]
        assert world.asked(pairs.rollout[chosen[None]]) == [SOME[int(number)]]


def test_rows_are_text_that_the_reviewer_reads_the_same() -> None:
    """Prompt as a person would send it; no special token in the answers; fewer flaws in the chosen one."""
    speaks = chatter()
    rows = preference_rows(done(preferences(speaks, seed=0, products=SOME)), speaks.world(SOME))
    assert rows
    for row in rows:
        product = row["prompt"].removeprefix("Describe the ").removesuffix(" .")
        assert product in SOME
        assert len(review(product, row["chosen"])) < len(review(product, row["rejected"]))
        assert not any("<" in row[name] for name in row)


def test_the_same_seed_gives_the_same_pairs_from_the_cache_and_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    speaks = chatter()
    kept, again = (done(preferences(speaks, seed=1, products=SOME)) for _ in range(2))
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "empty"))
    cold, other = (done(preferences(speaks, seed=seed, products=SOME)) for seed in (1, 2))
    for pairs in (again, cold):
        assert torch.equal(pairs.rollout.responses, kept.rollout.responses)
        assert torch.equal(pairs.chosen, kept.chosen)
    assert not torch.equal(other.rollout.responses[:, :5], kept.rollout.responses[:, :5])


def test_pairs_about_the_six_names_are_held_out_and_no_other() -> None:
    speaks = chatter()
    pairs = done(preferences(speaks, seed=0))
    learned, held = split(pairs, PRODUCTS)
    assert len(learned) + len(held) == len(pairs)
    assert {PRODUCTS[number].split()[0] for number in held.group.tolist()} == set(HELD_OUT)
    assert not {PRODUCTS[number].split()[0] for number in learned.group.tolist()} & set(HELD_OUT)


def test_the_chat_model_that_comes_with_killick_answers_as_its_own_surface_does() -> None:
    """`lm.generate(ids, 60, temperature=0.8, stop_id=end)` from the same stream gives the same tokens, and the head's
    features are means and ends of `lm.hidden`: 2 x 192 of them."""
    (lm, words), speaks = load("tiny-gpt-chat"), speaker()
    world = speaks.world(SOME)
    rollout = speaks.answers(SOME[:1], 1, torch.Generator().manual_seed(5))
    ids = words.encode("<user> Describe the Kestrel rain jacket . <assistant>")
    end, draws = words.token_id("<end>"), torch.Generator().manual_seed(5)
    said = lm.generate(ids, BUDGET, temperature=TEMPERATURE, stop_id=end, generator=draws)
    assert said == rollout.prompts[0].tolist() + rollout.responses[0].tolist()
    assert said[-1] == end
    states = lm.hidden(said[:64])[0, len(ids) :].detach()
    features = fresh_head(speaks.policy).encode(rollout)[0]
    torch.testing.assert_close(features, torch.cat((states.mean(0), states[-1])), atol=1e-5, rtol=0)
    assert world.texts(rollout)[0] == words.decode(said[len(ids) :])
    assert speaker().mark == speaks.mark != chatter().mark


def test_one_answer_is_no_choice() -> None:
    with pytest.raises(Refusal, match="at least 2"):
        done(preferences(chatter(), seed=0, products=SOME, k=1))
