"""How far `killick run emphasis` is from its floor: the time that its multiplications alone would take.

The floor is the floating-point work of the default run (its shapes say how much), divided by the rate that one core
reaches here on a large float32 product. Beside it stand the parts of one PPO iteration and one SFT step, medians over
rounds, so that a busy neighbour counts little.

    python benchmarks/floor.py --rounds 20
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

import torch

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.sft import SFTState, sft
from killick.models.policy import TransformerPolicy
from killick.models.transformer import Transformer
from killick.recipes.cells import Cell
from killick.recipes.emphasis.recipe import Config, cells
from killick.recipes.starting import leashed
from killick.rewards.fit import standardise
from killick.rewards.pooled import Pooled
from killick.worlds.emphasis import TIME, Emphasis

WORLD = Emphasis()


def forward(policy: TransformerPolicy, sequences: int) -> float:
    """Floating-point operations of one full pass: two a weight and token, and the two products of attention."""
    shape = policy.network.config
    weights = sum(each.weight.numel() for each in policy.modules() if isinstance(each, torch.nn.Linear))
    attention = shape.layers * 2 * TIME * shape.hidden
    return 2.0 * sequences * TIME * (weights + attention)


def work(config: Config, policy: TransformerPolicy) -> float:
    """Of the whole run: a backward pass counts twice a forward one; samples, old log-probs and reference once each."""
    steps = 3 * config.sft.steps * forward(policy, config.sft.batch) * len(config.seeds)
    iteration = (3 + 3 * config.ppo.epochs) * forward(policy, config.ppo.batch)
    return steps + sum(cell.steps for cell in cells(config)) * iteration


def rate(size: int = 1024, rounds: int = 10) -> float:
    """Floating-point operations a CPU second on one core, in the best of some products of square matrices."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = 0.0
    for _ in range(rounds):
        began = time.process_time()
        a @ b
        best = max(best, 2 * size**3 / (time.process_time() - began))
    return best


class Watch:
    """CPU seconds of the calls that it stands before, one sum a round."""

    def __init__(self) -> None:
        self.rounds: dict[str, list[float]] = {}

    def before(self, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, timed."""

        def timed(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            out = call(*given, **named)
            self.rounds[part][-1] += time.process_time() - began
            return out

        return timed

    def next(self, *parts: str) -> None:
        """Begin a round."""
        for part in parts:
            self.rounds.setdefault(part, []).append(0.0)


def iterations(config: Config, policy: TransformerPolicy, *, rounds: int) -> dict[str, float]:
    """Median CPU seconds of the parts of one PPO iteration."""
    draws, watch = torch.Generator().manual_seed(0), Watch()
    reward = standardise(Pooled(WORLD.vocabulary.size, config.hidden, draws), WORLD.demonstrations(500, draws))
    settings = replace(config.ppo, iterations=rounds + 1)
    state: PPOState = leashed(Cell("floor", 0, rounds), Leash(0.1), policy=policy, config=settings, device="cpu")
    parts = ("sampling", "reference", "optimiser", "all")
    state.policy.sample = watch.before("sampling", state.policy.sample)  # type: ignore[method-assign]
    state.reference.logprobs = watch.before("reference", state.reference.logprobs)  # type: ignore[method-assign]
    state.optimiser.step = watch.before("optimiser", state.optimiser.step)  # type: ignore[method-assign]
    loop = ppo(state, reward, prompts=WORLD.prompts)
    for _ in range(rounds + 1):
        watch.next(*parts)
        watch.before("all", lambda: next(loop))()
    found = {part: median(watch.rounds[part][1:]) for part in parts}  # the first round warms up
    return found | {"update, old log-probs and the rest": 2 * found["all"] - sum(found.values())}


def step(config: Config, policy: TransformerPolicy, *, rounds: int) -> float:
    """Median CPU seconds of one SFT step."""
    draws, watch = torch.Generator().manual_seed(0), Watch()
    loop = sft(SFTState(policy, replace(config.sft, steps=4 * rounds), draws), WORLD.demonstrations)
    for _ in range(4 * rounds):
        watch.next("all")
        watch.before("all", lambda: next(loop))()
    return median(watch.rounds["all"][1:])


def main() -> None:
    """Measure, and print what the default run would take of each."""
    parser = argparse.ArgumentParser(description="Time the parts of the emphasis recipe against their floor.")
    rounds = parser.add_argument("--rounds", type=int, default=20)
    rounds.help = "PPO iterations, and four SFT steps each"
    given = parser.parse_args().rounds
    torch.set_num_threads(1)
    config = Config(device="cpu")
    policy = TransformerPolicy(Transformer(config.network, torch.Generator().manual_seed(0)), WORLD.vocabulary)
    one, parts = step(config, policy, rounds=given), iterations(config, policy, rounds=given)
    total, speed = work(config, policy), rate()
    count = sum(cell.steps for cell in cells(config))
    print(f"work {total / 1e12:.1f} TFLOP at {speed / 1e9:.0f} GFLOP/s: floor {total / speed:.0f} CPU s")
    for part, seconds in parts.items():
        print(
            f"{part:<36} {seconds * 1e3:7.1f} ms an iteration  {seconds / parts['all']:6.1%}  {seconds * count:6.1f} s"
        )
    tuning = one * config.sft.steps * len(config.seeds)
    print(f"{'SFT':<36} {one * 1e3:7.1f} ms a step               {tuning:6.1f} s")
    print(f"share of the floor: {total / speed / (tuning + parts['all'] * count):.0%}")


if __name__ == "__main__":
    main()
