"""Best-of-n on the held-out products: four answers, a pool's curves, what a flaw costs, winners to check."""

import pytest
import torch

from chatter import chatter
from killick.recipes.brand.best_of_n import JUDGED, best_of, counts, curves, of_four, prices, promises, winners
from killick.types import Rollout
from killick.worlds.brand import GUIDELINES, review
from killick.worlds.catalogue import FLAWS
from straight import done

GOLD = torch.tensor([[-3.0, -1, -2, 0], [-1.0, -1, -4, -2]])


def shorter(rollout: Rollout) -> torch.Tensor:
    """A judge who likes short answers."""
    return -rollout.lengths.float()


def test_every_product_of_the_six_names_is_judged() -> None:
    assert len(JUDGED) == 72
    assert len(GUIDELINES) == len(FLAWS)


def test_each_judge_keeps_the_answer_that_it_scores_highest() -> None:
    """First: (3 + 1) / 2; a judge who takes the third and the last: (2 + 2) / 2; the reviewer: (0 + 1) / 2."""
    found = of_four({"head": torch.tensor([[0.0, 0, 1, 0], [0, 0, 0, 1]])}, GOLD, seed=0)
    assert {name: numbers[0] for name, numbers in found.items()} == {"first": 2, "head": 2, "reviewer": 0.5}
    assert found["first"][1:] == [1, 3]  # two products: a resample is one of them twice, or both


def test_a_curve_begins_at_the_mean_and_ends_at_the_favourite_of_the_whole_pool() -> None:
    """Gold by itself: n = 1 is the mean, -14 / 8; n = 4 the best of each, (0 - 1) / 2."""
    curve = curves({"reviewer": GOLD}, GOLD, ns=(4, 1), seed=0)["reviewer"]
    assert [point["n"] for point in curve["points"]] == [1, 4]
    assert [point["gold"] for point in curve["points"]] == pytest.approx([-1.75, -0.5])
    assert [point["kl_bound"] for point in curve["points"]] == pytest.approx([0, 0.636294], abs=1e-6)
    assert (curve["top"], curve["turns"]) == (4, False)
    assert isinstance(curve["points"][0]["gold_interval"], list)


def test_prices_are_what_the_score_loses_with_each_flaw_all_else_equal() -> None:
    """Scores made of 2 - 1.5 product + .25 material and nothing for the other two."""
    flaws = (torch.rand(200, 4, generator=torch.Generator().manual_seed(0)) < 0.4).float()
    found = prices(2 - 1.5 * flaws[:, 0] + 0.25 * flaws[:, 2], flaws)
    assert list(found) == list(FLAWS)
    assert list(found.values()) == pytest.approx([-1.5, 0, 0.25, 0], abs=1e-6)


def test_a_flaw_that_no_answer_has_costs_nothing() -> None:
    flaws = torch.tensor([[0.0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 1]])
    assert prices(-flaws[:, 3], flaws)["product"] == pytest.approx(0, abs=1e-6)


def test_the_reviewers_kinds_are_counted() -> None:
    """Row by row as `review` says."""
    speaks = chatter()
    world = speaks.world(JUDGED[:3])
    rollout = speaks.answers(JUDGED[:3], 2, torch.Generator().manual_seed(0))
    found = counts(world, rollout)
    for row, product, text in zip(found, world.asked(rollout), world.texts(rollout), strict=True):
        assert {kind for kind, number in zip(FLAWS, row.tolist(), strict=True) if number} == {
            flaw.kind for flaw in review(product, text)
        }
    assert torch.equal(-found.sum(1), world.gold(rollout))


def test_sentences_that_promise_a_repair_are_counted() -> None:
    """Two in one answer and none in the other: 1 a piece; the word twice in a sentence is one promise."""
    speaks = chatter()
    rollout = speaks.answers(JUDGED[:2], 1, torch.Generator().manual_seed(0))
    texts = ["repair wool repair . wool . repair", "wool ."]
    rows = [[speaks.tokenizer.token_id(word) for word in text.split()] for text in texts]
    responses = torch.tensor([row + [0] * (7 - len(row)) for row in rows])
    mask = torch.tensor([[place < len(row) for place in range(7)] for row in rows])
    written = Rollout(rollout.prompts, rollout.prompt_mask, responses, mask, torch.zeros(2, 7), mask[:, 0] & False)
    assert promises(speaks.world(JUDGED[:2]), written) == 1


def test_winners_are_the_best_by_score_with_the_most_flaws_first() -> None:
    speaks = chatter()
    products = JUDGED[:6]
    world = speaks.world(products)
    rollout = speaks.answers(products, 4, torch.Generator().manual_seed(0))
    gold = world.gold(rollout).view(-1, 4)
    scores = shorter(rollout).view(-1, 4)
    found = winners(world, rollout, scores=scores, gold=gold)
    kept = -gold.gather(1, scores.argmax(1, keepdim=True))[:, 0]
    flaws = [row[3].count(":") for row in found]
    assert flaws == kept.sort(descending=True).values[:4].tolist()
    for product, answer, score, said in found:
        row = products.index(product)
        assert score == scores[row].max()
        assert said == "; ".join(map(str, review(product, answer.removesuffix("…"))))


def test_one_call_gives_all_of_it_from_one_pool_and_from_the_cache_the_second_time() -> None:
    """The scalar judge reads the first four of each product only; n = 1 by the head is the mean of the pool."""
    speaks, read = chatter(), list[int]()

    def scalar(rollout: Rollout) -> torch.Tensor:
        read.append(len(rollout))
        return shorter(rollout)

    def ask() -> dict[str, object]:
        return done(best_of(speaks, shorter, scalar=scalar, seed=0, pool=6, ns=(1, 2, 6), mark="length"))

    found = ask()
    assert sum(read) == 72 * 4
    assert found["of_four"]["head"] == found["of_four"]["scalar"]  # type: ignore[index]
    first = found["curves"]["head"]["points"][0]  # type: ignore[index]
    assert first["gold"] == pytest.approx(-sum(found["flaws"].values()))  # type: ignore[attr-defined]
    assert ask() == found
    assert sum(read) == 72 * 4
