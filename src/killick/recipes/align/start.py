"""Before an alignment run begins: what auto means for this model, what the files hold, and what the run will cost."""

import multiprocessing
import resource
import sys
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from killick.algorithms.ppo import ppo
from killick.models.layers import unlike
from killick.recipes.align import recipe as align
from killick.recipes.align.config import Config
from killick.recipes.contents import digests
from killick.recipes.settings import find_device
from killick.stopwatch import stopwatch
from killick.types import Refusal

TOP = 6
"""Layers that train on a CPU, where the model has twice as many."""
PROBED = 6
"""The probe's answers are this many times shorter than the run's."""


def resolved(config: Config) -> Config:
    """The same settings with nothing left to choose: device, layers that train, and type.

    Raises:
        Refusal: where a setting cannot be, or the folder holds no language model.
    """
    config.validate()
    device, shape = find_device(config.device), shape_of(Path(config.model))
    layers = config.train_layers
    if layers == "auto":
        depth = shape.get_text_config().num_hidden_layers
        shell: Any = torch.nn.Module()  # a model without a weight, to ask about its layout
        shell.config = shape
        layers = max(1, min(TOP, depth // 2)) if device == "cpu" and unlike(shell) is None else "full"
    dtype = config.dtype
    if dtype == "auto":
        dtype = "float32" if layers == "full" else "bfloat16"
    return replace(config, device=device, train_layers=layers, dtype=dtype)


def shape_of(folder: Path) -> Any:
    """The settings of a model folder.

    Raises:
        Refusal: where transformers is not installed, or there are none.
    """
    try:
        from transformers import AutoConfig
    except ImportError as error:
        raise Refusal("A language model needs transformers; install killick[hf].") from error
    if not (folder / "config.json").is_file():
        raise Refusal(f"--model {folder} is no folder of a language model: it has no config.json.")
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise Refusal(f"--model {folder} is no folder of a language model that transformers knows.") from error


def contents(config: Config) -> dict[str, str]:
    """What stands behind each path, as a short digest: a run is not taken up with another model or other prompts."""
    named = {"model": config.model, "prompts": config.prompts, "gold": config.gold or ""}
    named |= {f"reward {spec}": spec for spec in config.reward}
    return digests(named)


@dataclass(frozen=True)
class Cost:
    """What a run will take, by one short step of it.

    Args:
        step: CPU seconds of a step.
        look: of a look at the held-out prompts.
        arm: of a whole arm, model and all.
        peak: bytes of memory of a process at its worst.
        arms: how many.
    """

    step: float
    look: float
    arm: float
    peak: float
    arms: int

    def words(self, processes: int) -> str:
        """The cost as a person plans with it."""
        total, wall = self.arm * self.arms, self.arm * -(-self.arms // processes)
        return (
            f"about {total:.0f} CPU seconds ({self.step:.1f} a step, {self.look:.1f} a look at the held-out prompts), "
            f"{minutes(wall)} on idle cores, {self.peak / 2**30:.1f} GB of memory a process (by one short step)"
        )


def minutes(seconds: float) -> str:
    """A duration in words."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def measured(config: Config) -> Cost:
    """Run one short step in a process of its own and scale it up.

    Raises:
        Exception: whatever stops the run before its first step.
    """
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=work, args=(theirs, config))
    child.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        child.join()
        raise Refusal(
            f"A first short step ended by itself (status {child.exitcode}), as where memory runs out; lower "
            "--responses or --train-layers, or raise --micro-batches."
        ) from None
    finally:
        child.join(1)
        if child.is_alive():
            child.terminate()
    if isinstance(found, Exception):
        raise found
    return scaled(config, found)


def work(say: Connection, config: Config) -> None:
    """The short step, in a child."""
    torch.set_num_threads(1)
    try:
        say.send(short_step(config))
    except Exception as error:
        say.send(error)


def short_step(config: Config) -> dict[str, float]:
    """CPU seconds of each part of a step with short answers, bytes before and after, and how long the prompts are."""
    stopwatch.start()
    prepared, found = ended(align.prepare(config, config.seed))
    cell = align.cells(config)[0]
    time = max(2, config.tokens // PROBED)
    state = align.started(config, cell, prepared=prepared, time=min(time, config.tokens))
    stopwatch.lap("set-up")
    before = peak()
    watched = prepared.watched
    step = next(ppo(state, watched.proxy, prompts=watched.train.source))
    if watched.gold is not None:
        watched.gold(step.rollout)
    stopwatch.lap("gold")
    spent = {part: cpu for part, (cpu, _) in stopwatch.take().items()}
    prompt = float(watched.train.mask.sum(1).float().mean())
    return spent | {
        "before": before, "after": peak(), "time": time, "prompt": prompt, "evaluated": found["evaluated"],
        "columns": state.policy.vocabulary.size,
    }  # fmt: skip


def ended(loop: Generator[Any, None, Any]) -> Any:
    """What a generator returns."""
    while True:
        try:
            next(loop)
        except StopIteration as stop:
            return stop.value


def peak() -> float:
    """Bytes that this process has held at most."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held * (1 if sys.platform == "darwin" else 1024)


def scaled(config: Config, found: Mapping[str, float]) -> Cost:
    """From the short step to the run: decoding grows with the answer, everything else with prompt and answer."""
    longer = config.tokens / found["time"]
    wider = (found["prompt"] + config.tokens) / (found["prompt"] + found["time"])
    asked = {
        "sampling": longer,
        "proxy": wider,
        "gold": wider,
        "old log-probs": wider,
        "reference": longer,
        "update": wider,
    }
    parts = {name: found.get(name, 0.0) * factor for name, factor in asked.items()}
    step = sum(parts.values())
    share = found["evaluated"] * config.answers / config.responses
    look = share * (step - parts["update"])
    looks = -(-config.steps // config.every) + 1 if found["evaluated"] else 0
    arm = found.get("set-up", 0.0) + config.steps * step + looks * look
    memory = found["after"] + (found["after"] - found["before"]) * (wider - 1)
    # Three log-softmaxes of a whole rollout: the policy's, the reference's, and the one that is being worked on.
    memory += 3 * 4 * config.responses * (config.tokens - found["time"]) * found["columns"]
    return Cost(step, look, arm, memory, len(config.leashes()))
