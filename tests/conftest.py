"""Every shape in a signature is checked while the tests run, and one thread is used, as in every killick process."""

import torch
from jaxtyping import install_import_hook

install_import_hook("killick", "shapecheck.check")
torch.set_num_threads(1)
