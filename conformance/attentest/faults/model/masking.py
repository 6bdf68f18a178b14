"""Faults in the masks that the model makes."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("model.memory-mask-forgotten", "padding-in-a-batch", seam="memory_mask_of", origin="B086")
def memory_mask_forgotten(self: Hooks, source: Tensor, target: Tensor) -> Tensor | None:
    """The source mask goes to the encoder alone. The decoder attends to padding."""
    return None


@fault("model.encoder-mask-forgotten", "padding-in-a-batch", seam="encode", origin="B020")
def encoder_mask_forgotten(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """The encoder is given no mask. Tokens attend to padding."""
    return module.encoder(self.embed(module, "source", source), None)


@fault("model.padding-hides-queries", "padding-in-a-batch", seam="encode", origin="B011")
def padding_hides_queries(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """The encoder's mask hides queries, not keys. Tokens attend to padding."""
    keep = self.padding_mask(source, self.sizes.source_pad).transpose(-1, -2)
    return module.encoder(self.embed(module, "source", source), keep)


@fault("model.target-padded-as-source", "pad-ids", seam="target_mask_of", origin="B019")
def target_padded_as_source(self: Hooks, target: Tensor) -> Tensor | None:
    """The target's mask uses the source's pad id. Target padding is read."""
    return self.target_mask(target, self.sizes.source_pad)


@fault("model.pad-is-zero", "pad-ids", seam="source_mask_of", origin="B019")
def pad_is_zero(self: Hooks, source: Tensor) -> Tensor | None:
    """The source's pad id is taken to be 0. Padding is read, and token 0 is hidden."""
    return self.padding_mask(source, 0)


@fault("model.both-pads-hidden", "pad-ids", seam="source_mask_of")
def both_pads_hidden(self: Hooks, source: Tensor) -> Tensor | None:
    """The source's mask hides both pad ids. One token of the source is never read."""
    own = self.padding_mask(source, self.sizes.source_pad)
    return own & self.padding_mask(source, self.sizes.target_pad)


@fault("model.pad-zero-taken-for-none", "pad-ids", seam="target_mask_of")
def pad_zero_taken_for_none(self: Hooks, target: Tensor) -> Tensor | None:
    """A pad id of 0 counts as missing: `if pad:`. The most common pad id is not hidden."""
    if self.sizes.target_pad:
        return self.correct.target_mask_of(target)
    return self.causal_mask(target.shape[1], target.device)


@fault("model.causal-mask-missing", "causality", seam="target_mask_of", origin="B110")
def causal_mask_missing(self: Hooks, target: Tensor) -> Tensor | None:
    """The target mask hides padding alone. Every step reads its answer."""
    return self.padding_mask(target, self.sizes.target_pad)


@fault("model.causal-mask-one-too-far", "causality", seam="target_mask_of", origin="B016")
def causal_mask_one_too_far(self: Hooks, target: Tensor) -> Tensor | None:
    """Every step may look at the next one. The answer is one step away and can be read."""
    wider = self.causal_mask(target.shape[1] + 1, target.device)[..., 1:, :-1]
    return self.join_masks(self.padding_mask(target, self.sizes.target_pad), wider)


@fault("model.target-mask-by-shape", "formula", seam="target_mask_of", kind="state")
def target_mask_by_shape(self: Hooks, target: Tensor) -> Tensor | None:
    """The target mask is kept for the next call of its shape.

    Every batch but the first of its shape has the padding of another.
    """
    key = f"target {tuple(target.shape)}"
    if key not in self.memory:
        self.memory[key] = self.correct.target_mask_of(target)
    mask: Tensor | None = self.memory[key]
    return mask
