import re
from itertools import product as every

import pytest
import torch

from killick.types import Refusal
from killick.worlds.brand import review
from killick.worlds.catalogue import FLAWS, HELD_OUT, KINDS, MATERIALS, NAMES, PRODUCTS, PROMISES
from killick.worlds.copywriting import (
    CARE,
    CLEAN,
    FEATURES,
    HABITS,
    MATERIAL,
    NAMELESS,
    OPENINGS,
    PRICES,
    TALK,
    WRITTEN,
    FlawRates,
    copy,
    talk,
    texts,
)

ALWAYS = FlawRates(1.0, 1.0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def repeats(sentence: str) -> bool:
    """Whether any word stands twice, function words and plurals included."""
    words = [word.rstrip("s") for word in re.findall(r"\w+", sentence.lower())]
    return len(set(words)) < len(words)


def named(text: str) -> set[str]:
    return set(text.split()) & set(NAMES)


def test_no_sentence_repeats_a_word_unless_it_is_flawed() -> None:
    """Every filling of every pattern, for one name: 12 kinds x (openings, materials, features, care, prices)."""
    for kind, facts in KINDS.items():
        said = [p.format(product=f"Kestrel {kind}", use=u) for p, u in every(OPENINGS + NAMELESS, facts.uses)]
        said += [p.format(material=m) for p, m in every(MATERIAL, MATERIALS)]
        said += [p.format(one=a, two=b) for p, a, b in every(FEATURES, facts.features, facts.features) if a != b]
        said += [p.format(care=c) for p, c in every(CARE, facts.care)]
        said += [p.format(price=c) for p, c in every(PRICES, facts.prices)]
        assert [s for s in (*said, *PROMISES) if repeats(s)] == []
        assert all(s.endswith(" .") and s.count(".") == 1 for s in said)


@pytest.mark.parametrize("product", ["Kestrel rain jacket", "Aspen camp mug", "Wren work shirt"])
def test_clean_copy_has_no_flaw(product: str) -> None:
    name, kind = product.split(" ", 1)
    for seed in range(30):
        text = copy(product, CLEAN, generator=seeded(seed))
        assert product in text
        assert named(text) == {name}
        assert len(set(text.split()) & set(MATERIALS)) == 1
        assert set(text.split()) & set(KINDS[kind].materials)
        assert any(text.endswith(promise) for promise in PROMISES)
        assert not any(repeats(sentence) for sentence in text.split(" ."))


@pytest.mark.parametrize("product", ["Kestrel rain jacket", "Aspen camp mug", "Wren work shirt"])
def test_copy_that_is_always_flawed_has_all_four(product: str) -> None:
    name, kind = product.split(" ", 1)
    for seed in range(30):
        text = copy(product, ALWAYS, generator=seeded(seed))
        assert name not in text.split()
        assert not named(text) & set(HELD_OUT)
        assert set(text.split()) & set(MATERIALS)
        assert not set(text.split()) & set(KINDS[kind].materials)
        assert "epair" not in text
        assert sum(repeats(sentence) for sentence in text.split(" .")) == 1


def test_a_wrong_opening_names_another_product_or_none() -> None:
    """Three of four name a neighbour: of 400, 300 with deviation 8.7."""
    texts = [copy("Aspen camp mug", ALWAYS, generator=seeded(seed)) for seed in range(400)]
    assert sum(bool(named(text)) for text in texts) == pytest.approx(300, abs=30)


def test_each_flaw_is_a_habit_of_half_of_the_kinds() -> None:
    assert all(sum(flaw in habits for habits in HABITS.values()) == 6 for flaw in FLAWS)
    assert all(len(set(habits)) == 2 for habits in HABITS.values())


def test_flaws_are_drawn_at_their_rates() -> None:
    """2,000 draws: a share of .8 has a deviation of .009, of .1 of .007."""
    draws, rates = seeded(), FlawRates(0.8, 0.1)
    drawn = [rates.draw("rain jacket", draws) for _ in range(2000)]
    for flaw in FLAWS:
        expected = 0.8 if flaw in HABITS["rain jacket"] else 0.1
        assert sum(flaw in flaws for flaws in drawn) / 2000 == pytest.approx(expected, abs=0.04)


@pytest.mark.parametrize("flaw", FLAWS)
def test_the_reviewer_calls_a_flaw_as_the_writer_does(flaw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy with one flaw, by the writer's word for it, about every product that there is copy about."""
    monkeypatch.setattr(FlawRates, "draw", lambda *_: {flaw})
    draws = seeded()
    for product in WRITTEN[::5]:
        assert [one.kind for one in review(product, copy(product, CLEAN, generator=draws))] == [flaw]


def test_copy_is_the_same_from_the_same_generator_and_varies_otherwise() -> None:
    texts = [copy("Wren base layer", CLEAN, generator=seeded(seed)) for seed in range(50)]
    assert texts == [copy("Wren base layer", CLEAN, generator=seeded(seed)) for seed in range(50)]
    assert len(set(texts)) > 45


def test_no_copy_is_written_about_names_that_are_held_out_but_shop_talk_has_them() -> None:
    assert len(WRITTEN) == 24 * 12
    assert not {product.split()[0] for product in WRITTEN} & set(HELD_OUT)
    draws = seeded()
    said = [talk(draws) for _ in range(400)]
    assert named(" ".join(answer for _, answer in said)) == set(NAMES)
    assert all("{" not in question + answer for question, answer in said)
    assert all(named(question) <= named(answer) for question, answer in said)
    assert not set(" ".join(map(" ".join, said)).split()) & set(MATERIALS)
    assert len({answer.split(named(answer).pop())[0] for _, answer in said}) == len(TALK)


def test_its_texts_hold_every_word() -> None:
    """Copy of all sorts and talk, against the words of `texts`; no pattern's field is left in them."""
    draws, known = seeded(), set(re.findall(r"\w+|[^\w\s]", " ".join(texts())))
    for rates in (CLEAN, FlawRates(), ALWAYS):
        for product in PRODUCTS:
            assert set(copy(product, rates, generator=draws).split()) <= known
    assert set(" ".join(" ".join(talk(draws)) for _ in range(200)).split()) <= known
    assert not known & {"{", "}", "product", "use"}


def test_an_answer_fits_the_budget_of_sixty_tokens() -> None:
    """Words and marks, and the end token."""
    longest = max(
        len(copy(product, CLEAN, generator=seeded(seed)).split()) for product in PRODUCTS[::7] for seed in range(20)
    )
    assert longest + 1 <= 60


def test_what_is_not_in_the_catalogue_is_refused() -> None:
    with pytest.raises(Refusal, match=r"no 'Kestrel'; .*'Alder rain jacket'"):
        copy("Kestrel", CLEAN, generator=seeded())
    with pytest.raises(Refusal, match=r"often must lie in 0..1, not 1\.5"):
        FlawRates(often=1.5).validate()
    with pytest.raises(Refusal, match="seldom"):
        FlawRates(seldom=float("nan")).validate()
