"""Race killick's PPO against the plain loop of `plain_ppo.py`, alternating in one process, in CPU seconds.

Workload A: 256 responses a rollout, prompt 4, response 12, 4 epochs of 4 minibatches; B: 64 responses, prompt 6,
response 4, 4 full-batch epochs. Both loops train a policy and a critic of the Llama shape (2 layers, hidden 64, 4
heads, feed-forward 128, vocabulary 32: 86,336 parameters in the policy) against a frozen reference and a frozen reward
model, with a per-token KL charge of 0.05, in float32 on one thread. killick also measures the exact KL and entropy of
every rollout.

    python benchmarks/race.py --rounds 30
"""

import argparse
import resource
import statistics
import time
from collections.abc import Iterator
from copy import deepcopy

import torch

import plain_ppo
from killick import Critic, Leash, PPOConfig, PPOState, Rollout, Transformer, TransformerConfig, TransformerPolicy, ppo
from killick.types import Prompts, Step, Vocabulary

WORKLOADS = {"A": (256, 4, 12, 4), "B": (64, 6, 4, 1)}
"""Name -> responses, prompt length, response length, minibatches."""


def ours(batch: int, prompt: int, time: int, minibatches: int) -> Iterator[Step]:
    """The workload in killick's words."""
    generator = torch.Generator().manual_seed(0)

    def network(outputs: int) -> Transformer:
        return Transformer(TransformerConfig.llama(32, outputs, 64, feed_forward=128), generator)

    policy, scorer = TransformerPolicy(network(32), Vocabulary(32, time)), network(1).requires_grad_(False)

    def prompts(count: int, generator: torch.Generator) -> Prompts:
        ids = torch.randint(3, 32, (count, prompt), generator=generator)
        return ids, torch.ones_like(ids, dtype=torch.bool)

    def reward(rollout: Rollout) -> torch.Tensor:
        ids = torch.cat((rollout.prompts, rollout.responses), 1)
        return scorer.head(scorer(ids, first=ids.shape[1] - 1))[:, 0]

    config = PPOConfig(iterations=10**9, batch=batch, minibatches=minibatches, learning_rate=3e-4)
    reference = deepcopy(policy).requires_grad_(False)
    state = PPOState(policy, reference, Critic(network(1)), config, generator, Leash(0.05))
    return ppo(state, reward, prompts=prompts)


def race(name: str, rounds: int) -> None:
    """Alternate the two loops, one rollout each, and print medians."""
    batch, prompt, length, minibatches = WORKLOADS[name]
    loops = {"killick": ours(*WORKLOADS[name]), "plain": plain_ppo.train(batch, prompt, length, minibatches)}
    spent: dict[str, list[float]] = {label: [] for label in loops}
    for turn in range(rounds + 2):
        for label, loop in loops.items():
            began = time.process_time()
            next(loop)
            if turn >= 2:  # two to warm up
                spent[label].append(time.process_time() - began)
    ratios = [plain / own for own, plain in zip(spent["killick"], spent["plain"], strict=True)]
    rates = {label: batch / statistics.median(values) for label, values in spent.items()}
    low, _, high = statistics.quantiles(ratios, n=4)
    print(
        f"{name}: killick {rates['killick']:.0f}, plain {rates['plain']:.0f} samples per CPU second; "
        f"speed ratio, median of {rounds} pairs {statistics.median(ratios):.3f} (quartiles {low:.3f} to {high:.3f})"
    )


def main() -> None:
    """Both workloads, then the peak memory of this process."""
    parser = argparse.ArgumentParser(description="Race killick's PPO against a plain loop.")
    parser.add_argument("--rounds", type=int, default=30, help="rollouts of each loop that are timed")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    for name in WORKLOADS:
        race(name, rounds)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, both loops in one process")


if __name__ == "__main__":
    main()
