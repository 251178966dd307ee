"""What an exam asks: a reward by its folder or by name, a gold, and a policy, each as a function of texts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from killick.recipes.exam.asking import Judge, Speak
from killick.recipes.prompts import Prompt
from killick.recipes.scores.loading import load_score
from killick.recipes.scores.text_score import TextScore, Unscored
from killick.types import Refusal

if TYPE_CHECKING:
    from killick.models.judging import PretrainedReward

LEARNED, RESULTS = "learned_prompts.json", "results.json"
"""What killick reward fit leaves beside a reward model: hashes of the prompts it has seen, and what is known of it."""


@dataclass(frozen=True)
class Examinee:
    """A reward model, and what it says of itself.

    Args:
        judge: its scores, a row for each member.
        learned: hashes of the prompts that it learned from; None where nothing says so.
        nats: of preference that a unit of score means; 1 where nothing says so.
        model: what the folder holds; None where it is none.
    """

    judge: Judge
    learned: frozenset[str] | None = None
    nats: float = 1.0
    model: "PretrainedReward | None" = None


def open_examinee(spec: str, *, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Examinee:
    """A reward model in a folder with all its members, or whatever else scores text.

    Args:
        spec: a folder, or a name as `load_score` takes it.
        dtype: that a folder's model computes in.
        device: that it computes on.

    Raises:
        Refusal: where it cannot be loaded.
    """
    folder = Path(spec)
    if not (folder / "config.json").is_file():
        return Examinee(single(load_score(spec, flag="REWARD")))
    from killick.models.judging import PretrainedReward

    model = PretrainedReward.load(folder, dtype=dtype).to(device)
    learned, found = beside(folder / LEARNED, list), beside(folder / RESULTS, dict) or {}
    nats = found.get("nats_per_unit")
    sure = isinstance(nats, (int, float)) and not isinstance(nats, bool) and nats > 0
    return Examinee(
        by_model(model, name=f"REWARD {spec}"), None if learned is None else frozenset(map(str, learned)),
        float(nats) if sure and nats is not None else 1.0, model,
    )  # fmt: skip


def beside(path: Path, kind: type) -> Any:
    """A JSON file beside a reward model; None where it is not there.

    Raises:
        Refusal: where it is damaged: what the model has seen must not be guessed.
    """
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} is damaged ({error}); fit the reward model again, or remove the file.") from error
    if not isinstance(found, kind):
        raise Refusal(f"{path} holds no {kind.__name__}; fit the reward model again, or remove the file.")
    return found


def by_model(model: "PretrainedReward", *, name: str) -> Judge:
    """Every head of a reward model."""

    def judge(prompts: Sequence[Prompt], answers: Sequence[str]) -> Tensor:
        found = model.each(prompts, answers).double()
        for row in (~torch.isfinite(found)).any(0).nonzero().flatten().tolist():
            raise Unscored(row, f"the reward model gave {found[:, row].tolist()}, which is not finite", name=name)
        return found

    return judge


def single(score: TextScore) -> Judge:
    """A score as a judge of one member."""
    return lambda prompts, answers: score(prompts, answers).double()[None]


def open_speak(folder: Path, *, n: int, tokens: int, temperature: float, device: str = "cpu") -> Speak:
    """A language model that answers each prompt `n` times.

    A prompt too long for its context loses its beginning, as it does where it is scored.

    Args:
        folder: of a causal language model, with its tokenizer.
        n: answers to a prompt.
        tokens: of an answer, at most.
        temperature: of sampling.
        device: that it speaks on.

    Raises:
        Refusal: where there is no such model, or its context leaves no room.
    """
    from killick.models.encoding import encode_ids, shortened
    from killick.models.folders import open_causal
    from killick.models.pretrained import PretrainedPolicy
    from killick.models.texts import Texts

    model, texts = open_causal(folder).to(device), Texts.load(folder)
    settings = model.config.get_text_config()
    room = getattr(settings, "max_position_embeddings", 1 << 20) - tokens
    if room < 1:
        raise Refusal(f"--tokens {tokens} leaves no room for a prompt: {folder} reads {room + tokens} tokens at most.")
    policy = PretrainedPolicy(model, texts.vocabulary(tokens, size=settings.vocab_size), temperature)

    def speak(prompts: Sequence[Prompt], generator: torch.Generator) -> list[list[str]]:
        rows = [shortened(texts.prompt(prompt), room, start=texts.start) for prompt in prompts]
        ids, mask = encode_ids(rows, pad=texts.pad)
        with torch.no_grad():
            rollout = policy.sample((ids.to(device), mask.to(device)), n, on(device, generator))
        said = texts.responses(rollout)
        return [said[start : start + n] for start in range(0, len(said), n)]

    return speak


def on(device: str, generator: torch.Generator) -> torch.Generator:
    """A generator that draws on a device: the given one, or one of its own that begins from a draw of that."""
    if torch.device(device).type == "cpu":
        return generator
    return torch.Generator(device).manual_seed(int(torch.randint(2**62, (1,), generator=generator)))
