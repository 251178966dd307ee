"""Adam and plain descent: torch's own numbers, bit for bit, without the rest of `torch.optim`."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from killick.optimiser import SGD, Adam, clip_, norm_of

modest = settings(max_examples=20, deadline=None, derandomize=True)
SHAPES = ((3, 4), (4,), (), (2, 3, 2))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def parameters(seed: int = 0) -> list[nn.Parameter]:
    generator = seeded(seed)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]


def push(rows: list[nn.Parameter], step: int, without: tuple[int, ...] = ()) -> None:
    """The same gradients for the same step, of very different size; none where asked."""
    generator = seeded(1000 + step)
    for index, parameter in enumerate(rows):
        gradient = torch.randn(parameter.shape, generator=generator) * 10.0 ** (3 * index - 6)
        parameter.grad = None if index in without else gradient


# Closed forms


def test_the_first_step_is_the_rate_against_the_sign_of_the_gradient() -> None:
    """Moments corrected: g / (|g| + 1e-8), so -0.1, +0.1, and for a gradient of 1e-8 half the rate; 0 stays."""
    parameter = nn.Parameter(torch.zeros(4))
    parameter.grad = torch.tensor([5.0, -1e-3, 1e-8, 0.0])
    Adam([parameter], 0.1).step()
    assert parameter.tolist() == pytest.approx([-0.1, 0.1, -0.05, 0.0], abs=2e-6)


def test_two_steps_by_hand() -> None:
    """Gradients 1 then -1, rate 1: first moment .9 * .1 - .1 = -.01, corrected by 1 - .81 = .19: -.0526316; second
    moment 1 after correction; so 0 - 1 + .0526316 = -.9473684."""
    parameter = nn.Parameter(torch.zeros(()))
    optimiser = Adam([parameter], 1.0)
    for gradient in (1.0, -1.0):
        parameter.grad = torch.tensor(gradient)
        optimiser.step()
    assert parameter.item() == pytest.approx(-0.9473684, abs=1e-6)


# Torch's own


def test_forty_steps_are_torchs_fused_adam_bit_for_bit() -> None:
    """Four shapes; one parameter never has a gradient, one only from step 10 on but for step 20; the rate changes."""
    mine, theirs = parameters(), parameters()
    adam = Adam(mine, 1e-2)
    torchs = torch.optim.Adam(theirs, lr=1e-2, fused=True)
    for step in range(40):
        without = (1, 2) if step < 10 or step == 20 else (1,)
        push(mine, step, without)
        push(theirs, step, without)
        if step == 30:
            adam.learning_rate = torchs.param_groups[0]["lr"] = 3e-4
        adam.step()
        torchs.step()
        for a, b in zip(mine, theirs, strict=True):
            assert torch.equal(a, b)
    assert torch.equal(mine[1], parameters()[1])
    assert not torch.equal(mine[2], parameters()[2])


@pytest.mark.parametrize(("betas", "decay"), [((0.9, 0.95), 0.0), ((0.9, 0.95), 0.1), ((0.8, 0.999), 0.01)])
def test_other_betas_and_decay_are_torchs_fused_adamw_bit_for_bit(betas: tuple[float, float], decay: float) -> None:
    """Twenty steps; the decay does not pass through the moments."""
    mine, theirs = parameters(), parameters()
    ours = Adam(mine, 1e-2, betas=betas, weight_decay=decay)
    torchs = torch.optim.AdamW(theirs, lr=1e-2, betas=betas, weight_decay=decay, fused=True)
    for step in range(20):
        push(mine, step)
        push(theirs, step)
        ours.step()
        torchs.step()
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_a_decayed_step_by_hand() -> None:
    """Rate .1, decay .5, weight 2, gradient 3: 2 (1 - .05) - .1 = 1.8; with a gradient of 0 it only shrinks to 1.9."""
    weights = [nn.Parameter(torch.tensor(2.0)) for _ in range(2)]
    for weight, gradient in zip(weights, (3.0, 0.0), strict=True):
        weight.grad = torch.tensor(gradient)
    Adam(weights, 0.1, weight_decay=0.5).step()
    assert [weight.item() for weight in weights] == pytest.approx([1.8, 1.9], abs=1e-6)


@pytest.mark.parametrize("most", [1e-9, 0.3, 1e9])
def test_clipping_is_torchs_bit_for_bit(most: float) -> None:
    """Gradients of four shapes, one of them missing; the length is that before the cut."""
    mine, theirs = parameters(), parameters()
    for rows in (mine, theirs):
        push(rows, 0, (1,))
    told = torch.nn.utils.clip_grad_norm_(theirs, most)
    assert torch.equal(norm_of(mine), told)
    assert torch.equal(clip_(mine, most), told)
    assert mine[1].grad is None
    cut = [(a.grad, b.grad) for a, b in zip(mine, theirs, strict=True)]
    assert all(torch.equal(a, b) for a, b in cut if a is not None and b is not None)


@pytest.mark.parametrize("scale", [0.0, 1e-20, 1e-3, 1.0, 1e15])
def test_the_length_of_a_single_gradient_is_torchs_bit_for_bit(scale: float) -> None:
    """The length of one length is that length, so nothing is stacked."""
    alone = nn.Parameter(torch.zeros(4, 8))
    alone.grad = scale * torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(norm_of([alone]), torch.nn.utils.get_total_norm([alone.grad]))


def test_no_gradient_has_no_length() -> None:
    assert float(norm_of(parameters())) == float(clip_(parameters(), 1.0)) == 0.0


# Invariants


@modest
@given(st.integers(0, 5), st.integers(1, 5))
def test_going_on_from_a_saved_state_is_bit_equal(before: int, after: int) -> None:
    """Moments, step counts and rate; the saved state is a copy that later steps do not move."""
    whole = parameters()
    optimiser = Adam(whole, 1e-2)
    for step in range(before):
        push(whole, step, (1,))
        optimiser.step()
    optimiser.learning_rate = 5e-3
    state, weights = optimiser.state_dict(), [p.detach().clone() for p in whole]
    for step in range(before, before + after):
        push(whole, step)
        optimiser.step()
    rest = [nn.Parameter(weight) for weight in weights]
    other = Adam(rest, 1.0)
    other.load_state_dict(state)
    assert other.learning_rate == 5e-3
    for step in range(before, before + after):
        push(rest, step)
        other.step()
    assert all(torch.equal(a, b) for a, b in zip(whole, rest, strict=True))


def test_the_state_survives_torchs_safe_loader(tmp_path: Path) -> None:
    """Tensors and plain types only."""
    rows = parameters()
    optimiser = Adam(rows, 1e-2)
    push(rows, 0)
    optimiser.step()
    torch.save(optimiser.state_dict(), tmp_path / "state.pt")
    loaded = torch.load(tmp_path / "state.pt", weights_only=True)
    for name in ("first", "second", "steps"):
        assert all(torch.equal(a, b) for a, b in zip(loaded[name], optimiser.state_dict()[name], strict=True))
    assert loaded["rate"] == 1e-2


def test_without_any_gradient_nothing_moves_and_nothing_is_counted() -> None:
    """Also after gradients were forgotten."""
    rows = parameters()
    optimiser = Adam(rows, 1.0)
    push(rows, 0)
    optimiser.zero_grad()
    optimiser.step()
    assert all(torch.equal(a, b) for a, b in zip(rows, parameters(), strict=True))
    assert all(p.grad is None for p in rows)
    assert [float(step) for step in optimiser.steps] == [0.0] * 4


# What is refused


@pytest.mark.parametrize("piece", ["first", "second", "steps", "rate"])
def test_a_state_without_a_piece_is_a_key_error(piece: str) -> None:
    """Never a default."""
    optimiser = Adam(parameters(), 1e-2)
    state = optimiser.state_dict()
    del state[piece]
    with pytest.raises(KeyError, match=piece):
        optimiser.load_state_dict(state)


def test_a_state_of_another_shape_or_number_is_a_value_error() -> None:
    """A moment of another shape names both shapes; one parameter too few does not pass in silence."""
    optimiser = Adam(parameters(), 1e-2)
    state = optimiser.state_dict()
    state["second"][0] = torch.zeros(4, 3)
    with pytest.raises(ValueError, match=r"shape \(4, 3\), not \(3, 4\)"):
        optimiser.load_state_dict(state)
    fewer = Adam(parameters()[:3], 1e-2).state_dict()
    with pytest.raises(ValueError, match="shorter"):
        optimiser.load_state_dict(fewer)


# Plain descent


def test_plain_descent_moves_by_rate_times_gradient_and_remembers_nothing() -> None:
    """From (1, 1) with gradients (2, -0.5) at rate 0.1: (0.8, 1.05), then (0.6, 1.1); what has no gradient stays."""
    moved, still = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(()))
    optimiser = SGD([moved, still], 0.1)
    for expected in ([0.8, 1.05], [0.6, 1.1]):
        moved.grad = torch.tensor([2.0, -0.5])
        optimiser.step()
        assert moved.tolist() == pytest.approx(expected, abs=1e-6)
    assert still.item() == 1
    optimiser.zero_grad()
    assert moved.grad is None
    optimiser.step()
    assert moved.tolist() == pytest.approx([0.6, 1.1], abs=1e-6)


def test_forty_steps_are_torchs_sgd_bit_for_bit() -> None:
    """The rate changes on the way, and comes back with a saved state."""
    mine, theirs = parameters(), parameters()
    ours, torchs = SGD(mine, 0.05), torch.optim.SGD(theirs, 0.05)
    for step in range(40):
        if step == 20:
            ours.learning_rate = torchs.param_groups[0]["lr"] = 0.01
        push(mine, step, without=(1,))
        push(theirs, step, without=(1,))
        ours.step()
        torchs.step()
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    other = SGD(mine, 1.0)
    other.load_state_dict(ours.state_dict())
    assert other.learning_rate == 0.01
    with pytest.raises(KeyError):
        other.load_state_dict({})
