"""The container of the reference models: it holds parts and leaves the computation to a hook."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn


class Node(nn.Module):
    """Parameters and parts under names, and the hook that a call goes to.

    Copies and pickles carry the hooks with them, injected faults included.
    """

    how: Any  # the Hooks it was built by

    def __init__(self, how: Any, step: str, **parts: nn.Module | nn.Parameter | None) -> None:
        """Hold `parts`; a call goes to the hook of `how` that is named `step`."""
        super().__init__()
        self.how = how
        self.step = step
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        """Call the hook."""
        return getattr(self.how, self.step)(self, *inputs)

    if TYPE_CHECKING:
        encoder: "Node"
        decoder: "Node"
        generator: "Node"
        __call__: Callable[..., Tensor]

        def __getattr__(self, name: str) -> Any:
            """Return a part or a parameter; which ones there are differs between models."""
