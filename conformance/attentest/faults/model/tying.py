"""Faults in the matrices that embeddings and generator share."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.model.shared import UNTIED, built, halved, matrix_of
from attentest.specimens import Node, Seams
from attentest_spec.parameters import one_vocabulary


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
    choices=UNTIED,
    kind="state",
)
def tie(self: Seams, model: Node) -> None:
    self.share_matrix(model.generator, model.target_embedding)


@fault(
    "model.generator-tied-too",
    clause="model.tying",
    wrong="All three matrices are one where the two embeddings alone are declared.",
    effect="A word is said by the vector that it is read by, and the two uses pull at one row.",
    choices={"tying": "embeddings"},
    kind="state",
)
def tie(self: Seams, model: Node) -> None:
    self.sound.tie(model)
    self.share_matrix(model.generator, model.target_embedding)


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
            matrix_of(part).copy_(matrix_of(model.source_embedding))


@fault(
    "model.tied-gradient-averaged",
    clause="model.tied-gradient",
    wrong="The gradient of the shared matrix is averaged over its uses, not summed.",
    effect="The vocabulary learns at a rate of its own.",
    kind="gradient",
)
def tie(self: Seams, model: Node) -> None:
    self.sound.tie(model)
    matrix_of(model.source_embedding).register_hook(halved)  # type: ignore[no-untyped-call]


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
    if not one_vocabulary(self.choices):
        return self.sound.make_model()
    return built(self, target_vocabulary=self.sizes.source_vocabulary)


@fault(
    "model.tying-asserted",
    clause="model.unlike-vocabularies-refused",
    wrong="Unlike vocabularies meet a bare assertion.",
    effect="The user reads `AssertionError`, and nothing under -O.",
)
def check_tying(self: Seams) -> None:
    if one_vocabulary(self.choices):
        assert self.sizes.source_vocabulary == self.sizes.target_vocabulary
