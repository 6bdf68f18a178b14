"""The hooks of the loss."""

from abc import abstractmethod

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.embedding import EmbeddingHooks
from attentest.faults.reference_models.modules import Node


class LossHooks(EmbeddingHooks):
    """Outputs are compared with targets."""

    def make_loss(self) -> Node:
        """Build the loss, which holds nothing."""
        self.check_sizes("target_vocabulary")
        self.check_smoothing()
        return Node(self, "loss")

    def check_smoothing(self) -> None:
        """Refuse a smoothing that is no share."""
        rate = self.sizes.smoothing
        if not 0 <= rate <= 1:
            raise ValueError(f"smoothing is {rate}; it must be at least 0 and at most 1.")

    def loss(self, module: Node, output: Tensor, target: Tensor) -> Tensor:
        """Compare the output (B, T, V) with the target (B, T), and return one number."""
        self.check_lengths(output, target)
        self.check_targets(target, output.shape[-1])
        output, target = self.align(output, target)
        keep = self.counted(target)
        losses = self.target_losses(self.output_logarithms(output), target)
        total = self.sum_losses(self.measured(losses, output.shape[-1]), keep)
        return self.reduced(module, total, self.normaliser(keep), keep)

    def check_lengths(self, output: Tensor, target: Tensor) -> None:
        """Refuse an output and a target of different lengths."""
        if output.shape[:-1] != target.shape:
            found, wanted = tuple(output.shape), tuple(target.shape)
            raise ValueError(f"The output has the shape {found} and the target {wanted}.")

    def check_targets(self, target: Tensor, vocabulary: int) -> None:
        """Refuse targets outside of the vocabulary."""
        self.check_ids(target, vocabulary)

    def align(self, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output and the target that belong together: both are given so."""
        return output, target

    def loss_pad(self) -> int:
        """Return the id of the targets that do not count."""
        return self.sizes.target_pad

    @abstractmethod
    def counted(self, target: Tensor) -> Tensor:
        """Return (B, T) for targets (B, T): every one that is no padding."""

    @abstractmethod
    def output_logarithms(self, output: Tensor) -> Tensor:
        """Return the logarithms of the probabilities, (B, T, V)."""

    def smoothing(self) -> float:
        """Return the mass that the target gives away."""
        return self.sizes.smoothing

    def sharing_words(self, target: Tensor, vocabulary: int) -> Tensor:
        """Return the words (B, T, V) that get a share of the smoothed mass."""
        words = torch.arange(vocabulary, device=target.device)
        if self.choices.smoothed_mass == "all-words":
            return torch.ones_like(target[..., None] == words)
        others = target[..., None] != words
        if self.choices.smoothed_mass == "other-words":
            return others
        return others & (words != self.loss_pad())

    def share(self, vocabulary: int) -> float:
        """Return the share of one of these words, for a target that is no padding."""
        fewer = {"all-words": 0, "other-words": 1, "other-real-words": 2}
        return self.smoothing() / max(vocabulary - fewer[self.choices.smoothed_mass], 1)

    def confidence(self, vocabulary: int) -> float:
        """Return the mass that the target keeps, its own share left out."""
        return 1.0 - self.smoothing()

    @abstractmethod
    def target_losses(self, logs: Tensor, target: Tensor) -> Tensor:
        """Return the cross-entropy (B, T) of the smoothed targets and logarithms (B, T, V)."""

    def entropy(self, vocabulary: int) -> float:
        """Return the entropy of a smoothed target."""
        share, rest = self.share(vocabulary), self.confidence(vocabulary)
        whole = self.choices.smoothed_mass == "all-words"
        parts = torch.full((vocabulary,), share, dtype=torch.float64)
        parts[0] = rest + (share if whole else 0.0)
        if self.choices.smoothed_mass == "other-real-words":
            parts = parts[:-1]
        return float(-torch.xlogy(parts, parts).sum())

    def measured(self, losses: Tensor, vocabulary: int) -> Tensor:
        """Subtract the entropy where a divergence is chosen."""
        divergence = self.choices.loss_measure == "divergence"
        return losses - self.entropy(vocabulary) if divergence else losses

    @abstractmethod
    def sum_losses(self, losses: Tensor, keep: Tensor) -> Tensor:
        """Return the sum of the losses (B, T) that count."""

    def normaliser(self, keep: Tensor) -> Tensor:
        """Return the number that the sum is divided by, for the targets (B, T) that count."""
        if self.choices.loss_normaliser == "tokens":
            return keep.sum()
        return torch.tensor(len(keep) if self.choices.loss_normaliser == "sentences" else 1)

    def reduced(self, module: Node, total: Tensor, number: Tensor, keep: Tensor) -> Tensor:
        """Divide the sum, where there is something to divide."""
        mean = total / number.clamp(min=1)
        if self.choices.loss_without_targets == "nan":
            return torch.where(keep.any(), mean, torch.full_like(mean, torch.nan))
        return mean
