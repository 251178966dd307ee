"""The settings of `killick best-of`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from killick.refusal import Refusal


@dataclass(frozen=True)
class BestOf:
    """What to choose from, and by what.

    Attributes:
        candidates: JSONL or CSV with the variants.
        model: or a folder of a language model that answers --prompts.
        prompts: file with prompts for --model.
        reward: what chooses: a reward folder, module:function, vader, sincere, http://...; several are added up.
        gold: the same kinds, what people really want; or people, to ask them.
        n: answers to each prompt; 16 where nothing is said.
        tokens: of an answer at most.
        temperature: of the model.
        top_k: draw among so many of the most probable tokens only.
        top_p: draw among the most probable tokens that have this share together.
        chat: on frames prompts by the chat template, off takes them as plain text; auto frames where there is one.
        dtype: of the model's weights; auto takes the folder's.
        store: of --gold people, an SQLite file or a postgresql:// URL; by default labels.db in the run's folder.
        ns: 1, 2, 4, ... as far as half of the prompts have so many responses, where none are given.
        show_winners: how many winners to print, the highest reward first.
        seed: of the answers and of the intervals' resamples.
        out: a folder for winners.jsonl, curve.csv, best_of.png and best_of.pdf; with --model also for the answers
            (without, under ./runs), and then one to go on with.
    """

    candidates: Path | None = None
    model: Path | None = None
    prompts: Path | None = None
    reward: tuple[str, ...] = ()
    gold: str | None = None
    n: int | None = None
    tokens: int = 64
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    chat: Literal["auto", "on", "off"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    store: str | None = None
    ns: tuple[int, ...] = ()
    show_winners: int = 0
    seed: int = 0
    out: Path | None = None

    def validate(self) -> None:
        """Refuse what cannot be.

        Raises:
            Refusal: at a number out of range, or flags that do not go together.
        """
        if (self.candidates is None) == (self.model is None):
            raise Refusal("Name what to choose from: --candidates FILE, or --model DIR with --prompts FILE.")
        if (self.model is None) != (self.prompts is None):
            raise Refusal("--model DIR answers --prompts FILE: give both, or neither.")
        if not self.reward:
            raise Refusal("Name what chooses: --reward DIR, module:function, vader, sincere or http://...")
        if any(n < 1 for n in self.ns):
            raise Refusal(f"--ns must be 1 or more, not {' '.join(map(str, self.ns))}.")
        if self.show_winners < 0:
            raise Refusal(f"--show-winners must be 0 or more, not {self.show_winners}.")
        if not 0 <= self.seed < 2**63:
            raise Refusal(f"--seed must lie in 0..2^63 - 1, not {self.seed}.")
        if self.model is None:
            self.check_file()

    def check_file(self) -> None:
        """Refuse what a file of variants has no use for.

        Raises:
            Refusal: naming it.
        """
        if self.n is not None:
            raise Refusal("--n draws answers of a --model; variants of a file are all scored, and --ns names n.")
        if self.gold == "people":
            raise Refusal("--gold people is for answers of a --model; killick label FILE has people judge a file's.")
        if self.out is not None and (self.out / "winners.jsonl").exists():
            raise Refusal(f"--out {self.out} holds winners.jsonl already; name another folder.")
