"""The loss of both reference models: by a distribution that is written out, and by two sums."""

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.loss import LossHooks


class PlainLoss(LossHooks):
    """The smoothed target is a distribution over the vocabulary."""

    def counted(self, target: Tensor) -> Tensor:
        """Return (B, T) for targets (B, T): every one that is no padding."""
        return target != self.loss_pad()

    def output_logarithms(self, output: Tensor) -> Tensor:
        """Return the logarithms of the probabilities, (B, T, V)."""
        if self.choices.loss_input == "logits":
            return torch.log_softmax(output, dim=-1)
        return output.log() if self.choices.loss_input == "probabilities" else output

    def target_losses(self, logs: Tensor, target: Tensor) -> Tensor:
        """Return the cross-entropy (B, T) of the smoothed targets and logarithms (B, T, V)."""
        vocabulary = logs.shape[-1]
        wanted = self.sharing_words(target, vocabulary).to(logs.dtype) * self.share(vocabulary)
        kept = torch.full_like(target, 1, dtype=logs.dtype) * self.confidence(vocabulary)
        wanted = wanted.scatter_add(-1, target[..., None], kept[..., None])
        return -(wanted * logs).sum(dim=-1)

    def sum_losses(self, losses: Tensor, keep: Tensor) -> Tensor:
        """Return the sum of the losses (B, T) that count."""
        return losses.masked_fill(~keep, 0.0).sum()


class FusedLoss(LossHooks):
    """The logarithm of the target and the sum over the smoothed words are added."""

    def counted(self, target: Tensor) -> Tensor:
        """Return (B, T) for targets (B, T): every one that is no padding."""
        return target.eq(self.loss_pad()).logical_not()

    def output_logarithms(self, output: Tensor) -> Tensor:
        """Return the logarithms of the probabilities, (B, T, V)."""
        match self.choices.loss_input:
            case "logits":
                return output - torch.logsumexp(output, dim=-1, keepdim=True)
            case "probabilities":
                return torch.log(output)
            case _:
                return output

    def target_losses(self, logs: Tensor, target: Tensor) -> Tensor:
        """Return the cross-entropy (B, T) of the smoothed targets and logarithms (B, T, V)."""
        vocabulary = logs.shape[-1]
        own = logs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
        words = self.sharing_words(target, vocabulary)
        others = logs.where(words, torch.zeros_like(logs)).sum(dim=-1)
        return own.mul(-self.confidence(vocabulary)) - others.mul(self.share(vocabulary))

    def sum_losses(self, losses: Tensor, keep: Tensor) -> Tensor:
        """Return the sum of the losses (B, T) that count."""
        return torch.where(keep, losses, torch.zeros_like(losses)).sum()
