"""A transformer that only reads: the state after each response token, for whoever puts a head on it."""

from copy import deepcopy

from jaxtyping import Float
from torch import Tensor, nn

from killick.models.decoding import sequence
from killick.models.transformer import Transformer
from killick.types import Rollout


class Reader(nn.Module):
    """The body of another network, copied, without its head; it shares no tensor with it (O-41).

    Args:
        network: a policy's; its context must hold prompt and whole response.
    """

    def __init__(self, network: Transformer):
        super().__init__()
        self.network = deepcopy(network).requires_grad_()
        del self.network.head

    def forward(self, rollout: Rollout) -> Float[Tensor, "batch time hidden"]:
        """The state after each response token, having read it; what stands on padding means nothing."""
        return self.network(*sequence(rollout, after=True)).view(*rollout.responses.shape, -1)
