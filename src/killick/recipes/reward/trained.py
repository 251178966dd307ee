"""A reward model whose layers learn, from where its head on frozen states ended; validation says when to stop.

What may take long is kept: a stopped fit goes on from its last evaluation, to the same bits.
"""

import hashlib
import json
import shutil
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from killick.algorithms.reference import digest
from killick.models.judging import PretrainedReward, batches
from killick.models.judging_trained import TopJudge, WholeJudge
from killick.models.trunk import Trunk
from killick.recipes.ledger import Note
from killick.recipes.reward.data import Judged
from killick.recipes.reward.files import Event, HeadConfig, fit_head, found_facts, put
from killick.recipes.reward.states import LONG, Progress, ids_mark
from killick.rewards.fit import FitConfig, FitState, fit
from killick.rewards.linear import FEWEST, mean_loss
from killick.rundir.durable import prune, save_state, sweep, whole_states
from killick.rundir.folder import Lock
from killick.rundir.seeds import stage_generator
from killick.stopwatch import moment
from killick.types import Refusal

EVALUATIONS = 4
"""Looks at the validation part in each pass over the data."""


@dataclass(frozen=True)
class TrainedConfig:
    """How layers are trained.

    Args:
        train: the top layers over a frozen trunk, or all weights.
        train_layers: how many layers "top" trains.
        epochs: passes over the pairs.
        batch: rankings (or single pairs) a step.
        learning_rate: Adam's; None takes 5e-5 for "top" and 1e-5 for "full".
        centre: pull on the sum of a pair's scores.
        seed: of the batches.
    """

    train: Literal["top", "full"] = "top"
    train_layers: int = 6
    epochs: float = 2.0
    batch: int = 16
    learning_rate: float | None = None
    centre: float = 0.01
    seed: int = 0

    def validate(self) -> None:
        """Refuse what cannot be trained.

        Raises:
            Refusal: naming the flag.
        """
        if not 0 < self.epochs <= 1000:
            raise Refusal(f"--epochs must be above 0, and 1000 at most, not {self.epochs:g}.")
        self.fit(1).validate()

    def fit(self, groups: int) -> FitConfig:
        """Settings of the fit to so many rankings."""
        rate = {"top": 5e-5, "full": 1e-5}[self.train] if self.learning_rate is None else self.learning_rate
        steps = max(1, round(self.epochs * groups / max(1, self.batch)))
        return FitConfig(steps=steps, batch=self.batch, learning_rate=rate, centre=self.centre)


def fit_trained(
    judge: PretrainedReward, judged: Judged, *, config: TrainedConfig, head: HeadConfig, out: Path
) -> Generator[Event, None, dict[str, Any]]:
    """Fit a head on frozen states, then train layers with it, and keep what the validation part likes best.

    Args:
        judge: trained in place.
        judged: pairs in three parts.
        config: settings of the training.
        head: settings of the head that it begins from.
        out: where the model will be: states of the fit stand beside it while it runs.

    Returns:
        What was found, as plain numbers and texts.
    """
    mark = marked(judge, judged, config=config)
    if config.train == "top":
        Trunk(judge.model, config.train_layers)  # refuses what cannot be before anything long is begun
    begun = yield from fit_head(judge, judged, config=head)
    with torch.no_grad():
        judge.model.score.weight.mul_(begun["nats_per_unit"])  # back to nats, as the loss reads scores
    rollout, (learned, _), (validation, _) = judged.preference.rollout, judged.of(0), judged.of(1)
    top = config.train == "top"
    model = TopJudge(judge, rollout, train_layers=config.train_layers) if top else WholeJudge(judge, rollout)
    state = FitState(model, config.fit(len(learned.group.unique())), stage_generator(config.seed, "reward layers"))
    best = yield from trained(state, judged, kept=kept_at(out, mark))
    yield Note(best_words(best, pairs=len(validation)))
    model.load_state_dict(best["weights"])
    settings = asdict(config) | {"learning_rate": state.config.learning_rate, "steps": state.config.steps}
    told = {"best_step": best["step"], "validation_loss_by_step": best["losses"], "head_accuracy": begun["accuracy"]}
    return begun | settings | told | finished(judge, model, judged=judged, seed=head.seed)


def finished(judge: PretrainedReward, model: TopJudge | WholeJudge, *, judged: Judged, seed: int) -> dict[str, Any]:
    """Put what was learned back, on one scale, and judge it."""
    states = pooled(model, torch.arange(len(judged.preference.rollout)))
    model.put_back()
    learned, _ = judged.of(0)
    used = torch.cat((learned.chosen, learned.rejected)).unique()
    nats = put(judge, judge.model.score.weight.detach().cpu().double(), states=states[used])
    scores = states @ judge.model.score.weight.detach().float().cpu()[0]
    return {"nats_per_unit": nats, **found_facts(scores, judged, nats=nats, seed=seed)}


def trained(state: FitState, judged: Judged, *, kept: Path) -> Generator[Event, None, dict[str, Any]]:
    """Run the fit from where it stands, and return the weights with the least loss on the validation part."""
    (learned, _), (validation, _) = judged.of(0), judged.of(1)
    every = max(1, round(len(learned.group.unique()) / state.config.batch / EVALUATIONS)) if state.config.batch else 1
    kept.mkdir(parents=True, exist_ok=True)
    with closing(Lock(kept / "lock")):
        sweep(kept)
        best = {"step": 0, "losses": {}, "weights": state.model.state_dict()}
        for _, saved in whole_states(kept):
            if not isinstance(saved, Exception):
                state.load_state_dict(saved["fit"])
                best = saved["best"]
                yield Note(f"Going on from step {state.step} of {state.config.steps}.")
                break
        else:
            best = looked(state, validation, best=best)
        began, first = moment(), state.step
        for step in fit(state, learned):
            done = step.step + 1
            if done - first == 3 and (left := (moment().wall - began.wall) / 3 * (state.config.steps - done)) > LONG:
                yield Note(f"{state.config.steps - done} steps are left, which takes about {left / 60:.0f} min here.")
            if done % every == 0 or done == state.config.steps:
                best = looked(state, validation, best=best)
                save_state(kept, f"{done:08d}", state={"fit": state.state_dict(), "best": best})
                prune(kept, keep=1)
            yield Progress("training", done, state.config.steps)
    return best


def looked(state: FitState, validation: Any, *, best: dict[str, Any]) -> dict[str, Any]:
    """The best so far after a look at the validation part; the last one where that is too small to choose."""
    weights = {name: tensor.detach().cpu().clone() for name, tensor in state.model.state_dict().items()}
    if len(validation) < FEWEST:
        return {"step": state.step, "losses": {}, "weights": weights}
    rows = torch.cat((validation.chosen, validation.rejected)).unique()
    scores = torch.zeros(len(validation.rollout))
    with torch.no_grad():
        for part in in_batches(state.model, rows):
            scores[part] = state.model.score(part)
    losses = best["losses"] | {str(state.step): mean_loss(scores, validation)}
    if losses[str(state.step)] == min(losses.values()):
        return {"step": state.step, "losses": losses, "weights": weights}
    return best | {"losses": losses}


def in_batches(model: Any, rows: Int[Tensor, " some"]) -> list[Int[Tensor, " few"]]:
    """Rows of like length together, as many as are read at once without gradient."""
    lengths = (model.rollout.prompt_mask.sum(1) + model.rollout.lengths)[rows]
    return [rows[part] for part in batches(lengths.argsort(stable=True), lengths)]


@torch.no_grad()
def pooled(model: Any, rows: Int[Tensor, " some"]) -> Float[Tensor, "some hidden"]:
    """The last state of every row, float32."""
    parts = in_batches(model, rows)
    return torch.cat([model.pooled(part).float().cpu() for part in parts])[torch.cat(parts).argsort()]


def best_words(best: dict[str, Any], *, pairs: int) -> str:
    """Which weights were kept, and why."""
    if not best["losses"]:
        return f"The validation part has {pairs} pairs, too few to choose by: the last weights are kept."
    loss, start = best["losses"][str(best["step"])], best["losses"]["0"]
    if best["step"] == 0:
        return f"No step was better on the validation part than the head alone ({start:.4f} nats per pair): it is kept."
    kept = f"The weights of step {best['step']} are kept: {loss:.4f} nats per pair on the validation part"
    return f"{kept}, {start:.4f} before."


def marked(judge: PretrainedReward, judged: Judged, *, config: TrainedConfig) -> str:
    """What decides a fit, in short: states of another one are not gone on from."""
    preference = judged.preference
    pairs = [getattr(preference, name).tolist() for name in ("chosen", "rejected", "label", "margin", "group")]
    word = [digest(judge.model.parameters()), ids_mark(preference.rollout), pairs, judged.part.tolist(), asdict(config),
            str(judge.model.dtype)]  # fmt: skip
    return hashlib.sha256(json.dumps(word).encode()).hexdigest()[:12]


def kept_at(out: Path, mark: str) -> Path:
    """Where the states of a fit stand until it is done."""
    return out.parent / f".{out.name}.{mark}.fit"


def forget(out: Path) -> None:
    """Remove the states of fits that were to end here."""
    for folder in out.parent.glob(f".{out.name}.*.fit"):
        shutil.rmtree(folder, ignore_errors=True)
