"""A run folder as recipes leave it, made up: curves of the right shape with a little noise, at no cost."""

import json
from pathlib import Path
from typing import Any

import numpy as np

ARMS = ("beta=0", "beta=0.1", "beta=1", "beta=0.1+ptx")
WEIGHTS = {str(digit): 0.4 if digit % 2 == 0 else -0.5 for digit in range(10)}


def ledger_rows(arm: str, seed: int, *, steps: int) -> list[dict[str, Any]]:
    """Rows of one cell: without a leash gold rises, falls, and the proxy goes on."""
    draws = np.random.default_rng([seed, len(arm), steps])
    beta = float(arm.split("+")[0].removeprefix("beta="))
    rows = []
    for step in range(steps):
        far = step / 119
        kl = 38 * far**1.5 if beta == 0 else 3.0 * (1 - np.exp(-6 * far)) / (1 + 9 * beta)
        gold = 0.5 + min(0.45, 1.8 * far) - (1.95 / (1 + np.exp(-30 * (far - 0.55))) if beta == 0 else 0)
        noise = draws.normal(0, 0.05, 4)
        rows.append(
            {"arm": arm, "seed": seed, "step": step, "proxy": -0.4 + (3.3 if beta == 0 else 0.9) * far + noise[0],
             "gold": max(-1, gold + noise[1]), "kl": kl, "kl_k1": kl + noise[2],
             "beta": beta * 1.02**step if "target" in arm else beta, "entropy": 0.3 - 0.2 * far, "length": 3.6,
             "finished": 1 - far if beta == 0 else 1.0, "accuracy": 0.5 * (1 - far) + abs(noise[3]),
             "clip_fraction": 0.1}
        )  # fmt: skip
    return rows


def sample_rows(arm: str, seed: int, *, steps: int) -> list[dict[str, Any]]:
    """A few answers every ten steps."""
    return [
        {"arm": arm, "seed": seed, "step": step, "prompt": f"{30 + step}+{47 + place}=",
         "response": "84" if step < 60 else "4444", "gold": 1.0 if step < 60 else -1.0, "proxy": 0.4 * (2 + step / 60)}
        for step in range(0, steps, 10) for place in range(3)
    ]  # fmt: skip


def claim(**changes: Any) -> dict[str, Any]:
    """One row of results.json."""
    return {
        "id": "final-kl", "arm": "beta=0", "text": "final KL", "source": "reference run", "expected": 40, "low": 40.0,
        "high": None, "measured": 38.2, "spread": None, "unit": "nats", "kind": "claim", "holds": False,
    } | changes  # fmt: skip


def run_folder(
    path: Path, *, arms: tuple[str, ...] = ARMS, seeds: tuple[int, ...] = (0,), steps: int = 120, finished: bool = True
) -> Path:
    """Write such a folder; one that is not finished has only its cells, the last line of each cut in the middle."""
    path.mkdir(parents=True, exist_ok=True)
    put(path / "config.json", {"recipe": "arithmetic", "betas": [0.0, 0.1], "seeds": list(seeds), "ppo": {"n": 1}})
    packages = {"killick": "0.1.0", "torch": "2.13.0"}
    put(path / "environment.json", {"python": "3.11", "threads": 1, "packages": packages, "commit": "abc123"})
    stage = {
        "sft_accuracy": 0.53,
        "sft_steps": 375,
        "reward_accuracy": 0.64,
        "reward_ceiling": 0.64,
        "weights": WEIGHTS,
    }
    cells = [(arm, seed) for arm in sorted(arms) for seed in seeds]
    if not finished:
        (path / "cells").mkdir()
        for arm, seed in cells:
            stem = path / "cells" / f"{arm},seed={seed}"
            put(path / "cells" / f"stages,seed={seed}.json", stage)
            cut = lines(ledger_rows(arm, seed, steps=steps))[:-20]
            stem.with_name(f"{stem.name}.jsonl").write_text(cut, encoding="utf-8")
            samples = lines(sample_rows(arm, seed, steps=steps))
            stem.with_name(f"{stem.name}.samples.jsonl").write_text(samples, encoding="utf-8")
        return path
    for name, make in (("metrics", ledger_rows), ("samples", sample_rows)):
        rows = [row for arm, seed in cells for row in make(arm, seed, steps=steps)]
        (path / f"{name}.jsonl").write_text(lines(rows), encoding="utf-8")
    put(path / "stages.json", {str(seed): stage for seed in seeds})
    claims = [
        claim(),
        claim(id="gold", text="final gold", expected=-1, low=None, high=-0.9, measured=-1.0, unit="", holds=True),
        claim(id="sft", arm=None, text="accuracy after SFT", low=None, measured=0.53, kind="setting", holds=None),
    ]
    put(path / "results.json", {"recipe": "arithmetic", "seeds": list(seeds), "cpu_s": 90.0, "wall_s": 60.5,
                                "claims": claims, "figures": []})  # fmt: skip
    return path


def lines(rows: list[dict[str, Any]]) -> str:
    """Rows as JSONL."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def put(path: Path, content: Any) -> None:
    """Write one JSON file."""
    path.write_text(json.dumps(content), encoding="utf-8")
