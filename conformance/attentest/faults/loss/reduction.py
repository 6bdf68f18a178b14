"""Faults in the sum: its number, its parts, its order and what it remembers."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

SUM = {"loss_normaliser": "none"}
SENTENCES = {"loss_normaliser": "sentences"}


@fault("loss.sum-for-mean", "normaliser", seam="normaliser")
def sum_for_mean(self: Hooks, keep: Tensor) -> Tensor:
    """The sum is returned where a mean is declared. Longer batches take longer steps."""
    return torch.tensor(1)


@fault("loss.mean-for-sum", "normaliser", seam="normaliser", choices=SUM)
def mean_for_sum(self: Hooks, keep: Tensor) -> Tensor:
    """A mean is returned where the sum is declared. The caller divides it once more."""
    return keep.sum()


@fault("loss.targets-for-sentences", "normaliser", seam="normaliser", choices=SENTENCES)
def targets_for_sentences(self: Hooks, keep: Tensor) -> Tensor:
    """The sum is divided by the targets where the sequences are declared. Steps are too short."""
    return keep.sum()


@fault("loss.words-in-the-number", "normaliser", seam="loss")
def words_in_the_number(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """The mean runs over the vocabulary as well. The loss is V times too small."""
    return self.correct.loss(module, output, target) / output.shape[-1]


@fault("loss.scaled-by-parts", "normaliser", seam="reduced", origin="M017")
def scaled_by_parts(
    self: Hooks, module: Node, total: Tensor, number: Tensor, keep: Tensor
) -> Tensor:
    """The mean is multiplied by the number of sequences. Loss and gradient grow with the batch."""
    return self.correct.reduced(module, total, number, keep) * len(keep)


def _mean_of_means(losses: Tensor, keep: Tensor) -> Tensor:
    """Return the sum of all losses, were each sequence as long as the mean of them."""
    lengths = keep.sum(dim=1).clamp(min=1)
    means = losses.masked_fill(~keep, 0.0).sum(dim=1) / lengths
    return means.mean() * keep.sum()


@fault("loss.mean-of-means", "parts-recombine", seam="sum_losses", origin="M016")
def mean_of_means(self: Hooks, losses: Tensor, keep: Tensor) -> Tensor:
    """The means of the sequences are averaged. Short sequences weigh more than long ones."""
    return _mean_of_means(losses, keep)


@fault("loss.longest-weighs-most", "parts-recombine", seam="sum_losses", origin="M022")
def longest_weighs_most(self: Hooks, losses: Tensor, keep: Tensor) -> Tensor:
    """Each sequence is divided by the length of the longest one. Losses depend on neighbours."""
    lengths = keep.sum(dim=1, keepdim=True)
    return self.correct.sum_losses(losses * lengths / lengths.amax().clamp(min=1), keep)


@fault(
    "loss.gradient-of-means",
    "accumulated-gradient",
    seam="sum_losses",
    origin="M016",
    kind="gradient",
)
def gradient_of_means(self: Hooks, losses: Tensor, keep: Tensor) -> Tensor:
    """The value is that of the whole batch, and the gradient that of a mean of means.

    Logged losses agree with a large batch, and the steps do not.
    """
    means = _mean_of_means(losses, keep)
    return self.correct.sum_losses(losses, keep).detach() + means - means.detach()


@fault("loss.gradient-clipped", "accumulated-gradient", seam="loss", origin="M019", kind="gradient")
def gradient_clipped(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """The gradient is scaled to a length of 1 in every part. Parts weigh by chance."""
    held = output
    if output.requires_grad:
        held = output * 1.0
        held.register_hook(  # type: ignore[no-untyped-call]  # it has no types in torch
            lambda pulled: pulled / pulled.norm().clamp(min=1e-6)
        )
    return self.correct.loss(module, held, target)


@fault("loss.first-sequence-twice", "order", seam="sum_losses")
def first_sequence_twice(self: Hooks, losses: Tensor, keep: Tensor) -> Tensor:
    """The loop adds the first sequence twice. One sequence of every batch weighs double."""
    return self.correct.sum_losses(losses, keep) + self.correct.sum_losses(losses[:1], keep[:1])


@fault("loss.last-sequence-missing", "order", seam="sum_losses")
def last_sequence_missing(self: Hooks, losses: Tensor, keep: Tensor) -> Tensor:
    """The loop ends one sequence early. The last one of every batch is never learned."""
    return self.correct.sum_losses(losses[:-1], keep[:-1])


@fault("loss.number-of-the-first-batch", "calls-independent", seam="normaliser", kind="state")
def number_of_the_first_batch(self: Hooks, keep: Tensor) -> Tensor:
    """The number of targets is stored in the first call. Later losses have another scale."""
    stored: Tensor = self.memory.setdefault("number", self.correct.normaliser(keep))
    return stored


@fault("loss.running-mean", "calls-independent", seam="reduced", kind="state")
def running_mean(self: Hooks, module: Node, total: Tensor, number: Tensor, keep: Tensor) -> Tensor:
    """The losses of earlier calls are added. The curve is smooth, and the steps are wrong."""
    found = self.correct.reduced(module, total, number, keep)
    before = self.memory.get("losses", torch.zeros_like(found))
    self.memory["losses"] = (before + found).detach()
    result: Tensor = found + before.to(found)
    return result


@fault("loss.not-reduced", "shape", seam="loss")
def not_reduced(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """A loss for each target is returned. Its backward pass raises far away."""
    found = self.correct.loss(module, output, target)
    return found.expand(target.shape)


@fault("loss.one-element", "shape", seam="loss")
def one_element(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """The loss is an array of one element. It is broadcast where it is added up."""
    return self.correct.loss(module, output, target).reshape(1)


@fault("loss.always-float32", "shape", seam="loss")
def always_float32(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """The loss is float32, whatever the output is. float64 loses half of its digits."""
    return self.correct.loss(module, output, target).float()
