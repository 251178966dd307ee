"""What the practice API offers, with a small model in the place of the real one."""

import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from killick.cli.practising import Once, offers, outcome, reviewer
from killick.models.asking import Question, Unread
from killick.models.chat import Chat
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.words import Words
from killick.recipes.brand.preferences import Speaker
from killick.web.practice import Practice
from killick.worlds.brand import review
from killick.worlds.catalogue import PRODUCTS
from words import WORDS

TOKENIZER = Words(WORDS[4:])
SHAPE = TransformerConfig.llama(len(TOKENIZER), len(TOKENIZER), 80, hidden=8, layers=1, heads=1, feed_forward=8)


@pytest.fixture(scope="module")
def practice() -> Practice:
    """Every word alike likely, so that answers differ in what they happen to say."""
    chat = Chat(Transformer(SHAPE, torch.Generator().manual_seed(0)), TOKENIZER)
    speaks = Speaker(chat.policy(temperature=0.8, time=60), TOKENIZER, mark="a small one")
    return offers(lambda: speaks)


def test_the_pairs_are_those_of_the_recipe_the_better_one_first(practice: Practice) -> None:
    """Each prompt at most once, and by the reviewer's count the chosen answer has fewer flaws."""
    rows = practice.preferences()
    assert 0 < len(rows) <= len(PRODUCTS)
    products = [row["prompt"].removeprefix("Describe the ").removesuffix(" .") for row in rows]
    assert len(set(products)) == len(products)
    for product, row in zip(products, rows, strict=True):
        assert len(review(product, row["chosen"])) < len(review(product, row["rejected"]))
    assert practice.preferences() is rows


def test_it_answers_and_scores(practice: Practice) -> None:
    question = Question("Describe the Lark day pack .", n=2, temperature=0.8, tokens=10, seed=1)
    (answers,) = practice.models["tiny-gpt-chat"]([question])
    assert isinstance(answers, list)
    assert len(answers) == 2
    assert set(practice.rewards) == {"reviewer", "brand-head"}


def test_the_reviewer_counts_flaws_about_the_product_of_the_prompt() -> None:
    """A clean answer, and one that breaks three guidelines: name, material, promise."""
    asked = "Describe the Lark day pack ."
    assert reviewer([asked, asked], ["The Lark day pack . Repairs are free .", "It is steel ."]) == [0.0, -3.0]
    found = reviewer(["Describe it", "Describe the teapot .", asked, asked], ["", "", "", "It is <end> steel ."])
    assert found[2] == -2.0
    told = [(one.field, one.reason) for one in found if isinstance(one, Unread)]
    assert [field for field, _ in told] == ["prompt", "prompt", "answer"]
    for (_, reason), part in zip(told, ("not 'Describe it'", "name and a kind", "may not hold <end>"), strict=True):
        assert part in reason


def test_once_makes_it_once_for_all_who_wait() -> None:
    made, go = [], threading.Event()

    def make() -> int:
        made.append(1)
        assert go.wait(10)
        return 7

    once = Once(make)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(once) for _ in range(4)]
        go.set()
        assert [future.result(10) for future in futures] == [7] * 4
    assert made == [1]


def test_what_failed_is_made_again() -> None:
    tries = iter((False, True))

    def make() -> int:
        if not next(tries):
            raise ValueError("not yet")
        return 3

    once = Once(make)
    with pytest.raises(ValueError, match="not yet"):
        once()
    assert once() == 3


def test_a_stage_comes_to_its_outcome() -> None:
    def stage() -> Generator[str, None, int]:
        yield "told"
        return 5

    assert outcome(stage()) == 5
