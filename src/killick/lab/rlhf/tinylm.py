"""A language model small enough to read: additions in, one digit at a time out.

`TinyLM.sample` writes responses, `TinyLM.logprobs` says how likely each of their tokens was. `load_sft` teaches one to
add by imitation and keeps it on disk. Given to be read and changed: after a change here the model is taught anew.
"""

import hashlib
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from killick import Adam, Arithmetic, Rollout
from killick.recipes.arithmetic.recipe import Config
from killick.rundir.seeds import stage_generator
from killick.worlds.arithmetic import EOS, PAD

HERE = Path(__file__).parent
SFT = Config().sft
RIGHT = Config().sft_accuracy
"""Imitation stops when this share of sampled answers is right."""
world = Arithmetic()
"""Prompts such as `37+48=` (six tokens), right answers to imitate, and whether an answer is right."""


class Block(nn.Module):
    """One layer: every position looks back at the ones before it, then thinks by itself; both are added on."""

    def __init__(self, hidden: int, heads: int, feed_forward: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.think = nn.Sequential(nn.Linear(hidden, feed_forward), nn.ReLU(), nn.Linear(feed_forward, hidden))

    def forward(self, x: Tensor) -> Tensor:
        """[batch, length, hidden] in and out."""
        batch, length, hidden = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, hidden // self.heads)
        queries, keys, values = qkv.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, hidden))
        return x + self.think(self.norm2(x))


class TinyLM(nn.Module):
    """A causal transformer of about 100,000 weights. `<pad>` is read but has no output, so it is never written."""

    def __init__(self, seed: int, hidden: int = 64, layers: int = 2, heads: int = 4, feed_forward: int = 256):
        super().__init__()
        self.vocabulary, self.temperature = world.vocabulary, 1.0
        with torch.random.fork_rng(devices=[]):  # torch fills new layers from its global stream: lent, and given back
            torch.manual_seed(seed)
            self.embed, self.place = nn.Embedding(PAD + 1, hidden), nn.Embedding(6 + world.vocabulary.time, hidden)
            self.blocks = nn.Sequential(*(Block(hidden, heads, feed_forward) for _ in range(layers)))
            self.head = nn.Linear(hidden, PAD)

    def forward(self, ids: Tensor) -> Tensor:
        """[batch, length] token ids -> [batch, length, outputs]: what each position says about the token after it."""
        x = self.embed(ids) + self.place(torch.arange(ids.shape[1]))
        return self.head(self.blocks(x))

    def read(self, rollout: Rollout) -> Tensor:
        """[batch, time, outputs] at the positions before each response token; the last token has none after it."""
        ids = torch.cat((rollout.prompts, rollout.responses), 1)[:, :-1]
        return self(ids)[:, rollout.prompts.shape[1] - 1 :]

    def logprobs(self, rollout: Rollout) -> tuple[Tensor, Tensor]:
        """Nats: [batch, time] of the tokens that were written (0 on padding), and [batch, time, vocab] of all tokens."""
        full = (self.read(rollout) / self.temperature).log_softmax(-1)
        written = rollout.responses.where(rollout.mask, 0)
        return full.gather(-1, written[..., None])[..., 0].where(rollout.mask, 0.0), full

    @torch.no_grad()
    def sample(self, prompts: tuple[Tensor, Tensor], n: int, generator: torch.Generator) -> Rollout:
        """Write `n` responses to each prompt until `<eos>` or until the budget of four tokens is spent."""
        ids, prompt_mask = (x.repeat_interleave(n, 0) for x in prompts)
        alive, seen, masks = torch.ones(len(ids), dtype=torch.bool), ids, []
        for _ in range(self.vocabulary.time):
            chances = (self(seen)[:, -1] / self.temperature).softmax(-1)
            token = torch.multinomial(chances, 1, generator=generator)[:, 0].where(alive, PAD)
            seen = torch.cat((seen, token[:, None]), 1)
            masks.append(alive)
            alive = alive & (token != EOS)
        responses, mask = seen[:, ids.shape[1] :], torch.stack(masks, 1)
        return Rollout(ids, prompt_mask, responses, mask, torch.zeros(responses.shape), ~alive)


def imitation_loss(policy: TinyLM, demonstrations: Rollout) -> Tensor:
    """Mean over real tokens of -log probability, nats per token: supervised fine-tuning, and the ptx term of PPO."""
    return -policy.logprobs(demonstrations)[0].sum() / demonstrations.mask.sum()


def load_sft(seed: int = 0) -> TinyLM:
    """A model that gets about half of its additions right: from `sft-*.safetensors`, or taught now and kept there.

    The file's name holds a hash of this file, the seed and the settings, so a change here is never met by an old model.
    """
    policy = TinyLM(seed)
    word = hashlib.sha256(f"{seed} {SFT} {RIGHT}".encode() + Path(__file__).read_bytes()).hexdigest()[:8]
    path = HERE / f"sft-{word}.safetensors"
    if path.exists():
        policy.load_state_dict(load_file(path))
    else:
        teach(policy, stage_generator(seed, "sft"))
        save_file(policy.state_dict(), path)
    return policy


def teach(policy: TinyLM, generator: torch.Generator) -> None:
    """Imitate right answers until enough of the model's own are right; prints how it goes."""
    optimiser, right = Adam(policy.parameters(), SFT.learning_rate), 0.0
    for step in range(SFT.steps):
        loss = imitation_loss(policy, world.demonstrations(SFT.batch, generator))
        optimiser.zero_grad()
        loss.backward()
        optimiser.learning_rate = SFT.learning_rate * min(1.0, (step + 1) / max(1, SFT.warmup))
        optimiser.step()
        if step % (25 if right < 0.2 * RIGHT else 5) == 0:  # accuracy climbs steeply once it has begun to
            right = accuracy(policy, generator)
            print(
                f"SFT step {step:4}: loss {float(loss.detach()):.3f} nats per token, {right:.3f} of the sampled answers right"
            )
            if right >= RIGHT:
                return
    print(f"SFT stopped after {SFT.steps} steps at {right:.3f}: less than was asked for; the exercise goes on with it.")


def accuracy(policy: TinyLM, generator: torch.Generator) -> float:
    """Share of 1,000 sampled answers that are right."""
    return float(world.correct(policy.sample(world.prompts(1000, generator), 1, generator)).float().mean())
