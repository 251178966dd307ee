"""Every shape in a signature is checked while the tests run, and one thread is used, as in every killick process."""

import pytest
import torch
from jaxtyping import install_import_hook

install_import_hook("killick", "shapecheck.check")
torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def stages(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads or writes the cache of whoever runs it; what one test prepares, the next one finds."""
    pytest.MonkeyPatch().setenv("KILLICK_CACHE", str(tmp_path_factory.mktemp("cache")))
