"""Faults in how the loss is called: shifts, memory, inputs and refusals."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("loss.shifted-again", "aligned", seam="align", origin="M005")
def shifted_again(self: Hooks, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The target is shifted once more. The model learns the word after the next."""
    return output[:, :-1], target[:, 1:]


@fault("loss.shifted-when-flat", "aligned", seam="align", origin="M004")
def shifted_when_flat(self: Hooks, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Flattened targets are shifted once more.

    The last target of a sequence is the first one of the next.
    """
    flat = target.flatten()
    return output.flatten(0, 1)[:-1].unsqueeze(0), flat[1:].unsqueeze(0)


@fault("loss.output-shifted", "aligned", seam="align", origin="M007")
def output_shifted(self: Hooks, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The output is shifted in place of the target. The model repeats the word before."""
    return output[:, 1:], target[:, :-1]


@fault("loss.targets-in-another-order", "aligned", seam="align")
def targets_in_another_order(self: Hooks, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs are flattened by sequence and targets by step. Most targets belong to other steps."""
    return output, target.mT.reshape(target.shape)


@fault("loss.view-of-targets", "slices-accepted", seam="align")
def view_of_targets(self: Hooks, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The target is viewed as one row. A slice of a longer tensor raises."""
    target.view(-1)
    return output, target


@fault("loss.memory-of-targets", "any-memory-layout", seam="align")
def memory_of_targets(self: Hooks, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Targets are read from memory in one piece. Those of a slice are shifted."""
    size = target.numel()
    return output, target.as_strided((size,), (1,)).view(target.shape)


@fault("loss.padding-overwritten", "inputs-untouched", seam="align", kind="state")
def padding_overwritten(self: Hooks, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Padding in the target is overwritten in place. It cannot be counted afterwards."""
    kept = target.clone()
    target[target == self.loss_pad()] = -100
    return output, kept


@fault("loss.output-overwritten", "inputs-untouched", seam="align", kind="state")
def output_overwritten(self: Hooks, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The output at padding is set to 0 in place. What is logged later is not the output."""
    kept = output.clone()
    output.data[target == self.loss_pad()] = 0.0
    return kept, target


@fault("loss.cut-to-the-shorter", "unequal-lengths-refused", seam="loss")
def cut_to_the_shorter(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """Output and target are cut to the shorter one. A target that is not shifted goes unnoticed."""
    steps = min(output.shape[1], target.shape[1])
    return self.correct.loss(module, output[:, :steps], target[:, :steps])


@fault("loss.filled-to-the-longer", "unequal-lengths-refused", seam="loss")
def filled_to_the_longer(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """The shorter one of output and target is repeated. Targets meet outputs of other steps."""
    steps = max(output.shape[1], target.shape[1])
    place = torch.arange(steps, device=target.device)
    longer = output[:, place % output.shape[1]], target[:, place % target.shape[1]]
    return self.correct.loss(module, *longer)


@fault("loss.foreign-ids-skipped", "out-of-range-refused", seam="loss")
def foreign_ids_skipped(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """Targets outside of the vocabulary are left out. A wrong tokeniser goes unnoticed."""
    foreign = (target < 0) | (target >= output.shape[-1])
    return self.correct.loss(module, output, target.masked_fill(foreign, self.loss_pad()))


@fault("loss.foreign-ids-wrapped", "out-of-range-refused", seam="loss")
def foreign_ids_wrapped(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """Ids are counted from the end of the vocabulary. A marker of -100 is a rare word."""
    return self.correct.loss(module, output, target % output.shape[-1])


@fault("loss.foreign-ids-asserted", "out-of-range-named", seam="check_targets", kind="wording")
def foreign_ids_asserted(self: Hooks, target: Tensor, vocabulary: int) -> None:
    """A target outside of the vocabulary fails an assertion. Under python -O nothing is checked."""
    assert bool(((target >= 0) & (target < vocabulary)).all()), target


@fault("loss.foreign-ids-unnamed", "out-of-range-named", seam="check_targets", kind="wording")
def foreign_ids_unnamed(self: Hooks, target: Tensor, vocabulary: int) -> None:
    """The error about a target outside of the vocabulary does not name it. It is not found."""
    if not bool(((target >= 0) & (target < vocabulary)).all()):
        raise IndexError("index out of range in self")
