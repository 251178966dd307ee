"""`killick reward fit --from-store DB --world W`: a world's own reward model from people's labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from killick.cli.stores import absent
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.recipes.reward.fit import Fitted


def fit_world(place: str, world: str, *, out: Path | None, seed: int) -> None:
    """Read the store, fit, print, save.

    Args:
        place: the labels.
        world: whose samples were labelled.
        out: a folder for reward.safetensors and results.json; without it nothing is kept.
        seed: of the split and of the fit.
    """
    try:
        from killick.preferences.store import Store
    except ImportError as error:
        raise Refusal(
            f"killick reward fit needs the extra prefs ({error.name} is missing): pip install 'killick[prefs]'."
        ) from error
    import torch

    from killick.recipes.labelling.items import judged
    from killick.recipes.labelling.labels import read_labels
    from killick.recipes.reward.fit import check_free, fit_reward, save

    torch.set_num_threads(1)
    judged(world)
    if absent(place):
        raise Refusal(f"There is no store {place}; killick label --world {world} begins one.")
    if out is not None:
        check_free(out)
    with Store(place) as store:
        labels = read_labels(store.export(), world, seed=seed)
    fitted = fit_reward(labels, world, seed=seed)
    print("\n".join(told(fitted)))
    if out is not None:
        save(fitted, out)
        print(f"The reward model is in {out}.")


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
    if facts["kappa"] is None:
        return f"ceiling   {facts['ceiling']:.3f}  from the soft labels themselves: nobody is right more often"
    return (
        f"ceiling   {facts['ceiling']:.3f}  [{facts['ceiling_low']:.3f}, {facts['ceiling_high']:.3f}]  "
        f"from the annotators' agreement (kappa {facts['kappa']:.2f} per deviation of quality){ties}"
    )
