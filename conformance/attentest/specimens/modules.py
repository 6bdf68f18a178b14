"""The container of the specimens: it holds parts and leaves what to do with them to a seam."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

if TYPE_CHECKING:
    from attentest.specimens.seams.base import Base


class Node(nn.Module):
    """Parameters and parts under names, and the seam that a call goes to.

    Copies and pickles carry the seams with them, planted fault included.
    """

    how: Any  # the Seams it was built by

    def __init__(self, how: "Base", step: str, **parts: nn.Module | nn.Parameter | None) -> None:
        """Hold `parts`; a call is answered by the seam of `how` that is named `step`."""
        super().__init__()
        self.how = how
        self.step = step
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        """Ask the seam."""
        return getattr(self.how, self.step)(self, *inputs)

    if TYPE_CHECKING:
        encoder: "Node"
        decoder: "Node"
        generator: "Node"
        __call__: Callable[..., Tensor]

        def __getattr__(self, name: str) -> Any:
            """Return a part or a parameter; which ones there are differs between specimens."""
