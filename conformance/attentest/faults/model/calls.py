"""Faults in what building and calling a model leave behind, and how its tokens lie in memory."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "model.mask-of-the-first-call",
    clause="model.no-history",
    wrong="The target mask is made once and kept.",
    effect="The padding of the first batch hides words of all that follow.",
    kind="state",
)
def target_mask_of(self: Seams, target: Tensor) -> Tensor | None:
    if "mask" not in self.memory:
        self.memory["mask"] = self.sound.target_mask_of(target)
    mask: Tensor = self.memory["mask"]
    return mask


@fault(
    "model.memory-of-the-first-call",
    clause="model.no-history",
    origin="B115",
    wrong="The encoded source is kept for decoding, and never given up.",
    effect="Every sentence of the same length is translated as the first one.",
    kind="state",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    kept: Tensor = self.memory.setdefault(str(source.shape), self.sound.encode(module, source))
    return kept


@fault(
    "model.position-offset-not-reset",
    clause="model.no-history",
    origin="B119",
    wrong="Positions go on counting where the last sentence ended.",
    effect="The same sentence gives another answer the second time.",
    kind="state",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    calls = self.memory[side] = self.memory.get(side, -1) + 1
    ahead = embedded.new_zeros(len(embedded), calls % 2, embedded.shape[2])
    joined = self.positions_of(module, side)(torch.cat((ahead, embedded), dim=1))
    return joined[:, calls % 2 :]


@fault(
    "model.tokens-flattened-by-view",
    clause="model.sliced-tokens",
    wrong="Tokens are flattened by `view`, which wants contiguous memory.",
    effect="The first target without its last column stops the training.",
    kind="loud",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    return self.sound.embed(module, side, tokens.view(-1).view(tokens.shape))


@fault(
    "model.tokens-read-past-their-strides",
    clause="model.sliced-tokens",
    wrong="Tokens are read from memory row after row, whatever the strides say.",
    effect="A sliced batch is shifted by one more token in every row.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    raw = tokens.as_strided(tokens.shape, (tokens.shape[1], 1), tokens.storage_offset())
    return self.sound.embed(module, side, raw)


@fault(
    "model.pads-overwritten",
    clause="model.input-untouched",
    wrong="Pads are set to 0 in place, so that they can be looked up.",
    effect="The caller's labels change under its hands.",
    kind="state",
)
def decode(self: Seams, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    output = self.sound.decode(module, target, memory, source)
    target.masked_fill_(target == self.sizes.target_pad, 0)
    return output


@fault(
    "model.start-token-written-over",
    clause="model.input-untouched",
    wrong="The first token of the source is replaced by a start token in place.",
    effect="The second epoch reads another sentence.",
    kind="state",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    memory = self.sound.encode(module, source)
    source[:, 0] = (source[:, 0] + 1) % self.sizes.source_vocabulary
    return memory


@fault(
    "model.memory-centred-in-place",
    clause="model.input-untouched",
    origin="B077",
    wrong="The decoder writes into the memory that it is given.",
    effect="The second step of a search reads another memory than the first.",
    kind="state",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    with torch.no_grad():
        memory.sub_(memory.mean(dim=-1, keepdim=True))
    return memory


@fault(
    "model.seed-set-at-birth",
    clause="model.global-state-untouched",
    wrong="Building the model sets the seed of the process.",
    effect="Everything that is drawn after it is drawn again and again.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    torch.manual_seed(0)
    return self.sound.make_model()


@fault(
    "model.default-precision-set",
    clause="model.global-state-untouched",
    wrong="Building the model sets the default precision of the process.",
    effect="Other models of the process are born in float64.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    torch.set_default_dtype(torch.float64)
    return self.sound.make_model()


@fault(
    "model.gradients-switched-off",
    clause="model.global-state-untouched",
    wrong="Building the model switches gradients off and not on again.",
    effect="Nothing in the process trains from there on.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    torch.set_grad_enabled(False)
    return self.sound.make_model()


@fault(
    "model.random-state-moved",
    clause="model.global-state-untouched",
    wrong="A dropout mask is drawn in evaluation too, and then not used.",
    effect="Evaluating now and then makes a seeded training another one.",
    kind="state",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    memory = self.sound.encode(module, source)
    torch.rand_like(memory)
    return memory


@fault(
    "model.memory-in-one-buffer",
    clause="model.encode-decode-is-forward",
    wrong="The memory lies in a buffer that the next encoding of the same shape overwrites.",
    effect="Two translations at a time read one sentence.",
    kind="state",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    memory = self.sound.encode(module, source)
    if torch.is_grad_enabled():
        return memory
    kept: Tensor = self.memory.setdefault(str(memory.shape), torch.empty_like(memory))
    return kept.copy_(memory)
