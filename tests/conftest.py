"""Every shape in a signature is checked while the tests run, and one thread is used, as in every killick process."""

import os
from pathlib import Path

import pytest
import torch
from jaxtyping import install_import_hook

install_import_hook("killick", "shapecheck.check")
torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def stages(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads or writes the cache of whoever runs it; what one test prepares, the next one finds."""
    pytest.MonkeyPatch().setenv("KILLICK_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The folder of a real language model, which tests read and leave as it is."""
    named = os.environ.get("KILLICK_TEST_SMOLLM2")
    if not named:
        pytest.skip("needs SmolLM2: killick models get smollm2, then name its folder in KILLICK_TEST_SMOLLM2")
    folder = Path(named)
    if not (folder / "config.json").is_file():
        pytest.fail(f"KILLICK_TEST_SMOLLM2 names {folder}, which holds no model")
    return folder
