"""Faults in label smoothing: its rate, its shares and its entropy."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

ALL = {"smoothed_mass": "all-words"}
OTHERS = {"smoothed_mass": "other-words"}
REAL = {"smoothed_mass": "other-real-words"}
DIVERGENCE = {"loss_measure": "divergence"}


@fault("loss.smoothing-ignored", "formula", seam="smoothing")
def smoothing_ignored(self: Hooks) -> float:
    """The rate of smoothing is not used. The model becomes too sure of itself."""
    return 0.0


@fault("loss.smoothing-fixed", "formula", seam="smoothing")
def smoothing_fixed(self: Hooks) -> float:
    """The rate of smoothing is 0.1, whatever is asked for. Validation losses are too high."""
    return 0.1


@fault("loss.rates-swapped", "formula", seam="confidence")
def rates_swapped(self: Hooks, vocabulary: int) -> float:
    """The target keeps the smoothing and gives away the rest. The likeliest word is the last."""
    return self.smoothing()


@fault("loss.mass-not-taken", "smoothed-mass", seam="confidence")
def mass_not_taken(self: Hooks, vocabulary: int) -> float:
    """The target keeps all of its mass. The distribution sums to more than 1."""
    return 1.0


@fault("loss.others-for-all", "smoothed-mass", seam="share", origin="A")
def others_for_all(self: Hooks, vocabulary: int) -> float:
    """The share of every word is that among the others. The distribution sums to more than 1."""
    return self.smoothing() / (vocabulary - 1)


@fault("loss.all-for-others", "smoothed-mass", seam="share", choices=OTHERS)
def all_for_others(self: Hooks, vocabulary: int) -> float:
    """The mass is divided by the whole vocabulary and given to the others. Some of it is lost."""
    return self.smoothing() / vocabulary


@fault("loss.one-less-for-real-words", "smoothed-mass", seam="share", choices=REAL)
def one_less_for_real_words(self: Hooks, vocabulary: int) -> float:
    """The mass is divided by V - 1, though the pad word gets none of it. Some of it is lost."""
    return self.smoothing() / (vocabulary - 1)


@fault("loss.target-without-its-share", "smoothed-mass", seam="sharing_words", choices=ALL)
def target_without_its_share(self: Hooks, target: Tensor, vocabulary: int) -> Tensor:
    """The target does not get its own share of 1/V. The distribution sums to less than 1."""
    return target[..., None] != torch.arange(vocabulary, device=target.device)


@fault("loss.entropy-subtracted", "measure", seam="measured")
def entropy_subtracted(self: Hooks, losses: Tensor, vocabulary: int) -> Tensor:
    """A divergence is returned where the cross-entropy is declared. Perplexities are too low."""
    return losses - self.entropy(vocabulary)


@fault("loss.entropy-kept", "measure", seam="measured", choices=DIVERGENCE)
def entropy_kept(self: Hooks, losses: Tensor, vocabulary: int) -> Tensor:
    """The entropy of the target is not subtracted. The loss of a perfect model is not 0."""
    return losses


@fault("loss.entropy-of-one-share", "measure", seam="entropy", choices=DIVERGENCE)
def entropy_of_one_share(self: Hooks, vocabulary: int) -> float:
    """The entropy counts the share of one other word. Losses of two vocabularies differ."""
    parts = torch.tensor([self.confidence(vocabulary), self.share(vocabulary)], dtype=torch.float64)
    return float(-torch.xlogy(parts, parts).sum())


@fault("loss.smoothing-unchecked", "smoothing-refused", seam="check_smoothing")
def smoothing_unchecked(self: Hooks) -> None:
    """Any rate of smoothing is accepted. A rate in percent trains towards every other word."""


@fault("loss.smoothing-of-ten-accepted", "smoothing-refused", seam="check_smoothing")
def smoothing_of_ten_accepted(self: Hooks) -> None:
    """Negative rates alone are refused. A rate above 1 makes the target the least likely word."""
    if self.sizes.smoothing < 0:
        self.correct.check_smoothing()


@fault("loss.one-word-more", "worked-example", seam="confidence")
def one_word_more(self: Hooks, vocabulary: int) -> float:
    """A constant is left in the confidence of the target. Every loss is a tenth too low."""
    return 0.9 * self.correct.confidence(vocabulary)


@fault("loss.bits", "worked-example", seam="loss")
def bits(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """The logarithm has the base 2. Losses are in bits, and steps 44 % longer."""
    return self.correct.loss(module, output, target) / float(torch.log(torch.tensor(2.0)))
