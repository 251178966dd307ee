"""Runs of the answers recipe that several tests read: its whole self, and every arm for a few steps."""

from dataclasses import replace

from killick.algorithms.reinforce import ReinforceConfig
from killick.recipes.answers.config import Config
from killick.rewards.fit import FitConfig

FULL = Config(device="cpu", draws=0)
"""The source's draw: some seconds."""
SHORT = replace(FULL, every=1, betas=(0.5,), thin_betas=(), breaks=(), comparisons=50, fit=FitConfig(steps=5),
                reinforce=ReinforceConfig(iterations=3), ppo=replace(FULL.ppo, iterations=2))  # fmt: skip
"""Two arms."""
EVERY_ARM = replace(
    SHORT, betas=(0.0, 0.5), thin_betas=FULL.thin_betas, breaks=FULL.breaks, draws=2,
    ascent=replace(FULL.ascent, iterations=4),
)  # fmt: skip
"""All eleven, and two draws."""
