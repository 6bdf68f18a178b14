"""Faults in shifted targets, their masks and their number."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("batch.target-not-shifted", "decoder-target", seam="decoder_target", origin="M001")
def target_not_shifted(self: Hooks, target: Tensor) -> Tensor:
    """The target of the decoder is its input. The loss falls to 0, and generation is useless."""
    return self.correct.decoder_input(target)


@fault("batch.input-not-shifted", "decoder-input", seam="decoder_input", origin="M001")
def input_not_shifted(self: Hooks, target: Tensor) -> Tensor:
    """The decoder reads what it has to give. It learns to copy."""
    return self.correct.decoder_target(target)


@fault("batch.start-in-front-besides", "decoder-input", seam="decoder_input", origin="M002")
def start_in_front_besides(self: Hooks, target: Tensor) -> Tensor:
    """A start token is put in front of a target that has one. Targets are two steps ahead."""
    read = self.correct.decoder_input(target)
    return torch.cat((torch.full_like(read[:, :1], self.sizes.start), read[:, :-1]), dim=1)


@fault("batch.shifted-twice", "shifted-once", seam="decoder_target", origin="M004")
def shifted_twice(self: Hooks, target: Tensor) -> Tensor:
    """The target is shifted twice. The model learns the token after the next one."""
    wanted = self.correct.decoder_target(target)
    return torch.cat((wanted[:, 1:], torch.full_like(wanted[:, :1], self.sizes.target_pad)), dim=1)


@fault("batch.shifted-over-sequences", "shifted-once", seam="decoder_target", origin="M004")
def shifted_over_sequences(self: Hooks, target: Tensor) -> Tensor:
    """Flattened targets are shifted once more. The last one is the first of the next sequence."""
    wanted = self.correct.decoder_target(target)
    return wanted.flatten().roll(-1).view(wanted.shape)


@fault("batch.mask-of-the-target", "source-mask", seam="batch_source_mask")
def mask_of_the_target(self: Hooks, source: Tensor, target: Tensor) -> Tensor:
    """The source mask is made with the pad id of the target. Padding of the source is read."""
    return self.padding_mask(source, self.sizes.target_pad)


@fault("batch.source-mask-inverted", "source-mask", seam="batch_source_mask")
def source_mask_inverted(self: Hooks, source: Tensor, target: Tensor) -> Tensor:
    """The source mask is inverted. The encoder reads padding alone."""
    return ~self.correct.batch_source_mask(source, target)


@fault("batch.mask-of-what-is-given", "target-mask", seam="batch_target_mask")
def mask_of_what_is_given(self: Hooks, read: Tensor, wanted: Tensor) -> Tensor:
    """The target mask is that of the target of the decoder. The last word read is hidden."""
    return self.correct.batch_target_mask(wanted, read)


@fault("batch.causal-missing", "target-mask", seam="batch_target_mask")
def causal_missing(self: Hooks, read: Tensor, wanted: Tensor) -> Tensor:
    """The target mask hides padding alone. The decoder reads what it has to give."""
    keep = self.padding_mask(read, self.batch_pads()[1])
    return keep.expand(-1, -1, read.shape[1], -1)


@fault("batch.input-counted", "count", seam="count_targets")
def input_counted(self: Hooks, read: Tensor, wanted: Tensor) -> Tensor:
    """Tokens are counted in the input of the decoder. Full sequences count one too few."""
    return self.correct.count_targets(wanted, read)


@fault("batch.padding-counted", "count", seam="count_targets")
def padding_counted(self: Hooks, read: Tensor, wanted: Tensor) -> Tensor:
    """Padding is counted too. Short sequences are learned slowly."""
    return torch.tensor(wanted.numel())


@fault("batch.one-pad-id", "own-pad-ids", seam="batch_pads")
def one_pad_id(self: Hooks) -> tuple[int, int]:
    """The pad id of the source is that of the target. Words are hidden, and padding is read."""
    return self.sizes.source_pad, self.sizes.source_pad


@fault("batch.pad-is-zero", "own-pad-ids", seam="batch_pads")
def pad_is_zero(self: Hooks) -> tuple[int, int]:
    """The pad id is 0 on both sides. Where 0 is a word it is never learned."""
    return 0, 0


@fault("batch.mask-of-the-first", "sequences-independent", seam="batch_target_mask")
def mask_of_the_first(self: Hooks, read: Tensor, wanted: Tensor) -> Tensor:
    """The target mask of the first sequence serves all. Shorter ones read their padding."""
    mask = self.correct.batch_target_mask(read, wanted)
    return mask[:1].expand(mask.shape)


@fault("batch.columns-of-padding-cut", "sequences-independent", seam="decoder_input")
def columns_of_padding_cut(self: Hooks, target: Tensor) -> Tensor:
    """Words after the shortest sequence are cut. Long sequences lose their end."""
    read = self.correct.decoder_input(target)
    keep = (read != self.sizes.target_pad).all(dim=0)
    return torch.where(keep, read, torch.full_like(read, self.sizes.target_pad))


@fault("batch.tokens-as-floats", "shapes", seam="decoder_input")
def tokens_as_floats(self: Hooks, target: Tensor) -> Tensor:
    """Tokens are floats. The embedding refuses them, or rounds large ids."""
    return self.correct.decoder_input(target).double()


@fault("batch.number-for-each", "shapes", seam="count_targets")
def number_for_each(self: Hooks, read: Tensor, wanted: Tensor) -> Tensor:
    """A number is returned for each sequence. The loss is divided row by row."""
    return (wanted != self.batch_pads()[1]).sum(dim=1)


@fault("batch.target-overwritten", "inputs-untouched", seam="decoder_input", kind="state")
def target_overwritten(self: Hooks, target: Tensor) -> Tensor:
    """The end of the target is overwritten in place. In the next epoch it is missing."""
    read = self.correct.decoder_input(target).clone()
    target[:, 0] = self.sizes.end + 1
    return read


@fault(
    "batch.padding-marked-in-place",
    "inputs-untouched",
    seam="count_targets",
    kind="state",
    models=("plain",),  # the other model makes copies of what it shifts
)
def padding_marked_in_place(self: Hooks, read: Tensor, wanted: Tensor) -> Tensor:
    """Padding becomes -100 in what was given. The next mask does not know it."""
    number = self.correct.count_targets(read, wanted)
    for one in (read, wanted):
        one[one == self.sizes.target_pad] = -100
        one += 1
    return number
