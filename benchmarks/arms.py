"""CPU seconds and peak memory of whole recipe arms: what comes before the first row, then each arm.

python benchmarks/arms.py arithmetic emphasis
"""

import argparse
import resource
import time

import torch

from killick.recipes import RECIPES, load
from killick.recipes.ledger import Row


def main() -> None:
    """Run the named recipes at their defaults on the CPU."""
    parser = argparse.ArgumentParser(description="Time whole recipe arms.")
    parser.add_argument("recipes", nargs="*", help=f"any of {', '.join(RECIPES)}; all by default")
    names = parser.parse_args().recipes or list(RECIPES)
    torch.set_num_threads(1)
    for name in names:
        recipe = load(name)
        began, arm, rows = time.process_time(), "before the first row", 0
        last: Row = {}
        for event in recipe.run(recipe.Config(device="cpu")):
            if not isinstance(event, dict):
                continue
            if event["arm"] != arm:
                print(f"{name:>12}  {arm:<24} {time.process_time() - began:7.1f} CPU s  {rows:4} rows", flush=True)
                began, arm, rows = time.process_time(), event["arm"], 0
            rows, last = rows + 1, event
        print(
            f"{name:>12}  {arm:<24} {time.process_time() - began:7.1f} CPU s  {rows:4} rows, gold {last['gold']:+.3f}"
        )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
