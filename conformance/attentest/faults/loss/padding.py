"""Faults in what counts: padding, its id and its place."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

REAL = {"smoothed_mass": "other-real-words"}
NAN = {"loss_without_targets": "nan"}


@fault("loss.padding-counted", "padding-ignored", seam="counted", origin="M011")
def padding_counted(self: Hooks, target: Tensor) -> Tensor:
    """Targets that are padding count like words. The model learns to say the pad word."""
    return torch.ones_like(self.correct.counted(target))


@fault("loss.mask-inverted", "padding-ignored", seam="counted", origin="M013")
def mask_inverted(self: Hooks, target: Tensor) -> Tensor:
    """Words are left out and padding is kept. Nothing but padding is learned."""
    return ~self.correct.counted(target)


@fault("loss.smoothing-of-padding", "smoothing-ignores-padding", seam="sum_losses", origin="M010")
def smoothing_of_padding(self: Hooks, losses: Tensor, keep: Tensor) -> Tensor:
    """The smoothing term counts padding too. The loss depends on the amount of padding."""
    whole = self.correct.sum_losses(losses, keep)
    return whole + self.smoothing() * self.correct.sum_losses(losses, ~keep)


@fault("loss.smoothing-divided-by-all", "smoothing-ignores-padding", seam="loss", origin="M010")
def smoothing_divided_by_all(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """The smoothing term is divided by all positions, padding included.

    Batches with more padding are smoothed less.
    """
    plain = type(self.correct)(self.sizes.but(smoothing=0.0), self.choices)
    hard = plain.loss(module, output, target)
    share = self.counted(target).to(output.dtype).mean()
    return hard + (self.correct.loss(module, output, target) - hard) * share


@fault("loss.divided-by-all-positions", "extra-padding", seam="normaliser")
def divided_by_all_positions(self: Hooks, keep: Tensor) -> Tensor:
    """The sum is divided by all positions, padding included.

    The loss falls with the length of the longest sequence in the batch.
    """
    return torch.tensor(keep.numel())


@fault("loss.last-column-not-counted", "extra-padding", seam="counted")
def last_column_not_counted(self: Hooks, target: Tensor) -> Tensor:
    """The last step is left out where it is padding in no sequence. Full batches lose a target."""
    keep = self.correct.counted(target)
    last = torch.arange(keep.shape[1], device=keep.device) == keep.shape[1] - 1
    return keep & ~(last & keep.all())


@fault("loss.pad-is-zero", "any-pad-id", seam="loss_pad")
def pad_is_zero(self: Hooks) -> int:
    """The pad id is 0, whatever it is built with. Padding counts, and the word 0 does not."""
    return 0


@fault("loss.pad-of-source", "any-pad-id", seam="loss_pad")
def pad_of_source(self: Hooks) -> int:
    """The pad id of the source is used. Padding counts where the two differ."""
    return self.sizes.source_pad


@fault("loss.stops-at-the-first-pad", "padding-anywhere", seam="counted")
def stops_at_the_first_pad(self: Hooks, target: Tensor) -> Tensor:
    """Targets after the first pad do not count. Left-padded batches teach nothing."""
    return self.correct.counted(target).cumprod(dim=1).bool()


@fault("loss.counted-by-length", "padding-anywhere", seam="counted")
def counted_by_length(self: Hooks, target: Tensor) -> Tensor:
    """As many steps as there are words count, from the first on. Padding in front is learned."""
    keep = self.correct.counted(target)
    place = torch.arange(target.shape[1], device=target.device)
    return place < keep.sum(dim=1, keepdim=True)


@fault("loss.no-pad-zeroes-all", "no-padding", seam="counted", origin="M014")
def no_pad_zeroes_all(self: Hooks, target: Tensor) -> Tensor:
    """An empty list of padding selects everything. Batches without padding have a loss of 0."""
    keep = self.correct.counted(target)
    return keep & ~keep.all()


@fault("loss.no-pad-refused", "no-padding", seam="counted", origin="M014", kind="loud")
def no_pad_refused(self: Hooks, target: Tensor) -> Tensor:
    """The first padded position is looked up. A batch without padding raises."""
    keep = self.correct.counted(target)
    torch.nonzero(~keep)[0]
    return keep


@fault("loss.empty-divides-by-zero", "without-targets", seam="reduced")
def empty_divides_by_zero(
    self: Hooks, module: Node, total: Tensor, number: Tensor, keep: Tensor
) -> Tensor:
    """The number of targets may be 0. A part that is all padding gives NaN for the whole batch."""
    return total / number


@fault("loss.empty-gives-one", "without-targets", seam="reduced", choices=NAN)
def empty_gives_one(
    self: Hooks, module: Node, total: Tensor, number: Tensor, keep: Tensor
) -> Tensor:
    """A batch of padding has a loss where NaN is declared. What skips NaN does not skip it."""
    return torch.where(keep.any(), self.correct.reduced(module, total, number, keep), total + 1.0)


@fault("loss.gradient-to-padding", "padding-gradient", seam="sum_losses", kind="gradient")
def gradient_to_padding(self: Hooks, losses: Tensor, keep: Tensor) -> Tensor:
    """The value of padding is masked, and its gradient is not. The model is trained on padding."""
    hidden = self.correct.sum_losses(losses, ~keep)
    return self.correct.sum_losses(losses, keep) + hidden - hidden.detach()


@fault("loss.padding-nearly-ignored", "padding-gradient", seam="sum_losses")
def padding_nearly_ignored(self: Hooks, losses: Tensor, keep: Tensor) -> Tensor:
    """Padding has a small weight and not none. A long batch is trained on padding all the same."""
    rest = self.correct.sum_losses(losses, ~keep)
    return self.correct.sum_losses(losses, keep) + 1e-3 * rest


@fault("loss.pad-word-shared", "pad-word", seam="sharing_words", choices=REAL)
def pad_word_shared(self: Hooks, target: Tensor, vocabulary: int) -> Tensor:
    """The pad word gets a share where it is declared to get none. The model generates padding."""
    words = torch.arange(vocabulary, device=target.device)
    return target[..., None] != words


@fault("loss.pad-word-left-out", "pad-word", seam="sharing_words")
def pad_word_left_out(self: Hooks, target: Tensor, vocabulary: int) -> Tensor:
    """The pad word gets no share where all words are declared to get one. Some mass is lost."""
    words = torch.arange(vocabulary, device=target.device)
    return self.correct.sharing_words(target, vocabulary) & (words != self.loss_pad())
