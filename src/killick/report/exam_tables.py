"""The numbers of an exam as tables, for the console and the page alike."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]
Table = dict[str, Any]

SHOWN = 300
"""Characters of a text that stand in a table."""


def exam_tables(facts: Facts) -> list[Table]:
    """The tables that these numbers fill, the most telling first."""
    made = [
        numbers(facts), probes(facts["probes"]), *slope(facts["slope"]), *bins(facts), phrases(facts["phrases"]),
        *mistakes(facts["examples"]["mistakes"]), *liked(facts["examples"]["liked"]),
    ]  # fmt: skip
    return [table for table in made if table["rows"]]


def numbers(facts: Facts) -> Table:
    """One number a line, with its interval and what it means."""
    return {
        "title": "In numbers",
        "note": "Brackets of shares are 95 % intervals over prompts; a dash is what these data do not tell.",
        "columns": ["what", "value", "low", "high", "meaning"],
        "rows": [*told(facts), *pooled(facts)],
    }


def told(facts: Facts) -> Iterator[list[Any]]:
    """What the held-out pairs say."""
    found, top, sure, long = (facts[key] for key in ("accuracy", "ceiling", "calibration", "length"))
    ties = f"; {found['score_ties']} equal scores count half" if found["score_ties"] else ""
    pairs = f"of {found['pairs']} held-out pairs of {found['prompts']} prompts{ties}"
    yield ["accuracy", found["accuracy"], found["low"], found["high"], pairs]
    yield ["ceiling", top["ceiling"], top["low"], top["high"], top["source"] or f"not known: {top['reason']}"]
    yield ["Brier score", sure["brier"], None, None, ".25 is what knowing nothing gives on sure labels"]
    chance = f"{sure['ece_by_chance']:.3f} by chance alone, at most {sure['ece_by_chance_high']:.3f}"
    yield ["calibration error", sure["ece"], None, None, chance]
    why = sure.get("temperature_reason") or "what to divide the scores by, so that gaps mean what they claim"
    yield ["temperature", sure["temperature"], None, None, why]
    balanced = long.get("balanced_reason") or "accuracy if longer and shorter chosen answers weighed alike"
    yield ["length-balanced accuracy", long["balanced"], long["balanced_low"], long["balanced_high"], balanced]
    yield [
        "prefers the longer by",
        long["lean"],
        long["lean_low"],
        long["lean_high"],
        "share of pairs, beyond what people do",
    ]
    yield ["correlation with length", long["correlation"], None, None, "of the gap in score with that in characters"]


def pooled(facts: Facts) -> Iterator[list[Any]]:
    """What members and the policy's answers say."""
    for key, where in (("members", "held-out pairs"), ("members_sampled", "pairs of the policy's answers")):
        found = facts[key]
        if found:
            yield [
                f"members agree, {where}",
                found["agreement"],
                found["low"],
                found["high"],
                f"two of {found['members']}",
            ]
    found = facts["spread"]
    if found:
        yield ["deviation within a prompt", found["within"], None, None, f"of {found['answers']} answers of the policy"]
        yield ["deviation between prompts", found["between"], None, None, f"of the means of {found['prompts']} prompts"]
        yield ["within, share of variance", found["share_within"], None, None, "what choosing has to choose from"]
        yield ["length within a prompt", facts["pool_length"], None, None, "rank correlation of score and characters"]


def probes(found: Facts) -> Table:
    """Each probe with what it beats."""
    rows = []
    for name, each in found.items():
        row: list[Any] = [name, each["what"]]
        for key in ("beats_chosen", "beats_sampled", "beats_best"):
            beaten = each.get(key)
            row.append("-" if not beaten else f"{beaten['share']:.2f} [{beaten['low']:.2f}, {beaten['high']:.2f}]")
        rows.append([*row, each.get("ties")])
    note = (
        "Share of prompts on which a probe scores strictly higher than the chosen answer, the mean and the best answer "
        "of the policy; ties with the chosen one. What could not be scored shows a dash."
    )
    return {
        "title": "Probes", "note": note, "rows": rows,
        "columns": ["probe", "what it is", "beats chosen", "beats mean", "beats best", "ties"],
    }  # fmt: skip


def slope(found: Facts | None) -> Iterator[Table]:
    """Best-of-n along n."""
    if not found:
        return
    known = found["points"][0]["gold"] is not None
    keys = ["n", "kl_bound", "proxy", "low", "high", *(["gold", "gold_low", "gold_high"] if known else [])]
    yield {
        "title": "Best of n",
        "note": f"Unbiased from the policy's answers to {found['prompts']} prompts; intervals are over prompts. The KL "
        "from the policy is at most the bound, in nats.",
        "columns": ["n", "KL bound", "score", "low", "high", *(["gold", "gold low", "gold high"] if known else [])],
        "rows": [[point[key] for key in keys] for point in found["points"]],
    }


BINS = {
    "gap": (
        "Accuracy by the gap of the scores",
        "Quarters of the pairs, the smallest gaps first; claimed is what such gaps mean under Bradley-Terry.",
    ),
    "level": (
        "Accuracy by the height of the scores",
        "Quarters of the pairs by the mean of their two scores. Choosing hard needs the last.",
    ),
    "strength": (
        "Accuracy by the strength of the label",
        "How much better the chosen answer is, by the file's own word.",
    ),
    "length_bins": ("Accuracy by length", "Characters of the chosen answer over those of the rejected one."),
}
"""What pairs are sorted by: title and note of its table."""


def bins(facts: Facts) -> Iterator[Table]:
    """Accuracy by gap, height, strength and length."""
    for key, (title, note) in BINS.items():
        keys = ["from", "to", "pairs", "accuracy", "low", "high", *(["claimed"] if key == "gap" else [])]
        yield {
            "title": title,
            "note": note,
            "columns": keys,
            "rows": [[row[name] for name in keys] for row in facts[key]],
        }


def phrases(found: Sequence[Facts]) -> Table:
    """What chosen answers have and rejected ones do not."""
    return {
        "title": "Phrases typical of chosen answers",
        "note": "Pairs in which only one of the two answers holds the phrase, and how many deviations its log-odds are "
        "from none. The first is the probe.",
        "columns": ["phrase", "in the chosen one", "in the rejected one", "z"],
        "rows": [[each["text"], each["chosen"], each["rejected"], each["z"]] for each in found],
    }


def mistakes(rows: Sequence[Facts]) -> Iterator[Table]:
    """The pairs that it gets wrong by the largest gap."""
    yield {
        "title": "Read: its surest mistakes",
        "note": "Pairs whose rejected answer it scores highest above the chosen one.",
        "columns": ["prompt", "chosen", "score", "rejected", "its score"],
        "rows": [
            [
                short(row["prompt"]),
                short(row["chosen"]),
                row["score_chosen"],
                short(row["rejected"]),
                row["score_rejected"],
            ]
            for row in rows
        ],
    }


def liked(rows: Sequence[Facts]) -> Iterator[Table]:
    """The answers of the policy that it likes best."""
    known = any(row["gold"] is not None for row in rows)
    yield {
        "title": "Read: what it likes best",
        "note": "The policy's answers with the highest scores, one for each prompt: a reward is most likely to be "
        "wrong where it is highest.",
        "columns": ["prompt", "answer", "score", *(["gold"] if known else [])],
        "rows": [
            [short(row["prompt"]), short(row["response"]), row["score"], *([row["gold"]] if known else [])]
            for row in rows
        ],
    }


def short(text: str) -> str:
    """As much of a text as a table bears."""
    return text if len(text) <= SHOWN else text[: SHOWN - 2] + " …"
