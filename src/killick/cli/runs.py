"""`killick run`, `report`, `compare`, `cache` and `list`: everything about run folders."""

import gc
import json
import os
import resource
import shlex
import sys
import time
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from killick.flags import nearest, parse, taken
from killick.recipes import RECIPES


def show_list(given: Sequence[str] = ()) -> None:
    """`killick list`: recipes with their questions, then past runs."""
    if given:
        raise ValueError(f"killick list takes nothing; {given[0]!r} is too much.")
    for name, question in RECIPES.items():
        print(f"{name:<12} {question}")
    runs = sorted(Path("runs").glob("*/*/config.json"))
    print(f"\n{len(runs)} runs in ./runs" + (":" if runs else "; start with: killick run arithmetic"))
    for path in runs:
        print(f"  {path.parent}")


def run(given: list[str]) -> None:
    """`killick run RECIPE`: validate, enter a folder, run the cells, judge the claims, draw the report."""
    if not given or given[0] in ("-h", "--help"):
        print("usage: killick run RECIPE [options]\n")
        show_list()
        return
    name = given[0]
    if name not in RECIPES:
        raise ValueError(f"There is no recipe {name!r}{nearest(name, list(RECIPES))}; there are {', '.join(RECIPES)}.")
    with uncollected():
        import torch

        from killick.recipes import load
        from killick.recipes.settings import find_device
        from killick.rundir.folder import RunFolder

        torch.set_num_threads(1)
        recipe = load(name)
        options = parse(name, recipe, given=given[1:])
    options.config.validate()
    config = replace(options.config, device=find_device(options.config.device))
    with closing(RunFolder(options.out, name, asdict(config))) as folder:
        print(f"{RECIPES[name]}\nRun folder: {folder.path}", flush=True)
        if folder.finished:
            print("This run is finished; it is drawn again.")
        else:
            again = f"killick run {shlex.join(word for word in given if word != '--open')}"
            again += "" if options.out else f" --out {shlex.quote(str(folder.path))}"
            work(recipe, config, folder=folder, name=name, again=again, track=options.track)
        claims = finish(folder.path, show=options.open)
    if options.strict and any(claim["holds"] is False for claim in claims):
        sys.exit(1)


@contextmanager
def uncollected() -> Iterator[None]:
    """What is made inside, imports above all, stays to the end: no collection, in no forked cell, goes through it.

    The few that fall into the imports of one run else take a tenth of the shortest recipe's CPU seconds.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def work(
    recipe: ModuleType, config: Any, *, folder: Any, name: str, again: str, track: str | None, cost: str | None = None
) -> None:
    """Run all cells of a folder that is not finished, then write what was found and which claims hold."""
    from killick.console import console
    from killick.recipes.pool import run_cells

    cells = recipe.cells(config)
    workers = config.workers or os.cpu_count() or 1
    if folder.resumed:
        print("Going on with the run in this folder.")
    cost = cost or f"about {recipe.seconds(config):.0f} CPU seconds"
    print(f"{len(cells)} cells on {min(workers, len(cells))} processes; {cost}.", flush=True)
    began = time.monotonic()
    with ExitStack() as stack:
        if track:
            from killick.report.track import tracker

            mirror = stack.enter_context(closing(tracker(track, folder.path)))
        said = stack.enter_context(console({cell.name: cell.steps for cell in cells}))
        events = run_cells(name, config, cells=cells, folder=folder.path, workers=workers, lock=folder.lock.descriptor)
        stack.callback(folder.merge)
        stack.callback(events.close)
        try:
            for cell, event in events:
                if event is None:
                    continue
                if isinstance(event, dict):
                    said.row(cell.name, event)
                    if track:
                        mirror.log(event)
                else:
                    said.note(cell.name, event.text)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(f"Every cell is put down in {folder.path}. To go on: {again}") from stop
        except ArithmeticError as error:
            raise ArithmeticError(f"{error} What came before is in {folder.path}.") from error
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime + time.process_time()
    spent = {"cpu_s": round(cpu, 2), "wall_s": round(time.monotonic() - began, 2)}
    folder.finish(results(recipe, config, rows=folder.rows(), found=folder.found()) | spent)


def results(recipe: ModuleType, config: Any, *, rows: list[dict[str, Any]], found: dict[str, Any]) -> dict[str, Any]:
    """What a run came to: its claims and tables, and a question and a verdict where the recipe has its own."""
    own = {"question": recipe.QUESTION} if hasattr(recipe, "QUESTION") else {}
    own |= {"verdict": recipe.verdict(config, rows)} if hasattr(recipe, "verdict") else {}
    return {
        "recipe": recipe.__name__.split(".")[-2],
        **own,
        "seeds": list(config.seeds),
        "claims": recipe.claims(rows, found) if hasattr(recipe, "claims") else [],
        "tables": [asdict(table) for table in recipe.tables(rows, found)] if hasattr(recipe, "tables") else [],
    }


def finish(folder: Path, *, show: bool) -> list[dict[str, Any]]:
    """Draw a folder, and say in a few lines what is in it; gives the claims that were judged."""
    with uncollected():
        from killick.console import claims_table, table_lines, verdicts
        from killick.report.drawing import draw
        from killick.rundir.ledger import read_rows

    recipe = json.loads((folder / "config.json").read_text(encoding="utf-8"))["recipe"]
    problems = draw(folder, question=RECIPES.get(recipe, ""))
    results = folder / "results.json"
    found = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    claims: list[dict[str, Any]] = found.get("claims", [])
    print()
    if claims:
        print("\n".join(claims_table(claims)) + "\n")
    for table in found.get("tables", []):
        print("\n".join(table_lines(table)) + "\n")
    print("\n".join(verdicts(read_rows(folder / "metrics.jsonl"))))
    if "verdict" in found:
        print(found["verdict"])
    for problem in problems:
        print(problem)
    print("Proxy is what the optimiser saw, gold what people want, KL how far the policy went from where it began.")
    failed = sum(claim["holds"] is False for claim in claims)
    judged = sum(claim["holds"] is not None for claim in claims)
    verdict = f"{judged - failed} of {judged} claims hold; the report is" if judged else "The report is"
    print(f"{verdict} {folder / 'report.html'}.")
    if show:
        webbrowser.open((folder / "report.html").resolve().as_uri())
    return claims


def report(given: list[str]) -> None:
    """`killick report DIR [--open]`: redraw everything from the folder alone."""
    folders = [word for word in given if not word.startswith("-")]
    unknown = [word for word in given if word.startswith("-") and word != "--open"]
    if unknown or len(folders) != 1:
        raise ValueError("killick report takes one run folder, and --open to show it in the browser.")
    folder, show = known(folders[0]), "--open" in given
    recipe = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("recipe")
    if recipe == "exam":
        from killick.cli.reward_exam import tell

        tell(folder, show=show)
        return
    if recipe == "best-of":
        raise ValueError(
            f"{folder} is of killick best-of, which leaves a picture (best_of.png), curve.csv and winners.jsonl and no "
            "report; the same best-of command with --out draws them again from what is there."
        )
    finish(folder, show=show)
    if recipe == "align":
        from killick.cli.align_people import told_again

        told_again(folder)


def compare(given: list[str]) -> None:
    """`killick compare RUN RUN [--out DIR]`: lay two ledgers over each other."""
    from killick.report.compare import compare as lay

    words, out = taken(given, "--out", otherwise="compare")
    if len(words) != 2 or any(word.startswith("-") for word in words):
        raise ValueError("killick compare takes two run folders, and --out DIR for the pictures.")
    print(lay(known(words[0]), known(words[1]), out=Path(out)))


def cache(given: list[str]) -> None:
    """`killick cache [clear]`: list the stages that are kept, or remove them."""
    from killick.rundir.cache import cache_root, clear, entries

    if given not in ([], ["clear"]):
        raise ValueError(f"killick cache lists the stages, killick cache clear removes them; {given[0]!r} is neither.")
    found = entries()
    for name, size in found:
        print(f"{size / 1e6:8.2f} MB  {name}")
    print(f"{len(found)} stages in {cache_root()}" + (", removed." if given else "."))
    if given:
        clear()


def known(name: str) -> Path:
    """A run folder that is there.

    Raises:
        ValueError: where it is not.
    """
    folder = Path(name)
    if not (folder / "config.json").exists():
        raise ValueError(f"{name} is no run folder: it has no config.json; killick list shows the runs.")
    return folder
