"""Faults in the precisions that a step is computed in."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.model.shared import LOG_PROBABILITIES, real_tokens
from attentest.specimens import Node, Seams


@fault(
    "model.output-in-double",
    clause="model.precision-move",
    wrong="The output is raised to float64, to be safe.",
    effect="What is built on a float32 model computes in float64.",
)
def decode(self: Seams, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    return self.sound.decode(module, target, memory, source).double()


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
    return memory + (~real_tokens(self, source)).to(memory.dtype) * -1e9


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
    choices=LOG_PROBABILITIES,
)
def decode(self: Seams, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    output = self.sound.decode(module, target, memory, source)
    return output.exp().log() if output.dtype in (torch.float16, torch.bfloat16) else output
