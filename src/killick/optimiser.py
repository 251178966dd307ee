"""Adam and AdamW over torch's fused kernels, and plain gradient descent, without the rest of `torch.optim`.

The first `torch.optim` optimiser of a process imports torch's compiler just to switch it off: 4 to 6 CPU seconds, more
than importing torch itself and as much as a third of a whole arm, in every worker. Nothing here is compiled. The
arithmetic is torch's own; a test holds it to `torch.optim.Adam` bit for bit.
"""

from collections.abc import Iterable
from typing import Any

import torch


def norm_of(parameters: Iterable[torch.nn.Parameter]) -> torch.Tensor:
    """The length of all gradients together, 0 where there is none: `torch.nn.utils.get_total_norm` in three calls."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if len(gradients) == 1:
        return torch.linalg.vector_norm(gradients[0])
    return torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients))) if gradients else torch.zeros(())


def clip_(parameters: Iterable[torch.nn.Parameter], most: float) -> torch.Tensor:
    """Shorten all gradients by one factor to a length of at most `most`, and give the length that they had.

    The arithmetic of `torch.nn.utils.clip_grad_norm_`, which takes four times as long to sort a few tensors by device.

    Source: Pascanu et al. 2013, arXiv 1211.5063.
    """
    moved = list(parameters)
    norm = norm_of(moved)
    gradients = [parameter.grad for parameter in moved if parameter.grad is not None]
    if gradients:
        torch._foreach_mul_(gradients, (most / (norm + 1e-6)).clamp(max=1.0))
    return norm


class Adam:
    """Adam with torch's defaults (betas 0.9 and 0.999, eps 1e-8, no weight decay); with weight decay it is AdamW.

    Args:
        parameters: moved in place; those without a gradient stay.
        learning_rate: may be set anew before any step.
        betas: how much of the first and the second moment stays at each step.
        weight_decay: share of a weight, times the rate, by which each step shrinks it, whatever its gradient.

    Source: Kingma and Ba 2015, arXiv 1412.6980; the decay: Loshchilov and Hutter 2019, arXiv 1711.05101.
    """

    def __init__(
        self,
        parameters: Iterable[torch.nn.Parameter],
        learning_rate: float,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
    ):
        self.parameters, self.learning_rate = list(parameters), learning_rate
        self.betas, self.weight_decay = betas, weight_decay
        self.first = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self.second = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self.steps = [torch.zeros((), device=p.device) for p in self.parameters]

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        rows = [(p, p.grad, m, v, s) for p, m, v, s in self.moments() if p.grad is not None]
        if not rows:
            return
        parameters, gradients, first, second, steps = map(list, zip(*rows, strict=True))
        torch._foreach_add_(steps, 1)
        kernel = torch._fused_adamw_ if self.weight_decay else torch._fused_adam_
        kernel(
            parameters, gradients, first, second, [], steps, lr=self.learning_rate, beta1=self.betas[0],
            beta2=self.betas[1], weight_decay=self.weight_decay, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip

    def moments(self) -> Iterable[tuple[torch.nn.Parameter, torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Each parameter with its first and second moment and its number of steps."""
        return zip(self.parameters, self.first, self.second, self.steps, strict=True)

    def state_dict(self) -> dict[str, Any]:
        """Moments, step counts and rate, as tensors and plain types."""
        lists = {"first": self.first, "second": self.second, "steps": self.steps}
        return {name: [x.clone() for x in tensors] for name, tensors in lists.items()} | {"rate": self.learning_rate}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave; a missing piece is a KeyError, another shape a ValueError."""
        for name in ("first", "second", "steps"):
            for mine, saved in zip(getattr(self, name), state[name], strict=True):
                if mine.shape != saved.shape:
                    raise ValueError(f"The optimiser's state has shape {tuple(saved.shape)}, not {tuple(mine.shape)}.")
                mine.copy_(saved)
        self.learning_rate = state["rate"]


class SGD:
    """Gradient descent without momentum: each parameter moves by rate x gradient, so a small gradient is a small step.

    Args:
        parameters: moved in place; those without a gradient stay.
        learning_rate: may be set anew before any step.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], learning_rate: float):
        self.parameters, self.learning_rate = list(parameters), learning_rate

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.add_(parameter.grad, alpha=-self.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        """The rate: it remembers nothing else."""
        return {"rate": self.learning_rate}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave; a missing rate is a KeyError."""
        self.learning_rate = state["rate"]
