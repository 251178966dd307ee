"""Many annotators at once over HTTP, against a server in a process of its own: nothing lost, nothing twice."""

import importlib.util
import json
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "labelling.py"


SPUN = 0.07
"""CPU seconds that `spin` took on the core for which the bound was set; it can be half as quick an hour later."""


def spin() -> float:
    """CPU seconds of a little JSON: how quick this core is just now."""
    began = time.process_time()
    for _ in range(3000):
        json.loads(json.dumps({"a": list(range(100)), "b": "x" * 100}))
    return time.process_time() - began


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The benchmark: it lies beside the tests, not among them."""
    spec = importlib.util.spec_from_file_location("benchmark_of_labelling", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def test_twenty_annotators_at_once_lose_nothing_and_count_nothing_twice(bench: ModuleType, tmp_path: Path) -> None:
    """Every fifth answer is sent twice. A core of its own must carry 150 labels a second, whoever shares this machine:
    6.7 ms of CPU a request (longer where this core is slower), without the two seconds in which a server starts."""
    before = spin()
    idle = bench.press(str(tmp_path / "idle.db"), clients=1, each=2)
    load = bench.press(str(tmp_path / "labels.db"), clients=20, each=20, twice=5)
    assert load.wrong == []
    assert (load.labels, load.stored, load.sent) == (400, 400, 480)
    slower = max(1.0, (before + spin()) / 2 / SPUN)
    assert 1000 * (load.cpu - idle.cpu) / load.sent < slower * 1000 / 150


@pytest.mark.slow
def test_fifty_annotators_with_a_hundred_labels_each(bench: ModuleType, tmp_path: Path) -> None:
    load = bench.press(str(tmp_path / "labels.db"), clients=50, each=100, twice=5)
    assert load.wrong == []
    assert (load.labels, load.stored, load.sent) == (5000, 5000, 6000)


@pytest.mark.slow
def test_twenty_annotators_make_150_labels_a_second(bench: ModuleType, tmp_path: Path) -> None:
    """On two cores with nothing else to do: 95 of 100 answers are on the disk, and the next card here, in 100 ms."""
    load = bench.press(str(tmp_path / "labels.db"), clients=20, each=150, rate=160)
    assert load.wrong == []
    assert load.labels / load.seconds >= 150
    assert load.percentile(0.95) < 100
