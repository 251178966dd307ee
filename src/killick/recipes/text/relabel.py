"""Label the policy's own answers, fit the reward model anew on all labels, go on: does the hole close?"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.algorithms.ppo import PPOState
from killick.preferences.labelers import BradleyTerry
from killick.recipes.text.rewards import PROXY, Lesson, Proxy, labelled, learnt
from killick.recipes.text.speaker import Answers
from killick.rewards.fit import FitConfig
from killick.rundir.seeds import stage_generator
from killick.state import restore, snapshot
from killick.types import Comparison, Preference, Rollout

SHARE = 4
"""One in so many of the first labels is asked for again at each refit."""


class Relabelled:
    """PPO with a reward model that learns on: everything that changes, the optimiser's state among it.

    Rows are numbered through: first what the reference said, then what the policy said, in order.

    Args:
        ppo: the optimiser's state.
        proxy: whose first head is exchanged at each refit.
        said: the reference's labelled answers.
        fit: settings of each fit, which starts from zeros.
        kappa: 1 / noise of the labels.
        pairs: labels of the first fit.
    """

    PARTS = ("ppo", "features", "gold", "asked", "fresh", "chosen", "rejected", "weight", "bias")

    def __init__(self, ppo: PPOState, proxy: Proxy, said: Answers, *, fit: FitConfig, kappa: float, pairs: int):
        self.ppo, self.proxy, self.said = ppo, proxy, said
        self.fit, self.kappa, self.pairs = fit, kappa, pairs
        self.number = {prompt: place for place, prompt in enumerate(said.prompts.rows.values())}
        device, none = said.gold.device, torch.zeros(0, dtype=torch.long)
        self.features, self.gold = said.features[:0], said.gold[:0]
        self.asked, self.chosen, self.rejected = (none.to(device) for _ in range(3))
        self.fresh = 0

    @property
    def step(self) -> int:
        """Of the optimiser."""
        return self.ppo.step

    @property
    def weight(self) -> Float[Tensor, " hidden"]:
        """Of the proxy that is in use."""
        return self.proxy.heads.weight[0]

    @property
    def bias(self) -> Float[Tensor, ""]:
        """Of the proxy that is in use."""
        return self.proxy.heads.bias[0]

    def state_dict(self) -> dict[str, Any]:
        """The state as tensors and plain types."""
        return snapshot(self, self.PARTS)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave; a missing part is a KeyError."""
        self.proxy.heads = self.proxy.heads.replaced(state["weight"], state["bias"])
        restore(self, self.PARTS[:-2], saved=state)

    def take(self, rollout: Rollout, gold: Float[Tensor, " batch"]) -> None:
        """Keep what the policy said, with what a judge would see of it."""
        self.features = torch.cat((self.features, self.proxy.speaks.features(rollout)))
        self.gold = torch.cat((self.gold, gold.to(self.gold.device)))
        places = [self.number[prompt] for prompt in self.said.prompts.of(rollout)]
        self.asked = torch.cat((self.asked, self.asked.new_tensor(places)))

    def refit(self, seed: int, step: int) -> None:
        """Label answers of the policy since the last refit, each against any other answer to its prompt, and fit.

        Args:
            seed: of the labels.
            step: names the stream of this refit.
        """
        base, device = len(self.said.gold), self.said.gold.device
        generator = stage_generator(seed, f"text relabel {step}")
        gold = torch.cat((self.said.gold, self.gold))
        asked = torch.cat((torch.arange(base, device=device) // self.said.n, self.asked))
        drawn = torch.randint(self.fresh, len(self.gold), (max(1, self.pairs // SHARE),), generator=generator)
        first = base + drawn.to(device)
        others = (asked[first, None] == asked[None]) & (first[:, None] != torch.arange(len(asked), device=device))
        second = torch.multinomial(others.float().cpu(), 1, generator=generator)[:, 0].to(device)
        new = BradleyTerry(self.kappa).label(Comparison(self.said.rollout, first, second), gold, generator)
        self.chosen, self.rejected = torch.cat((self.chosen, new.chosen)), torch.cat((self.rejected, new.rejected))
        old = labelled(self.said, Lesson(PROXY, self.pairs), kappa=self.kappa, seed=seed)
        every = Preference.hard(
            self.said.rollout, torch.cat((old.chosen, self.chosen)), torch.cat((old.rejected, self.rejected))
        )
        weight, bias, _ = learnt(torch.cat((self.said.features, self.features)), every, config=self.fit, reference=base)
        self.proxy.heads, self.fresh = self.proxy.heads.replaced(weight, bias), len(self.gold)
