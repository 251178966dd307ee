"""How far sampling from tiny-gpt-chat is from its floor: its matrix products, and nothing else.

The floor multiplies the same weights, in the order of the network, with inputs of the same shapes: the prompts at once,
then one token of every response a step. Beside it stand the two products of attention, a query a step over keys that
grow, which memory bounds more than arithmetic. Floor and sampling alternate on one thread; shares are medians of
paired rounds in CPU seconds, so that a busy neighbour slows both. No response ends here, so that every step is one of
the whole batch.

    python benchmarks/sampling.py --batch 256 --rounds 12
"""

import argparse
import time
from dataclasses import replace
from statistics import median

import torch

from killick.models.chat import Chat, load
from killick.models.encoding import encode_prompts
from killick.models.policy import TransformerPolicy
from killick.types import Prompts
from killick.worlds.brand import chat, question
from killick.worlds.catalogue import PRODUCTS

TOKENS = 60


def prompts(model: Chat, batch: int) -> Prompts:
    """So many questions; the catalogue again from its start where it is too short."""
    asked = [chat(question(PRODUCTS[row % len(PRODUCTS)])) for row in range(batch)]
    return encode_prompts(asked, model.tokenizer.encode)


def seconds(policy: TransformerPolicy, asked: Prompts, generator: torch.Generator) -> float:
    """CPU seconds of one sampling."""
    began = time.process_time()
    policy.sample(asked, 1, generator)
    return time.process_time() - began


@torch.no_grad()
def products(layers: list[torch.nn.Linear], inputs: dict[int, torch.Tensor], *, rows: int, head: int) -> None:
    """One pass through the linear layers alone, the head last: `rows` tokens, of which `head` reach the head."""
    for layer in layers:
        torch.nn.functional.linear(inputs[layer.in_features][: head if layer is layers[-1] else rows], layer.weight)


def floor(model: Chat, asked: Prompts) -> float:
    """CPU seconds of the products of one whole sampling."""
    batch, length = asked[0].shape
    layers = [each for each in model.network.blocks.modules() if isinstance(each, torch.nn.Linear)] + [model.head]
    inputs = {width: torch.randn(batch * length, width) for width in {layer.in_features for layer in layers}}
    began = time.process_time()
    products(layers, inputs, rows=batch * length, head=batch)
    for _ in range(TOKENS - 1):
        products(layers, inputs, rows=batch, head=batch)
    return time.process_time() - began


@torch.no_grad()
def attention(model: Chat, asked: Prompts) -> float:
    """CPU seconds of the products of attention in one whole sampling, keys and values packed densely."""
    shape, (batch, length) = model.network.config, asked[0].shape
    rows, width = batch * shape.heads, shape.hidden // shape.heads
    spent = 0.0
    for new, seen in ((length, length), *((1, length + step) for step in range(1, TOKENS))):
        queries, keys, weights = (
            torch.randn(rows, new, width),
            torch.randn(rows, seen, width),
            torch.rand(rows, new, seen),
        )
        began = time.process_time()
        for _ in range(shape.layers):
            torch.bmm(queries, keys.transpose(1, 2))
            torch.bmm(weights, keys)
        spent += time.process_time() - began
    return spent


def work(model: Chat, asked: Prompts) -> float:
    """Their floating-point operations: two a weight and token."""
    batch, length = asked[0].shape
    inside = sum(each.weight.numel() for each in model.network.blocks.modules() if isinstance(each, torch.nn.Linear))
    return 2.0 * batch * (inside * (length + TOKENS - 1) + model.head.weight.numel() * TOKENS)


def main() -> None:
    """Alternate, and print medians."""
    parser = argparse.ArgumentParser(description="Time sampling from tiny-gpt-chat against its matrix products.")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=12)
    given = parser.parse_args()
    torch.set_num_threads(1)
    model = load("tiny-gpt-chat")[0].requires_grad_(False)
    asked, draws = prompts(model, given.batch), torch.Generator().manual_seed(0)
    policy = model.policy(temperature=0.8, time=TOKENS)
    endless = TransformerPolicy(model.network, replace(policy.vocabulary, eos=None), 0.8)
    rounds = range(given.rounds + 1)  # the first warms up
    parts = [(floor(model, asked), attention(model, asked), seconds(endless, asked, draws)) for _ in rounds][1:]
    layers, attended, whole = (median(column) for column in zip(*parts, strict=True))
    tokens, total = given.batch * TOKENS, work(model, asked) / 1e9
    print(f"linear layers: {total:.1f} GFLOP, {layers:.3f} CPU s, {total / layers:.0f} GFLOP/s")
    print(f"attention's products: {attended:.3f} CPU s")
    print(f"sampling: {whole:.3f} CPU s, {tokens / whole:.0f} tokens a CPU second")
    for name, shares in (
        ("linear layers", [a / c for a, _, c in parts]),
        ("all products", [(a + b) / c for a, b, c in parts]),
    ):
        print(f"share of the floor, {name}: {median(shares):.0%} (best round {max(shares):.0%})")


if __name__ == "__main__":
    main()
