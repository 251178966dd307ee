"""What people are asked about a run: the first held-out answers of the saved policy, beside those of the reference."""

from typing import Any

import pytest

from killick.recipes.align.config import Config
from killick.recipes.align.people import questions
from killick.recipes.scores.people import Asked


def sample(step: int, prompt: str, take: int) -> dict[str, Any]:
    return {"arm": "beta=0", "step": step, "prompt": prompt, "response": f"{prompt}{step}{take}", "reference": prompt}


@pytest.mark.parametrize(("choose", "step"), [("last", 4), ("held-out-reward", 2)])
def test_the_first_answers_of_the_saved_policy_are_asked_about(choose: Any, step: int) -> None:
    config = Config("m", ("r",), "p", (0.0,), gold="people", choose=choose)
    names = ("gold", "proxy_error", "gain_error")
    rows = [
        {"arm": "beta=0", "step": at, "held_proxy": proxy, "held_kl": 1.0} | {f"held_{name}": None for name in names}
        for at, proxy in ((0, 0.0), (2, 2.0), (4, 1.0))
    ]
    samples = [sample(at, prompt, take) for at in (0, 2, 4) for take in (0, 1) for prompt in "ab"]
    assert questions(config, rows, samples=samples) == [
        Asked(prompt, f"{prompt}{step}0", prompt, f"beta=0, step {step}") for prompt in "ab"
    ]
