"""Faults in the side effects of a model, and with strided tokens."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("model.mask-of-the-first-call", "no-history", seam="target_mask_of", kind="state")
def mask_of_the_first_call(self: Hooks, target: Tensor) -> Tensor | None:
    """The target mask is made once and reused. Later batches get the first batch's padding."""
    if "mask" not in self.memory:
        self.memory["mask"] = self.correct.target_mask_of(target)
    mask: Tensor = self.memory["mask"]
    return mask


@fault("model.memory-of-the-first-call", "no-history", seam="encode", origin="B115", kind="state")
def memory_of_the_first_call(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """The first memory is cached and never dropped. Equal shapes give one translation."""
    kept: Tensor = self.memory.setdefault(str(source.shape), self.correct.encode(module, source))
    return kept


@fault("model.position-offset-not-reset", "no-history", seam="embed", origin="B119", kind="state")
def position_offset_not_reset(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Positions continue after the last sequence. The same input gives another output."""
    embedded = self.embedding_of(module, side)(tokens)
    calls = self.memory[side] = self.memory.get(side, -1) + 1
    ahead = embedded.new_zeros(len(embedded), calls % 2, embedded.shape[2])
    joined = self.positions_of(module, side)(torch.cat((ahead, embedded), dim=1))
    return joined[:, calls % 2 :]


@fault("model.tokens-flattened-by-view", "sliced-tokens", seam="embed", kind="loud")
def tokens_flattened_by_view(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Tokens are flattened by `view`, which wants contiguous memory.

    The first target without its last column stops the training.
    """
    return self.correct.embed(module, side, tokens.view(-1).view(tokens.shape))


@fault("model.tokens-read-past-their-strides", "sliced-tokens", seam="embed")
def tokens_read_past_their_strides(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Tokens are read from memory row after row, whatever the strides say.

    A sliced batch is shifted by one more token in every row.
    """
    raw = tokens.as_strided(tokens.shape, (tokens.shape[1], 1), tokens.storage_offset())
    return self.correct.embed(module, side, raw)


@fault("model.pads-overwritten", "input-untouched", seam="decode", kind="state")
def pads_overwritten(
    self: Hooks, module: Node, target: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """Padding is set to 0 in place for the lookup. The caller's labels change."""
    output = self.correct.decode(module, target, memory, source)
    target.masked_fill_(target == self.sizes.target_pad, 0)
    return output


@fault("model.start-token-written-over", "input-untouched", seam="encode", kind="state")
def start_token_written_over(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """A start token is written into the source in place. The second epoch reads other tokens."""
    memory = self.correct.encode(module, source)
    source[:, 0] = (source[:, 0] + 1) % self.sizes.source_vocabulary
    return memory


@fault(
    "model.memory-centred-in-place",
    "input-untouched",
    seam="pass_memory",
    origin="B077",
    kind="state",
)
def memory_centred_in_place(self: Hooks, memory: Tensor) -> Tensor:
    """The decoder writes into its memory. The second step of a search reads another memory."""
    with torch.no_grad():
        memory.sub_(memory.mean(dim=-1, keepdim=True))
    return memory


@fault("model.seed-set-at-birth", "global-state-untouched", seam="make_model", kind="state")
def seed_set_at_birth(self: Hooks) -> Node:
    """Building the model sets the global seed. Later random numbers repeat."""
    torch.manual_seed(0)
    return self.correct.make_model()


@fault("model.default-precision-set", "global-state-untouched", seam="make_model", kind="state")
def default_precision_set(self: Hooks) -> Node:
    """Building the model sets the default dtype. Other new models are float64."""
    torch.set_default_dtype(torch.float64)
    return self.correct.make_model()


@fault("model.gradients-switched-off", "global-state-untouched", seam="make_model", kind="state")
def gradients_switched_off(self: Hooks) -> Node:
    """Building the model turns gradients off globally. Nothing trains afterwards."""
    torch.set_grad_enabled(False)
    return self.correct.make_model()


@fault("model.random-state-moved", "global-state-untouched", seam="encode", kind="state")
def random_state_moved(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """Evaluation draws a dropout mask and ignores it. Evaluating changes a seeded training."""
    memory = self.correct.encode(module, source)
    torch.rand_like(memory)
    return memory


@fault("model.memory-in-one-buffer", "encode-decode-is-forward", seam="encode", kind="state")
def memory_in_one_buffer(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """Memories share a buffer per shape. Two translations at a time read one source."""
    memory = self.correct.encode(module, source)
    if torch.is_grad_enabled():
        return memory
    kept: Tensor = self.memory.setdefault(str(memory.shape), torch.empty_like(memory))
    return kept.copy_(memory)
