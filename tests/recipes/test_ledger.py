"""The ledger's row: common columns first and in order, means over the rollout, null where nothing can be said."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.recipes.ledger import arm_name, ledger_row
from killick.types import Rollout, Step, Vocabulary

modest = settings(max_examples=30, deadline=None, derandomize=True)
COMMON = ["arm", "seed", "step", "proxy", "gold", "kl", "kl_k1", "beta", "entropy", "length", "finished"]
ENDS = Vocabulary(size=3, time=2, eos=2)


def step(exact: bool = True) -> Step:
    """Two responses of 2 and 1 tokens, the second ended; proxies 1 and 4, KL 0.5 and 1.5, log-ratios -1 and 4."""
    ids = torch.zeros(2, 1, dtype=torch.long)
    mask = torch.tensor([[True, True], [True, False]])
    rollout = Rollout(
        ids, ids == 0, torch.tensor([[0, 1], [2, 0]]), mask, torch.zeros(2, 2), torch.tensor([False, True])
    )
    kl = torch.tensor([0.5, 1.5]) if exact else None
    return Step(
        3,
        rollout,
        torch.tensor([1.0, 4.0]),
        kl,
        torch.tensor([-1.0, 4.0]),
        0.25,
        0.75 if exact else None,
        {"loss": 9.0},
    )


@pytest.mark.parametrize(
    ("beta", "parts", "name"),
    [
        (0.0, (), "beta=0"),
        (0.1, (), "beta=0.1"),
        (1.0, (), "beta=1"),
        (2.5e-7, (), "beta=2.5e-07"),
        (0.1, ("ptx",), "beta=0.1+ptx"),
        (0.5, ("flipped", "ppo"), "beta=0.5+flipped+ppo"),
    ],
)
def test_an_arm_is_named_by_its_setting(beta: float, parts: tuple[str, ...], name: str) -> None:
    """Numbers in their shortest form, parts joined by a plus."""
    assert arm_name(beta, *parts) == name


def test_a_row_holds_the_means_of_its_rollout() -> None:
    """proxy (1 + 4) / 2, gold (-1 + 2) / 2, kl (.5 + 1.5) / 2, kl_k1 (-1 + 4) / 2, length 3 / 2, half finished."""
    row = ledger_row("beta=0.25", 7, step=step(), gold=torch.tensor([-1.0, 2.0]), vocabulary=ENDS, accuracy=0.5)
    assert row == {
        "arm": "beta=0.25", "seed": 7, "step": 3, "proxy": 2.5, "gold": 0.5, "kl": 1.0, "kl_k1": 1.5, "beta": 0.25,
        "entropy": 0.75, "length": 1.5, "finished": 0.5, "accuracy": 0.5, "loss": 9.0,
    }  # fmt: skip
    assert list(row) == [*COMMON, "accuracy", "loss"]


def test_what_cannot_be_said_is_null_and_its_column_stays() -> None:
    """No full distribution: no exact KL, no entropy. No end token: nothing finishes."""
    row = ledger_row("a", 0, step=step(exact=False), gold=torch.zeros(2), vocabulary=Vocabulary(size=3, time=2))
    assert list(row)[: len(COMMON)] == COMMON
    assert (row["kl"], row["entropy"], row["finished"]) == (None, None, None)
    assert row["kl_k1"] == 1.5


@modest
@given(st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=2))
def test_every_entry_is_plain(golds: list[float]) -> None:
    """Text, Python numbers or null: nothing of torch."""
    row = ledger_row("a", 0, step=step(), gold=torch.tensor(golds), vocabulary=ENDS)
    assert all(type(value) in (str, int, float, type(None)) for value in row.values())
    assert row["gold"] == pytest.approx(sum(golds) / 2, abs=1e-4)
