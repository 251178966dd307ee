"""Predict the turn, choose the leash, close the blind spot, with your four functions. Leaves hacking.png, hacking.json.

python run.py                    about half a minute of CPU time
python run.py --iterations 20    a first look
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from hacking import (
    label,
    largest_beta,
    new_policy,
    predict_turn,
    prompts,
    show_more,
    tilted_mean,
    train,
    train_reward_model,
    with_responses,
    world,
)
from matplotlib.figure import Figure

from killick import Reward, accuracy
from killick.ops.stats import smoothed
from killick.report.style import COLOURS, DASHES, render
from killick.rundir.seeds import stage_generator
from killick.worlds.emphasis import EMPHASIS, TIME

HERE = Path(__file__).parent
PAIRS, POOL, WANTED = 4000, 200_000, 0.4
"""Labelled pairs, responses in the pool from which the tilted policy is read, and the gain in gold that is asked for."""
BETAS = (0.25, 0.5, 1.0, 2.0)
"""Leashes that are trained, to be laid beside the prediction."""


def curves(reward: Reward, beta: float, name: str, *, iterations: int, seed: int) -> dict[str, Any]:
    """One arm: proxy, gold, KL and emphasis counts at each iteration."""
    found: dict[str, Any] = {"proxy": [], "gold": [], "kl": [], "counts": []}
    for step in train(reward, beta, stage_generator(seed, f"ppo {name}"), iterations=iterations):
        found["proxy"].append(float(step.proxy.mean()))
        found["gold"].append(float(world.gold(step.rollout).mean()))
        found["kl"].append(float(step.kl.mean()))
        found["counts"].append(world.count(step.rollout))
    end = {column: sum(found[column][-10:]) / len(found[column][-10:]) for column in ("proxy", "gold", "kl")}
    emphasis = float(found["counts"][-1].float().mean())
    print(f"{name:<22} proxy {end['proxy']:+.2f}  gold {end['gold']:+.3f}  KL {end['kl']:5.2f}  emphasis {emphasis:5.2f}",
          flush=True)  # fmt: skip
    return found | {"end": end}


@torch.no_grad()
def by_count(reward: Reward, generator: torch.Generator) -> tuple[list[float], list[float]]:
    """Mean score and mean gold of corpus responses that are made to hold 0 ... 12 emphasis tokens."""
    rollout = new_policy().sample(prompts(512, generator), 1, generator)
    places = torch.rand(rollout.responses.shape, generator=generator).argsort(1).argsort(1)
    plain = rollout.responses.where(rollout.responses != EMPHASIS, EMPHASIS + 1)
    rows = [with_responses(rollout, plain.where(places >= c, EMPHASIS)) for c in range(TIME + 1)]
    return [float(reward(row).mean()) for row in rows], [float(world.gold(row).mean()) for row in rows]


def main() -> None:
    """The three parts, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--seed", type=int, default=42)
    asked = parser.parse_args()
    length, seed = asked.iterations, asked.seed
    torch.set_num_threads(1)

    # People compare what the corpus writes; hardly any of it holds more than two emphasis tokens.
    generator = stage_generator(seed, "labels")
    shown = new_policy().sample(prompts(PAIRS, generator), 2, generator)
    seen = world.count(shown)
    narrow = train_reward_model(label(shown, generator), generator)
    test = label(new_policy().sample(prompts(2000, generator), 2, generator), generator)
    print(f"Reward model: right in {accuracy(narrow, test):.3f} of new pairs; more than three emphasis tokens in "
          f"{float((seen > 3).float().mean()):.2%} of its data")  # fmt: skip

    # 1. Predict the turn, then look.
    free = curves(narrow, 0.0, "beta=0", iterations=length, seed=seed)
    predicted = predict_turn(torch.stack(free["counts"]), seen)
    smooth = smoothed(free["gold"])
    turned = max(range(length), key=smooth.__getitem__)
    print(f"The turn: predicted at iteration {predicted} without asking anyone; gold was at its best at {turned} "
          f"({smooth[turned]:+.3f})")  # fmt: skip

    # 2. The largest beta that still gains what is wanted: read off a pool of the reference's samples, then trained.
    pool = new_policy().sample(prompts(POOL, generator), 1, generator)
    golds, base = world.gold(pool), float(world.gold(pool).mean())
    with torch.no_grad():
        scores = torch.cat([narrow(pool[start : start + 20_000]) for start in range(0, POOL, 20_000)])

    def gain(beta: float) -> float:
        return float(tilted_mean(golds, scores, beta=beta)) - base

    chosen = largest_beta(gain, low=0.45, high=4.0, wanted=WANTED)
    arms = {beta: curves(narrow, beta, f"beta={beta:.3g}", iterations=length, seed=seed) for beta in (*BETAS, chosen)}
    print(f"The leash: beta {chosen:.3f} is the largest that gains {WANTED} by the pool; trained, it gained "
          f"{arms[chosen]['end']['gold'] - base:+.3f}")  # fmt: skip

    # 3. Half of the same number of pairs shows any amount of emphasis. Then let go of the leash again.
    half = new_policy().sample(prompts(PAIRS, generator), 2, generator)
    rows = torch.arange(len(half)) // 2 % 2 == 1  # every other pair
    mixed = half.responses.where(~rows[:, None], show_more(half.responses, generator))
    wide = train_reward_model(label(with_responses(half, mixed), generator), generator)
    closed = curves(wide, 0.0, "beta=0, blind spot closed", iterations=length, seed=seed)
    print(f"The data: without a leash gold now ends at {closed['end']['gold']:+.3f}, not {free['end']['gold']:+.3f}; "
          f"{world.best:.3f} is the best there is")  # fmt: skip

    counts = {"narrow": by_count(narrow, generator), "wide": by_count(wide, generator)}
    (HERE / "hacking.png").write_bytes(render(
        lambda figure: paint(figure, free, closed, turn=(predicted, turned), counts=counts,
                             leash=(gain, {b: a["end"]["gold"] - base for b, a in arms.items()})), size=(6.5, 4.6),
    )["png"])  # fmt: skip
    (HERE / "hacking.json").write_text(json.dumps({
        "predicted": predicted, "turned": turned, "peak": smooth[turned], "base": base, "beta": chosen,
        "gained": arms[chosen]["end"]["gold"] - base, "free": free["end"], "closed": closed["end"],
    }), encoding="utf-8")  # fmt: skip
    print("The curves are in hacking.png.")


def paint(
    figure: Figure, free: dict[str, Any], closed: dict[str, Any], *, turn: tuple[int, int], counts: dict[str, Any],
    leash: tuple[Any, dict[float, float]],
) -> None:  # fmt: skip
    """Four panels: the turn, the score against emphasis, the leash, and the closed blind spot."""
    red, blue, green, *_ = COLOURS
    (first, second), (third, fourth) = figure.subplots(2, 2)
    for axes, arm, title in ((first, free, "no leash"), (fourth, closed, "no leash, blind spot closed")):
        axes.plot(arm["gold"], color=red, label="gold")
        axes.plot(arm["proxy"], color=blue, linestyle=DASHES[1], label="proxy")
        axes.set(title=title, xlabel="iteration")
    for place, style, name in ((turn[0], DASHES[2], "predicted turn"), (turn[1], DASHES[0], "best gold")):
        first.axvline(place, color=green, linestyle=style, linewidth=0.9, label=name)
    for which, style in (("narrow", DASHES[1]), ("wide", DASHES[2])):
        second.plot(counts[which][0], color=blue, linestyle=style, label=f"score, {which} data")
    second.plot(counts["narrow"][1], color=red, label="gold")
    second.axvspan(0, 2, color="#dadada", alpha=0.5, linewidth=0)
    second.text(0.1, second.get_ylim()[0] + 0.3, "data", fontsize=6)
    second.set(title="what emphasis is worth", xlabel="emphasis tokens")
    gain, points = leash
    betas = torch.logspace(-0.35, 0.6, 40).tolist()
    third.plot(betas, [gain(beta) for beta in betas], color=blue, linestyle=DASHES[1], label="predicted from the pool")
    third.plot([*points], [*points.values()], "o", color=red, label="trained")
    third.axhline(WANTED, color=green, linewidth=0.9, linestyle=DASHES[2], label="wanted")
    third.set(title="gold gained on a leash", xlabel="beta", xscale="log")
    third.set_xticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"], minor=False)
    third.minorticks_off()
    for axes in figure.axes:
        axes.legend()


if __name__ == "__main__":
    main()
