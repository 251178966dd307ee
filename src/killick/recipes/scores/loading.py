"""What a person may score text by: a reward folder, a function, a gold by name, a server, or several added up.

    score = load_scores(["judge", "0.5*my_rubric:short"], flag="--reward")
    score(["Say hello."], ["Hello."])  # float64 [answer]

| spec | what it is |
|---|---|
| a folder | a reward model in the form of `transformers` (one label), or the brand's head |
| `module:function` | a person's own function of a text, or of prompt and text |
| `vader`, `sincere` | `recipes.scores.sincere` |
| `http://...`, `https://...` | a server in the shape of the practice API; `?model=NAME` where it has several |
| `2*SPEC` | any of these, times a number |
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from killick.models.asking import Unread
from killick.models.weights import REWARD_FILE, read
from killick.recipes.brand.served import NAME, TextReward, opened
from killick.recipes.scores.functions import load_function
from killick.recipes.scores.remote import load_remote
from killick.recipes.scores.text_score import Prompt as Prompt
from killick.recipes.scores.text_score import TextScore as TextScore
from killick.recipes.scores.text_score import Unscored as Unscored
from killick.recipes.scores.text_score import as_text
from killick.types import Refusal

if TYPE_CHECKING:
    from killick.models.judging import PretrainedReward

WEIGHED = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\*(.+)", re.IGNORECASE | re.DOTALL)
GOLDS = ("vader", "sincere")
"""Golds by name; a folder of that name is ./vader."""


def load_scores(specs: Sequence[str], *, flag: str) -> TextScore:
    """One score, or the sum of several.

    Args:
        specs: as the user gave them.
        flag: by which, for what is said.

    Raises:
        Refusal: where there is none, or one cannot be loaded.
    """
    if not specs:
        raise Refusal(f"{flag} names no score; give a folder, module:function, {', '.join(GOLDS)} or http://...")
    parts = [load_score(spec, flag=flag) for spec in specs]
    return parts[0] if len(parts) == 1 else added(parts)


def load_score(spec: str, *, flag: str) -> TextScore:
    """The score that a spec names (the table above), a finite number for every answer.

    Raises:
        Refusal: one sentence: what is wrong, and what can be given.
    """
    if weighed := WEIGHED.fullmatch(spec):
        weight = float(weighed[1])
        if not math.isfinite(weight):
            raise Refusal(f"{flag} {spec}: {weighed[1]} is no weight; give a finite number, as in 0.5*{weighed[2]}.")
        return times(weight, load_score(weighed[2], flag=flag))
    if spec == "people":
        raise Refusal(f"{flag} people: people answer later and give no number now; only --gold can be people.")
    if spec in GOLDS:
        from killick.recipes.scores import sincere

        sincere.analyser()
        named: TextScore = getattr(sincere, spec)
        return named
    if spec.startswith(("http://", "https://")):
        return load_remote(spec, flag=flag)
    if Path(spec).is_dir():
        return load_folder(Path(spec), flag=flag)
    return load_function(spec, flag=flag)


def load_folder(folder: Path, *, flag: str) -> TextScore:
    """A reward model of one's own, or the brand's head.

    Raises:
        Refusal: where the folder holds none, or the reward model of a world, which scores tokens.
    """
    name = f"{flag} {folder}"
    file = folder / REWARD_FILE
    if file.exists():
        world = read(file)[0].get("world")
        if world is not None:
            raise Refusal(
                f"{name} holds a reward model of the world {world}, which scores the tokens of that world and no text; "
                f"give a reward model of texts, the brand's head (killick models make {NAME} --out DIR) or "
                "module:function."
            )
        return by_head(opened(file), name=name)
    if (folder / "config.json").exists():
        from killick.models.judging import PretrainedReward

        return by_model(PretrainedReward.load(folder), name=name)
    holds = ", ".join(sorted(path.name for path in folder.iterdir())[:5]) or "nothing"
    raise Refusal(
        f"{name} is a folder without a reward model, {REWARD_FILE} or config.json (it holds {holds}); killick reward "
        f"fit FILE --model DIR --out DIR or killick models make {NAME} --out DIR writes one, or give module:function."
    )


def by_model(judge: "PretrainedReward", *, name: str) -> TextScore:
    """A reward model as a score; NaN or infinity is no number (O-52)."""

    def score(prompts: Sequence[Prompt], answers: Sequence[str]) -> Tensor:
        if not answers:
            return torch.zeros(0, dtype=torch.float64)
        try:
            found = judge.scores(prompts, answers).double().cpu()
        except Refusal as error:
            raise unread(judge, prompts, answers=answers, name=name) or error from error
        for row in (~torch.isfinite(found)).nonzero().flatten().tolist():
            raise Unscored(row, f"the reward model gave {float(found[row])}, which is no finite number", name=name)
        return found

    return score


def unread(
    judge: "PretrainedReward", prompts: Sequence[Prompt], *, answers: Sequence[str], name: str
) -> Unscored | None:
    """The first answer that the model cannot read, and why; None where each alone can be read."""
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=False)):
        try:
            judge.read([prompt], [answer])
        except Refusal as error:
            return Unscored(row, str(error).rstrip("."), name=name)
    return None


def by_head(judge: TextReward, *, name: str) -> TextScore:
    """The brand's head as a score."""

    def score(prompts: Sequence[Prompt], answers: Sequence[str]) -> Tensor:
        found = judge.each([as_text(prompt) for prompt in prompts], answers)
        for row, one in enumerate(found):
            if isinstance(one, Unread):
                raise Unscored(row, one.reason.rstrip("."), name=name)
        return torch.tensor(found, dtype=torch.float64)

    return score


def added(parts: Sequence[TextScore]) -> TextScore:
    """The sum of several scores."""
    return lambda prompts, answers: torch.stack([part(prompts, answers) for part in parts]).sum(0)


def times(weight: float, part: TextScore) -> TextScore:
    """A score times a number."""
    return lambda prompts, answers: weight * part(prompts, answers)
