"""Settings of an alignment run: what is refused by its flag, what follows from what is left out."""

from typing import Any

import pytest

from killick.algorithms.leash import Leash
from killick.recipes.align.config import Config
from killick.types import Refusal


def config(**settings: Any) -> Config:
    return Config(**({"model": "m", "reward": ("r",), "prompts": "p", "beta": (0.1,)} | settings))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target_kl": 5.0}, "--beta fixes the leash and --target-kl steers it"),
        ({"beta": ()}, "Name a leash: --beta 0.1"),
        ({"beta": (0.1, 0.1)}, "names one twice"),
        ({"beta": (-1.0,)}, "beta must be 0 or more"),
        ({"beta": (), "target_kl": 0.0}, "target KL must be a positive number"),
        ({"seed": -1}, "seed"),
        ({"device": "tpu"}, "--device"),
        ({"steps": 0}, "--steps must be at least 1, not 0"),
        ({"per_prompt": 0}, "--per-prompt must be at least 1"),
        ({"train_layers": 0}, "--train-layers must be at least 1"),
        ({"workers": -1}, "--workers"),
        ({"responses": 6, "per_prompt": 4}, "--responses 6 does not divide into 4"),
        ({"learning_rate": 0.0}, "--learning-rate must be a positive number"),
        ({"value_learning_rate": float("nan")}, "--value-learning-rate"),
        ({"held_out": 1.0}, "--held-out"),
        ({"critic_from": "reward", "baseline": "leave-one-out"}, "--critic-from reward needs --baseline critic"),
        ({"choose": "held-out-reward", "held_out": 0.0}, "needs held-out prompts"),
        ({"gold": "people", "held_out": 0.0}, "--gold people compares answers to held-out prompts"),
        ({"choose": "held-out-gold"}, "needs a --gold"),
        ({"choose": "held-out-gold", "gold": "people"}, "needs a --gold"),
        ({"clip_range": 0.0}, "clip_range"),
        ({"minibatches": 65}, "cannot cut 64 responses"),
        ({"baseline": "leave-one-out", "per_prompt": 1}, "n of at least 2"),
    ],
)
def test_settings_that_cannot_run_are_refused_by_their_flag(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        config(**settings).validate()


def test_the_least_that_has_to_be_said_is_enough() -> None:
    config().validate()
    config(beta=(), target_kl=8.0).validate()
    config(gold="vader", choose="held-out-gold").validate()


def test_each_beta_is_an_arm_and_a_target_is_one_that_moves() -> None:
    assert config(beta=(0.0, 0.1)).leashes() == {"beta=0": Leash(0.0), "beta=0.1": Leash(0.1)}
    assert config(beta=(), target_kl=8.0).leashes() == {"beta=0.1+target=8": Leash(0.1, 8.0)}


def test_what_trains_decides_the_rates_where_none_are_given() -> None:
    """Top layers 2e-4 and a head 3e-3, a whole model 1e-5; a critic that is more than a head goes with the policy."""

    def rates(**settings: Any) -> tuple[float, float | None]:
        made = config(**settings).ppo()
        return made.learning_rate, made.value_learning_rate

    assert rates(train_layers=6) == (2e-4, 3e-3)
    assert rates(train_layers="full") == (1e-5, 1e-5)
    assert rates(train_layers=6, critic_from="reward") == (2e-4, 2e-4)
    assert rates(train_layers=6, learning_rate=1e-4, value_learning_rate=1e-3) == (1e-4, 1e-3)


def test_responses_divide_into_prompts() -> None:
    made = config(baseline="group-mean", responses=24, per_prompt=6).ppo()
    assert (made.batch, made.n, made.baseline) == (4, 6, "group-mean")
    made = config(responses=24).ppo()
    assert (made.batch, made.n, made.baseline) == (24, 1, "batch-mean")


def test_the_frame_of_a_chat_is_left_to_the_tokenizer_unless_told() -> None:
    assert [config(chat=word).framed for word in ("auto", "on", "off")] == [None, True, False]
