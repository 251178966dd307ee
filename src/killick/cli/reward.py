"""`killick reward`: reward models from people's labels."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from killick.cli.stores import absent
from killick.flags import nearest, settings
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.recipes.reward_fit import Fitted

HELP = """usage: killick reward COMMAND ...

Reward models from labels.

commands (each has --help):
  fit                    fit a world's own reward model to the labels of a store, and say how right it is

start with:  killick label --world arithmetic
then:        killick reward fit --from-store arithmetic.labels.db --world arithmetic
"""
ABOUT = """Fit a world's own reward model to people's labels, and print how often it is right on prompts that it did
not learn from (in a world of fewer than 20 prompts: on items), beside the ceiling that the annotators' own noise sets.
The newest revision of each label counts; skipped and flagged ones are left out and counted, a tie teaches one half and
counts for neither accuracy nor ceiling, a ranking weighs as much as a pair."""


def reward(given: list[str]) -> None:
    """`killick reward`: find the command that is meant."""
    if not given or given[0] in ("-h", "--help"):
        print(HELP, end="")
    elif given[0] == "fit":
        fit(given[1:])
    elif given[0] == "exam":
        from killick.cli.reward_exam import exam

        exam(given[1:])
    else:
        raise Refusal(f"killick reward has no command {given[0]!r}{nearest(given[0], ['fit'])}; see --help.")


@dataclass(frozen=True)
class Fit:
    """What to learn from.

    Attributes:
        from_store: the labels: an SQLite file or a postgresql:// URL, as killick label keeps them.
        world: whose samples were labelled: arithmetic, emphasis or answers.
        out: a folder for reward.safetensors and results.json; without it nothing is kept.
        seed: of the split and of the fit.
    """

    from_store: str
    world: str
    out: Path | None = None
    seed: int = 0


def fit(given: list[str]) -> None:
    """`killick reward fit`: read the store, fit, print, save."""
    asked = settings("reward fit", Fit, given=given, about=ABOUT)
    try:
        from killick.preferences.store import Store
    except ImportError as error:
        raise Refusal(
            f"killick reward fit needs the extra prefs ({error.name} is missing): pip install 'killick[prefs]'."
        ) from error
    import torch

    from killick.recipes.reward_fit import check_free, fit_reward, save
    from killick.recipes.world_items import judged
    from killick.recipes.world_labels import read_labels

    torch.set_num_threads(1)
    judged(asked.world)
    if absent(asked.from_store):
        raise Refusal(f"There is no store {asked.from_store}; killick label --world {asked.world} begins one.")
    if asked.out is not None:
        check_free(asked.out)
    with Store(asked.from_store) as store:
        labels = read_labels(store.export(), asked.world, seed=asked.seed)
    fitted = fit_reward(labels, asked.world, seed=asked.seed)
    print("\n".join(told(fitted)))
    if asked.out is not None:
        save(fitted, asked.out)
        print(f"The reward model is in {asked.out}.")


def told(fitted: "Fitted") -> list[str]:
    """What is known of it, a line each."""
    facts = fitted.facts
    people = ", ".join(facts["annotators"])
    left = ", ".join(f"{count} {reason}" for reason, count in facts["left_out"].items()) or "none"
    lines = [
        f"{facts['labels']} labels by {people}; left out: {left}.",
        f"Learned from {facts['pairs']} pairs; judged by {facts['held_pairs']} pairs of {facts['held_units']} other "
        f"{facts['split_by']} ({facts['held_ties']} ties among them are not counted).",
        *few_prompts(facts),
        f"accuracy  {facts['accuracy']:.3f}  [{facts['accuracy_low']:.3f}, {facts['accuracy_high']:.3f}]  "
        f"95 %, {facts['split_by']} resampled",
        ceiling_line(facts),
    ]
    if facts["weights"] is not None:
        lines.append("weights   " + "  ".join(f"{name} {weight:+.2f}" for name, weight in facts["weights"].items()))
    return lines


def few_prompts(facts: dict[str, Any]) -> list[str]:
    """What it means that a world was split by item."""
    if facts["split_by"] == "prompts":
        return []
    return [
        f"The world {facts['world']} has fewer than 20 prompts, so its items were split: the accuracy is that on other "
        "items of the same prompts."
    ]


def ceiling_line(facts: dict[str, Any]) -> str:
    """The ceiling with its interval, or why there is none; and how many ties it does not count."""
    ties = f"; {facts['ties']} ties do not count for it" if facts["ties"] else ""
    if facts["ceiling"] is None:
        return (
            f"ceiling   not known: it takes more items with preferences of two annotators or more (--overlap 2){ties}"
        )
    return (
        f"ceiling   {facts['ceiling']:.3f}  [{facts['ceiling_low']:.3f}, {facts['ceiling_high']:.3f}]  "
        f"from the annotators' agreement (kappa {facts['kappa']:.2f} per deviation of quality){ties}"
    )
