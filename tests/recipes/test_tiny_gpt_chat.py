from dataclasses import replace
from pathlib import Path

import pytest
import torch

from killick.algorithms.sft import SFTConfig
from killick.models.chat import SHIPPED, Chat
from killick.models.encoding import encode_prompts
from killick.recipes.ledger import Note
from killick.recipes.tiny_gpt_chat import Config, make
from killick.types import Refusal
from killick.worlds.brand import Brand
from killick.worlds.catalogue import HELD_OUT, KINDS
from killick.worlds.copywriting import HABITS, FlawRates

FEW = SFTConfig(steps=2, batch=4)
SMALL = Config(reading=replace(FEW, steps=3), answering=FEW, hidden=16, layers=1, heads=2, feed_forward=24)
FILES = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]


def made(config: Config) -> tuple[Chat, list[str]]:
    """The model and the notes."""
    said: list[str] = []

    def told():
        model = yield from make(config)
        return model

    loop = told()
    while True:
        try:
            note = next(loop)
            assert isinstance(note, Note)
            said.append(note.text)
        except StopIteration as end:
            return end.value, said


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_two_makings_write_the_same_bytes_and_another_seed_others(tmp_path) -> None:
    for name, config in (("one", SMALL), ("two", SMALL), ("other", replace(SMALL, seed=1))):
        made(config)[0].save(tmp_path / name)
    one, two, other = (bytes_of(tmp_path / name) for name in ("one", "two", "other"))
    assert sorted(one) == FILES
    assert one == two
    assert one["model.safetensors"] != other["model.safetensors"]
    assert one["tokenizer.json"] == other["tokenizer.json"]


def test_it_tells_how_both_stages_go() -> None:
    """Nearly uniform over 426 words before training: log 426 = 6.05."""
    _, said = made(SMALL)
    assert [text.split(":")[0] for text in said] == ["reading, step 3 of 3", "answering, step 2 of 2"]
    assert float(said[0].split()[-4]) == pytest.approx(6.05, abs=0.1)


def test_settings_that_cannot_make_it_are_refused() -> None:
    for config, message in (
        (replace(SMALL, talk=1.5), r"share of talk must lie in 0..1, not 1\.5"),
        (replace(SMALL, rates=FlawRates(often=-1)), "often"),
        (replace(SMALL, reading=SFTConfig(steps=0)), "steps"),
        (replace(SMALL, answering=SFTConfig(batch=0)), "batch"),
    ):
        with pytest.raises(Refusal, match=message):
            next(make(config))


def test_the_first_answer_has_1_78_flaws() -> None:
    """The one figure that is tuned, over 72 held-out products: of 8 answers each the mean has a deviation of .03.

    Which flaws they are is a matter of the kind, how many partly chance: a kind's two habits against its other two.
    """
    model = Chat.load(SHIPPED["tiny-gpt-chat"]).requires_grad_(False)
    policy = model.policy(temperature=0.8)
    products = tuple(f"{name} {kind}" for name in HELD_OUT for kind in KINDS)
    world = Brand(model.tokenizer.encode, model.tokenizer.decode, vocabulary=policy.vocabulary, products=products)
    found = world.flaws(policy.sample(world.everything(), 8, torch.Generator().manual_seed(0)))
    counts = torch.tensor([len(flaws) for flaws in found], dtype=torch.float32).view(72, 8)
    assert float(counts.mean()) == pytest.approx(1.78, abs=0.06)
    assert 0.5 < float(counts.std(1).mean()) < 0.9
    habits = [set(HABITS[product.split(" ", 1)[1]]) for product in products for _ in range(8)]
    often = sum(flaw.kind in habit for flaws, habit in zip(found, habits, strict=True) for flaw in flaws)
    assert often / (2 * len(found)) > 0.6
    assert (float(counts.sum()) - often) / (2 * len(found)) < 0.3


@pytest.mark.slow
def test_making_it_anew_gives_the_bytes_that_the_package_holds(tmp_path) -> None:
    """On the kind of processor and the torch that made them; docs/brand.md says which."""
    model, _ = made(Config())
    model.save(tmp_path, dtype=torch.bfloat16)
    assert bytes_of(tmp_path) == bytes_of(SHIPPED["tiny-gpt-chat"])


def test_prompts_of_the_world_are_read_as_they_were_learnt() -> None:
    """What the recipe trains on and what the world asks are one sequence of ids."""
    model = Chat.load(SHIPPED["tiny-gpt-chat"])
    world = Brand(model.tokenizer.encode, model.tokenizer.decode, vocabulary=model.policy().vocabulary)
    ids, mask = encode_prompts(["<user> Describe the Alder rain jacket . <assistant>"], model.tokenizer.encode)
    assert torch.equal(world.everything()[0][:1], ids)
    assert bool(mask.all())
