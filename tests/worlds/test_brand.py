"""The reviewer by hand-made copy and by what must not change its mind; the world that asks about products."""

import time
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.types import Refusal, Rollout
from killick.worlds.brand import Brand, chat, question, review
from killick.worlds.catalogue import FLAWS, KINDS, MATERIALS, PRODUCTS, PROMISES
from words import PLACE, VOCABULARY, decode, encode

modest = settings(max_examples=50, deadline=None, derandomize=True)
ASKED = "Kestrel rain jacket"
CLEAN = "The Kestrel rain jacket is made of nylon. It has taped seams. We repair it free for life."


def wide(text: str) -> str:
    """The same letters in full width."""
    return "".join(chr(ord(letter) + 0xFEE0) for letter in text)


def kinds(text: str, product: str = ASKED) -> list[str]:
    return [flaw.kind for flaw in review(product, text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (CLEAN, []),
        ("", [("product", (ASKED,)), ("repair", ("repair",))]),
        ("🙂", [("product", (ASKED,)), ("repair", ("repair",))]),
        (CLEAN.upper(), []),
        (CLEAN.replace(".", " .\n"), []),
        (CLEAN.replace("Kestrel rain jacket", "Kestrel\u2019s rain-jackets"), []),
        (CLEAN.replace("Kestrel", wide("Kestrel")), []),
        (CLEAN.replace("Kestrel", "Kestre\u0301l"), []),
        (CLEAN.replace("nylon", "wool"), [("material", ("wool",))]),
        (CLEAN.replace("nylon", "wool, steel"), [("material", ("wool", "steel"))]),
        (CLEAN.replace("nylon", "unobtainium"), []),  # no material of the catalogue
        (CLEAN.replace("seams", "seams, seam by seam"), [("repetition", ("seam",))]),
        (CLEAN.replace("Kestrel rain jacket", "Kestrel rain\njacket"), []),
        (CLEAN.replace("Kestrel rain jacket", "Kestrel rain\n\njacket"), [("product", (ASKED,))]),
        (CLEAN.replace("seams", "seams, sizes of a size"), [("repetition", ("size",))]),
        (CLEAN.replace("seams", "seams, lenses and a lens"), [("repetition", ("lens",))]),
        (CLEAN.replace("seams", "seams, a virus of viruses"), [("repetition", ("virus",))]),
        (CLEAN.replace("nylon", "canvases"), [("material", ("canvas",))]),
        (CLEAN.replace("repair", "mend"), [("repair", ("repair",))]),
        (CLEAN.replace("We repair it", "Repairs are"), []),
        (CLEAN.replace("Kestrel", "Lark"), [("product", ("Lark rain jacket",))]),
        (CLEAN.replace("rain jacket", "day pack"), [("product", ("Kestrel day pack",))]),
        (CLEAN.replace("Kestrel rain jacket", "Kestrel"), [("product", (ASKED,))]),
        (CLEAN.replace("The Kestrel rain", "Kestrel. Rain"), [("product", (ASKED,))]),
        (f"Unlike the Lark day pack, {CLEAN}", []),
        (CLEAN.replace("nylon", "wool, Wool"), [("repetition", ("wool",)), ("material", ("wool",))]),
    ],
)  # fmt: skip
def test_each_flaw_names_the_words_that_caused_it(text: str, found: list[tuple[str, tuple[str, ...]]]) -> None:
    assert [(flaw.kind, flaw.words) for flaw in review(ASKED, text)] == found


def test_a_flaw_is_told_in_a_line() -> None:
    said = [str(flaw) for flaw in review(ASKED, "The Lark rain jacket: warm wool, warm steel.")]
    assert said == [
        "product: Kestrel rain jacket is not named, but Lark rain jacket",
        "repetition: a sentence repeats warm",
        "material: a rain jacket is not made of wool, steel",
        "repair: the promise to repair is not mentioned",
    ]


def test_the_same_word_in_two_sentences_is_no_repetition_and_function_words_may_come_again() -> None:
    assert kinds("Taped seams. Seams hold. The one and the other and the rest with 3 and 3.") == ["product", "repair"]


@pytest.mark.parametrize(
    "product", ["", "Kestrel", "rain jacket", "Kestrel teapot", "x" * 300 + " rain jacket", "\ud800"]
)
def test_what_is_no_product_is_refused(product: str) -> None:
    with pytest.raises(Refusal, match="name and a kind"):
        review(product, CLEAN)


def test_a_product_may_be_spelled_as_one_likes_and_need_not_be_in_the_catalogue() -> None:
    assert kinds(CLEAN, "kestrel  RAIN-JACKETS") == []
    assert kinds(CLEAN.replace("Kestrel", "New Dawn"), "New Dawn rain jacket") == []
    assert kinds(CLEAN, "New Dawn rain jacket") == ["product"]


def test_every_promise_and_every_material_of_the_catalogue_is_understood() -> None:
    for promise in PROMISES:
        assert kinds(f"The {ASKED} . {promise}") == []
    for name, kind in KINDS.items():
        wrong = {material for material in MATERIALS if kinds(f"Of {material}", f"Wren {name}") != ["product", "repair"]}
        assert wrong == set(MATERIALS) - set(kind.materials)


product, copy = st.sampled_from(PRODUCTS), st.text(max_size=300)
some = [*CLEAN.split(), *MATERIALS, "Lark", "day pack", ",", "wool.", "\u2019", "—"]
words = st.lists(st.sampled_from(some), max_size=40)
prose = st.builds(" ".join, words)


@modest
@given(product, copy | prose)
def test_any_text_is_read_with_at_most_one_flaw_a_guideline_in_their_order(product: str, text: str) -> None:
    found = kinds(text, product)
    assert found == [kind for kind in FLAWS if kind in found]
    assert all(flaw.words and flaw.reason for flaw in review(product, text))


@modest
@given(product, prose)
def test_case_and_the_space_between_words_are_of_no_account(product: str, text: str) -> None:
    found = kinds(text, product)
    assert kinds(text.swapcase(), product.upper()) == found
    assert kinds(text.replace(" ", "\t\u00a0"), product) == found


@modest
@given(product, prose, prose)
def test_saying_more_never_mends_a_material_nor_breaks_a_promise(product: str, text: str, more: str) -> None:
    """Naming and promising can only come true, materials and repetitions can only be added."""
    before, after = set(kinds(text, product)), set(kinds(f"{text}. {more}", product))
    assert before & {"material", "repetition"} <= after
    assert after & {"product", "repair"} <= before


@modest
@given(product, prose)
def test_the_words_of_repetitions_and_materials_stand_in_the_text(product: str, text: str) -> None:
    for flaw in review(product, text):
        if flaw.kind in ("repetition", "material"):
            assert all(word in text.casefold() for word in flaw.words)


def test_a_megabyte_of_copy_takes_a_second_at_most() -> None:
    """CPU seconds; measured .3 to .5 without the checks of shapes."""
    for part in (CLEAN, "lark rain jacket ", "wool "):
        text = part * (1_000_000 // len(part))
        begun = time.process_time()
        review(ASKED, text)
        assert time.process_time() - begun < 1.5


def said(world: Brand, row: int, text: str) -> Rollout:
    """One response, ended."""
    ids = [*encode(text), PLACE["<end>"]]
    prompts, mask = world.everything()
    real = torch.ones(1, len(ids), dtype=torch.bool)
    return Rollout(
        prompts[row : row + 1], mask[row : row + 1], torch.tensor([ids]), real, torch.zeros(1, len(ids)), real[:, 0]
    )


def test_a_prompt_is_the_question_in_chat_form_and_all_products_are_asked_about() -> None:
    world = Brand(encode, decode, vocabulary=VOCABULARY)
    ids, mask = world.everything()
    assert len(ids) == 360
    assert decode(ids[100][mask[100]].tolist()) == chat(question(PRODUCTS[100]))
    assert chat(question("Lark day pack")) == "<user> Describe the Lark day pack . <assistant>"
    drawn, _ = world.prompts(2000, torch.Generator().manual_seed(0))
    assert len({tuple(row) for row in drawn.tolist()}) > 350  # of 360; 359 are expected


def test_gold_is_minus_the_number_of_flaws_of_the_product_that_the_row_asks_about() -> None:
    world = Brand(encode, decode, vocabulary=VOCABULARY)
    text = "The Lark day pack is made of wool . It has wool and Warm wool for warm"
    lark, other = PRODUCTS.index("Lark day pack"), PRODUCTS.index("Lark camp mug")
    assert world.gold(said(world, lark, text)).tolist() == [-3.0]  # repetition, material, repair
    assert world.gold(said(world, other, text)).tolist() == [-4.0]
    assert world.asked(said(world, other, text)) == ["Lark camp mug"]
    assert world.render(said(world, lark, text)) == [text]


def test_the_end_token_is_no_part_of_the_text_and_an_unfinished_one_shows_it() -> None:
    world = Brand(encode, decode, vocabulary=VOCABULARY)
    rollout = said(world, 0, "Warm wool")
    cut = replace(rollout, finished=torch.tensor([False]))
    assert world.render(rollout) == ["Warm wool"]
    assert world.render(cut) == ["Warm wool <end>…"]


def test_a_prompt_of_another_world_is_refused() -> None:
    world = Brand(encode, decode, vocabulary=VOCABULARY, products=PRODUCTS[:3])
    everyone = Brand(encode, decode, vocabulary=VOCABULARY)
    with pytest.raises(Refusal, match=PRODUCTS[7]):
        world.gold(said(everyone, 7, "Warm"))
