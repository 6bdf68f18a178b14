"""Faults in training and evaluation, and where dropout acts."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.model.shared import Unregistered, built
from attentest.specimens import Node, Seams


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
    return built(self, dropout=0.0)


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


@fault(
    "model.layers-in-a-list",
    clause="model.modes-reach-all",
    origin="B088",
    wrong="The encoder's layers are kept in a plain list.",
    effect="They are not trained, moved, saved or switched.",
    kind="loud",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.encoder.layers = Unregistered(list(model.encoder.layers))
    return model


class _Deaf(Node):
    """A part that is not told of a change of mode."""

    def train(self, mode: bool = True) -> "_Deaf":
        return self


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


@fault(
    "model.evaluates-after-a-call",
    clause="model.modes-reach-all",
    wrong="A call switches the encoder to evaluation and leaves it there.",
    effect="After the first step the encoder trains without dropout.",
    kind="mode",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    memory = self.sound.encode(module, source)
    module.encoder.eval()
    return memory
