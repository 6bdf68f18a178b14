"""Faults in the tying of embeddings and generator."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.model.shared import UNTIED, built, halved, matrix_of
from attentest.faults.reference_models import Hooks, Node
from attentest_spec.parameters import one_vocabulary


@fault("model.tying-forgotten", "tying", seam="tie", origin="B056", kind="state")
def tying_forgotten(self: Hooks, model: Node) -> None:
    """Tying is asked for and never done. There are three matrices where one is declared."""
    self.check_tying()


@fault("model.generator-left-untied", "tying", seam="tie", origin="B056", kind="state")
def generator_left_untied(self: Hooks, model: Node) -> None:
    """The embeddings are tied, the generator is not. The output has its own matrix."""
    self.check_tying()
    self.share_matrix(model.target_embedding, model.source_embedding)


@fault(
    "model.source-tied-too",
    "tying",
    seam="tie",
    choices={"tying": "target-and-output"},
    kind="state",
)
def source_tied_too(self: Hooks, model: Node) -> None:
    """All three matrices are tied; the source's should not be. Two vocabularies share rows."""
    self.share_matrix(model.target_embedding, model.source_embedding)
    self.share_matrix(model.generator, model.target_embedding)


@fault("model.tied-unasked", "tying", seam="tie", choices=UNTIED, kind="state")
def tied_unasked(self: Hooks, model: Node) -> None:
    """Target embedding and generator are tied unasked. Loading one overwrites the other."""
    self.share_matrix(model.generator, model.target_embedding)


@fault(
    "model.generator-tied-too", "tying", seam="tie", choices={"tying": "embeddings"}, kind="state"
)
def generator_tied_too(self: Hooks, model: Node) -> None:
    """All three matrices are tied; the generator's should not be. Two uses train one row."""
    self.correct.tie(model)
    self.share_matrix(model.generator, model.target_embedding)


@fault("model.tied-by-copying", "tied-gradient", seam="tie", origin="B056", kind="gradient")
def tied_by_copying(self: Hooks, model: Node) -> None:
    """The matrices are tied by copying the numbers once. They drift apart with the first step."""
    self.check_tying()
    with torch.no_grad():
        for part in (model.target_embedding, model.generator):
            matrix_of(part).copy_(matrix_of(model.source_embedding))


@fault("model.tied-gradient-averaged", "tied-gradient", seam="tie", kind="gradient")
def tied_gradient_averaged(self: Hooks, model: Node) -> None:
    """The gradient of the shared matrix is averaged. It trains at another rate."""
    self.correct.tie(model)
    matrix_of(model.source_embedding).register_hook(halved)  # type: ignore[no-untyped-call]


@fault("model.target-use-detached", "tied-gradient", seam="embed", kind="gradient")
def target_use_detached(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """The embedded target gives no gradient to the shared matrix.

    Tokens are learned from the output alone.
    """
    embedded = self.correct.embed(module, side, tokens)
    return embedded.detach() if side == "target" else embedded


@fault("model.unlike-vocabularies-tied", "unlike-vocabularies-refused", seam="check_tying")
def unlike_vocabularies_tied(self: Hooks) -> None:
    """Vocabularies of different sizes are tied. A target token reads a source token, or none."""
    return


@fault("model.target-vocabulary-cut", "unlike-vocabularies-refused", seam="make_model")
def target_vocabulary_cut(self: Hooks) -> Node:
    """The target vocabulary gets the size of the source's. Its last tokens cannot be said."""
    if not one_vocabulary(self.choices):
        return self.correct.make_model()
    return built(self, target_vocabulary=self.sizes.source_vocabulary)


@fault("model.tying-asserted", "unlike-vocabularies-named", seam="check_tying", kind="wording")
def tying_asserted(self: Hooks) -> None:
    """A bare assertion checks the vocabularies. It names no sizes, and is skipped under -O."""
    if one_vocabulary(self.choices):
        assert self.sizes.source_vocabulary == self.sizes.target_vocabulary
