"""From preferences to best-of-n, against the practice API: start `killick serve`, then run this.

A chat model answered 360 prompts four times, and a reviewer said which answer is best and which is worst. A linear
reward model learns from those pairs what good copy is, chooses among new answers about products whose names it has
never seen, and the reviewer counts what is left to correct.

    python examples/practice.py [http://127.0.0.1:8000 [how many products to choose about, all 72 if not said]]
"""

import sys

import requests
import torch
from torch.nn.functional import logsigmoid

from killick import load

HOST = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
PRODUCTS = int(sys.argv[2]) if len(sys.argv) > 2 else 72
HELD_OUT = ("Kestrel", "Lark", "River", "Sierra", "Summit", "Willow")

torch.set_num_threads(1)  # so small a model gains nothing from more, and loses much where others compute too
torch.manual_seed(0)
lm, tok = load("tiny-gpt-chat")
end, pad = tok.token_id("<end>"), tok.token_id("<pad>")


def product_of(prompt):
    return prompt.removeprefix("Describe the ").removesuffix(" .")


def prompt_ids(prompt):
    return tok.encode(f"<user> {prompt} <assistant>")


@torch.no_grad()
def features(prompt, answer_ids):
    """What the model's last layer holds of an answer: the mean over its tokens, and the last one that is kept."""
    start = prompt_ids(prompt)
    states = lm.hidden((start + answer_ids)[:64])[0]
    return torch.cat((states[len(start) :].mean(0), states[-1]))


def count_flaws(product, texts):
    items = [{"product": product, "text": text} for text in texts]
    reply = requests.post(f"{HOST}/v1/brand-check", json={"items": items}, timeout=60)
    reply.raise_for_status()
    return [len(result["flaws"]) for result in reply.json()["results"]]


# 1. Preferences: pairs about most names to learn from, pairs about six names to be judged by.
pairs = requests.get(f"{HOST}/v1/preferences", timeout=600).json()["data"]
sides = [
    torch.stack([features(pair["prompt"], [*tok.encode(pair[side]), end]) for pair in pairs])
    for side in ("chosen", "rejected")
]
held_out = torch.tensor([product_of(pair["prompt"]).startswith(HELD_OUT) for pair in pairs])
difference = sides[0] - sides[1]

# 2. A reward model: one linear layer on the Bradley-Terry loss.
head = torch.nn.Linear(2 * lm.head.weight.shape[1], 1)
adam = torch.optim.Adam(head.parameters(), lr=1e-2)
for step in range(201):
    loss = -logsigmoid(difference[~held_out] @ head.weight[0]).mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 50 == 0:
        print(f"step {step:3}: loss {loss.item():.3f}")
right = (difference[held_out] @ head.weight[0] > 0).float().mean()
print(f"{len(pairs)} pairs; right about {right:.0%} of {int(held_out.sum())} held-out pairs")

# 3. Best of four answers about each held-out product.
kinds = sorted({product_of(pair["prompt"]).split(" ", 1)[1] for pair in pairs})
found = []
for product in [f"{name} {kind}" for kind in kinds for name in HELD_OUT][:PRODUCTS]:
    prompt = f"Describe the {product} ."
    start = prompt_ids(prompt)
    rows = lm.generate(torch.tensor([start] * 4), 60, temperature=0.8, stop_id=end)[:, len(start) :]
    answers = [[token for token in row if token != pad] for row in rows.tolist()]
    scores = torch.cat([head(features(prompt, answer)) for answer in answers])
    flaws = count_flaws(product, [tok.decode(answer) for answer in answers])
    found.append((flaws[0], flaws[int(scores.argmax())], min(flaws)))
first, chosen, best = torch.tensor(found).float().mean(0).tolist()
print(f"flaws per answer: first {first:.2f}, the reward model's best of 4 {chosen:.2f}, the reviewer's {best:.2f}")
