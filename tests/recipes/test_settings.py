"""What all recipes refuse alike: arms, seeds, devices."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.sft import SFTConfig
from killick.models.transformer import TransformerConfig
from killick.recipes.arithmetic.recipe import Config
from killick.recipes.settings import check_betas, check_choice, check_seed, check_seeds, check_training, find_device
from killick.rewards.fit import FitConfig
from killick.types import Refusal, Vocabulary


@pytest.mark.parametrize(
    ("betas", "sentence"),
    [
        ((), "No beta was given; name at least one"),
        ((-0.1,), "not -0.1; 0 takes the leash off"),
        ((0.0, math.nan), "not nan"),
        ((math.inf,), "not inf"),
        ((0.1, 0.3, 0.1), "0.1 0.3 0.1 names one twice"),
    ],
)
def test_betas_that_make_no_arms_are_refused(betas: tuple[float, ...], sentence: str) -> None:
    """The sentence shows what was given."""
    with pytest.raises(Refusal, match=sentence):
        check_betas(betas)


def test_betas_whose_arms_would_have_one_name_are_refused() -> None:
    """0.1 and 0.10000001 are both called beta=0.1: their rows could not be told apart."""
    with pytest.raises(Refusal, match="twice"):
        check_betas((0.1, 0.10000001))


def test_zero_and_any_finite_beta_are_arms() -> None:
    """No leash, and leashes of any length, in any order."""
    check_betas((0.5, 0.0, 1e-6, 1e6))


def test_a_negative_seed_is_refused() -> None:
    """0 is a seed."""
    check_seed(0)
    with pytest.raises(Refusal, match="0 or more, not -1"):
        check_seed(-1)


@pytest.mark.parametrize(
    ("seeds", "sentence"),
    [
        ((), "needs at least one seed and none twice, not nothing"),
        ((1, 2, 1), "none twice, not 1 2 1"),
        ((0, -1), "0 or more, not -1"),
        ((2**63,), r"below 2\^63"),
    ],
)
def test_seeds_that_make_no_cells_are_refused(seeds: tuple[int, ...], sentence: str) -> None:
    """None, one given twice, one that no generator takes."""
    check_seeds((0, 7, 2**63 - 1))
    with pytest.raises(Refusal, match=sentence):
        check_seeds(seeds)


def test_auto_takes_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the CPU elsewhere."""
    for there, name in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert find_device("auto") == name
    assert find_device("cpu") == "cpu"


def test_a_device_that_is_not_there_is_refused_and_one_that_is_keeps_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """cuda:1 is a cuda."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert find_device("cuda:1") == "cuda:1"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("cuda", "cuda:1"):
        with pytest.raises(Refusal, match=f"--device {name} was asked for, but torch finds no cuda here"):
            find_device(name)


@pytest.mark.parametrize("name", ["tpu", "", "CPU", "gpu:0"])
def test_a_device_that_nobody_has_is_refused(name: str) -> None:
    """The sentence lists the words that there are."""
    with pytest.raises(Refusal, match=f"must be auto, cpu, cuda or mps, not {name}"):
        find_device(name)


@pytest.mark.parametrize("name", ["cpu:x", "cpu:", "cpu:0:1"])
def test_a_device_that_torch_cannot_read_is_refused(name: str) -> None:
    """Here, and not by torch in the middle of a run."""
    with pytest.raises(Refusal, match=name):
        find_device(name)


@pytest.mark.parametrize("given", [(), ("a", "a"), ("a", "c")])
def test_words_that_make_no_choice_are_refused_beside_those_that_do(given: tuple[str, ...]) -> None:
    check_choice("words", ("b", "a"), known=("a", "b"))
    with pytest.raises(
        Refusal, match=f"--words takes one or more of a, b, none twice, not {' '.join(given) or 'nothing'}"
    ):
        check_choice("words", given, known=("a", "b"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seeds": ()}, "--seeds"),
        ({"device": "tpu"}, "--device"),
        ({"workers": -1}, "--workers must be at least 0, not -1"),
        ({"network": TransformerConfig(14, 14, context=8)}, "context of 8 is too short for 6 prompt and 4 response"),
        ({"network": TransformerConfig(14, 14, context=10, heads=0)}, "heads must be at least 1, not 0"),
        ({"sft": SFTConfig(batch=0)}, "SFT needs steps and batch"),
        ({"fit": FitConfig(steps=0)}, "A fit needs steps"),
        ({"ppo": PPOConfig(gamma=2.0)}, "gamma between 0 and 1"),
        ({"ppo": PPOConfig(level="sequence")}, "A critic reads every token"),
    ],
)
def test_what_cannot_train_is_refused_by_its_field(change: dict[str, Any], sentence: str) -> None:
    """The same for every recipe that imitates, fits and optimises."""
    words = Vocabulary(size=14, time=4, eos=12, pad=13)
    check_training(Config(), words, prompt=6, critic=True, demonstrations=True)
    with pytest.raises(Refusal, match=sentence):
        check_training(replace(Config(), **change), words, prompt=6, critic=True, demonstrations=True)
