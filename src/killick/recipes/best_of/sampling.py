"""Candidates of a person's own model: n answers to each prompt, kept in a file as they come.

Prompts are asked in chunks of fixed size, and each chunk draws from a stream of its own, so a run that was killed goes
on behind its last whole chunk (`growing.py`) to the same bytes. The file is one of `killick best-of --candidates`, for
any other reward later.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from killick.models.decoding import joined
from killick.models.folders import open_causal
from killick.models.pretrained import PretrainedPolicy
from killick.models.prompting import PromptSet
from killick.models.texts import Texts
from killick.recipes.best_of.candidates import Pool
from killick.recipes.best_of.recipe import as_json, scored
from killick.recipes.scores.text_score import Prompt, TextScore
from killick.rundir.ledger import read_rows
from killick.rundir.seeds import stage_generator
from killick.types import Prompts, Refusal, Rollout

ROWS = 128
"""Answers that are drawn at once; another number draws other answers."""
DTYPES = {"auto": None, "float32": torch.float32, "bfloat16": torch.bfloat16}
CONTEXT = 1 << 20
"""Tokens that a model reads where its folder says nothing."""


@dataclass(frozen=True)
class Sampling:
    """How answers are drawn.

    Args:
        n: answers to each prompt.
        tokens: of an answer at most, its end included.
        temperature: of the distribution.
        top_k: draw among so many of the most probable tokens only; None among all.
        top_p: draw among the most probable tokens that have this share together.
        chat: whether prompts are framed by the chat template; auto where there is one.
        dtype: of the weights; auto takes the folder's.
        seed: of the draws.
    """

    n: int = 16
    tokens: int = 64
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    chat: Literal["auto", "on", "off"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: int = 0

    def validate(self) -> None:
        """Refuse what nothing can be drawn by.

        Raises:
            Refusal: naming the flag.
        """
        for name, value in (("n", self.n), ("tokens", self.tokens), ("top-k", self.top_k)):
            if value is not None and value < 1:
                raise Refusal(f"--{name} must be 1 or more, not {value}.")
        if not 0 < self.temperature < float("inf"):
            raise Refusal(f"--temperature must be a positive number, not {self.temperature:g}.")
        if not 0 < self.top_p <= 1:
            raise Refusal(f"--top-p must lie above 0 and be at most 1, not {self.top_p:g}.")
        if not 0 <= self.seed < 2**63:
            raise Refusal(f"--seed must lie in 0..2^63 - 1, not {self.seed}.")


class Sampler:
    """A model that answers a person's prompts.

    Args:
        folder: the model.
        prompts: as they were read; two that are the same tokens count once.
        how: the answers are drawn.

    Raises:
        Refusal: where the folder holds no such model, or a prompt leaves no room for an answer.
    """

    def __init__(self, folder: Path, prompts: Sequence[Prompt], how: Sampling):
        framed = {"auto": None, "on": True, "off": False}[how.chat]
        self.how, self.texts = how, Texts.load(folder, chat=framed)
        model = open_causal(folder, dtype=DTYPES[how.dtype])
        shape = model.config.get_text_config()
        context = getattr(shape, "max_position_embeddings", CONTEXT)
        if how.tokens >= context:
            raise Refusal(f"--tokens {how.tokens} leaves no room for a prompt: the model reads {context} tokens.")
        self.asked = PromptSet(prompts, self.texts, limit=context - how.tokens)
        self.prompts = list(self.asked.rows.values())
        vocabulary = self.texts.vocabulary(how.tokens, size=shape.vocab_size)
        self.policy = PretrainedPolicy(model, vocabulary, how.temperature, top_k=how.top_k, top_p=how.top_p)

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def each(self) -> int:
        """Prompts in a chunk."""
        return max(1, ROWS // self.how.n)

    def answers(self, first: int, stop: int) -> list[dict[str, Any]]:
        """The answers to the prompts of a chunk, from one up to another, a row for each."""
        ids, mask = (x[first:stop] for x in self.asked.all())
        longest = int(mask.sum(1).max())
        generator = stage_generator(self.how.seed, f"best-of-n, answers from prompt {first} on")
        rollout = self.drawn((ids[:, -longest:], mask[:, -longest:]), generator)
        texts, finished = self.texts.responses(rollout), rollout.finished.tolist()
        n = self.how.n
        return [
            {
                "prompt": as_json(prompt),
                "responses": texts[row * n : (row + 1) * n],
                "finished": finished[row * n : (row + 1) * n],
            }
            for row, prompt in enumerate(self.prompts[first:stop])
        ]

    def drawn(self, prompts: Prompts, generator: torch.Generator) -> Rollout:
        """Draw n answers to each prompt; those to a single prompt in several goes where they are more than `ROWS`."""
        counts = [min(ROWS, self.how.n - start) for start in range(0, self.how.n, ROWS)]
        return joined([self.policy.sample(prompts, count, generator) for count in counts], pad=self.texts.pad)

    def seconds(self) -> float:
        """What all the answers will take on the wall, by the first chunk's prompts read, one token written and five."""
        count = min(self.each, len(self))
        ids, mask = (x[:count] for x in self.asked.all())
        spent = []
        for tokens in (1, 1, 5):  # the first is slower than any other
            start = time.monotonic()
            short = replace(self.policy.vocabulary, time=min(tokens, self.how.tokens))
            policy = PretrainedPolicy(self.policy.model, short, self.how.temperature, top_k=self.how.top_k,
                                      top_p=self.how.top_p)  # fmt: skip
            policy.sample((ids, mask), min(ROWS, self.how.n), torch.Generator().manual_seed(0))
            spent.append(time.monotonic() - start)
        token = max(0.0, spent[2] - spent[1]) / 4
        goes = -(-len(self) // self.each) * -(-self.how.n // ROWS)
        return goes * (spent[1] + (self.how.tokens - 1) * token)


def pools(path: Path, prompts: Sequence[Prompt]) -> list[Pool]:
    """The answers of a file, with the prompts that they answer.

    Raises:
        Refusal: where it holds others.
    """
    rows = read_rows(path)
    if [row.get("prompt") for row in rows] != list(map(as_json, prompts)):
        raise Refusal(f"{path} holds answers to other prompts; name another --out.")
    return [
        Pool(prompt, tuple(row["responses"]), (line,) * len(row["responses"]))
        for line, (prompt, row) in enumerate(zip(prompts, rows, strict=True), 1)
    ]


def scores(
    pools: Sequence[Pool], reward: TextScore, *, gold: TextScore | None
) -> Callable[[int, int], list[dict[str, Any]]]:
    """What `grow` makes a file of scores by: a row for each prompt, its answers' rewards, and their golds or null."""

    def make(first: int, last: int) -> list[dict[str, Any]]:
        part = pools[first:last]
        rewards = [row.tolist() for row in scored(part, reward)]
        golds = [None] * len(part) if gold is None else [row.tolist() for row in scored(part, gold)]
        return [{"rewards": one, "golds": other} for one, other in zip(rewards, golds, strict=True)]

    return make
