"""The hooks of the masks; boolean, True = may be attended."""

from abc import abstractmethod

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.base import Base


class MaskHooks(Base):
    """Padding, causal and target mask."""

    @abstractmethod
    def padding_mask(self, tokens: Tensor, pad: int) -> Tensor:
        """Return (B, 1, 1, S) for tokens (B, S): every key that is a real token."""

    @abstractmethod
    def causal_mask(self, length: int, device: torch.device | None = None) -> Tensor:
        """Return (1, 1, T, T): every key that does not come after its query."""

    def join_masks(self, padding: Tensor, causal: Tensor) -> Tensor:
        """Return the keys that both masks keep."""
        return padding & causal

    def target_mask(self, tokens: Tensor, pad: int) -> Tensor:
        """Return (B, 1, T, T) for tokens (B, T): real keys that do not come after their query."""
        causal = self.causal_mask(tokens.shape[1], tokens.device)
        return self.join_masks(self.padding_mask(tokens, pad), causal)
