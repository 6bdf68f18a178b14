"""Faults of the chapter `model`: each function overrides the seam that it is named after."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import copy
from collections.abc import Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams
from attentest_spec import Sizes

Same = TypeVar("Same", bound=Node)

_LOG = {"output": "log-probabilities"}
_UNTIED = {"tying": "none"}


def _built(self: Seams, **changes: Any) -> Node:
    """Build a sound model, at other sizes where they are given."""
    sound = self.sound
    return type(sound)(sound.sizes.but(**changes), sound.choices).make_model()


def _real(self: Seams, source: Tensor) -> Tensor:
    """Return which source tokens (B, S, 1) are no pads."""
    return (source != self.sizes.source_pad)[..., None]


# The numbers


@fault(
    "model.positions-on-source-alone",
    clause="model.formula",
    wrong="The target is embedded without positions.",
    effect="The decoder tells its past tokens apart by their number alone.",
)
def positions_of(self: Seams, module: Node, side: str) -> nn.Module:
    return nn.Identity() if side == "target" else self.sound.positions_of(module, side)


@fault(
    "model.one-embedding-for-both-sides",
    clause="model.formula",
    wrong="The target is looked up in the source's table, though there are two.",
    effect="Ids of one language read words of the other, and one table is never trained.",
    choices=_UNTIED,
)
def embedding_of(self: Seams, module: Node, side: str) -> Node:
    return self.sound.embedding_of(module, "source")


@fault(
    "model.generator-twice",
    clause="model.formula",
    origin="B091",
    wrong="What the generator returns is normalised once more.",
    effect="Probabilities are nearly equal, whatever the model has learned.",
)
def decode(self: Seams, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    return torch.softmax(self.sound.decode(module, target, memory, source), dim=-1)


@fault(
    "model.positions-twice",
    clause="model.formula",
    wrong="Positions are added by the embedding and by the stack.",
    effect="Order drowns the words.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    return self.positions_of(module, side)(self.sound.embed(module, side, tokens))


@fault(
    "model.positions-before-the-scale",
    clause="model.formula",
    wrong="The sum of embedding and position is scaled, not the embedding alone.",
    effect="Positions weigh as much as words by the root of the width.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    root = self.sizes.d_model**0.5
    embedded = self.embedding_of(module, side)(tokens) / root
    return self.positions_of(module, side)(embedded) * root  # type: ignore[no-any-return]


@fault(
    "model.encoder-left-out",
    clause="model.formula",
    origin="B083",
    wrong="The decoder is given the embedded source, not the encoded one.",
    effect="The encoder is never used, and the loss still falls.",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    return self.embed(module, "source", source)


@fault(
    "model.memory-normed-once-more",
    clause="model.formula",
    origin="B072",
    wrong="The memory is normalised once more on its way to the decoder.",
    effect="The gain of the last norm is undone.",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    return nn.functional.layer_norm(memory, memory.shape[-1:])


# Shapes


@fault(
    "model.squeezed-output",
    clause="model.shapes",
    wrong="The output is squeezed.",
    effect="One sample, or one step, loses its axis.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    return self.sound.model(module, source, target).squeeze()


@fault(
    "model.last-step-alone",
    clause="model.shapes",
    origin="B112",
    wrong="Only the last step is returned, as decoding wants it.",
    effect="Training has one word per sentence to learn from.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    return self.sound.model(module, source, target)[:, -1:]


@fault(
    "model.vocabulary-before-steps",
    clause="model.shapes",
    wrong="The output has its last two axes exchanged, as a loss may want them.",
    effect="Every reader of the output takes steps for words.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    return self.sound.model(module, source, target).transpose(1, 2)


# Two ways to one answer


@fault(
    "model.norm-in-forward-alone",
    clause="model.encode-decode-is-forward",
    wrong="The memory is normalised between the stacks in the whole call alone.",
    effect="Decoding in two steps translates with another model than the one trained.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    memory = self.encode(module, source)
    normed = nn.functional.layer_norm(memory, memory.shape[-1:])
    return self.decode(module, target, normed, source)


@fault(
    "model.mask-missing-in-forward-alone",
    clause="model.encode-decode-is-forward",
    origin="B086",
    wrong="The whole call hides no pads of the memory; decoding in two steps does.",
    effect="Training and decoding see different memories.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    words = torch.full_like(source, self.sizes.source_pad + 1)
    return self.decode(module, target, self.encode(module, source), words)


# Padding


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
    "model.positions-by-sample",
    clause="model.padding-in-a-batch",
    origin="B041",
    wrong="The source's positions are counted along the batch.",
    effect="A sentence reads otherwise in another row, and its order is lost.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    if side == "target":
        return self.positions_of(module, side)(embedded)  # type: ignore[no-any-return]
    return self.positions_of(module, side)(embedded.transpose(0, 1)).transpose(0, 1)  # type: ignore[no-any-return]


# Pad ids


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


# Order


@fault(
    "model.positions-on-target-alone",
    clause="model.source-order-matters",
    wrong="The source is embedded without positions.",
    effect="The source is a bag of words.",
)
def positions_of(self: Seams, module: Node, side: str) -> nn.Module:
    return nn.Identity() if side == "source" else self.sound.positions_of(module, side)


@fault(
    "model.position-zero-for-all",
    clause="model.source-order-matters",
    origin="B119",
    wrong="Tokens are embedded one by one, each of them at position 0.",
    effect="Positions are added, and tell nothing.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    alone = embedded.flatten(0, 1)[:, None]
    return self.positions_of(module, side)(alone).reshape(embedded.shape)


@fault(
    "model.order-though-none-declared",
    clause="model.source-order-matters",
    wrong="A ramp over the sentence is added where no positions are declared.",
    effect="What is sold as a set model reads order.",
    choices={"positional_encoding": "none"},
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.sound.embed(module, side, tokens)
    ramp = torch.arange(tokens.shape[1], device=tokens.device).to(embedded.dtype)
    return embedded * (1.0 + 0.1 * ramp[:, None])


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


@fault(
    "model.target-shifted-to-its-answer",
    clause="model.causality",
    origin="B094",
    wrong="The decoder's input is shifted once more, to the tokens it has to say.",
    effect="The model learns to copy.",
)
def decode(self: Seams, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    return self.sound.decode(module, target.roll(-1, dims=1), memory, source)


@fault(
    "model.target-positions-from-the-end",
    clause="model.prefix-consistency",
    wrong="Positions of the target are counted from its end.",
    effect="All positions move with every token that is generated.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    positions = self.positions_of(module, side)
    if side == "source":
        return positions(embedded)
    return positions(embedded.flip(1)).flip(1)


@fault(
    "model.target-scaled-by-its-length",
    clause="model.prefix-consistency",
    wrong="The embedded target is divided by the root of its length.",
    effect="What was said of the first words changes when more follow.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.sound.embed(module, side, tokens)
    return embedded if side == "source" else embedded / tokens.shape[1] ** 0.5


@fault(
    "model.target-centred-over-time",
    clause="model.prefix-consistency",
    wrong="The mean over all steps is taken off the embedded target.",
    effect="The future leaks by its mean.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.sound.embed(module, side, tokens)
    return embedded if side == "source" else embedded - embedded.mean(dim=1, keepdim=True)


# What came before


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


# The batch


@fault(
    "model.sentences-first",
    clause="model.batch-independence",
    origin="B127",
    wrong="The encoder takes the first axis for the length.",
    effect="Words attend to those of other sentences.",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    embedded = self.embed(module, "source", source)
    return module.encoder(embedded.transpose(0, 1), None).transpose(0, 1)  # type: ignore[no-any-return]


@fault(
    "model.memory-centred-over-the-batch",
    clause="model.batch-independence",
    wrong="The mean over the batch is taken off the memory.",
    effect="A translation depends on its neighbours.",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    return memory - memory.mean(dim=0, keepdim=True)


# Modes


@fault(
    "model.embedding-always-dropped",
    clause="model.deterministic-in-eval",
    origin="B100",
    wrong="Dropout on the embedding ignores the mode.",
    effect="Every evaluation is a draw.",
    kind="mode",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.sound.embed(module, side, tokens)
    return self.drop(embedded, self.sizes.dropout) if self.sizes.dropout else embedded


@fault(
    "model.memory-scaled-in-eval",
    clause="model.deterministic-in-eval",
    wrong="Activations are scaled by the kept share in evaluation, on top of the scaling in "
    "training.",
    effect="Two evaluations agree with each other, and with no other implementation.",
    kind="mode",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    memory = self.sound.encode(module, source)
    return memory if self.is_training(module) else memory * (1.0 - self.sizes.dropout)


@fault(
    "model.rate-not-passed-on",
    clause="model.random-in-train",
    origin="B103",
    wrong="The dropout rate is accepted and given to no part.",
    effect="The model is trained without its regularisation.",
    kind="mode",
)
def make_model(self: Seams) -> Node:
    return _built(self, dropout=0.0)


@fault(
    "model.seeded-in-every-call",
    clause="model.random-in-train",
    wrong="Every call draws its random numbers from the same seed.",
    effect="The same units are dropped in every step.",
    kind="mode",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return self.sound.model(module, source, target)


@fault(
    "model.embedding-dropout-of-its-own",
    clause="model.training-without-dropout",
    origin="B103",
    wrong="A dropout of 0.1 is written into the embedding.",
    effect="A rate of 0 still drops.",
    kind="mode",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.sound.embed(module, side, tokens)
    return self.drop(embedded, 0.1) if self.is_training(module) else embedded


@fault(
    "model.noise-in-training",
    clause="model.training-without-dropout",
    wrong="A little noise is added to the memory in training, whatever the rate.",
    effect="An overfitting test never reaches a loss of zero.",
    kind="mode",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    memory = self.sound.encode(module, source)
    noise = 0.01 * torch.randn_like(memory) if self.is_training(module) else 0.0
    return memory + noise


@fault(
    "model.evaluation-ends-training",
    clause="model.mode-comes-back",
    origin="B102",
    wrong="The first evaluation switches dropout off for good.",
    effect="From the second epoch on there is no dropout.",
    kind="mode",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    training = self.is_training(module)
    if training and self.memory.get("evaluated"):
        module.eval()
    self.memory["evaluated"] = self.memory.get("evaluated") or not training
    output = self.sound.model(module, source, target)
    module.train(training)
    return output


@fault(
    "model.mode-of-the-first-call",
    clause="model.mode-comes-back",
    origin="B102",
    wrong="The mode is read in the first call and kept.",
    effect="Evaluation after training is random.",
    kind="mode",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    module.train(self.memory.setdefault("mode", module.training))
    return self.sound.model(module, source, target)


class _Unregistered(nn.Module):
    """Layers that are kept where torch does not look."""

    def __init__(self, kept: Any) -> None:
        super().__init__()
        self.kept = kept

    def __iter__(self) -> Iterator[nn.Module]:
        return iter(self.kept.values() if isinstance(self.kept, dict) else self.kept)


class _Deaf(Node):
    """A part that is not told of a change of mode."""

    def train(self, mode: bool = True) -> "_Deaf":
        return self


@fault(
    "model.layers-in-a-list",
    clause="model.modes-reach-all",
    origin="B088",
    wrong="The encoder's layers are kept in a plain list.",
    effect="They are not trained, moved, saved or switched.",
    kind="mode",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.encoder.layers = _Unregistered(list(model.encoder.layers))
    return model


@fault(
    "model.decoder-deaf-to-modes",
    clause="model.modes-reach-all",
    wrong="The decoder overrides `train` and does not pass it on.",
    effect="Its dropout stays on in evaluation.",
    kind="mode",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.decoder.__class__ = _Deaf
    return model


def _undropped(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    return self.add_positions(self.positions_of(module, side), embedded)


@fault(
    "model.source-not-dropped",
    clause="model.dropout-sites",
    origin="B103",
    wrong="There is no dropout on the embedded source.",
    effect="One of the paper's sites is missing on one side.",
    kind="mode",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    if side == "target":
        return self.sound.embed(module, side, tokens)
    return _undropped(self, module, side, tokens)


@fault(
    "model.target-not-dropped",
    clause="model.dropout-sites",
    origin="B103",
    wrong="There is no dropout on the embedded target.",
    effect="One of the paper's sites is missing on one side.",
    kind="mode",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    if side == "source":
        return self.sound.embed(module, side, tokens)
    return _undropped(self, module, side, tokens)


@fault(
    "model.dropped-before-positions",
    clause="model.dropout-sites",
    wrong="The embedding is dropped, and positions are added to what is left.",
    effect="Positions are never dropped.",
    kind="mode",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    dropped = self.dropout(module, self.embedding_of(module, side)(tokens))
    return self.add_positions(self.positions_of(module, side), dropped)


# State


def _through_half(module: nn.Module, state: dict[str, Any], *rest: Any) -> None:
    for name, value in state.items():
        state[name] = value.to(torch.bfloat16).to(value.dtype)


class _Turned(Node):
    """A generator that sees the state through a fixed random reflection, unsaved."""

    def forward(self, *inputs: Any) -> Any:
        return super().forward(*(one * self.signs.to(one.dtype) for one in inputs))


@fault(
    "model.state-in-half-precision",
    clause="model.state-round-trip",
    wrong="The state is saved in a shorter format, to save space.",
    effect="The restarted model is not the one that was saved.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model._register_state_dict_hook(_through_half)
    return model


@fault(
    "model.random-signs-not-saved",
    clause="model.state-round-trip",
    wrong="Signs drawn at birth lie in a buffer that is left out of the state.",
    effect="After a restart the weights meet other signs.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.generator.__class__ = _Turned
    signs = torch.where(torch.rand(self.sizes.d_model) < 0.5, -1.0, 1.0)
    model.generator.register_buffer("signs", signs, persistent=False)
    return model


@fault(
    "model.running-mean-not-saved",
    clause="model.state-round-trip",
    wrong="A running mean of the memory is kept as a plain attribute and used in evaluation.",
    effect="After a restart evaluation is worse until training has gone on for a while.",
    kind="state",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    memory = self.sound.encode(module, source)
    if self.is_training(module):
        self.memory["mean"] = memory.detach().mean(dim=(0, 1))
    mean: Tensor | float = self.memory.get("mean", 0.0)
    return memory - mean


@fault(
    "model.causal-mask-saved",
    clause="model.state-independent-of-max-length",
    origin="B047",
    wrong="A causal mask of the greatest length is part of the state.",
    effect="A checkpoint does not load into a model for longer sentences.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.register_buffer("causal", self.causal_mask(self.sizes.max_length))
    return model


@fault(
    "model.position-table-saved",
    clause="model.state-independent-of-max-length",
    origin="B047",
    wrong="A table of positions is part of the state.",
    effect="A checkpoint does not load into a model for longer sentences.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    table = self.position_table(self.sizes.max_length, self.sizes.d_model)
    model.source_positions.register_buffer("saved", table)
    return model


# Copies


class _Shallow(Node):
    """A model whose deep copy shares everything."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Shallow":
        return copy.copy(self)


class _HalfDeep(Node):
    """A model whose deep copy keeps the decoder that it was handed."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_HalfDeep":
        memo[id(self.decoder)] = self.decoder
        return _deep(self, memo)


class _PartByPart(Node):
    """A model whose parts are copied one by one, each without knowing of the others."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_PartByPart":
        copied = _deep(self, memo)
        for name, part in self.named_children():
            setattr(copied, name, copy.deepcopy(part))
        return copied


def _deep(model: Same, memo: dict[int, Any]) -> Same:
    copied = model.__class__.__new__(model.__class__)
    copied.__dict__ = copy.deepcopy(model.__dict__, memo)
    return copied


def _as(self: Seams, kind: type[Node]) -> Node:
    """Return a sound model of another class."""
    model = self.sound.make_model()
    model.__class__ = kind
    return model


@fault(
    "model.shallow-copy",
    clause="model.deep-copy",
    wrong="A deep copy shares its parameters with the original.",
    effect="The averaged model is the model.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _as(self, _Shallow)


@fault(
    "model.copy-keeps-the-decoder",
    clause="model.deep-copy",
    wrong="A deep copy holds the decoder of the original.",
    effect="Half of the teacher moves with the student.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _as(self, _HalfDeep)


@fault(
    "model.copy-unties",
    clause="model.deep-copy",
    wrong="Parts are copied one by one, and matrices that were one are three afterwards.",
    effect="The copy drifts apart from what it was declared to be.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _as(self, _PartByPart)


class _Forgetful(Node):
    """A model that comes back from a pickle with the default pad ids."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        default = Sizes()
        how = self.how
        pads = {"source_pad": default.source_pad, "target_pad": default.target_pad}
        self.how = type(how)(how.sizes.but(**pads), how.choices)


class _Reborn(Node):
    """A model that is pickled as the sizes and choices it was built from."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _reborn, (self.how,)


def _reborn(how: Seams) -> Node:
    model = how.make_model()
    return model.eval().to(torch.float64)


@fault(
    "model.default-restored-from-pickle",
    clause="model.pickle",
    origin="B080",
    wrong="The pad ids are not pickled, and come back as the default.",
    effect="Workers hide another word than the process that sent them the model.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _as(self, _Forgetful)


@fault(
    "model.pickled-without-weights",
    clause="model.pickle",
    wrong="A pickle holds the sizes alone, and the model is built anew from them.",
    effect="Workers compute with random weights.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _as(self, _Reborn)


@fault(
    "model.lambda-inside",
    clause="model.pickle",
    wrong="A function without a name is kept in the model.",
    effect="The model cannot be sent to a worker process.",
    kind="loud",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    vars(model)["finish"] = lambda x: x
    return model


# Moves


class _Tempered(Node):
    """A generator that multiplies its output by a temperature held as a plain tensor."""

    def forward(self, *inputs: Any) -> Any:
        return super().forward(*inputs) * self.temperature[0]


@fault(
    "model.temperature-left-behind",
    clause="model.precision-move",
    origin="B046",
    wrong="A temperature is kept as a plain tensor: no move reaches it.",
    effect="A model moved to another precision or device computes with two of them.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.generator.__class__ = _Tempered
    model.generator.temperature = [torch.ones(1, dtype=torch.float64)]
    return model


@fault(
    "model.output-in-double",
    clause="model.precision-move",
    wrong="The output is raised to float64, to be safe.",
    effect="What is built on a float32 model computes in float64.",
)
def decode(self: Seams, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    return self.sound.decode(module, target, memory, source).double()


@fault(
    "model.table-not-a-buffer",
    clause="model.device-move",
    origin="B046",
    wrong="The table of positions is a plain attribute.",
    effect="It stays behind when the model moves, and the first call fails.",
    specimens=("plain",),
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    for part in (model.source_positions, model.target_positions):
        vars(part)["table"] = part._buffers.pop("table")
    return model


@fault(
    "model.layers-in-a-dict",
    clause="model.device-move",
    origin="B088",
    wrong="The decoder's layers are kept in a plain dictionary.",
    effect="They stay on the device they were made on.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    layers = {f"layer {number}": layer for number, layer in enumerate(model.decoder.layers)}
    model.decoder.layers = _Unregistered(layers)
    return model


# Gradients


@fault(
    "model.memory-detached",
    clause="model.every-parameter-reached",
    wrong="The memory is detached from the encoder.",
    effect="The encoder is never trained.",
    kind="gradient",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    return memory.detach()


@fault(
    "model.encoded-without-gradient",
    clause="model.every-parameter-reached",
    wrong="The source is encoded under `no_grad`, as decoding does it.",
    effect="The encoder is never trained.",
    kind="gradient",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    with torch.no_grad():
        return self.sound.encode(module, source)


@fault(
    "model.decoder-frozen",
    clause="model.every-parameter-reached",
    wrong="The decoder's parameters ask for no gradient.",
    effect="A fine-tuning trick that was left in trains half of the model.",
    kind="gradient",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.decoder.requires_grad_(False)
    return model


def _halved(gradient: Tensor) -> Tensor:
    return gradient / 2


def _clipped(gradient: Tensor) -> Tensor:
    return gradient.clamp(-1e-2, 1e-2)


@fault(
    "model.gradient-halved-at-the-memory",
    clause="model.parameter-gradient",
    wrong="The gradient is halved between the stacks.",
    effect="The encoder learns half as fast as it should.",
    kind="gradient",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    if memory.requires_grad:
        memory.register_hook(_halved)
    return memory


@fault(
    "model.gradient-clipped-inside",
    clause="model.parameter-gradient",
    wrong="The gradient is clipped inside the model, at every number.",
    effect="The direction of the step is not that of the loss.",
    kind="gradient",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    if memory.requires_grad:
        memory.register_hook(_clipped)  # type: ignore[no-untyped-call]
    return memory


@fault(
    "model.pad-queries-see-nothing",
    clause="model.gradient-finite",
    origin="B009",
    wrong="Pads of the target are hidden as queries too, and their rows are NaN.",
    effect="One NaN in a row that nobody reads spoils every gradient.",
    specimens=("plain",),
    kind="gradient",
)
def target_mask_of(self: Seams, target: Tensor) -> Tensor | None:
    real = self.padding_mask(target, self.sizes.target_pad)
    return self.sound.target_mask_of(target) & real.transpose(-1, -2)  # type: ignore[operator]


@fault(
    "model.memory-of-unit-length",
    clause="model.gradient-finite",
    origin="B061",
    wrong="Rows of the memory are zeroed at pads, then divided by their length.",
    effect="The slope of the root at zero is infinite: NaN at the first padded batch.",
    kind="gradient",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    memory = self.sound.encode(module, source) * _real(self, source)
    return memory / (memory.pow(2).sum(dim=-1, keepdim=True).sqrt() + 1e-6)


@fault(
    "model.logarithm-of-probabilities",
    clause="model.gradient-finite",
    wrong="Log-probabilities are the logarithm of what is left of the probabilities.",
    effect="A word that is as good as impossible costs infinitely much.",
    choices=_LOG,
    kind="gradient",
)
def decode(self: Seams, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    return self.sound.decode(module, target, memory, source).exp().log()


# Tying


@fault(
    "model.tying-forgotten",
    clause="model.tying",
    origin="B056",
    wrong="Tying is asked for and never done.",
    effect="There are three matrices where one is declared.",
    kind="state",
)
def tie(self: Seams, model: Node) -> None:
    self.check_tying()


@fault(
    "model.generator-left-untied",
    clause="model.tying",
    origin="B056",
    wrong="The embeddings are tied, the generator is not.",
    effect="The output has a matrix of its own.",
    kind="state",
)
def tie(self: Seams, model: Node) -> None:
    self.check_tying()
    self.share_matrix(model.target_embedding, model.source_embedding)


@fault(
    "model.source-tied-too",
    clause="model.tying",
    wrong="All three matrices are one where target and output alone are declared.",
    effect="Two vocabularies fight for one row.",
    choices={"tying": "target-and-output"},
    kind="state",
)
def tie(self: Seams, model: Node) -> None:
    self.share_matrix(model.target_embedding, model.source_embedding)
    self.share_matrix(model.generator, model.target_embedding)


@fault(
    "model.tied-unasked",
    clause="model.tying",
    wrong="Target embedding and generator are one where three matrices are declared.",
    effect="Loading one overwrites the other.",
    choices=_UNTIED,
    kind="state",
)
def tie(self: Seams, model: Node) -> None:
    self.share_matrix(model.generator, model.target_embedding)


def _matrix(part: Node) -> nn.Parameter:
    return next(one for one in part.parameters() if one.dim() > 1)


@fault(
    "model.tied-by-copying",
    clause="model.tied-gradient",
    origin="B056",
    wrong="The matrices are tied by copying the numbers once.",
    effect="They drift apart with the first step.",
    kind="gradient",
)
def tie(self: Seams, model: Node) -> None:
    self.check_tying()
    with torch.no_grad():
        for part in (model.target_embedding, model.generator):
            _matrix(part).copy_(_matrix(model.source_embedding))


@fault(
    "model.tied-gradient-averaged",
    clause="model.tied-gradient",
    wrong="The gradient of the shared matrix is averaged over its uses, not summed.",
    effect="The vocabulary learns at a rate of its own.",
    kind="gradient",
)
def tie(self: Seams, model: Node) -> None:
    self.sound.tie(model)
    _matrix(model.source_embedding).register_hook(_halved)  # type: ignore[no-untyped-call]


@fault(
    "model.target-use-detached",
    clause="model.tied-gradient",
    wrong="The embedded target gives no gradient to the shared matrix.",
    effect="Words are learned from where they are said, not from where they are read.",
    kind="gradient",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.sound.embed(module, side, tokens)
    return embedded.detach() if side == "target" else embedded


@fault(
    "model.unlike-vocabularies-tied",
    clause="model.unlike-vocabularies-refused",
    wrong="Vocabularies of unlike size are tied without a word.",
    effect="A target token reads a source word, or none.",
)
def check_tying(self: Seams) -> None:
    return


@fault(
    "model.target-vocabulary-cut",
    clause="model.unlike-vocabularies-refused",
    wrong="The target vocabulary is made as large as the source's.",
    effect="Its last words cannot be said.",
)
def make_model(self: Seams) -> Node:
    if self.choices.tying != "all-three":
        return self.sound.make_model()
    return _built(self, target_vocabulary=self.sizes.source_vocabulary)


@fault(
    "model.tying-asserted",
    clause="model.unlike-vocabularies-refused",
    wrong="Unlike vocabularies meet a bare assertion.",
    effect="The user reads `AssertionError`, and nothing under -O.",
)
def check_tying(self: Seams) -> None:
    if self.choices.tying == "all-three":
        assert self.sizes.source_vocabulary == self.sizes.target_vocabulary


# What it holds


@fault(
    "model.encoder-layers-shared",
    clause="model.parameter-count",
    origin="B087",
    wrong="The encoder is one layer, applied several times: `[layer] * n`.",
    effect="The number of parameters does not grow with the depth.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.encoder.layers = nn.ModuleList([model.encoder.layers[0]] * self.sizes.layers)
    return model


@fault(
    "model.final-norm-unasked",
    clause="model.parameter-count",
    origin="B072",
    wrong="The decoder ends in a norm that is not declared.",
    effect="One norm too many, with parameters of its own.",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    if model.decoder.norm is None:
        model.decoder.norm = self.sound.make_norm()
    return model


@fault(
    "model.position-table-trained",
    clause="model.parameter-count",
    origin="B045",
    wrong="The fixed table of positions is a parameter.",
    effect="It counts as a weight, and drifts.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    table = self.position_table(self.sizes.max_length, self.sizes.d_model)
    model.source_positions.trained = nn.Parameter(table)
    return model


@fault(
    "model.one-attention-for-self-and-memory",
    clause="model.parameter-map-complete",
    origin="B032",
    wrong="A decoder layer attends to itself and to the memory with the same weights.",
    effect="Two canonical names lead to one place, and what is loaded last wins.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    for layer in model.decoder.layers:
        layer.cross_attention = layer.self_attention
    return model


@fault(
    "model.feed-forward-of-both-stacks",
    clause="model.parameter-map-complete",
    wrong="Encoder and decoder are built around one feed-forward network.",
    effect="Loading the decoder changes the encoder.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.decoder.layers[0].feed_forward = model.encoder.layers[0].feed_forward
    return model


# Refusals


@fault(
    "model.ids-clipped",
    clause="model.out-of-range-refused",
    wrong="Ids outside the vocabulary become its first or last one.",
    effect="A wrong tokenizer is found out by bad translations.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    last = self.vocabulary_of(self.embedding_of(module, side)) - 1
    return self.sound.embed(module, side, tokens.clamp(0, last))


@fault(
    "model.negative-ids-wrap",
    clause="model.out-of-range-refused",
    wrong="A negative id counts from the end of the table.",
    effect="-1 is the last word.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    rows = self.vocabulary_of(self.embedding_of(module, side))
    return self.sound.embed(module, side, torch.where(tokens < 0, tokens + rows, tokens))


@fault(
    "model.id-not-named",
    clause="model.out-of-range-refused",
    wrong="A foreign id is refused by an error that does not tell it.",
    effect="The user reads `index out of range in self`.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    try:
        return self.sound.embed(module, side, tokens)
    except IndexError:
        raise IndexError("index out of range in self") from None


@fault(
    "model.long-source-cut",
    clause="model.too-long-input",
    wrong="Sources beyond the greatest length are cut.",
    effect="The end of a long sentence is not translated.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    return self.sound.model(module, source[:, : self.sizes.max_length], target)


@fault(
    "model.positions-start-over",
    clause="model.too-long-input",
    wrong="Beyond the greatest length positions start again at 0.",
    effect="Two words of a long sentence stand at one place.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    pieces = embedded.split(max(self.sizes.max_length, 1), dim=1)
    return torch.cat([self.positions_of(module, side)(one) for one in pieces], dim=1)


@fault(
    "model.greatest-length-refused",
    clause="model.too-long-input",
    wrong="A sentence of exactly the greatest length is refused.",
    effect="One position of the table is never used.",
    kind="loud",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    if tokens.shape[1] >= self.sizes.max_length:
        raise ValueError(f"{tokens.shape[1]} tokens are too many.")
    return self.sound.embed(module, side, tokens)


@fault(
    "model.width-rounded-down",
    clause="model.impossible-sizes-refused",
    wrong="A width that the heads cannot share is rounded down.",
    effect="The model is narrower than the one that was asked for.",
)
def make_model(self: Seams) -> Node:
    width, heads = self.sizes.d_model, self.sizes.heads
    if self.choices.head_width == "d/h" and 0 < heads <= width:
        return _built(self, d_model=width - width % heads)
    return self.sound.make_model()


@fault(
    "model.zero-layers-taken-for-default",
    clause="model.impossible-sizes-refused",
    wrong="A size of 0 counts as not given: `layers or 6`.",
    effect="No layers become six.",
)
def make_model(self: Seams) -> Node:
    return _built(self, layers=self.sizes.layers or 6)


@fault(
    "model.signs-ignored",
    clause="model.impossible-sizes-refused",
    wrong="Sizes below zero are taken without their sign.",
    effect="A slip in a configuration makes another model.",
)
def make_model(self: Seams) -> Node:
    return _built(self, d_ff=abs(self.sizes.d_ff))


@fault(
    "model.sizes-not-named",
    clause="model.impossible-sizes-refused",
    wrong="Impossible sizes are refused by an error without a number.",
    effect="The user has to guess which of ten sizes is wrong.",
)
def make_model(self: Seams) -> Node:
    try:
        return self.sound.make_model()
    except ValueError:
        raise ValueError("The configuration is not valid.") from None


# Birth


def _filled(model: Node, value: float) -> Node:
    with torch.no_grad():
        list(model.generator.parameters())[-1].fill_(value)
    return model


@fault(
    "model.bias-never-filled",
    clause="model.finite-at-birth",
    origin="B099",
    wrong="The generator's bias is whatever lay in memory.",
    effect="NaN at birth, on some days.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _filled(self.sound.make_model(), float("nan"))


@fault(
    "model.bias-of-unfilled-memory",
    clause="model.finite-at-birth",
    origin="B099",
    wrong="The generator's bias is whatever lay in memory.",
    effect="A number of 1e30 at birth, on some days.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _filled(self.sound.make_model(), 1e30)


@fault(
    "model.tables-born-too-large",
    clause="model.finite-at-birth",
    origin="B058",
    wrong="Tables are drawn with the variance where the deviation belongs.",
    effect="The first loss is many times the logarithm of the vocabulary.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    with torch.no_grad():
        for part in (model.source_embedding, model.target_embedding):
            _matrix(part).normal_(std=float(self.sizes.d_model**2))
    return model


def _same_layers(stack: Node) -> None:
    first, *others = stack.layers
    for layer in others:
        layer.load_state_dict(first.state_dict())


@fault(
    "model.encoder-layers-born-alike",
    clause="model.layers-differ-at-birth",
    origin="B090",
    wrong="The encoder's layers are copies of one that is initialised.",
    effect="They get like gradients, and depth is worth less.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    _same_layers(model.encoder)
    return model


@fault(
    "model.decoder-layers-born-alike",
    clause="model.layers-differ-at-birth",
    origin="B090",
    wrong="The decoder's layers are copies of one that is initialised.",
    effect="They get like gradients, and depth is worth less.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    _same_layers(model.decoder)
    return model


# The world around


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


# Precisions


@fault(
    "model.memory-through-bfloat16",
    clause="model.float32",
    wrong="The memory passes through bfloat16 in float32.",
    effect="Five digits are lost on the way between the stacks.",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    return memory.bfloat16().float() if memory.dtype == torch.float32 else memory


@fault(
    "model.embedding-through-float16",
    clause="model.float32",
    wrong="The embedded tokens pass through float16 in float32.",
    effect="Four digits are lost before the first layer.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.sound.embed(module, side, tokens)
    return embedded.half().float() if embedded.dtype == torch.float32 else embedded


@fault(
    "model.pads-driven-to-a-billion",
    clause="model.half-precision",
    origin="B008",
    wrong="A billion is taken from the memory at pads, which float16 cannot hold.",
    effect="Infinity times zero: NaN for every padded batch in float16.",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    memory = self.sound.encode(module, source)
    return memory + (~_real(self, source)).to(memory.dtype) * -1e9


@fault(
    "model.scaled-beyond-half",
    clause="model.half-precision",
    origin="B126",
    wrong="The memory is scaled up by 1e5 and down again.",
    effect="Everything overflows in float16.",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    return memory * 1e5 / 1e5


@fault(
    "model.probabilities-vanish-in-half",
    clause="model.half-precision",
    wrong="Log-probabilities are the logarithm of probabilities rounded to float16.",
    effect="Vanishing probabilities cost infinitely much in half precision.",
    choices=_LOG,
)
def decode(self: Seams, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    output = self.sound.decode(module, target, memory, source)
    return output.exp().log() if output.dtype in (torch.float16, torch.bfloat16) else output
