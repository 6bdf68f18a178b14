"""Faults in the projections of query, key, value and output."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.multi_head_attention.shared import bias_of
from attentest.specimens import Node, Seams


@fault(
    "multi_head_attention.output-projection-missing",
    clause="multi_head_attention.formula",
    origin="B033",
    wrong="The heads are laid side by side and returned; the output projection is left out.",
    effect="Heads are never mixed, and the columns of one head see no other.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    return x if name == "output" else self.sound.project(module, name, x)


@fault(
    "multi_head_attention.output-projection-twice",
    clause="multi_head_attention.formula",
    origin="C: the output projection is applied twice",
    wrong="The output projection is applied to its own result once more.",
    effect="It trains, and no other implementation reads its weights.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    once = self.sound.project(module, name, x)
    return self.sound.project(module, name, once) if name == "output" else once


@fault(
    "multi_head_attention.scaled-by-model-width",
    clause="multi_head_attention.formula",
    origin="B024",
    wrong="The query is divided by the root of the number of heads on top of the scale.",
    effect="Scores are divided by the root of the model width; one head hides it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected * self.sizes.heads**-0.5 if name == "query" else projected


@fault(
    "multi_head_attention.scaled-before-and-after",
    clause="multi_head_attention.formula",
    wrong="The query is scaled when it is projected, and the scores are scaled again.",
    effect="Attention is too flat by the root of the head width.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected * self.head_width() ** -0.5 if name == "query" else projected


@fault(
    "multi_head_attention.rectified-value",
    clause="multi_head_attention.formula",
    wrong="Values go through a ReLU after their projection.",
    effect="Half of what a value can say is gone; inputs without negative numbers hide it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected.clamp(min=0.0) if name == "value" else projected


@fault(
    "multi_head_attention.query-bias-dropped",
    clause="multi_head_attention.projection-bias",
    wrong="The bias of the query projection is there and not added.",
    effect="It stays as it was born; zero at birth hides it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected - bias_of(self, module, name, x) if name == "query" else projected


@fault(
    "multi_head_attention.value-bias-dropped",
    clause="multi_head_attention.projection-bias",
    wrong="The bias of the value projection is there and not added.",
    effect="It stays as it was born; zero at birth hides it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected - bias_of(self, module, name, x) if name == "value" else projected


@fault(
    "multi_head_attention.output-bias-per-head",
    clause="multi_head_attention.projection-bias",
    wrong="The output is projected head by head and summed, its bias with each of them.",
    effect="The bias counts as many times as there are heads.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    if name != "output":
        return projected
    return projected + (self.sizes.heads - 1) * bias_of(self, module, name, x)


@fault(
    "multi_head_attention.single-head-unprojected",
    clause="multi_head_attention.one-head-is-attention",
    wrong="With one head the output projection is taken to be superfluous and skipped.",
    effect="Right with two heads or more.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    superfluous = name == "output" and self.sizes.heads == 1
    return x if superfluous else self.sound.project(module, name, x)


@fault(
    "multi_head_attention.single-head-values-raw",
    clause="multi_head_attention.one-head-is-attention",
    wrong="With one head the values are not projected.",
    effect="Right with two heads or more.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    raw = name == "value" and self.sizes.heads == 1 and self.head_width() == x.shape[-1]
    return x if raw else self.sound.project(module, name, x)


@fault(
    "multi_head_attention.query-by-key-weight",
    clause="multi_head_attention.own-projections",
    origin="B032",
    wrong="The query is projected by the weight of the keys: a line copied and not changed.",
    effect="The query projection is never trained, and scores are symmetric.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    return self.sound.project(module, "key" if name == "query" else name, x)


@fault(
    "multi_head_attention.value-by-key-weight",
    clause="multi_head_attention.own-projections",
    origin="B032",
    wrong="The value is projected by the weight of the keys.",
    effect="The value projection is never trained.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    return self.sound.project(module, "key" if name == "value" else name, x)


@fault(
    "multi_head_attention.query-and-key-swapped",
    clause="multi_head_attention.own-projections",
    wrong="Query and key are projected by each other's weight.",
    effect="It trains as well as ever; a checkpoint from elsewhere gives another model.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    other = {"query": "key", "key": "query"}
    return self.sound.project(module, other.get(name, name), x)
