"""Train the four arms with your five functions. Leaves rlhf_runs.png, claims.json and rows.json.

python run.py                         all arms: about a minute and a quarter of CPU time
python run.py --arms beta=0 beta=1    some arms only
python run.py --iterations 12         fewer iterations: a first look
"""

import argparse
import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from prefs import DigitReward, ceiling, gold, rank
from rlhf import rankings_to_pairs, train_ppo, train_reward_model
from tinylm import TinyLM, accuracy, load_sft, world

from killick import part
from killick.console import claims_table, verdicts
from killick.ops.stats import pair_accuracy, smoothed
from killick.recipes.arithmetic.recipe import HELD_OUT, Config, arms
from killick.recipes.arithmetic.claims import CLAIMS
from killick.recipes.claims import judge
from killick.report.style import marks, render
from killick.rundir.seeds import stage_generator

HERE = Path(__file__).parent
SETTINGS = Config()
"""killick's own settings of this experiment; print them."""
PROMPTS, K, TEMPERATURE = SETTINGS.rankings, SETTINGS.k, 1.0
"""Ranked prompts, responses in each ranking, and how boldly the ranked responses are sampled."""


def learn_preferences(policy: TinyLM, seed: int) -> tuple[DigitReward, dict[str, Any]]:
    """Sample, rank, fit: a reward model, and how good it is on prompts that it has not seen."""
    generator = stage_generator(seed, "labels")
    ids, _ = world.prompts(6 * (PROMPTS + HELD_OUT), generator)
    held_out = torch.tensor([part(text, seed, shares=(0.6, 0.4)) == 1 for text in world.questions(ids)])
    speaker = deepcopy(policy)
    speaker.temperature = TEMPERATURE

    def label(prompts: torch.Tensor) -> tuple[Any, torch.Tensor]:
        rollout = speaker.sample((prompts, torch.ones_like(prompts, dtype=torch.bool)), K, generator)
        return rollout, rankings_to_pairs(rank(gold(rollout), K, generator))

    rollout, pairs = label(ids[~held_out][:PROMPTS])
    reward = DigitReward(stage_generator(seed, "reward model"))
    fit = SETTINGS.fit
    for _ in train_reward_model(reward, rollout, pairs=pairs, steps=fit.steps, learning_rate=fit.learning_rate):
        pass
    rollout, pairs = label(ids[held_out][:HELD_OUT])
    with torch.no_grad():
        scores = reward(rollout)
    names = map(str, range(10))
    found = {
        "sft_accuracy": accuracy(policy, generator),
        "reward_accuracy": float(pair_accuracy(scores[pairs[:, 0]], scores[pairs[:, 1]])),
        "reward_ceiling": ceiling(gold(rollout), pairs),
        "weights": dict(zip(names, reward.weights.tolist(), strict=False)),
    }
    print(f"Reward model: {found['reward_accuracy']:.3f} of held-out pairs, ceiling {found['reward_ceiling']:.3f}")
    print(f"Its weights:  {reward.told()}", flush=True)
    return reward.requires_grad_(False), found


def paint(figure: Figure, rows: list[dict[str, Any]]) -> None:
    """Proxy, gold, KL and accuracy against iteration, one line an arm."""
    words = {"proxy": "proxy: what the optimiser sees", "gold": "gold: what people want",
             "kl": "KL, nats per response", "accuracy": "accuracy: nobody pays for it"}  # fmt: skip
    lines = []
    for axes, (column, title) in zip(figure.subplots(2, 2, sharex=True).flat, words.items(), strict=True):
        axes.set_title(title)
        lines = []
        for index, arm in enumerate(dict.fromkeys(row["arm"] for row in rows)):
            mine = [row for row in rows if row["arm"] == arm]
            steps, curve = [row["step"] for row in mine], smoothed([row[column] for row in mine])
            lines += axes.plot(steps, curve, label=arm, markevery=max(1, len(mine) // 6), **marks(index))
    figure.axes[2].set_yscale("symlog", linthresh=1)  # one arm goes a hundred times as far as the others
    figure.axes[2].yaxis.set_major_formatter("{x:g}")
    for axes in figure.axes[2:]:
        axes.set_xlabel("iteration")
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines))


def main() -> None:
    """SFT, reward model, arms, figure, claims."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", nargs="+", choices=[*arms(SETTINGS)], default=[*arms(SETTINGS)], metavar="ARM")
    parser.add_argument("--iterations", type=int, default=SETTINGS.ppo.iterations)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)

    reference = load_sft(asked.seed).requires_grad_(False)
    reward, found = learn_preferences(reference, asked.seed)
    rows = []
    for arm, (leash, config) in arms(SETTINGS).items():
        if arm not in asked.arms:
            continue
        policy = deepcopy(reference).requires_grad_(True)
        for row in train_ppo(
            policy, reward, reference=reference, beta=leash.beta, config=replace(config, iterations=asked.iterations),
            generator=stage_generator(asked.seed, f"ppo {arm}"),
        ):  # fmt: skip
            rows.append({"arm": arm, "seed": asked.seed, **row})
            if row["step"] % 20 == 0 or row["step"] == asked.iterations - 1:
                print(f"{arm:<13} {row['step']:4}  proxy {row['proxy']:+.2f}  gold {row['gold']:+.2f}  KL "
                      f"{row['kl']:6.2f}  accuracy {row['accuracy']:.2f}  {' '.join(row['said'])}", flush=True)  # fmt: skip

    claims = judge(CLAIMS, rows, found={str(asked.seed): found})
    (HERE / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    (HERE / "claims.json").write_text(json.dumps(claims, indent=1), encoding="utf-8")
    (HERE / "rlhf_runs.png").write_bytes(render(lambda figure: paint(figure, rows), size=(5.5, 4.2))["png"])
    print("\n" + "\n".join([*claims_table(claims), "", *verdicts(rows)]))
    holds = [claim["holds"] for claim in claims if claim["holds"] is not None]
    print(f"{sum(holds)} of {len(holds)} claims hold; the curves are in rlhf_runs.png.")


if __name__ == "__main__":
    main()
