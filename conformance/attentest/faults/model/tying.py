"""Faults in the matrices that embeddings and generator share."""

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
    """The embeddings are tied, the generator is not. The output has a matrix of its own."""
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
    """All three matrices are one where target and output alone are declared.

    Two vocabularies fight for one row.
    """
    self.share_matrix(model.target_embedding, model.source_embedding)
    self.share_matrix(model.generator, model.target_embedding)


@fault("model.tied-unasked", "tying", seam="tie", choices=UNTIED, kind="state")
def tied_unasked(self: Hooks, model: Node) -> None:
    """Target embedding and generator are one where three matrices are declared.

    Loading one overwrites the other.
    """
    self.share_matrix(model.generator, model.target_embedding)


@fault(
    "model.generator-tied-too", "tying", seam="tie", choices={"tying": "embeddings"}, kind="state"
)
def generator_tied_too(self: Hooks, model: Node) -> None:
    """All three matrices are one where the two embeddings alone are declared.

    A word is said by the vector that it is read by, and the two uses pull at one row.
    """
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
    """The gradient of the shared matrix is averaged over its uses, not summed.

    The vocabulary learns at a rate of its own.
    """
    self.correct.tie(model)
    matrix_of(model.source_embedding).register_hook(halved)  # type: ignore[no-untyped-call]


@fault("model.target-use-detached", "tied-gradient", seam="embed", kind="gradient")
def target_use_detached(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """The embedded target gives no gradient to the shared matrix.

    Words are learned from where they are said, not from where they are read.
    """
    embedded = self.correct.embed(module, side, tokens)
    return embedded.detach() if side == "target" else embedded


@fault("model.unlike-vocabularies-tied", "unlike-vocabularies-refused", seam="check_tying")
def unlike_vocabularies_tied(self: Hooks) -> None:
    """Vocabularies of unlike size are tied without a word.

    A target token reads a source word, or none.
    """
    return


@fault("model.target-vocabulary-cut", "unlike-vocabularies-refused", seam="make_model")
def target_vocabulary_cut(self: Hooks) -> Node:
    """The target vocabulary is made as large as the source's. Its last words cannot be said."""
    if not one_vocabulary(self.choices):
        return self.correct.make_model()
    return built(self, target_vocabulary=self.sizes.source_vocabulary)


@fault("model.tying-asserted", "unlike-vocabularies-refused", seam="check_tying")
def tying_asserted(self: Hooks) -> None:
    """Unlike vocabularies meet a bare assertion.

    The user reads `AssertionError`, and nothing under -O.
    """
    if one_vocabulary(self.choices):
        assert self.sizes.source_vocabulary == self.sizes.target_vocabulary
