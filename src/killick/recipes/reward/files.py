"""From judged texts to a reward model on a person's own language model: fit, put on a scale, judge, save."""

import os
import shutil
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.models.judging import PretrainedReward
from killick.ops.centring import shifted
from killick.recipes.ledger import Note
from killick.recipes.reward.data import Judged
from killick.recipes.reward.fit import accuracy_facts
from killick.recipes.reward.states import Progress, read_states
from killick.rewards.linear import L2S, Scale, choose_l2, mean_loss, optimum, resampled
from killick.rundir.durable import exchange, sync_folder, write_json
from killick.rundir.seeds import stage_generator
from killick.types import Refusal, check_finite

RESULTS, LEARNED = "results.json", "learned_prompts.json"
Event = Note | Progress


@dataclass(frozen=True)
class HeadConfig:
    """How a head on frozen states is fitted.

    Args:
        l2: decay; None lets the validation part choose.
        centre: pull on the sum of a pair's scores.
        members: heads of an ensemble, each fitted to resampled prompts; 1 fits one head to all.
        seed: of the resampling.
    """

    l2: float | None = None
    centre: float = 0.01
    members: int = 1
    seed: int = 0

    def validate(self) -> None:
        """Refuse what cannot be fitted.

        Raises:
            Refusal: naming the flag.
        """
        if self.l2 is not None and not 0 < self.l2 < float("inf"):
            raise Refusal(f"--l2 must be above 0, not {self.l2:g}.")
        if not 0 <= self.centre < float("inf"):
            raise Refusal(f"--centre must be 0 or more, not {self.centre:g}.")
        if not 1 <= self.members <= 1000:
            raise Refusal(f"--members must lie in 1..1000, not {self.members}.")


def fit_head(judge: PretrainedReward, judged: Judged, *, config: HeadConfig) -> Generator[Event, None, dict[str, Any]]:
    """Fit a linear head (or several) on the frozen model's states, put it into the model, and judge it.

    Scores have mean 0 and deviation 1 over the responses that were learned from.

    Args:
        judge: its head is replaced.
        judged: pairs in three parts.
        config: settings.

    Returns:
        What was found, as plain numbers and texts.
    """
    states = yield from read_states(judge, judged.preference.rollout)
    (learned, units), (validation, _) = judged.of(0), judged.of(1)
    used = torch.cat((learned.chosen, learned.rejected)).unique()
    scale = Scale.of(states[used])
    read = scale.read(states)
    l2, losses = config.l2, dict[float, float]()
    if l2 is None:
        l2, losses = choose_l2(read, learned, validation=validation, centre=config.centre)
        yield Note(chosen_words(l2, losses, pairs=len(validation)))
    if config.members == 1:
        heads = [optimum(read, learned, l2=l2, centre=config.centre)]
    else:
        heads = []
        drawn = resampled(
            read, learned, units=units, count=config.members, l2=l2, centre=config.centre,
            generator=stage_generator(config.seed, "members"),
        )  # fmt: skip
        for head in drawn:
            heads.append(head)
            yield Progress("fitting members", len(heads), config.members)
    weight = torch.stack([scale.folded(head) for head in heads])
    nats = put(judge, weight, states=states[used])
    scores = states @ judge.model.score.weight.detach().float().cpu()[0]
    return {
        "train": "head", "l2": l2, "validation_loss": {format(k, "g"): v for k, v in losses.items()},
        "centre": config.centre, "members": config.members, "nats_per_unit": nats,
        **found_facts(scores, judged, nats=nats, seed=config.seed),
    }  # fmt: skip


def chosen_words(l2: float, losses: dict[float, float], *, pairs: int) -> str:
    """Which decay was taken, and why."""
    if not losses:
        return f"The validation part has {pairs} pairs, too few to choose a decay by: --l2 {l2:g} is taken."
    edge = " (the strongest that was tried: these pairs tell little)" if l2 == max(L2S) else ""
    return f"The validation part chose --l2 {l2:g}{edge}: {losses[l2]:.4f} nats per pair on {pairs} pairs."


def put(
    judge: PretrainedReward, heads: Float[Tensor, "member hidden"], *, states: Float[Tensor, "row hidden"]
) -> float:
    """Put heads into a model on one scale, and return how many nats of preference a unit of score is.

    Each member has mean 0 and deviation 1 over the given states before the mean is taken; then all are stretched alike,
    so that their mean, which is the model's own head, has mean 0 and deviation 1.

    Raises:
        Refusal: where a head gives every response the same score.
    """
    each, deviations = zip(*(standard(head, states) for head in heads), strict=True)
    together = torch.stack(each)
    _, deviation = standard(together.mean(0), states)
    together = together / deviation
    weight = judge.model.score.weight
    with torch.no_grad():
        weight.copy_(together.mean(0, keepdim=True))
    judge.members = together.to(weight) if len(heads) > 1 else None
    return sum(deviations) / len(heads) * deviation


def standard(
    head: Float[Tensor, " hidden"], states: Float[Tensor, "row hidden"]
) -> tuple[Float[Tensor, " hidden"], float]:
    """A head whose scores have mean 0 and deviation 1 over given states, float64, and their deviation before."""
    scores = states.double() @ head.double()
    check_finite("The reward model's scores are", scores)
    mean, deviation = float(scores.mean()), float(scores.std(correction=0))
    if not deviation > 1e-9 * max(1.0, abs(mean)):
        raise Refusal("The reward model gives every response the same score: these pairs teach it nothing.")
    if abs(mean) < 1e-6 * deviation:
        return head.double() / deviation, deviation
    return shifted(head, states, mean=mean, deviation=deviation), deviation


def found_facts(scores: Float[Tensor, " row"], judged: Judged, *, nats: float, seed: int) -> dict[str, Any]:
    """What the fit is worth: on the pairs that it learned from, on those that chose, on those that nothing has seen."""
    (learned, units), (validation, _), (held, held_units) = (judged.of(number) for number in range(3))
    generator = stage_generator(seed, "reward accuracy")
    own = accuracy_facts(scores, learned, units=units, generator=generator)
    return {
        "pairs": len(learned), "validation_pairs": len(validation), "held_pairs": int((held.label != 0.5).sum()),
        "held_ties": int((held.label == 0.5).sum()), "held_prompts": len(held_units[held.label != 0.5].unique()),
        "prompts": [len(part) for part in judged.prompts], "responses": len(judged.preference.rollout),
        "learned_accuracy": own["accuracy"],
        **accuracy_facts(scores, held, units=held_units, generator=generator),
        "held_loss": mean_loss(nats * scores, replace(held, margin=torch.zeros_like(held.margin))),
        "counts": dict(judged.counts),
    }  # fmt: skip


def check_out(folder: Path) -> None:
    """Refuse a place that is taken: nothing is overwritten.

    Raises:
        Refusal: naming it.
    """
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise Refusal(f"--out {folder} is there already, and nothing is overwritten; name another folder.")


def save(judge: PretrainedReward, folder: Path, *, facts: dict[str, Any], learned: list[str]) -> None:
    """Write the reward model, whole or not at all: weights, tokenizer, results.json, and the prompts it has seen.

    Args:
        judge: the model.
        folder: a new one, or an empty one.
        facts: what is known of the model.
        learned: hashes of the prompts that it was fitted or chosen on.

    Raises:
        Refusal: where the place is taken or cannot be written.
    """
    check_out(folder)
    partial = folder.parent / f".{folder.name}.{os.getpid()}.partial"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        judge.save(partial)
        write_json(partial / RESULTS, facts)
        write_json(partial / LEARNED, learned)
        exchange(partial, folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise Refusal(f"--out {folder} cannot be written ({error.strerror}); name another folder.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
