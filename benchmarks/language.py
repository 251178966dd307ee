"""What a real language model costs: sampling against transformers' `generate`, PPO on a trunk against whole copies.

Whatever is compared alternates in one process on one thread; times are CPU seconds, and ratios are medians of paired
rounds. The parts:

- decoding: 64 responses (of 24 tokens, or --tokens) to prompts of 10, by `generate` and by killick, from the whole
  vocabulary and from 8,192 tokens.
- ppo: one rollout of 64 x 24 tokens and its update (2 epochs of 2 minibatches, top layers over a trunk, a critic on
  it), with 8,192 spoken tokens and with all.
- memory: the peak of a process that does two of these, with each vocabulary in a process of its own.
- step: the same with the top layers over a trunk, and with policy, reference and critic as whole models.

    python benchmarks/language.py --model DIR --part decoding --rounds 7
"""

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.models.folders import open_causal
from killick.models.pretrained import PretrainedPolicy
from killick.models.speakers import speakers
from killick.types import Prompts, Rollout, Step, Vocabulary

BATCH, PROMPT, TIME = 64, 10, 24
SPOKEN = tuple(range(64, 64 + 8192))


def asked(count: int, generator: torch.Generator) -> Prompts:
    """Prompts of ten tokens, drawn at random."""
    ids = torch.randint(64, 8000, (count, PROMPT), generator=generator)
    return ids, torch.ones_like(ids, dtype=torch.bool)


def endless(model: Any, time: int = TIME) -> Vocabulary:
    """Every token of the model, and responses that never end early, so that every step is one of the whole batch."""
    return Vocabulary(model.config.vocab_size, time=time)


def alternate(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each way, one after the other, `rounds` times after one that warms up."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            began = time.process_time()
            way()
            if turn:
                spent[name].append(time.process_time() - began)
                print(f"round {turn}: {name}, {spent[name][-1]:.2f} CPU s", flush=True)
    return spent


def tell(spent: dict[str, list[float]], tokens: int) -> None:
    """Medians, and each way's median ratio to the first one, by pairs."""
    first = next(iter(spent.values()))
    for name, times in spent.items():
        ratio = median(a / b for a, b in zip(first, times, strict=True))
        print(f"{name:36} {median(times):7.2f} CPU s {tokens / median(times):6.0f} tokens/CPU s   x {ratio:.2f}")


def decoding(folder: Path, rounds: int, tokens: int) -> None:
    """`generate` against our own loop."""
    model = open_causal(folder, dtype=torch.bfloat16)
    draws = torch.Generator().manual_seed(0)
    prompts = asked(BATCH, draws)
    policies = {
        "killick": PretrainedPolicy(model, endless(model, tokens), 0.8),
        "killick, 8,192 tokens": PretrainedPolicy(model, endless(model, tokens), 0.8, spoken=SPOKEN),
    }
    plain = {
        "do_sample": True,
        "temperature": 0.8,
        "max_new_tokens": tokens,
        "min_new_tokens": tokens,
        "pad_token_id": 0,
    }

    def generate(**filters: Any) -> object:
        with torch.inference_mode():
            return model.generate(prompts[0], attention_mask=prompts[1].long(), **plain, **filters)

    ways: dict[str, Callable[[], object]] = {"generate": lambda: generate(top_k=0)}
    for name, policy in policies.items():
        ways[name] = partial(policy.sample, prompts, 1, draws)
    tell(alternate(ways, rounds), BATCH * tokens)


def loop(folder: Path, layers: int | None, spoken: tuple[int, ...] | None) -> Iterator[Step]:
    """PPO without an end, one rollout a step."""
    model = open_causal(folder, dtype=torch.bfloat16)
    draws = torch.Generator().manual_seed(0)
    found = speakers(model, endless(model), train_layers=layers, generator=draws, temperature=0.8, spoken=spoken)
    config = PPOConfig(
        iterations=10**6, batch=BATCH, epochs=2, minibatches=2, learning_rate=2e-4, value_learning_rate=3e-3,
        adam_betas=(0.9, 0.95),
    )  # fmt: skip
    state = PPOState(found.policy, found.reference, found.value, config, draws, Leash(0.1))
    return ppo(state, even, prompts=asked)


def even(rollout: Rollout) -> torch.Tensor:
    """A reward that costs nothing: the share of even ids."""
    return (rollout.responses % 2 == 0).float().mean(1)


def iterations(folder: Path, rounds: int, layers: int) -> None:
    """A rollout and its update, with the small vocabulary and with the full one."""
    loops = {"8,192 tokens": loop(folder, layers, SPOKEN), "full vocabulary": loop(folder, layers, None)}
    tell(alternate({name: partial(next, each) for name, each in loops.items()}, rounds), BATCH * TIME)


def step(folder: Path, rounds: int, layers: int) -> None:
    """The same with whole copies."""
    loops = {"whole copies": loop(folder, None, SPOKEN), f"top {layers} layers": loop(folder, layers, SPOKEN)}
    tell(alternate({name: partial(next, each) for name, each in loops.items()}, rounds), BATCH * TIME)


def memory(folder: Path, rounds: int, layers: int) -> None:
    """What a rollout and its update hold at most."""
    for name, spoken in (("8,192 tokens", SPOKEN), ("full vocabulary", None)):
        child = multiprocessing.get_context("spawn").Process(target=hold, args=(folder, rounds, layers, spoken))
        print(name, end=": ", flush=True)
        child.start()
        child.join()


def hold(folder: Path, rounds: int, layers: int, spoken: tuple[int, ...] | None) -> None:
    """A few steps, and the peak of this process."""
    torch.set_num_threads(1)
    steps = loop(folder, layers, spoken)
    for _ in range(rounds):
        next(steps)
    peak()


def peak() -> None:
    """What this process held at most."""
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9:.2f} GB", flush=True)


def main() -> None:
    """One part, and the peak memory of its process."""
    parser = argparse.ArgumentParser(description="Time sampling and PPO of a language model.")
    parser.add_argument("--model", type=Path, required=True, help="an ordinary model folder")
    parser.add_argument("--part", choices=("decoding", "ppo", "memory", "step"), default="decoding")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=TIME, help="of a response, in the part decoding")
    parser.add_argument("--layers", type=int, default=6, help="that train, over the trunk")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.part == "decoding":
        decoding(given.model, given.rounds, given.tokens)
    else:
        {"ppo": iterations, "memory": memory, "step": step}[given.part](given.model, given.rounds, given.layers)
    peak()


if __name__ == "__main__":
    main()
