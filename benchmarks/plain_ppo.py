"""The loop to race: PPO as one would write it in an afternoon, one file, no killick.

A key-value cache, the sampler's own log-probs as the old ones, k1 in the reward, GAE, a separate critic, fused Adam.
It logs nothing but the sampled KL. Workloads A and B are those of `race.py`, which alternates this loop with killick's.
"""

import copy

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

VOCAB, DIM, HEADS, LAYERS, FEEDFORWARD = 32, 64, 4, 2, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(DIM, eps=1e-5), nn.RMSNorm(DIM, eps=1e-5)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.gate, self.up = nn.Linear(DIM, FEEDFORWARD, bias=False), nn.Linear(DIM, FEEDFORWARD, bias=False)
        self.down = nn.Linear(FEEDFORWARD, DIM, bias=False)

    def forward(self, x, cos, sin, past=None):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        q, k = (
            z * cos + torch.cat((-z[..., DIM // HEADS // 2 :], z[..., : DIM // HEADS // 2]), -1) * sin for z in (q, k)
        )
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, DIM))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h)), (k, v)


class Net(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.embed, self.norm = nn.Embedding(VOCAB, DIM), nn.RMSNorm(DIM, eps=1e-5)
        self.blocks, self.head = nn.ModuleList(Block() for _ in range(LAYERS)), nn.Linear(DIM, outputs, bias=False)
        angle = torch.outer(torch.arange(64.0), 10000 ** (-torch.arange(0, DIM // HEADS, 2) / (DIM // HEADS))).repeat(
            1, 2
        )
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, ids, past=None, start=0):
        x, new = self.embed(ids), []
        cos, sin = self.cos[start : start + ids.shape[1]], self.sin[start : start + ids.shape[1]]
        for i, block in enumerate(self.blocks):
            x, cache = block(x, cos, sin, past[i] if past else None)
            new.append(cache)
        return self.head(self.norm(x)), new


@torch.no_grad()
def sample(policy, prompts, steps, generator):
    ids, past, logprobs, start = prompts, None, [], 0
    out = [prompts]
    for _ in range(steps):
        logits, past = policy(ids, past, start)
        start += ids.shape[1]
        dist = logits[:, -1].log_softmax(-1)
        ids = torch.multinomial(dist.exp(), 1, generator=generator)
        logprobs.append(dist.gather(1, ids))
        out.append(ids)
    return torch.cat(out, 1), torch.cat(logprobs, 1)


def token_logprobs(model, ids, prompt):
    logits = model(ids[:, :-1])[0][:, prompt - 1 :]
    return logits.log_softmax(-1).gather(2, ids[:, prompt:, None])[..., 0]


def train(batch, prompt, steps, minibatches, epochs=4, beta=0.05, lr=3e-4, seed=0):
    """Yield the sampled KL of each rollout, for ever."""
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    policy, value, reward = Net(VOCAB), Net(1), Net(1).requires_grad_(False)
    reference = copy.deepcopy(policy).requires_grad_(False)
    optimiser = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr, fused=True)
    while True:
        prompts = torch.randint(3, VOCAB, (batch, prompt), generator=g)
        ids, old = sample(policy, prompts, steps, g)
        with torch.no_grad():
            ratio = old - token_logprobs(reference, ids, prompt)
            rewards = -beta * ratio
            rewards[:, -1] += reward(ids)[0][:, -1, 0]
            values = value(ids[:, :-1])[0][:, prompt - 1 :, 0]
            advantages, last = torch.zeros_like(rewards), torch.zeros(batch)
            for t in reversed(range(steps)):
                following = values[:, t + 1] if t + 1 < steps else 0.0
                last = rewards[:, t] + following - values[:, t] + 0.95 * last
                advantages[:, t] = last
            returns = advantages + values
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        for _ in range(epochs):
            for rows in torch.randperm(batch, generator=g).chunk(minibatches):
                r = (token_logprobs(policy, ids[rows], prompt) - old[rows]).exp()
                a = advantages[rows]
                loss = torch.max(-a * r, -a * r.clamp(0.8, 1.2)).mean()
                v = value(ids[rows][:, :-1])[0][:, prompt - 1 :, 0]
                loss = loss + 0.5 * 0.5 * (v - returns[rows]).square().mean()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_([*policy.parameters(), *value.parameters()], 1.0)
                optimiser.step()
        yield ratio.sum(1).mean().item()


if __name__ == "__main__":
    import time

    torch.set_num_threads(1)
    for name, settings in {"A": (256, 4, 12, 4), "B": (64, 6, 4, 1)}.items():
        loop = train(*settings)
        next(loop), next(loop)
        began = time.process_time()
        for _ in range(8):
            next(loop)
        print(name, round(settings[0] * 8 / (time.process_time() - began), 1), "samples per CPU second")
