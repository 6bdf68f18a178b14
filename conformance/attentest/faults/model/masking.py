"""Faults in which masks the model makes of its tokens."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "model.memory-mask-forgotten",
    clause="model.padding-in-a-batch",
    origin="B086",
    wrong="The source's padding mask goes to the encoder alone.",
    effect="The decoder attends to pads, and the more so the longer the neighbours are.",
)
def memory_mask_of(self: Seams, source: Tensor, target: Tensor) -> Tensor | None:
    return None


@fault(
    "model.encoder-mask-forgotten",
    clause="model.padding-in-a-batch",
    origin="B020",
    wrong="The encoder is given no mask.",
    effect="Words attend to pads.",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    return module.encoder(self.embed(module, "source", source), None)


@fault(
    "model.padding-hides-queries",
    clause="model.padding-in-a-batch",
    origin="B011",
    wrong="The encoder's mask lies along the queries, not along the keys.",
    effect="Words attend to pads, and pads to nothing.",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    keep = self.padding_mask(source, self.sizes.source_pad).transpose(-1, -2)
    return module.encoder(self.embed(module, "source", source), keep)  # type: ignore[no-any-return]


@fault(
    "model.target-padded-as-source",
    clause="model.pad-ids",
    origin="B019",
    wrong="The target's mask hides the source's pad id.",
    effect="A word of the target is hidden, and its pads are not.",
)
def target_mask_of(self: Seams, target: Tensor) -> Tensor | None:
    return self.target_mask(target, self.sizes.source_pad)


@fault(
    "model.pad-is-zero",
    clause="model.pad-ids",
    origin="B019",
    wrong="The source's pad id is taken to be 0.",
    effect="Pads are attended to, and whatever word is 0 is not.",
)
def source_mask_of(self: Seams, source: Tensor) -> Tensor | None:
    return self.padding_mask(source, 0)


@fault(
    "model.both-pads-hidden",
    clause="model.pad-ids",
    wrong="The source's mask hides the pad ids of both sides.",
    effect="One word of the source is never read.",
)
def source_mask_of(self: Seams, source: Tensor) -> Tensor | None:
    own = self.padding_mask(source, self.sizes.source_pad)
    return own & self.padding_mask(source, self.sizes.target_pad)


@fault(
    "model.pad-zero-taken-for-none",
    clause="model.pad-ids",
    wrong="A target pad id of 0 counts as not given: `if pad:`.",
    effect="The commonest pad id is the one that is not hidden.",
)
def target_mask_of(self: Seams, target: Tensor) -> Tensor | None:
    if self.sizes.target_pad:
        return self.sound.target_mask_of(target)
    return self.causal_mask(target.shape[1], target.device)


@fault(
    "model.causal-mask-missing",
    clause="model.causality",
    origin="B110",
    wrong="The decoder's self-attention is masked for padding alone.",
    effect="Every step reads its answer: a wonderful loss, and nothing generated.",
)
def target_mask_of(self: Seams, target: Tensor) -> Tensor | None:
    return self.padding_mask(target, self.sizes.target_pad)


@fault(
    "model.causal-mask-one-too-far",
    clause="model.causality",
    origin="B016",
    wrong="Every step may look at the next one.",
    effect="The answer is one step away and can be read.",
)
def target_mask_of(self: Seams, target: Tensor) -> Tensor | None:
    wider = self.causal_mask(target.shape[1] + 1, target.device)[..., 1:, :-1]
    return self.join_masks(self.padding_mask(target, self.sizes.target_pad), wider)
