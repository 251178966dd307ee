"""Gold from people: answers of a policy beside answers of its reference, put on the labelling page, and what was said.

    asked = [Asked(prompt, policy=one, reference=other, group="step 30")]
    queue(asked, "labels.db")                      # killick label --store labels.db
    for rate in win_rates(asked, "labels.db"): print(rate.words())

Nothing waits for anybody: labels come when they come, and `win_rates` may be asked again. What was asked is found in
the store by its text, so a store may serve several runs, and the same question is asked once.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from killick.ops.shares import share_interval
from killick.recipes.scores.text_score import Prompt, as_text
from killick.types import Refusal

if TYPE_CHECKING:
    from killick.preferences.store import Item, Store


@dataclass(frozen=True)
class Asked:
    """Which of two answers is better? People see neither who wrote them nor anything but the texts.

    Args:
        prompt: what both answer.
        policy: the answer that is on trial.
        reference: the answer that it is compared with.
        group: what is counted together ("step 30").
    """

    prompt: Prompt
    policy: str
    reference: str
    group: str

    @property
    def same(self) -> bool:
        """Whether there is nothing to ask: equal answers are a tie."""
        return self.policy == self.reference

    def item(self) -> "Item":
        """The question as the store keeps it; a dialogue stays one, so that an export has its turns."""
        from killick.preferences.store import Item

        said = [self.policy, self.reference]
        turns = [] if isinstance(self.prompt, str) else [list(turn) for turn in self.prompt]
        metadata = {"turns": {"prompt": turns, "responses": [[["assistant", text]] for text in said]}} if turns else {}
        return Item(as_text(self.prompt), (self.policy, self.reference), sources=("policy", "reference"),
                    metadata=metadata)  # fmt: skip


@dataclass(frozen=True)
class WinRate:
    """How often people prefer the policy's answer, in one group; a tie is half a win.

    Args:
        group: of `Asked`.
        pairs: asked about, those among them that are the same text.
        same: pairs of equal answers, a tie that nobody needs to be asked about.
        judged: pairs that somebody gave a verdict on, each once: several people's verdicts on a pair are averaged.
        wins: judged pairs in which the policy's answer is preferred (by more people, where there are several).
        losses: judged pairs in which the reference's is.
        rate: over judged and equal pairs; None before there is one.
        low, high: its 95 % interval (Wilson 1927).
    """

    group: str
    pairs: int
    same: int
    judged: int
    wins: int
    losses: int
    rate: float | None
    low: float
    high: float

    def words(self) -> str:
        """In a sentence."""
        equal = f", and {self.same} are the same text" if self.same else ""
        known = f"{self.group}: people judged {self.judged} of {self.pairs - self.same} pairs{equal}"
        if self.rate is None or not self.judged:  # equal texts alone are no win rate
            return f"{known}."
        ties = self.judged - self.wins - self.losses
        return (
            f"{known}; the policy won {self.wins}, lost {self.losses} and tied {ties}: a win rate of {self.rate:.2f} "
            f"[{self.low:.2f}, {self.high:.2f}]."
        )


def queue(asked: Sequence[Asked], place: str, *, overlap: int | None = None) -> int:
    """Put questions into a store, which is made where it is not there; equal answers and known questions are not asked.

    Args:
        asked: the questions.
        place: a file, or a postgresql:// URL.
        overlap: people for each question; None leaves known ones as they are and gives new ones 1.

    Returns:
        How many are new.

    Raises:
        Refusal: where the extra is missing or the store cannot be opened.
    """
    with opened(place) as store:
        return store.add_items([one.item() for one in asked if not one.same], overlap=overlap).new


def win_rates(asked: Sequence[Asked], place: str) -> list[WinRate]:
    """What people said, by group in order of appearance; a skip is no verdict.

    Raises:
        Refusal: where the extra is missing or the store cannot be opened.
    """
    said: dict[str, list[float]] = {}
    with opened(place) as store:
        for item, label in store.export():
            if not label.judgement.skipped:
                said.setdefault(item.digest, []).append(verdict(label.judgement.ranking))
    groups: dict[str, list[Asked]] = {}
    for one in asked:
        groups.setdefault(one.group, []).append(one)
    return [counted(group, ones, said=said) for group, ones in groups.items()]


def verdict(ranking: Sequence[Sequence[int]]) -> float:
    """1 where the policy's answer, candidate 0, is alone at the top, 0 where the other is, one half for a tie."""
    return 0.5 if len(ranking) == 1 else float(ranking[0][0] == 0)


def counted(group: str, asked: Sequence[Asked], *, said: dict[str, list[float]]) -> WinRate:
    """One group's win rate."""
    different = [one.item().digest for one in asked if not one.same]
    same = len(asked) - len(different)
    scores = [fmean(said[digest]) for digest in different if digest in said]
    trials, hits = same + len(scores), 0.5 * same + sum(scores)
    wins, losses = sum(score > 0.5 for score in scores), sum(score < 0.5 for score in scores)
    rate = hits / trials if trials else None
    return WinRate(group, len(asked), same, len(scores), wins, losses, rate, *share_interval(hits, trials))


def write_asked(path: Path, asked: Iterable[Asked]) -> None:
    """Keep what was asked, a JSON object a line, so that a later command can read the answers."""
    from killick.rundir.durable import replace_file

    replace_file(path, "".join(json.dumps(asdict(one)) + "\n" for one in asked).encode())


def read_asked(path: Path) -> list[Asked]:
    """What `write_asked` kept."""

    def turns(prompt: Any) -> Prompt:
        return prompt if isinstance(prompt, str) else tuple((str(role), str(content)) for role, content in prompt)

    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Asked(**row | {"prompt": turns(row["prompt"])}) for row in rows]


def opened(place: str) -> "Store":
    """A store, made where it is not there.

    Raises:
        Refusal: where the extra is missing.
    """
    try:
        from killick.preferences.store import Store
    except ImportError as error:
        raise Refusal(
            f"Gold from people needs the extra prefs ({error.name} is missing): pip install 'killick[prefs]'."
        ) from error
    return Store(place)
