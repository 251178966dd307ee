"""The two tables, the best beta there is, and best-of-n beside it, with your four functions. Leaves leash.png, leash.json."""

import json
from pathlib import Path

import torch
from leash import ANSWERS, EVERY_BETA, FIVE, TWO, bests, log_z, told, tilted, tilts
from matplotlib.figure import Figure

from killick.report.style import COLOURS, DASHES, render

HERE = Path(__file__).parent
BETAS = (10.0, 2.0, 1.0, 0.5, 0.25, 0.1)
NUMBERS = (1, 2, 4, 8, 16, 64)


def main() -> None:
    """Print, draw, keep."""
    torch.set_num_threads(1)
    print("Two answers, p = .8 and .2, rewards 0 and 1:")
    for beta in (10.0, 1.0, 0.5, 0.25):
        policy = tilted(TWO["reference"], TWO["reward"], beta=beta)
        print(f"  beta {beta:5g}: {policy[0]:.3f} {policy[1]:.3f}")

    print("\nFive answers: " + "; ".join(
        f"{name} (p {p:g}, reward {r:g}, gold {g:g})"
        for name, p, r, g in zip(ANSWERS, *(FIVE[part].tolist() for part in ("reference", "reward", "gold")), strict=True)
    ))  # fmt: skip
    print(f"\n{'':>10} {'reward':>8} {'gold':>8} {'KL':>8} {'gaming':>8} {'beta log Z':>11}")
    for row in [told(FIVE["reference"]), *tilts(torch.tensor(BETAS, dtype=torch.float64)), *bests(NUMBERS[1:])]:
        name = f"beta {row['beta']:g}" if "beta" in row else f"best of {row['n']}" if "n" in row else "reference"
        more = (
            float(log_z(FIVE["reference"], FIVE["reward"], beta=row["beta"])) * row["beta"] if "beta" in row else None
        )
        print(f"{name:>10} {row['reward']:8.3f} {row['gold']:8.3f} {row['kl']:8.3f} {row['gaming']:8.1%}"
              + (f" {more:11.4f}" if more is not None else ""))  # fmt: skip

    every, numbered = tilts(EVERY_BETA), bests(NUMBERS)
    best = max(every, key=lambda row: row["gold"])
    better = [f"best of {row['n']}" for row in numbered if row["gold"] > best["gold"]]
    print(f"\nNo beta gives more gold than {best['gold']:.4f} (beta {best['beta']:.3f}, KL {best['kl']:.3f}). "
          f"More gold: {', '.join(better) or 'no best of n either'}.")  # fmt: skip
    (HERE / "leash.png").write_bytes(render(lambda figure: paint(figure, every, numbered), size=(6.5, 2.6))["png"])
    (HERE / "leash.json").write_text(json.dumps({"best": best, "best_of_n": numbered}, indent=1), encoding="utf-8")
    print("The curves are in leash.png.")


def paint(figure: Figure, every: list[dict[str, float]], numbered: list[dict[str, float]]) -> None:
    """Gold against KL, and gold against reward, for both ways to spend a KL."""
    for axes, column, label in zip(
        figure.subplots(1, 2, sharey=True), ("kl", "reward"), ("KL, nats", "reward: what the optimiser sees"), strict=True
    ):  # fmt: skip
        axes.plot([row[column] for row in every], [row["gold"] for row in every], color=COLOURS[1], linestyle=DASHES[1],
                  label="tilted, every beta")  # fmt: skip
        axes.plot([row[column] for row in numbered], [row["gold"] for row in numbered], "o", color=COLOURS[0],
                  label="best of n")  # fmt: skip
        for row in numbered:
            axes.annotate(f" {row['n']}", (row[column], row["gold"]), fontsize=6.5, xytext=(2, 2),
                          textcoords="offset points")  # fmt: skip
        axes.set_xlabel(label)
    figure.axes[0].set_ylabel("gold: what people want")
    figure.axes[0].legend()


if __name__ == "__main__":
    main()
