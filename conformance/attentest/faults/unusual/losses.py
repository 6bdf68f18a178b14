"""Unusual losses: without log-probabilities, with a gradient of their own, in blocks."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.unusual.member import module
from attentest_spec import Sizes


class Loss(nn.Module):
    """The sizes of a loss, and the refusal of what does not fit them."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        if sizes.smoothing < 0 or sizes.smoothing > 1:
            raise ValueError(f"A share of {sizes.smoothing} cannot be smoothed.")
        self.rate, self.pad = sizes.smoothing, sizes.target_pad

    def real(self, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows (N, V) and words (N,) of the targets that count."""
        if output.shape[:2] != target.shape:
            raise ValueError(f"{tuple(target.shape)} targets for {tuple(output.shape[:2])} rows.")
        words = output.shape[2]
        for word in target[(target < 0) | (target >= words)].tolist():
            raise IndexError(f"{word} is none of {words} words.")
        place = torch.nonzero(target.ne(self.pad), as_tuple=True)
        return output[place], target[place]


class ExpectedLogits(Loss):
    """The logarithmic sum of the logits less their mean under the smoothed target."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """Return the mean over the targets that count."""
        logits, words = self.real(output, target)
        top = logits.amax(dim=1, keepdim=True).detach()
        free = (logits - top).exp().sum(dim=1).log()
        own = (logits - top)[torch.arange(len(words)), words]
        mean = own * (1.0 - self.rate) + (logits - top).mean(dim=1) * self.rate
        return (free - mean).sum() / max(len(words), 1)


class _ClosedForm(torch.autograd.Function):
    """Forward computes the gradient too, and backward multiplies it."""

    @staticmethod
    def forward(context: Any, logits: Tensor, wanted: Tensor) -> Tensor:
        """Return the sum of the cross-entropies of rows (N, V)."""
        shares = torch.softmax(logits, dim=1)
        context.save_for_backward(shares - wanted)
        return -(wanted * torch.log_softmax(logits, dim=1)).sum()

    @staticmethod
    def backward(context: Any, *pulled: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of the logits."""
        (stored,) = context.saved_tensors
        return pulled[0] * stored, None


class GradientInForward(Loss):
    """A sum over the V - 1 other words, whose gradient is computed along with it."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """Return the sum over the targets that count, for each sequence."""
        logits, words = self.real(output, target)
        chosen = functional.one_hot(words, output.shape[2]).to(logits.dtype)
        others = (1.0 - chosen) * (self.rate / (output.shape[2] - 1))
        wanted = chosen * (1.0 - self.rate) + others
        total: Tensor = _ClosedForm.apply(logits, wanted)  # type: ignore[no-untyped-call]
        return total / len(target)


class NormalisedTwice(Loss):
    """Log-probabilities that are normalised once more, sequence by sequence."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """Return the sum of the divergences of all sequences."""
        self.real(output, target)
        total = output.new_zeros(())
        for rows, words in zip(output, target, strict=True):
            keep = words != self.pad
            shared = torch.full_like(rows, self.rate / max(rows.shape[1] - 2, 1))
            shared[:, self.pad] = 0.0
            shared[torch.arange(len(words)), words] = 1.0 - self.rate
            pointwise = functional.kl_div(
                functional.log_softmax(rows, dim=1), shared, reduction="none"
            )
            total = total + pointwise.sum(dim=1)[keep].sum()
        return total


class ProbabilitiesInBlocks(Loss):
    """Probabilities, two columns of words at a time; the mean of nothing is NaN."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """Return the mean over the targets that count."""
        rows, words = self.real(output, target)
        losses = rows.new_zeros(len(rows))
        for start in range(0, rows.shape[1], 2):
            block = rows[:, start : start + 2].log().neg()
            columns = torch.arange(start, start + block.shape[1])
            chosen = (words[:, None] == columns).to(block.dtype)
            shares = chosen * (1.0 - self.rate) + self.rate / rows.shape[1]
            losses = losses + (block * shares).sum(dim=1)
        return losses.mean()


MEMBERS = (
    module(
        "loss",
        ExpectedLogits,
        "a loss that takes the mean logit from the logarithmic sum",
        loss_normaliser="tokens",
    ),
    module(
        "loss",
        GradientInForward,
        "a loss whose gradient is computed in the forward pass",
        smoothed_mass="other-words",
        loss_normaliser="sentences",
    ),
    module(
        "loss",
        NormalisedTwice,
        "a divergence that normalises log-probabilities once more, sequence by sequence",
        loss_input="log-probabilities",
        smoothed_mass="other-real-words",
        loss_normaliser="none",
        loss_measure="divergence",
    ),
    module(
        "loss",
        ProbabilitiesInBlocks,
        "a loss of probabilities, in blocks of two words",
        loss_input="probabilities",
        loss_without_targets="nan",
    ),
)
