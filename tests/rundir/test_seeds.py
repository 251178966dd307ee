"""A stage's draws depend on its seed and its name, and on nothing that ran before."""

import hashlib

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.rundir.seeds import stage_generator

modest = settings(max_examples=30, deadline=None, derandomize=True)


def test_a_stage_draws_from_the_hash_of_seed_and_name() -> None:
    """A fixed rule, so that a cached stage of last year draws the same: SHA-256 of "seed/stage", 63 bits of it."""
    word = hashlib.sha256(b"7/sft").digest()[:8]
    assert stage_generator(7, "sft").initial_seed() == int.from_bytes(word, "big") // 2


@modest
@given(st.integers(0, 2**40), st.text(max_size=8), st.text(max_size=8))
def test_stages_draw_the_same_in_any_order_and_apart_from_each_other(seed: int, first: str, second: str) -> None:
    """What another stage has drawn before does not matter; other names and other seeds are other streams."""
    early = torch.rand(4, generator=stage_generator(seed, first))
    torch.rand(100, generator=stage_generator(seed, second))
    assert torch.equal(early, torch.rand(4, generator=stage_generator(seed, first)))
    assert not torch.equal(early, torch.rand(4, generator=stage_generator(seed + 1, first)))
    if first != second:
        assert not torch.equal(early, torch.rand(4, generator=stage_generator(seed, second)))


def test_streams_of_neighbouring_stages_are_uncorrelated() -> None:
    """20,000 numbers of each of four stages and seeds: every correlation within 4 standard errors, 1 / sqrt(20000)."""
    streams = torch.stack([torch.randn(20_000, generator=stage_generator(s, n)) for s in (0, 1) for n in ("a", "b")])
    found = torch.corrcoef(streams) - torch.eye(4)
    assert float(found.abs().max()) < 4 / 20_000**0.5


def test_the_global_stream_is_left_alone() -> None:
    """No stage reads or sets it."""
    before = torch.random.get_rng_state()
    torch.rand(3, generator=stage_generator(0, "sft"))
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_generator_stands_on_the_device_that_was_asked_for() -> None:
    assert stage_generator(0, "sft", device=torch.device("cpu")).device.type == "cpu"
