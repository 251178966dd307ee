"""CPU seconds and peak memory of whole recipes: what comes before the arms, then each arm at the first seed.

python benchmarks/arms.py arithmetic emphasis
"""

import argparse
import os
import resource
import tempfile
import time

import torch

from killick.recipes import RECIPES, load


def main() -> None:
    """Run the named recipes at their defaults on the CPU, in this process."""
    parser = argparse.ArgumentParser(description="Time whole recipe arms.")
    parser.add_argument("recipes", nargs="*", help=f"any of {', '.join(RECIPES)}; all by default")
    names = parser.parse_args().recipes or list(RECIPES)
    torch.set_num_threads(1)
    for name in names:
        recipe = load(name)
        config = recipe.Config(device="cpu")
        with tempfile.TemporaryDirectory() as empty:
            os.environ["KILLICK_CACHE"] = empty
            began = time.process_time()
            preparing = recipe.prepare(config, config.seeds[0])
            try:
                while True:
                    next(preparing)
            except StopIteration as end:
                prepared = end.value[0]
            print(f"{name:>12}  {'before the arms':<24} {time.process_time() - began:7.1f} CPU s", flush=True)
        for cell in (cell for cell in recipe.cells(config) if cell.seed == config.seeds[0]):
            began = time.process_time()
            rows = [seen.row for seen in recipe.begin(config, cell, prepared=prepared)[1]]
            spent = time.process_time() - began
            print(f"{name:>12}  {cell.arm:<24} {spent:7.1f} CPU s  {len(rows):4} rows, gold {rows[-1]['gold']:+.3f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
