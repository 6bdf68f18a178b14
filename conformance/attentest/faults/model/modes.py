"""Faults in training and evaluation mode, and in the sites of dropout."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.model.shared import Unregistered, built
from attentest.faults.reference_models import Hooks, Node


@fault(
    "model.embedding-always-dropped",
    "deterministic-in-eval",
    seam="embed",
    origin="B100",
    kind="mode",
)
def embedding_always_dropped(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Dropout on the embedding ignores the mode. Evaluation is random."""
    embedded = self.correct.embed(module, side, tokens)
    return self.drop(embedded, self.sizes.dropout) if self.sizes.dropout else embedded


@fault("model.memory-scaled-in-eval", "deterministic-in-eval", seam="encode", kind="mode")
def memory_scaled_in_eval(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """Activations are scaled by 1 - p in evaluation, besides the scaling in training.

    No other implementation agrees.
    """
    memory = self.correct.encode(module, source)
    return memory if self.is_training(module) else memory * (1.0 - self.sizes.dropout)


@fault("model.rate-not-passed-on", "random-in-train", seam="make_model", origin="B103", kind="mode")
def rate_not_passed_on(self: Hooks) -> Node:
    """The dropout rate is passed to no part. The model is not regularised."""
    return built(self, dropout=0.0)


@fault("model.seeded-in-every-call", "random-in-train", seam="model", kind="mode")
def seeded_in_every_call(self: Hooks, module: Node, source: Tensor, target: Tensor) -> Tensor:
    """Every call sets the same seed. Every step drops the same units."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return self.correct.model(module, source, target)


@fault(
    "model.embedding-dropout-of-its-own",
    "training-without-dropout",
    seam="embed",
    origin="B103",
    kind="mode",
)
def embedding_dropout_of_its_own(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """The embedding has its own dropout of 0.1. A rate of 0 still drops."""
    embedded = self.correct.embed(module, side, tokens)
    return self.drop(embedded, 0.1) if self.is_training(module) else embedded


@fault("model.noise-in-training", "training-without-dropout", seam="encode", kind="mode")
def noise_in_training(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """A little noise is added to the memory in training, whatever the rate.

    An overfitting test never reaches a loss of zero.
    """
    memory = self.correct.encode(module, source)
    noise = 0.01 * torch.randn_like(memory) if self.is_training(module) else 0.0
    return memory + noise


@fault(
    "model.evaluation-ends-training", "mode-comes-back", seam="model", origin="B102", kind="mode"
)
def evaluation_ends_training(self: Hooks, module: Node, source: Tensor, target: Tensor) -> Tensor:
    """The first evaluation turns dropout off for good. Later epochs have no dropout."""
    training = self.is_training(module)
    if training and self.memory.get("evaluated"):
        module.eval()
    self.memory["evaluated"] = self.memory.get("evaluated") or not training
    output = self.correct.model(module, source, target)
    module.train(training)
    return output


@fault("model.mode-of-the-first-call", "mode-comes-back", seam="model", origin="B102", kind="mode")
def mode_of_the_first_call(self: Hooks, module: Node, source: Tensor, target: Tensor) -> Tensor:
    """The mode of the first call is kept. Evaluation after training is random."""
    module.train(self.memory.setdefault("mode", module.training))
    return self.correct.model(module, source, target)


@fault("model.layers-in-a-list", "modes-reach-all", seam="make_model", origin="B088", kind="loud")
def layers_in_a_list(self: Hooks) -> Node:
    """The encoder's layers are in a plain list. They are not trained, moved, saved or switched."""
    model = self.correct.make_model()
    model.encoder.layers = Unregistered(list(model.encoder.layers))
    return model


class _WithoutModes(Node):
    """A part that ignores a change of mode."""

    def train(self, mode: bool = True) -> "_WithoutModes":
        return self


@fault("model.decoder-deaf-to-modes", "modes-reach-all", seam="make_model", kind="mode")
def decoder_deaf_to_modes(self: Hooks) -> Node:
    """The decoder overrides `train` and does not pass it on. Its dropout stays on in evaluation."""
    model = self.correct.make_model()
    model.decoder.__class__ = _WithoutModes
    return model


def _undropped(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    return self.add_positions(self.positions_of(module, side), embedded)


@fault("model.source-not-dropped", "dropout-sites", seam="embed", origin="B103", kind="mode")
def source_not_dropped(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """The embedded source has no dropout. The paper has it there."""
    if side == "target":
        return self.correct.embed(module, side, tokens)
    return _undropped(self, module, side, tokens)


@fault("model.target-not-dropped", "dropout-sites", seam="embed", origin="B103", kind="mode")
def target_not_dropped(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """The embedded target has no dropout. The paper has it there."""
    if side == "source":
        return self.correct.embed(module, side, tokens)
    return _undropped(self, module, side, tokens)


@fault("model.dropped-before-positions", "dropout-sites", seam="embed", kind="mode")
def dropped_before_positions(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Dropout comes before the positions are added. Positions are never dropped."""
    dropped = self.dropout(module, self.embedding_of(module, side)(tokens))
    return self.add_positions(self.positions_of(module, side), dropped)


@fault("model.evaluates-after-a-call", "modes-reach-all", seam="encode", kind="mode")
def evaluates_after_a_call(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """A call leaves the encoder in evaluation mode. It trains without dropout."""
    memory = self.correct.encode(module, source)
    module.encoder.eval()
    return memory
